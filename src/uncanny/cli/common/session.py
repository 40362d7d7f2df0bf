"""One run at the terminal: progress while it goes, a summary in the end, an exit code for scripts."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.cli.common.terminal import complain, say, say_json, told
from uncanny.errors import UncannyError
from uncanny.runs.parameters import RunParameters
from uncanny.runs.run import RunEnd, run_with
from uncanny.runs.stop import Stop
from uncanny.runs.task import Task
from uncanny.wording import Words, harmless, layout, marked, waiting_words

if TYPE_CHECKING:
    from uncanny.cli.common.summary import Summary
    from uncanny.runs.forecast import Forecast

INTERRUPTED = 130
RUN_CODES = {"usage": 2, "failures": 1, "storage": 1, "budget": 3, "gate": 4, "interrupt": INTERRUPTED}


class TerminalStop(Stop):
    """Ends runs at Ctrl-C and SIGTERM while they work, and spares them most garbage collections then."""

    @contextlib.contextmanager
    def while_working(self) -> Iterator[None]:
        with self._on_signals(), _few_collections():
            yield

    def waiting(self, calls: int) -> None:
        complain(waiting_words(calls))

    @contextlib.contextmanager
    def _on_signals(self) -> Iterator[None]:
        """Without a main thread signals are left alone."""
        loop = asyncio.get_running_loop()
        installed: list[signal.Signals] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self.request)
            except (NotImplementedError, RuntimeError, ValueError):
                continue
            installed.append(number)
        try:
            yield
        finally:
            for number in installed:
                loop.remove_signal_handler(number)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    # With hundreds of calls in flight the collector walks the same long-lived objects over and over.
    before = gc.get_threshold()
    # Not collected first: that takes longer than the little garbage of a start is worth.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def run_here(task: Task[Any, Any], *, quiet: bool) -> RunEnd:
    """Run to the end, stopped by Ctrl-C and SIGTERM, and show how far it is meanwhile.

    Raises what `run_with` raises.
    """
    return asyncio.run(run_with(task, RunParameters(stop=TerminalStop(), progress=not quiet)))


def show_end(
    summary: Summary[Any],
    *,
    as_json: bool,
    quiet: bool,
    name: str | None = None,
    keep: Callable[[dict[str, Any]], object] = say_json,
) -> int:
    """Tell about a run that has ended, `name` among several. Returns the exit code.

    The JSON, where it is wanted, goes to `keep`: to standard output unless told otherwise.
    """
    assert summary.run.end is not None
    page, end = _page(summary, summary.run.end)
    code = exit_code(end)
    if end.lost:
        if as_json:
            keep({**end.manifest, "warnings": end.progress.warnings, "error": str(end.error)})
    elif as_json:
        keep(summary.as_json(page))
    elif not quiet and code != RUN_CODES["usage"]:
        # Of a run that never got going there is nothing to sum up; the complaint stands out better alone.
        say(layout(summary.lines(end, page)))
    complain_all(end, name)
    return code


def _page(summary: Summary[Any], end: RunEnd) -> tuple[Path | None, RunEnd]:
    """The page, and the end with a warning where it cannot be written: the records stand without it."""
    try:
        return None if end.lost else summary.page(), end
    except (OSError, UncannyError) as error:
        if isinstance(error, OSError):
            again = f"`uncanny report {summary.run.path}` writes it again"
            words = f"{error.filename} could not be written: {error.strerror or error}; {again}"
        else:  # the same would end it again
            words = Words(f"report.html was not written: {told(error)}")
        end.progress.warnings.append(words)
        return None, replace(end, unwritten=(*end.unwritten, Path("report.html")))


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
        f"Warning: {marked(warning)}"
        for warning in progress.warnings
        if warning not in progress.said and (not end.error or warning != str(end.error))
    ]
    if end.error is not None:
        lines.append(f"Stopped, {left} not done: {told(end.error)}")
    elif end.reason == "interrupt":
        lines.append(f"Interrupted, {left} not done. Run the same command again to resume.")
    return lines


def complain_all(end: RunEnd, name: str | None = None) -> None:
    """Print what went wrong with a run as a whole; `name` says which one where there are several."""
    for line in complaints(end):
        complain(layout([line if name is None else f"{name}: {line}"]))


def show_forecast(forecast: Forecast, *, as_json: bool = False, name: str | None = None) -> int:
    """Print a forecast. Returns the exit code: 1 where a folder cannot be read.

    `name` stands before it where there are several.
    """
    if as_json:
        say_json(forecast.to_json())
    else:
        text = marked(forecast.text())
        say(text if name is None else f"{harmless(name)}\n{text}")
    for warning in forecast.warnings:
        words = f"Warning: {marked(warning)}"
        complain(layout([words if name is None else f"{name}: {words}"]))
    return RUN_CODES["failures"] if forecast.skipped.get("unreadable_folder") else 0
