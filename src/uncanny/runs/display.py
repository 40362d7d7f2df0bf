"""How far a run is, on standard error: live on a terminal, now and then in a log, as JSON for programs."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from uncanny.runs.progress import Progress
from uncanny.settings import settings
from uncanny.wording import at_least, cost, count, counted, duration, harmless, share

# Short runs need no line in a log; longer ones soon show that something is going on.
PLAIN_FIRST_S = 10.0
PLAIN_EVERY_S = 30.0
LIVE_EVERY_S = 0.25
LINES_EVERY_S = 0.5


@contextmanager
def live_progress(about: str, *, enabled: bool) -> Iterator[Callable[[Progress], None]]:
    """Show the counters handed to the yielded function: live on a terminal, now and then in a log file.

    A log file first gets a line on what is starting: the inputs, and `about` who is asked and where it goes.
    With the setting `progress` = jsonl it is a line of JSON whenever something has changed.
    """
    if not enabled:
        yield lambda _progress: None
        return
    if settings().progress == "jsonl":
        shown: _Log = _Lines()
    else:
        shown = _Terminal() if sys.stderr is not None and sys.stderr.isatty() else _Log(about)
    try:
        yield shown.start
    finally:
        shown.close()


@contextmanager
def counted_lines(unit: str, total: int) -> Iterator[Callable[[], None] | None]:
    """What is to be called after each of `total` things a command that asks no model works through.

    It writes the lines of JSON of the setting `progress` = jsonl; without it there is nothing to call.
    """
    if settings().progress != "jsonl":
        yield None
        return
    progress = Progress(unit=unit, total=total)
    shown = _Lines()

    def count_one() -> None:
        progress.statuses["ok"] += 1

    try:
        shown.start(progress)
        yield count_one
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
            unit = progress.unit.removesuffix("s") if progress.total == 1 else progress.unit
            _write(harmless(f"{progress.total:,} {unit} · {self._about}{before}{calls}"))
        self._thread = threading.Thread(target=self._run, args=(progress,), daemon=True)
        self._thread.start()

    def _run(self, progress: Progress) -> None:
        wait_s = self.first_after_s
        while not self._ended.wait(wait_s):
            self.show(progress)
            wait_s = self.every_s

    def show(self, progress: Progress) -> None:
        _write(f"{progress.done:,}/{progress.total:,} {progress.unit} · {facts(progress)}")

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


class _Lines(_Log):
    """`{"progress": {…}}` a line: at the start, in the end, and each half second in which it changes."""

    first_after_s = every_s = LINES_EVERY_S

    def __init__(self) -> None:
        super().__init__()
        self._progress: Progress | None = None
        self._last: dict[str, Any] = {}

    def start(self, progress: Progress) -> None:
        self._progress = progress
        self.show(progress)
        super().start(progress)

    def show(self, progress: Progress) -> None:
        counted = counters(progress)
        if counted != self._last:
            self._last = counted
            _write(orjson.dumps({"progress": counted | pace(progress)}).decode())

    def close(self) -> None:
        super().close()
        if self._progress is not None:
            self.show(self._progress)


def counters(progress: Progress) -> dict[str, Any]:
    """What a run has done so far, for programs; null is what nobody measured.

    `done` of `total` inputs, which are `unit`, are finished, `failed` of them in vain, `resumed` in earlier
    sessions. `calls`, `answered` of them with an answer, tokens and cost are those of all sessions.
    """
    spending = progress.spending
    return {
        "unit": progress.unit,
        "total": progress.total,
        "done": progress.done,
        "failed": progress.failures,
        "resumed": progress.resumed,
        "calls": spending.calls,
        "answered": spending.outcomes["answered"],
        "input_tokens": spending.figure("input_tokens"),
        "output_tokens": spending.figure("output_tokens"),
        "cost_usd": spending.figure("cost_usd"),
    }


def pace(progress: Progress) -> dict[str, Any]:
    """Calls a second and seconds to go, by this session; null before there is something to go by."""
    seconds = progress.seconds()
    eta = progress.eta_s()
    return {
        "rate": round(progress.calls_now / seconds, 3) if seconds > 0 else None,
        "eta_s": None if eta is None else round(eta, 1),
    }


def facts(progress: Progress) -> str:
    """Calls made of those expected, and a second, tokens, cached share, cost, failures, time to go."""
    spending = progress.spending
    tokens_in, tokens_out = spending.least("input_tokens"), spending.least("output_tokens")
    total = None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
    all_tokens = None not in (spending.figure("input_tokens"), spending.figure("output_tokens"))
    cost_usd = spending.least("cost_usd")
    eta = progress.eta_s()
    parts = [
        f"{progress.calls_now:,}/~{max(progress.calls_now, progress.calls_expected):,} calls",
        f"{progress.calls_now / max(progress.seconds(), 1e-9):.1f}/s",
        at_least(f"{count(total)} tokens", all_tokens or total is None),
        f"{share(spending.least('cached_tokens'), tokens_in)} cached",
        at_least(cost(cost_usd), cost_usd is None or spending.figure("cost_usd") is not None),
        f"{progress.failures} failed",
        f"{'?' if eta is None else duration(eta)} to go"
        if progress.awaited is None
        else f"waiting for {counted(progress.awaited(), 'call')}",
    ]
    return " · ".join(parts)


def _write(line: str) -> None:
    """A line on standard error; one that takes nothing any more changes nothing else."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
