"""One run at the terminal: progress while it goes, a summary in the end, an exit code for scripts.

The progress line of a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from uncanny.cli.annotate import AnnotateSummary
from uncanny.cli.terminal import (
    complain,
    cost,
    count,
    duration,
    harmless,
    layout,
    on_terminal,
    say,
    say_json,
    share,
)
from uncanny.errors import UncannyError, UsageError
from uncanny.eval.annotate.run import AnnotateJob, annotate
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions
from uncanny.runs.progress import Progress
from uncanny.runs.run import RunEnd

INTERRUPTED = 130
RUN_CODES = {"usage": 2, "failures": 1, "storage": 1, "budget": 3, "interrupt": INTERRUPTED}


class Job(Protocol):
    """What every kind of run has."""

    @property
    def folder(self) -> RunFolder: ...

    @property
    def models(self) -> ModelOptions: ...


class Summary(Protocol):
    """What a kind of run says of itself in the end."""

    @property
    def job(self) -> Job: ...

    def page(self) -> Path | None:
        """Write the report; None where there is nothing to report."""
        ...

    def text(self, end: RunEnd, page: Path | None) -> str: ...

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]: ...


def annotate_and_show(job: AnnotateJob, *, as_json: bool, quiet: bool, report: bool) -> int:
    """Annotate, and tell about it. Returns the exit code."""
    return run_and_show(
        lambda started: annotate(job, started), AnnotateSummary(job, report), as_json=as_json, quiet=quiet
    )


def run_and_show(
    run: Callable[[Callable[[Progress], None]], RunEnd], summary: Summary, *, as_json: bool, quiet: bool
) -> int:
    """Run with live progress and tell about it. Returns the exit code."""
    return show_end(summary, run_with_progress(run, summary, quiet=quiet), as_json=as_json, quiet=quiet)


def run_with_progress(
    run: Callable[[Callable[[Progress], None]], RunEnd], summary: Summary, *, quiet: bool
) -> RunEnd:
    """Run, and show how far it is meanwhile."""
    with live_progress(about(summary.job), enabled=not quiet) as started:
        return run(started)


def show_end(
    summary: Summary,
    end: RunEnd,
    *,
    as_json: bool,
    quiet: bool,
    name: str | None = None,
    keep: Callable[[dict[str, Any]], object] = say_json,
) -> int:
    """Tell about a run that has ended, `name` among several. Returns the exit code.

    The JSON, where it is wanted, goes to `keep`: to standard output unless told otherwise.
    """
    page, end = _page(summary, end)
    code = exit_code(end)
    if end.lost:
        if as_json:
            keep({**end.manifest, "warnings": end.progress.warnings, "error": str(end.error)})
    elif as_json:
        keep(summary.as_json(end, page))
    elif not quiet and code != RUN_CODES["usage"]:
        # Of a run that never got going there is nothing to sum up; the complaint stands out better alone.
        say(summary.text(end, page))
    complain_all(end, name)
    return code


def _page(summary: Summary, end: RunEnd) -> tuple[Path | None, RunEnd]:
    """The page, and the end with a warning where it cannot be written: the records stand without it."""
    try:
        return None if end.lost else summary.page(), end
    except (OSError, UncannyError) as error:
        if isinstance(error, OSError):
            error = UsageError(f"{error.filename} could not be written: {error.strerror or error}")
        again = f"`uncanny report {summary.job.folder.path}` writes it again"
        end.progress.warnings.append(f"{error.message}; {again}")
        return None, replace(end, unwritten=(*end.unwritten, Path("report.html")))


def about(job: Job) -> str:
    """Who is asked, and where it goes."""
    return f"{job.models.model} · {job.folder.path}"


def exit_code(end: RunEnd) -> int:
    progress = end.progress
    if end.reason == "model":
        answers = progress.spending.outcomes["answered"] + progress.spending.replayed
        return RUN_CODES["failures"] if answers else RUN_CODES["usage"]
    if end.reason is not None:
        return RUN_CODES[end.reason]
    # A page or a `run.json` of before must not pass for this run's.
    incomplete = progress.failures or progress.missing_folders or end.unwritten
    return RUN_CODES["failures"] if incomplete else 0


def complaints(end: RunEnd) -> list[str]:
    """What went wrong with the run as a whole, a line each."""
    progress = end.progress
    missing = progress.total - progress.done
    left = f"1 {progress.unit.removesuffix('s')}" if missing == 1 else f"{missing:,} {progress.unit}"
    lines = [
        f"Warning: {warning}" for warning in progress.warnings if not end.error or warning != str(end.error)
    ]
    if end.error is not None:
        lines.append(f"Stopped, {left} not done: {end.error}")
    elif end.reason == "interrupt":
        lines.append(f"Interrupted, {left} not done. The same command goes on.")
    return lines


def complain_all(end: RunEnd, name: str | None = None) -> None:
    """Print what went wrong with a run as a whole; `name` says which one where there are several."""
    for line in complaints(end):
        complain(layout([line if name is None else f"{name}: {line}"]))


def dry_run(job: AnnotateJob, *, as_json: bool) -> int:
    """Print what the run would ask and roughly cost. Returns the exit code."""
    from uncanny.cli.annotate import forecast_text
    from uncanny.eval.annotate.forecast import forecast

    return show_forecast(forecast(job), forecast_text, as_json=as_json)


def show_forecast(
    found: dict[str, Any],
    text: Callable[[dict[str, Any]], str],
    *,
    as_json: bool = False,
    name: str | None = None,
) -> int:
    """Print a forecast, `text` as people read it. Returns the exit code: 1 where a folder cannot be read.

    `name` stands before it where there are several.
    """
    if as_json:
        say_json(found)
    else:
        say(text(found) if name is None else f"{harmless(name)}\n{text(found)}")
    for warning in found.get("warnings", ()):
        complain(layout([f"Warning: {warning}" if name is None else f"{name}: Warning: {warning}"]))
    return RUN_CODES["failures"] if found.get("skipped", {}).get("unreadable_folder") else 0


# Short runs need no line in a log; longer ones soon show that something is going on.
PLAIN_FIRST_S = 10.0
PLAIN_EVERY_S = 30.0
LIVE_EVERY_S = 0.25


@contextmanager
def live_progress(about: str, *, enabled: bool) -> Iterator[Callable[[Progress], None]]:
    """Show the counters handed to the yielded function: live on a terminal, now and then in a log file.

    A log file first gets a line on what is starting: the inputs, and `about` who is asked and where it goes.
    """
    if not enabled:
        yield lambda _progress: None
        return
    shown = _Terminal() if on_terminal() else _Log(about)
    try:
        yield shown.start
    finally:
        shown.close()


class _Log:
    """A line at the start and every `PLAIN_EVERY_S` seconds on standard error."""

    first_after_s = PLAIN_FIRST_S
    every_s = PLAIN_EVERY_S

    def __init__(self, about: str | None = None) -> None:
        self._about = about
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, progress: Progress) -> None:
        if self._about is not None:
            before = f" · {progress.resumed:,} done before" if progress.resumed else ""
            calls = f" · about {progress.calls_expected:,} calls" if progress.calls_expected else ""
            complain(harmless(f"{progress.total:,} {progress.unit} · {self._about}{before}{calls}"))
        self._thread = threading.Thread(target=self._run, args=(progress,), daemon=True)
        self._thread.start()

    def _run(self, progress: Progress) -> None:
        wait_s = self.first_after_s
        while not self._ended.wait(wait_s):
            self.show(progress)
            wait_s = self.every_s

    def show(self, progress: Progress) -> None:
        complain(f"{progress.done:,}/{progress.total:,} {progress.unit} · {facts(progress)}")

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


class _Terminal(_Log):
    """A bar with the facts beneath, redrawn in place."""

    first_after_s = every_s = LIVE_EVERY_S

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(bar_width=16),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}", markup=False),
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,
        )
        self._task = self._bar.add_task("images", total=None, facts="")

    def start(self, progress: Progress) -> None:
        self._bar.start()
        super().start(progress)

    def show(self, progress: Progress) -> None:
        self._bar.update(
            self._task,
            description=progress.unit,
            total=progress.total,
            completed=progress.done,
            facts=facts(progress),
        )
        self._bar.refresh()

    def close(self) -> None:
        super().close()
        self._bar.stop()


def facts(progress: Progress) -> str:
    """Calls made of those expected, and a second, tokens, cached share, cost, failures, time to go."""
    spending = progress.spending
    tokens_in, tokens_out = spending.figure("input_tokens"), spending.figure("output_tokens")
    total = None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
    eta = progress.eta_s()
    parts = [
        f"{progress.calls_now:,}/~{max(progress.calls_now, progress.calls_expected):,} calls",
        f"{progress.calls_now / max(progress.seconds(), 1e-9):.1f}/s",
        f"{count(total)} tokens",
        f"{share(spending.figure('cached_tokens'), tokens_in)} cached",
        cost(spending.figure("cost_usd")),
        f"{progress.failures} failed",
        f"{'?' if eta is None else duration(eta)} to go",
    ]
    return " · ".join(parts)
