"""One run at the terminal: progress while it goes, a summary in the end, an exit code for scripts."""

from __future__ import annotations

import sys
from typing import Any

import click
import orjson

from uncanny.cli.display import live_progress
from uncanny.cli.summary import RUN_CODES, summary_json, summary_text
from uncanny.runs.annotate_run import AnnotateJob, annotate
from uncanny.runs.run import RunEnd


def run_and_show(job: AnnotateJob, *, as_json: bool, quiet: bool, report: bool) -> int:
    """Run `job` and tell about it. Returns the exit code."""
    with live_progress(enabled=not quiet) as started:
        end = annotate(job, started)
    page = None
    if report and job.folder.annotations.stat().st_size:
        from uncanny.eval.report import write_report

        page = write_report(job.folder.path)
    if as_json:
        sys.stdout.buffer.write(
            orjson.dumps(summary_json(job, end, page), option=orjson.OPT_INDENT_2) + b"\n"
        )
    elif not quiet and exit_code(end) != RUN_CODES["usage"]:
        # Of a run that never got going there is nothing to sum up; the complaint stands out better alone.
        click.echo(summary_text(job, end, page))
    for line in complaints(end):
        click.echo(line, err=True)
    return exit_code(end)


def exit_code(end: RunEnd) -> int:
    progress = end.progress
    if end.reason == "model":
        return RUN_CODES["usage"] if progress.done == 0 else RUN_CODES["failures"]
    if end.reason is not None:
        return RUN_CODES[end.reason]
    return RUN_CODES["failures"] if progress.failures else 0


def complaints(end: RunEnd) -> list[str]:
    """What went wrong with the run as a whole, a line each."""
    progress = end.progress
    missing = progress.total - progress.done
    left = "1 image" if missing == 1 else f"{missing:,} images"
    lines = [
        f"Warning: {warning}" for warning in progress.warnings if not end.error or warning != str(end.error)
    ]
    if end.error is not None:
        lines.append(f"Stopped, {left} not done: {end.error}")
    elif end.reason == "interrupt":
        lines.append(f"Interrupted, {left} not done. The same command goes on.")
    return lines


def dry_run(job: AnnotateJob, *, as_json: bool) -> None:
    """Print what the run would ask and roughly cost."""
    from uncanny.runs.forecast import forecast

    found: dict[str, Any] = forecast(job)
    if as_json:
        sys.stdout.buffer.write(orjson.dumps(found, option=orjson.OPT_INDENT_2) + b"\n")
        return
    from uncanny.cli.summary import forecast_text

    click.echo(forecast_text(found))
