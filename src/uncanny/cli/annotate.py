"""`uncanny annotate`: the command, and what a run says of itself in the end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import click

from uncanny.cli.command import Command
from uncanny.cli.options import (
    AnnotateKeywords,
    annotate_options,
    model_options,
    read_config,
    read_models,
    read_policy,
    read_run_options,
)
from uncanny.cli.outputs import check_run_folder, force_option
from uncanny.cli.terminal import cost, count, duration, layout, share

if TYPE_CHECKING:
    from uncanny.eval.annotate.run import AnnotateTask
    from uncanny.runs.run import RunEnd
    from uncanny.schema import Annotation


@click.command("annotate", cls=Command)
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--run", "run", type=click.Path(path_type=Path), help="The run folder. Needed to run.")
@model_options
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Name images in records relative to this. [default: the run folder]",
)
@annotate_options
@force_option
@click.option(
    "--report/--no-report", default=True, help="Write RUN/report.html in the end. [default: report]"
)
def command(
    paths: tuple[Path, ...],
    run: Path | None,
    root: Path | None,
    report: bool,
    force: bool,
    **options: Unpack[AnnotateKeywords],
) -> None:
    """Annotate images: what is in them that cannot be, why, and how unreal it makes them.

    PATHS are image files and folders. Results go to RUN/annotations.jsonl as they come; the same command
    goes on where it stopped. Exit code: 0 all annotated, 1 some failed, 2 wrong use, 3 budget spent,
    130 interrupted.

    \b
    Keys: OPENAI_API_KEY, ANTHROPIC_API_KEY, VLLM_API_KEY, OPENAI_COMPATIBLE_API_KEY.
    Roles: perceiver, attributes, relations, integrator, formatter, scanner.
    """
    from uncanny.cli.session import run_here, show_end, show_forecast
    from uncanny.errors import UsageError
    from uncanny.eval.annotate.forecast import forecast_task
    from uncanny.eval.annotate.run import AnnotateTask
    from uncanny.records.run_folder import RunFolder

    if run is None and not options["dry_run"]:
        raise UsageError("No run folder is named", remedy="Say where results go with -o runs/NAME.")
    if run is not None and not options["dry_run"]:
        check_run_folder(run, report=report, force=force)
    task = AnnotateTask(
        folder=RunFolder(run or Path("runs/unnamed")),
        paths=paths,
        models=read_models(**options),
        options=read_run_options(**options),
        policy=read_policy(**options),
        root=root,
        config=read_config(**options),
    )
    if options["dry_run"]:
        code = show_forecast(forecast_task(task), as_json=options["as_json"])
    else:
        summary = AnnotateSummary(task, report)
        end = run_here(task, quiet=options["quiet"])
        code = show_end(summary, end, as_json=options["as_json"], quiet=options["quiet"])
    raise click.exceptions.Exit(code)


MOST_SHOWN = 12
MOST_FAILURES = 10


@dataclass(frozen=True, slots=True)
class AnnotateSummary:
    """What an annotation run says of itself; `report` False writes no page."""

    task: AnnotateTask
    report: bool

    def page(self) -> Path | None:
        folder = self.task.folder
        if not self.report or not folder.annotations.stat().st_size:
            return None
        from uncanny.eval.annotate.report.page import write_report

        return write_report(folder.path)

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:
        from uncanny.eval.annotate.run import AnnotateRun

        content = AnnotateRun(self.task.folder.path, end).to_json()
        return content | {"report": None if page is None else str(page)}

    def text(self, end: RunEnd, page: Path | None) -> str:
        return _summary_text(self.task, end, page)


def _summary_text(task: AnnotateTask, end: RunEnd, page: Path | None) -> str:
    from uncanny.records.jsonl import read_records
    from uncanny.schema import Annotation

    progress = end.progress

    def where(image: str) -> str:
        # Records name images from the run folder or the root, people from where they are.
        return os.path.relpath(task.folder.path / image if task.root is None else task.root / image)

    shown: list[str] = []
    failed: list[str] = []
    with_anomalies = 0
    for record in read_records(task.folder.annotations, Annotation):
        if record.status != "ok" and len(failed) <= MOST_FAILURES:
            failed.append(f"  {record.status:<10}  {why_failed(record, where(record.image))}")
        if record.anomalies:
            with_anomalies += 1
            if with_anomalies <= MOST_SHOWN:
                shown += _findings(record, where(record.image))
    lines = [*shown]
    if with_anomalies > MOST_SHOWN:
        lines.append(f"  … and {with_anomalies - MOST_SHOWN:,} more images with anomalies")
    if failed:
        lines += ["", "Not annotated, or in part only:", *failed[:MOST_FAILURES]]
        if progress.failures > MOST_FAILURES:
            lines.append(f"  … and {progress.failures - MOST_FAILURES:,} more, in {task.folder.annotations}")
    lines += ["", *_totals(end), "", f"Records  {task.folder.annotations}"]
    if page is not None:
        lines.append(f"Report   {page}")
    return layout(lines)


def _findings(record: Annotation, place: str) -> list[str]:
    worst_first = sorted(record.anomalies, key=lambda one: one.severity)
    return [place, *(f"  {anomaly.severity:>3}/100  {anomaly.name}" for anomaly in worst_first)]


def why_failed(record: Annotation, place: str) -> str:
    """The first error of a record in words; `place` is where its image is."""
    if not record.errors:
        return place
    first = record.errors[0]
    more = f" (and {len(record.errors) - 1} more)" if len(record.errors) > 1 else ""
    if first.agent == "image":
        return f"{first.message}{more}"  # names the file itself
    return f"{place}  {first.agent} {first.step}: {first.message}{more}"


def _totals(end: RunEnd) -> list[str]:
    progress = end.progress
    statuses = progress.statuses
    images = ", ".join(f"{statuses[name]:,} {name}" for name in progress.kinds if statuses[name])
    left = progress.total - progress.done
    lines = [
        f"Images   {progress.total:,}: {images or 'none done'}"
        + (f", {left:,} not done" if left else "")
        + (f", {progress.duplicates:,} of them duplicates" if progress.duplicates else ""),
        *skipped_lines(end),
        f"Found    {progress.items_found:,} {'anomaly' if progress.items_found == 1 else 'anomalies'} "
        "(severity 0 = unreal, 100 = real)",
    ]
    return lines + spending_lines(end)


def skipped_lines(end: RunEnd) -> list[str]:
    """What lay beside the inputs, on one line; none where there was nothing."""
    from uncanny.runs.inputs import skipped_line

    skipped = end.progress.skipped
    return [f"{line}; listed in run.json" for line in skipped_line(skipped.counts)] if skipped else []


def spending_lines(end: RunEnd) -> list[str]:
    """Calls, tokens, cost and time, a line each."""
    progress, spending = end.progress, end.progress.spending
    outcomes = ", ".join(
        f"{number:,} {name}" for name, number in spending.outcomes.items() if number and name != "answered"
    )
    tokens_in, tokens_out = spending.figure("input_tokens"), spending.figure("output_tokens")
    from_cache = spending.figure("cached_tokens")
    cached = " (cached share not reported)" if from_cache is None else ""
    if from_cache is not None and tokens_in:
        cached = f" ({share(from_cache, tokens_in)} cached)"
    return [
        f"Calls    {spending.calls:,}"
        + (f", {spending.replayed:,} answers reused" if spending.replayed else "")
        + (f" ({outcomes})" if outcomes else ""),
        f"Tokens   {count(tokens_in)} in{cached}, {count(tokens_out)} out",
        f"Cost     {cost(spending.figure('cost_usd'))}",
        f"Time     {duration(progress.seconds_before + progress.seconds())}"
        + (f", {duration(progress.seconds())} of it now" if progress.seconds_before else ""),
    ]
