"""`report`: the page of any run, or of a file of annotations.

Which protocol's page it is, its records tell; each protocol writes its own.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import ReportParameters
from uncanny.eval.common.runs import page_of_run
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.parameters import path_of, takes
from uncanny.records.run_folder import RunFolder
from uncanny.wording import counted, either, option


@takes(ReportParameters)
def report(run: str | PathLike[str], parameters: ReportParameters) -> Path:
    """Write the page of a run, finished or not, or of a file of annotations, and return its path.

    It asks nothing of the network and is `report.html` in the run's folder, or beside a file the same name
    with `.html`, unless `out` is given. A run of `annotate` or `detect` shows its images, a run of `mcq` or
    `realism` its scores. The page appears whole or not at all.

    Raises UsageError where there is no such run, RecordError for an invalid record, and OSError where the
    page cannot be written.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> uncanny.report(out).name
    'report.html'
    """
    path, pictures = path_of("run", run), parameters.pictures
    target = page_of_run(path) if parameters.out is None else Path(parameters.out)
    folder = RunFolder(path.parent if path.is_file() else path)
    folder.check_links()
    manifest = None if path.is_file() else folder.read_manifest()
    if manifest is not None and manifest.task == "detect" and folder.annotations.is_file():
        from uncanny.eval.detect.run import DetectRun

        return DetectRun(path).report(target, max_images=parameters.max_images, pictures=pictures)
    if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file():
        raise UsageError(f"{path} is an image and no run", remedy="Name the folder of a run.")
    if path.is_file() or folder.annotations.is_file():
        from uncanny.annotation.report.page import write_report

        return write_report(path, max_images=parameters.max_images, out=target, pictures=pictures)
    if (path / "answers.jsonl").is_file():
        from uncanny.eval.mcq.run import McqRun

        return McqRun(path).report(target, pictures=pictures)
    if (path / "verdicts.jsonl").is_file():
        from uncanny.eval.realism.score import score

        return score(path).report(target, pictures=pictures)
    if manifest is not None and manifest.task == "artifacts":
        raise UsageError(
            f"{path} is a run of `artifacts`, and its page is that of its scores, which needs the truth",
            remedy="Write "
            + either(
                python=f"uncanny.artifacts.score({str(path)!r}, truth=…).report()",
                command_line=f"uncanny artifacts score {path} {option('truth', 'TRUTH')}",
            )
            + ".",
        )
    if manifest is not None and manifest.task in ("perturb", "prompts"):
        raise UsageError(
            f"{path} is a run of `edits {manifest.task}`, which writes texts and has no page",
            remedy=f"They are in {path / (manifest.record_file or '')}.",
        )
    if manifest is not None and manifest.task is not None:
        raise UsageError(
            f"{path} holds a run of {manifest.task!r}, which is none of uncanny's own or has no records yet",
            remedy="Write its page with the function of its protocol.",
        )
    inner = sorted(file.parent.name for file in path.glob("*/run.json"))
    if inner:
        raise UsageError(
            f"{path} is not a run, but holds {counted(len(inner), 'run')}: {', '.join(inner)}",
            remedy="Name one of them, or write the page of their scores.",
        )
    raise UsageError(
        f"{path} is not a run: it has no annotations.jsonl, answers.jsonl or verdicts.jsonl",
        remedy="Name a run folder.",
    )
