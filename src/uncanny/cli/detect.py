"""`uncanny detect`: the command, and what a run says of itself in the end, with scores where the truth is
known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from uncanny.cli.annotate import place_of, write_page
from uncanny.cli.command import Command
from uncanny.cli.files import check_run_folder
from uncanny.cli.options import (
    PATH,
    ImageKeywords,
    force_option,
    images_root_option,
    models_options,
    pixel_options,
    read_image_options,
    run_option,
    run_page_option,
    sampling_options,
)
from uncanny.cli.summary import (
    anomalies_line,
    failure_line,
    failure_lines,
    skipped_lines,
    spending_lines,
    status_line,
)
from uncanny.cli.terminal import layout
from uncanny.errors import UsageError

if TYPE_CHECKING:
    from uncanny.cli.several import Scores
    from uncanny.eval.annotate.run import ImageOptions
    from uncanny.eval.detect.data import SourceTruth
    from uncanny.eval.detect.forecast import DetectForecast
    from uncanny.eval.detect.run import DetectRun
    from uncanny.eval.detect.score import DetectScore
    from uncanny.runs.config import AskOptions
    from uncanny.runs.run import RunEnd
    from uncanny.schema import Detection


@click.command("detect", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=PATH)
@run_option
@models_options
@images_root_option
@click.option(
    "--truth",
    metavar="FILE",
    help="Score against this: a line an image, or `scenes`. [default: by folders called real, generated, …]",
)
@sampling_options(temperature=0.0, top_p=None, max_output_tokens=2000)
@pixel_options
@force_option
@run_page_option
def command(
    paths: tuple[Path, ...],
    run: Path | None,
    models: tuple[str, ...],
    root: Path | None,
    truth: str | None,
    report: bool,
    force: bool,
    as_json: bool,
    **options: Unpack[ImageKeywords],
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
    from uncanny.cli.several import Asking, ask_models
    from uncanny.eval.detect.forecast import detect_forecast
    from uncanny.eval.detect.run import detect_async

    own = read_image_options(options, models)
    judged: dict[Path, JudgedImages] = {}

    async def detect_and_know(*, model: str, out: Path, **asking: Unpack[AskOptions]) -> DetectRun:
        images = named_images(paths, out, copy=True)
        # Before anything is asked: a truth that does not fit is found out for nothing.
        judged[out] = find_judged(images, out, root, truth, asking.get("limit"))
        all_options: ImageOptions = {**own, **asking}
        return await detect_async(images.paths, model=model, out=out, root=root, **all_options)

    def forecast(*, model: str, out: Path | None, **asking: Unpack[AskOptions]) -> DetectForecast:
        # A dry run leaves nothing behind, so the bundled images stay where they are.
        images = named_images(paths, out, copy=False)
        find_judged(images, out, root, truth, asking.get("limit"))
        all_options: ImageOptions = {**own, **asking}
        return detect_forecast(images.paths, model=model, out=out, root=root, **all_options)

    def summary(run: DetectRun) -> DetectSummary:
        return DetectSummary(run, judged[run.path], root, report)

    def score(runs: Mapping[str, DetectRun]) -> Scores:
        return scores_of_runs({name: summary(run) for name, run in runs.items()})

    inputs = [] if truth is None else [Path(truth)]
    check = partial(check_run_folder, inputs=inputs, report=report, force=force)
    asking = Asking(check, detect_and_know, forecast, summary, score)
    raise click.exceptions.Exit(ask_models(asking, models, run, options, as_json=as_json))


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
class JudgedImages:
    """The names of a run's images in its records, and the truth about them, None where it is not known."""

    names: frozenset[str]
    truth: SourceTruth | None


def find_judged(
    images: NamedImages, run: Path | None, root: Path | None, truth: str | None, limit: int | None
) -> JudgedImages:
    """Raises UsageError where there are no images, or the `truth` does not fit them."""
    from uncanny.eval.detect.data import find_truth
    from uncanny.runs.forecast import UNNAMED
    from uncanny.runs.inputs import find_inputs

    files = find_inputs(images.paths, run=run or UNNAMED, root=root, limit=limit).files
    names = frozenset(file.image for file in files)
    return JudgedImages(names, find_truth(truth or images.truth, files, images.paths))


@dataclass(frozen=True, slots=True)
class DetectSummary:
    """Verdicts, failures and scores of the images that were `judged`; `report` False writes no page."""

    run: DetectRun
    judged: JudgedImages
    root: Path | None
    report: bool

    def page(self) -> Path | None:
        return write_page(self.run) if self.report else None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:  # noqa: ARG002  the run knows it
        scores = self.scores()
        return self.run.to_json(self.judged.names) | {
            "report": None if page is None else str(page),
            "scores": None if scores is None else scores.to_json(),
        }

    def text(self, end: RunEnd, page: Path | None) -> str:
        from uncanny.demo.scenes import SCENES
        from uncanny.eval.metrics.detection import JUDGED

        file, truth, scores = self.run.path / self.run.record_file, self.judged.truth, self.scores()
        verdicts = self.verdicts()
        failures = [
            failure_line(record, place_of(record, self.run, self.root))
            for record in self._records()
            if record.status != "ok"
        ]
        lines = [
            *failure_lines("Not judged, or in part only:", failures, where=f", in {file}"),
            status_line("Images", end),
            *skipped_lines(end),
            "Judged   " + ", ".join(f"{verdicts[judged]:,} {judged}" for judged in JUDGED),
            anomalies_line(end),
            *spending_lines(end),
            "",
            *([] if scores is None else [*score_lines(scores), ""]),
            f"Records  {file}",
            *([] if page is None else [f"Report   {page}"]),
        ]
        if truth is not None and truth.has_anomalies:
            # Without weights at hand the bundled scenes can still be scored.
            more = " --similarity chrf" if truth.origin == SCENES else ""
            lines.append(f"Score    uncanny semantic {self.run.path} --truth {truth.origin}{more}")
        return layout(lines)

    def verdicts(self) -> Counter[str]:
        """How many images were taken for what."""
        records = (record for record in self._records() if record.verdict is not None)
        return Counter(record.source or "unparseable" for record in records)

    def scores(self) -> DetectScore | None:
        """None where the truth is not known."""
        from uncanny.eval.detect.score import score

        names, truth = self.judged.names, self.judged.truth
        return None if truth is None else score(self._records(), truth, len(names))

    def _records(self) -> Iterator[Detection]:
        return (record for record in self.run.detections if record.image in self.judged.names)


def scores_of_runs(summaries: Mapping[str, DetectSummary]) -> Scores:
    """The table and the JSON of several runs over the same images; accuracy where the truth is known."""
    from uncanny.cli.several import Scores
    from uncanny.eval.metrics.detection import JUDGED, SOURCES

    width = max(len("model"), *map(len, summaries))
    known = any(summary.judged.truth is not None for summary in summaries.values())
    truth_heads = (*(f"recall {true}" for true in SOURCES), "accuracy, 95 % interval") if known else ()
    lines = [_table_line("model", width, [*JUDGED, *truth_heads])]
    scores: dict[str, Any] = {}
    notes: list[str] = []
    for name, summary in summaries.items():
        verdicts = summary.verdicts()
        cells = [f"{verdicts[judged]:,}" for judged in JUDGED]
        score = summary.scores()
        scores[name] = None if score is None else score.to_json()
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
