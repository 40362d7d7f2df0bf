"""`report`: the page of any run, or of a file of annotations.

Which protocol's page it is, its records tell; each protocol writes its own.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.common.inputs.runs import page_of_run
from uncanny.eval.common.parameters import ReportParameters
from uncanny.images.discover import IMAGE_SUFFIXES
from uncanny.parameters import path_of, takes
from uncanny.protocol import named, protocols
from uncanny.records.annotation_table import LINES
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
    path = path_of("run", run)
    target = page_of_run(path) if parameters.out is None else Path(parameters.out)
    placed = ReportParameters(**parameters.given | {"out": target})
    folder = RunFolder(path.parent if path.is_file() else path)
    folder.check_links()
    manifest = None if path.is_file() else folder.read_manifest()
    task = None if manifest is None else manifest.task
    if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file():
        raise UsageError(f"{path} is an image, not a run", remedy="Pass the folder of a run.")
    with_pages = [each for each in protocols().values() if each.page]
    # A file is one of annotations, which come first in the table. Records of other programs name no task.
    for protocol in sorted(with_pages, key=lambda each: each.name != task):
        # Where only the table of annotations is there, their lines may be elsewhere.
        records = folder.annotations if protocol.records == LINES else path / str(protocol.records)
        if path.is_file() or records.is_file():
            page: Path = named(protocol.page)(path, placed)
            return page
    known = protocols().get(task or "")
    if known is not None and known.input.name and not known.report:
        room = known.command[0]
        raise UsageError(
            f"{path} is a run of `{room}`; its page shows scores, which need the ground truth",
            remedy="Run "
            + either(
                f"uncanny.{room}.score({str(path)!r}, truth=…).report()",
                terminal=f"uncanny {room} score {path} {option('truth', 'TRUTH')}",
            )
            + ".",
        )
    if manifest is not None and known is not None and not known.report:
        raise UsageError(
            f"{path} is a run of `{' '.join(known.command)}`, which has no page",
            remedy=f"Its records are in {path / (manifest.record_file or '')}.",
        )
    if task is not None:
        raise UsageError(
            f"{path} is a run of {task!r}, which is not one of uncanny's protocols or has no records yet",
            remedy="Write its page with the function of its protocol.",
        )
    inner = sorted(file.parent.name for file in path.glob("*/run.json"))
    if inner:
        raise UsageError(
            f"{path} is not a run, but contains {counted(len(inner), 'run')}: {', '.join(inner)}",
            remedy="Pass one of them, or write the page of their scores.",
        )
    files = dict.fromkeys(str(each.records) for each in with_pages)
    raise UsageError(f"{path} is not a run: it has none of {', '.join(files)}", remedy="Pass a run folder.")
