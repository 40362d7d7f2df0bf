"""`uncanny detect`: the command, and what a run says of itself in the end, with scores where the truth is
known."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from uncanny.cli.annotate import MOST_FAILURES, skipped_lines, spending_lines, why_failed
from uncanny.cli.command import Command
from uncanny.cli.options import (
    OUTPUT_TOKENS,
    TEMPERATURE,
    TOP_P,
    DetectKeywords,
    pixel_options,
    read_policy,
    several_models_options,
)
from uncanny.cli.outputs import check_run_folder, force_option
from uncanny.cli.terminal import layout
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.cli.several import Prepared, Scores
    from uncanny.eval.detect.data import SourceTruth
    from uncanny.eval.detect.run import DetectTask
    from uncanny.eval.detect.score import DetectScore
    from uncanny.runs.config import ModelOptions, RunOptions
    from uncanny.runs.run import RunEnd
    from uncanny.schema import Detection


@click.command("detect", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--run", "run", type=click.Path(path_type=Path), help="The run folder. Needed to run.")
@several_models_options
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Name images in records relative to this. [default: the run folder]",
)
@click.option(
    "--truth",
    metavar="FILE",
    help="Score against this: a line an image, or `scenes`. [default: by folders called real, generated, …]",
)
@click.option(
    "--temperature", type=TEMPERATURE, default=0.0, show_default=True, help="Sent where the model takes one."
)
@click.option("--top-p", type=TOP_P, help="Sent where the model takes one. [default: the model's own]")
@click.option(
    "--max-output-tokens",
    type=OUTPUT_TOKENS,
    default=2000,
    show_default=True,
    help="Doubled when an answer is cut off.",
)
@pixel_options
@force_option
@click.option(
    "--report/--no-report", default=True, help="Write RUN/report.html in the end. [default: report]"
)
def command(
    paths: tuple[Path, ...],
    run: Path | None,
    models: tuple[str, ...],
    root: Path | None,
    truth: str | None,
    report: bool,
    force: bool,
    **options: Unpack[DetectKeywords],
) -> None:
    """Tell generated images from real ones: yes or no, then what gives them away.

    PATHS are image files and folders, or the word `scenes` for the bundled images. Results go to
    RUN/annotations.jsonl as they come; the same command goes on where it stopped. With several models each
    has a run in a folder of its own in RUN, and a table of all follows. Exit code, of several models the
    worst: 0 all judged, 1 some failed, 2 wrong use, 3 budget spent, 130 interrupted.

    \b
    Out of the box:
      uncanny detect scenes --model demo -o runs/d
      uncanny semantic runs/d --truth scenes --similarity chrf

    \b
    Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, VLLM_API_KEY, OPENAI_COMPATIBLE_API_KEY.
    Role: detector.
    """
    from uncanny.agents.config import DetectConfig
    from uncanny.cli.options import checked
    from uncanny.cli.several import Prepared, ask_models
    from uncanny.eval.detect.data import find_truth
    from uncanny.eval.detect.forecast import forecast_task
    from uncanny.eval.detect.run import DetectTask
    from uncanny.records.run_folder import RunFolder

    dry = options["dry_run"]
    if run is None and not dry:
        raise UsageError("No run folder is named", remedy="Say where results go with -o runs/NAME.")
    sampling = {
        "temperature": options["temperature"],
        "top_p": options["top_p"],
        "max_output_tokens": options["max_output_tokens"],
    }
    config = checked(DetectConfig, sampling)
    policy = read_policy(**options)
    summaries: dict[Path, DetectSummary] = {}

    def prepare(model: ModelOptions, folder: Path | None, limits: RunOptions) -> Prepared:
        # A dry run leaves nothing behind, so the bundled images stay where they are.
        images = named_images(paths, folder, copy=not dry)
        target = RunFolder(folder or Path("runs/unnamed"))
        task = DetectTask(
            folder=target,
            paths=images.paths,
            models=model,
            options=limits,
            policy=policy,
            root=root,
            config=config,
        )
        files = task.inputs().files
        # Before anything is asked: a truth that does not fit is found out for nothing.
        known = find_truth(truth or images.truth, files, task.paths)
        summary = DetectSummary(task, frozenset(file.image for file in files), known, report)
        summaries[target.path] = summary
        return Prepared(summary, partial(forecast_task, task))

    def score(folders: Sequence[Path]) -> Scores:
        return scores_of_runs([summaries[folder] for folder in folders])

    inputs = [] if truth is None else [Path(truth)]
    check = partial(check_run_folder, inputs=inputs, report=report, force=force)
    raise click.exceptions.Exit(ask_models(models, run, prepare, score, check=check, **options))


@dataclass(frozen=True, slots=True)
class NamedImages:
    """Where the images are, and the truth about them where their name says it."""

    paths: tuple[Path, ...]
    truth: str | None


def named_images(paths: Sequence[Path], run: Path | None, *, copy: bool) -> NamedImages:
    """The paths; the bundled scenes, called `scenes`, are copied into `run`, unless `copy` is False.

    They are then those of an earlier copy in `run`, or else the package's own. Raises UsageError where they
    cannot be copied, or stand beside other paths.
    """
    from uncanny.demo.scenes import SCENES, scenes
    from uncanny.records.run_folder import copy_into

    bundled = [path for path in paths if str(path) == SCENES and not path.exists()]
    if not bundled:
        return NamedImages(tuple(paths), None)
    if len(bundled) < len(paths):
        raise UsageError("The bundled scenes do not go with other images", remedy="Make two runs of it.")
    folder = (run or Path()) / "images"
    if not copy or run is None:
        copied = run is not None and folder.is_dir()
        return NamedImages((folder if copied else scenes()[0].image_path.parent,), SCENES)
    copy_into(folder, (scene.image_path for scene in scenes()))
    return NamedImages((folder,), SCENES)


@dataclass(frozen=True, slots=True)
class DetectSummary:
    """Verdicts, failures and scores of the images named in `images`; `report` False writes no page."""

    task: DetectTask
    images: frozenset[str]
    truth: SourceTruth | None
    report: bool

    def page(self) -> Path | None:
        folder = self.task.folder
        if not self.report or not folder.annotations.stat().st_size:
            return None
        from uncanny.eval.annotate.report.page import write_report

        return write_report(folder.path)

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:
        from uncanny.eval.detect.run import DetectRun
        from uncanny.eval.detect.score import score_json

        scores = self.scores()
        return DetectRun(self.task.folder.path, end).to_json(self.images) | {
            "report": None if page is None else str(page),
            "scores": None if scores is None else score_json(scores),
        }

    def text(self, end: RunEnd, page: Path | None) -> str:
        from uncanny.demo.scenes import SCENES

        lines = [*self._failures(), *self._totals(end), *spending_lines(end), ""]
        if (scores := self.scores()) is not None:
            lines += [*score_lines(scores), ""]
        lines.append(f"Records  {self.task.folder.annotations}")
        if page is not None:
            lines.append(f"Report   {page}")
        if self.truth is not None and self.truth.has_anomalies:
            # Without weights at hand the bundled scenes can still be scored.
            more = " --similarity chrf" if self.truth.origin == SCENES else ""
            lines.append(
                f"Score    uncanny semantic {self.task.folder.path} --truth {self.truth.origin}{more}"
            )
        return layout(lines)

    def verdicts(self) -> Counter[str]:
        """How many images were taken for what."""
        return _verdicts(self._records())

    def scores(self) -> DetectScore | None:
        """None where the truth is not known."""
        from uncanny.eval.detect.score import score

        return None if self.truth is None else score(self._records(), self.truth, len(self.images))

    def _records(self) -> Iterator[Detection]:
        from uncanny.records.jsonl import read_records
        from uncanny.schema import Detection

        records = read_records(self.task.folder.annotations, Detection)
        return (record for record in records if record.image in self.images)

    def _failures(self) -> list[str]:
        failed = [record for record in self._records() if record.status != "ok"]
        if not failed:
            return []
        base = self.task.root or self.task.folder.path
        shown = [
            f"  {record.status:<10}  {why_failed(record, os.path.relpath(base / record.image))}"
            for record in failed[:MOST_FAILURES]
        ]
        left = len(failed) - len(shown)
        more = [f"  … and {left:,} more, in {self.task.folder.annotations}"] if left else []
        return ["Not judged, or in part only:", *shown, *more, ""]

    def _totals(self, end: RunEnd) -> list[str]:
        from uncanny.eval.metrics.detection import JUDGED

        progress = end.progress
        images = ", ".join(
            f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds if progress.statuses[kind]
        )
        left = progress.total - progress.done
        verdicts = _verdicts(self._records())
        return [
            f"Images   {progress.total:,}: {images or 'none done'}"
            + (f", {left:,} not done" if left else "")
            + (f", {progress.duplicates:,} of them duplicates" if progress.duplicates else ""),
            *skipped_lines(end),
            "Judged   " + ", ".join(f"{verdicts[judged]:,} {judged}" for judged in JUDGED),
            f"Found    {progress.items_found:,} {'anomaly' if progress.items_found == 1 else 'anomalies'} "
            "(severity 0 = unreal, 100 = real)",
        ]


def scores_of_runs(summaries: Sequence[DetectSummary]) -> Scores:
    """The table and the JSON of several runs over the same images; accuracy where the truth is known."""
    from uncanny.cli.several import Scores
    from uncanny.eval.detect.score import score_json
    from uncanny.eval.metrics.detection import JUDGED, SOURCES

    if not summaries:
        return Scores((), None)
    names = [str(summary.task.models.model) for summary in summaries]
    width = max(len("model"), *map(len, names))
    known = any(summary.truth is not None for summary in summaries)
    truth_heads = (*(f"recall {true}" for true in SOURCES), "accuracy, 95 % interval") if known else ()
    lines = [_table_line("model", width, [*JUDGED, *truth_heads])]
    scores: dict[str, Any] = {}
    notes: list[str] = []
    for name, summary in zip(names, summaries, strict=True):
        verdicts = summary.verdicts()
        cells = [f"{verdicts[judged]:,}" for judged in JUDGED]
        score = summary.scores()
        scores[name] = None if score is None else score_json(score)
        if score is not None:
            scored = score.scored
            cells += [*(_percent(scored.recall(true)) for true in SOURCES), _accuracy(score)]
            notes += [f"{name}: {note}" for note in [_left_out(score)] if note]
        lines.append(_table_line(name, width, cells))
    return Scores([*lines, *notes], scores)


def _table_line(name: str, width: int, cells: Sequence[str]) -> str:
    return f"{name:<{width}}" + "".join(f"  {cell:>16}" for cell in cells)


def _accuracy(score: DetectScore) -> str:
    ends = score.scored.interval()
    interval = "" if ends is None else f", {100 * ends[0]:.1f} to {100 * ends[1]:.1f} %"
    return f"{_percent(score.scored.accuracy)}{interval}"


def _verdicts(records: Iterator[Detection]) -> Counter[str]:
    return Counter(record.source or "unparseable" for record in records if record.verdict is not None)


def score_lines(score: DetectScore) -> list[str]:
    """The scores for people: accuracy first, then a line a class with what its images were taken for."""
    from uncanny.eval.metrics.detection import JUDGED, SOURCES

    scored = score.scored
    interval = scored.interval()
    ends = "" if interval is None else f" (95 % interval {_percent(interval[0])} to {_percent(interval[1])})"
    lines = [
        f"Accuracy {_percent(scored.accuracy)}{ends}, {scored.right:,} of {scored.images:,} right, "
        f"truth by {score.truth.origin}"
    ]
    for true in SOURCES:
        taken = ", ".join(f"{scored.counts[true, judged]:,} {judged}" for judged in JUDGED)
        precision, recall = _percent(scored.precision(true)), _percent(scored.recall(true))
        lines.append(f"  {true:<10} precision {precision}, recall {recall}; taken for: {taken}")
    left_out = _left_out(score)
    return [*lines, f"  {left_out}"] if left_out else lines


def _left_out(score: DetectScore) -> str:
    """Images that are in no score, or count as wrong without being taken for the other class."""
    notes = [
        (score.scored.unparseable, "unparseable, counted as wrong"),
        (score.missing or 0, "not judged yet, in no score"),
        (score.without_answer, "without an answer, in no score"),
        (score.without_truth, "without a known truth, in no score"),
        (score.truth.unused, "of the truth not in this run"),
    ]
    return "; ".join(f"{number:,} {what}" for number, what in notes if number)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
