"""`uncanny annotate`, what its run says of itself in the end, and `uncanny report`, which writes its page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from uncanny.annotation.parameters import AnnotateParameters
from uncanny.cli.common.asking import asked, asking_options
from uncanny.cli.common.command import Command
from uncanny.cli.common.files import check_outputs, check_run_folder, page
from uncanny.cli.common.options import (
    PATH,
    force_option,
    pictures_option,
    run_page_option,
)
from uncanny.cli.common.parameters import given_parameters, parameter_options
from uncanny.cli.common.summary import (
    MOST_FAILURES,
    Summary,
    anomalies_line,
    failure_line,
    failure_lines,
    skipped_lines,
    spending_lines,
    status_line,
    texts_lines,
)
from uncanny.cli.common.terminal import say
from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MIN_CONFIDENCE, ReportParameters
from uncanny.wording import harmless, percent_sure

if TYPE_CHECKING:
    from uncanny.annotation.run import AnnotateRun
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.eval.common.run_result import RunResult
    from uncanny.runs.run import RunEnd
    from uncanny.schema import Anomaly

A_co = TypeVar("A_co", bound="AnnotateRun", covariant=True)
MOST_SHOWN = 12


@click.command("annotate", cls=Command, job="annotate")
@click.argument("images", nargs=-1, required=True, type=PATH)
@asking_options(AnnotateParameters, several=False)
@force_option
@run_page_option
@pictures_option
def command(
    images: tuple[Path, ...], report: bool, pictures: PicturesMode, force: bool, as_json: bool, **values: Any
) -> None:
    """Find anomalies in images: name what cannot be real, say why, and rate how unreal it looks.

    IMAGES are image files and folders. Results go to RUN/annotations.jsonl as they come; the same command
    resumes the run. Exit code: 0 all annotated, 1 some failed, 2 usage error, 3 budget spent, 130
    interrupted.

    \b
    Keys: OPENAI_API_KEY and so on; `uncanny providers` lists them.
    Roles: perceiver, attributes, relations, integrator, formatter, scanner.
    """
    import asyncio

    from uncanny.annotation.forecast import annotate_forecast
    from uncanny.annotation.run import annotate_async
    from uncanny.cli.common.session import TerminalStop, show_end, show_forecast

    asking = asked(AnnotateParameters, values, [values["model"]])
    if values["dry_run"]:
        raise click.exceptions.Exit(show_forecast(annotate_forecast(images, **asking), as_json=as_json))
    if values["out"] is None:
        raise UsageError("No run folder is given", remedy="Pass -o runs/NAME.")
    check_run_folder(values["out"], report=report, force=force)
    run = asyncio.run(annotate_async(images, stop=TerminalStop(), **asking))
    summary = AnnotateSummary(run, values["root"], report, pictures)
    raise click.exceptions.Exit(show_end(summary, as_json=as_json, quiet=values["quiet"]))


@click.command("report", cls=Command)
@click.argument("run", type=PATH)
@parameter_options(ReportParameters)
@force_option
def report_command(run: Path, force: bool, **values: Any) -> None:
    """Write the HTML page of a run, finished or not. The page is one file that works offline.

    For a run of `mcq run` or `realism run`, this is the page of its scores, as `uncanny mcq score` and
    `uncanny realism score` write it by default. RUN may also be a file of annotations.
    """
    from uncanny.eval.common.inputs.runs import page_of_run
    from uncanny.eval.report import report as write_report

    target = values["out"] or page_of_run(run)
    check_outputs([page(target)] if run.exists() else [], [run], force=force)
    say(harmless(str(write_report(run, **given_parameters(ReportParameters, values)))))


def forecast_lines(end: RunEnd) -> list[str]:
    """What was forecast, and by how much it was off; none where nothing was forecast."""
    from uncanny.annotation.forecast_error import forecast_error
    from uncanny.records.run_manifest import RunManifest

    words = forecast_error(RunManifest.model_validate(end.manifest))
    return [] if words is None else [f"Forecast {words}"]


def _doubt(anomaly: Anomaly) -> str:
    """Says of a finding that scores and pages leave out how sure the model is of it."""
    if anomaly.confidence is None or anomaly.confidence >= MIN_CONFIDENCE:
        return ""
    return f" ({percent_sure(anomaly.confidence)})"


@dataclass(frozen=True, slots=True)
class AnnotateSummary(Summary[A_co]):
    """The worst of what was found, what failed, and totals; `report` False writes no page."""

    root: Path | None = None
    report: bool = True
    pictures: PicturesMode = "link"

    def page(self) -> Path | None:
        return write_page(self.run, self.pictures) if self.report else None

    def lines(self, end: RunEnd, page: Path | None) -> list[str]:
        return [
            *self._findings(end),
            status_line("Images", end),
            *skipped_lines(end),
            *texts_lines(end),
            anomalies_line(end),
            *spending_lines(end),
            *forecast_lines(end),
            "",
            *self.places(page),
        ]

    def places(self, page: Path | None) -> list[str]:
        records = f"Records  {self.run.path / self.run.record_file}"
        return [records, *([] if page is None else [f"Report   {page}"])]

    def _findings(self, end: RunEnd) -> list[str]:
        """The anomalies of the first images that have some, then the first failures."""
        file = self.run.path / self.run.record_file
        shown: list[str] = []
        failures: list[str] = []
        with_anomalies = 0
        for record in self.run.annotations:
            if record.status != "ok" and len(failures) < MOST_FAILURES:
                failures.append(failure_line(record, place_of(record, self.run, self.root)))
            if record.anomalies:
                with_anomalies += 1
                if with_anomalies <= MOST_SHOWN:
                    worst_first = sorted(record.anomalies, key=lambda anomaly: anomaly.severity)
                    shown.append(place_of(record, self.run, self.root))
                    shown += [f"  {each.severity:>3}/100  {each.name}{_doubt(each)}" for each in worst_first]
        if with_anomalies > MOST_SHOWN:
            shown.append(f"  … and {with_anomalies - MOST_SHOWN:,} more images with anomalies")
        heading, failed = "Not annotated, or in part only:", end.progress.failures
        return [*shown, "", *failure_lines(heading, failures, total=failed, where=f", in {file}")]


class OfImage(Protocol):
    """A record of a run over images, as far as it says which."""

    @property
    def image(self) -> str: ...


def place_of(record: OfImage, run: RunResult[Any], root: Path | None) -> str:
    """Where the image of a record is for people; records name it from the run folder or the root."""
    return os.path.relpath((run.path if root is None else root) / record.image)


def write_page(run: AnnotateRun, pictures: PicturesMode) -> Path | None:
    """The page of a run over images; None where it has no record."""
    return run.report(pictures=pictures) if (run.path / run.record_file).stat().st_size else None
