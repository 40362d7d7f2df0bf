"""`uncanny detect`: the command, and what a run says of itself in the end, with scores where the truth is
known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from uncanny.cli.annotate import AnnotateSummary, place_of
from uncanny.cli.common.asking import (
    asking_options,
)
from uncanny.cli.common.command import Command
from uncanny.cli.common.files import STANDARD_OUTPUT, ScoreFiles, check_run_folder
from uncanny.cli.common.options import (
    PATH,
    force_option,
    pictures_option,
    run_page_option,
    table_options,
)
from uncanny.cli.common.places import Place
from uncanny.cli.common.summary import (
    anomalies_line,
    failure_line,
    failure_lines,
    skipped_lines,
    spending_lines,
    status_line,
    texts_lines,
)
from uncanny.cli.common.terminal import width
from uncanny.demo.sets import BUNDLED
from uncanny.eval.detect.parameters import DetectParameters

if TYPE_CHECKING:
    from uncanny.cli.common.several import Scores
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.detect.run import DetectRun
    from uncanny.eval.detect.score import DetectScore
    from uncanny.runs.run import RunEnd


@click.command("detect", cls=Command, job="detect")
@click.argument("images", nargs=-1, required=True, type=PATH)
@asking_options(DetectParameters, without=["truth"])
@click.option(
    "--truth",
    type=Place(*BUNDLED),
    metavar="FILE",
    help="Ground truth: a file with one line per image, or `scenes`. "
    "[default: by folders called real, generated, …]",
)
@table_options
@force_option
@run_page_option
@pictures_option
def command(images: tuple[Path, ...], report: bool, pictures: PicturesMode, **values: Any) -> None:
    """Ask a model whether each image is generated or real, and what gives it away.

    IMAGES are image files and folders, or `scenes` or `large-scenes` for the bundled images. Results go to
    RUN/annotations.jsonl as they come; the same command resumes the run. With several models, each gets its
    own run folder in RUN, and a table of all follows. --csv, --markdown and --latex write the scores if the
    ground truth is known, else the verdicts. Exit code: 0 all judged, 1 some failed, 2 usage error, 3 budget
    spent, 130 interrupted; with several models, the worst of them.

    \b
    Out of the box:
      uncanny detect scenes --model demo -o runs/d
      uncanny semantic runs/d --truth scenes --similarity chrf

    \b
    Keys: OPENAI_API_KEY and so on; `uncanny providers` lists them.
    Role: detector.
    """
    from uncanny.cli.common.several import Asking, ask_models
    from uncanny.eval.detect.run import detect_async, detect_forecast
    from uncanny.eval.detect.score import MODEL_COLUMNS

    def summary(run: DetectRun) -> DetectSummary:
        return DetectSummary(run, values["root"], report, pictures)

    printed = STANDARD_OUTPUT if values["as_json"] else None
    files = ScoreFiles.of(values | {"json_file": printed, "report": None, "no_report": True})
    inputs = [] if values["truth"] is None else [Path(values["truth"])]

    def check(folder: Path) -> None:
        check_run_folder(folder, inputs, report=report, force=files.force)
        files.check((), MODEL_COLUMNS, [*images, *inputs, folder])

    asking = Asking(
        DetectParameters,
        images,
        detect_async,
        detect_forecast,
        check,
        summary,
        scores_of_runs,
        partial(_write, files),
        files.piped and not values["as_json"],
    )
    raise click.exceptions.Exit(ask_models(asking, values))


_TWO_CALLS: Final = ", by two independent calls an image"


@dataclass(frozen=True, slots=True)
class DetectSummary(AnnotateSummary["DetectRun"]):
    """Verdicts, failures and scores; `report` False writes no page."""

    def lines(self, end: RunEnd, page: Path | None) -> list[str]:
        from uncanny.eval.metrics.detection import JUDGED

        file, truth = self.run.path / self.run.record_file, self.run.truth
        verdicts, of_detector = self.run.verdicts(), self.run.is_of_detector
        failures = [
            failure_line(record, place_of(record, self.run, self.root))
            for record in self.run.detections
            if record.status != "ok"
        ]
        lines = [
            *failure_lines("Not judged, or in part only:", failures, where=f", in {file}"),
            status_line("Images", end),
            *skipped_lines(end),
            *texts_lines(end),
            "Judged   "
            + ", ".join(f"{verdicts[judged]:,} {judged}" for judged in JUDGED)
            + ("" if of_detector or self.run.protocol == "conversation" else _TWO_CALLS),
            *([] if of_detector else [anomalies_line(end)]),
            *spending_lines(end),
            "",
            *([] if truth is None else [*score_lines(self.run.score()), ""]),
            *self.places(page),
        ]
        if truth is not None and truth.has_anomalies and not of_detector:
            # Without weights at hand the bundled scenes can still be scored.
            more = " --similarity chrf" if truth.origin in BUNDLED else ""
            lines.append(f"Score    uncanny semantic {self.run.path} --truth {truth.origin}{more}")
        return lines


def scores_of_runs(runs: Mapping[str, DetectRun]) -> Scores:
    """The tables and the JSON of several runs over the same images; accuracy where the truth is known."""
    from uncanny.cli.common.several import Scores
    from uncanny.eval.common.tables.table import tables_text
    from uncanny.eval.detect.score import compare_runs

    compared = compare_runs(runs)
    content = compared.to_json()
    return Scores(tables_text(compared.tables(), width()).splitlines(), content["scores"], content["mcnemar"])


def _write(files: ScoreFiles, runs: Mapping[str, DetectRun]) -> None:
    """The tables that are wanted as files; the summary is printed, or piped, by itself."""
    from uncanny.eval.detect.score import compare_runs

    replace(files, json=None, quiet=True).write_scores(compare_runs(runs))


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
    left_out = score.left_out()
    return [*lines, f"  {left_out}"] if left_out else lines


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
