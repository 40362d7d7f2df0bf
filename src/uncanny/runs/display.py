"""How far a run is, on standard error: live on a terminal, now and then in a log, as JSON for programs."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from uncanny.runs.live_line import LineParts, LiveLine
from uncanny.runs.progress import Progress
from uncanny.settings import settings
from uncanny.wording import at_least, cost, count, counted, duration, harmless, share

# Short runs need no line in a log; longer ones soon show that something is going on.
PLAIN_FIRST_S = 10.0
PLAIN_EVERY_S = 30.0
LIVE_EVERY_S = 0.25
LINES_EVERY_S = 0.5
# A time without a single answer that is worth a word, where nothing else is known.
SILENT_S = 20.0


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
def counting(unit: str, *, enabled: bool) -> Iterator[Counting | None]:
    """For a command that asks no model and works through many things, called `unit`.

    Shows them live on a terminal, and as lines of JSON with the setting `progress` = jsonl; None where nobody
    watches.
    """
    if enabled and settings().progress == "jsonl":
        shown: _Log = _Lines()
    elif enabled and sys.stderr is not None and sys.stderr.isatty():
        shown = _Terminal()
    else:
        yield None
        return
    try:
        yield Counting(shown, unit)
    finally:
        shown.close()


@contextmanager
def counting_to(total: int | None, unit: str, *, enabled: bool) -> Iterator[Callable[[str], None]]:
    """What is to be called with the name of each thing that is done; `total` is None where nobody knows."""
    with counting(unit, enabled=enabled) as shown:
        if shown is not None:
            shown.begin(total)
        yield (lambda _: None) if shown is None else shown.one


class Counting:
    """Counts what is done, which is shown from `begin` on."""

    def __init__(self, shown: _Log, unit: str) -> None:
        self._shown = shown
        self._progress = Progress(unit=unit)
        self._begun = False

    def begin(self, total: int | None) -> None:
        """Show it from now on; `total` is None where nobody knows how many there will be."""
        self._begun = True
        self._progress.began = time.monotonic()
        self._progress.total = total or 0
        self._shown.start(self._progress)

    def one(self, name: str = "") -> None:
        """One more is done; `name` is shown beside it where there is room."""
        self._progress.latest = harmless(name)
        self._progress.statuses["ok"] += 1
        self._progress.note_finished()

    def reach(self, done: int, total: int) -> None:
        """So many are done of so many."""
        if not self._begun:
            self.begin(total)
        self._progress.statuses["ok"] = done
        self._progress.note_finished()


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
            calls = f" · about {counted(progress.calls_expected, 'call')}" if progress.calls_expected else ""
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
        _write(line_parts(progress).whole())

    def close(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()


class _Terminal(_Log):
    """A line with a bar, drawn again in place."""

    first_after_s = every_s = LIVE_EVERY_S

    def __init__(self) -> None:
        super().__init__()
        self._line: LiveLine | None = None

    def start(self, progress: Progress) -> None:
        self._line = LiveLine(lambda: line_parts(progress))
        self._line.open()
        super().start(progress)

    def show(self, progress: Progress) -> None:  # noqa: ARG002  the line knows it
        assert self._line is not None
        self._line.draw()

    def close(self) -> None:
        super().close()
        if self._line is not None:
            self._line.close()


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
    """Calls a second and seconds to go, by this session; null where there is nothing to go by."""
    seconds = progress.seconds()
    eta = progress.eta_s()
    return {
        "rate": round(progress.calls_now / seconds, 3) if seconds > 0 else None,
        "eta_s": None if eta is None else round(eta, 1),
    }


def line_parts(progress: Progress) -> LineParts:
    """Inputs done, the rate and the time to go; then failures, cost, calls, tokens and their cached share."""
    done, seconds = f"{progress.done:,}", max(progress.seconds(), 1e-9)
    whole = f"{done}/{progress.total:,}" if progress.total else done
    share_done = progress.done / progress.total if progress.total else None
    left = _left(progress)
    if not progress.calls_expected and not progress.calls_now:  # no model is asked
        rate = f"{(progress.done - progress.resumed) / seconds:.1f}/s"
        heads = _heads(whole, progress.unit, rate, rate, left)
        return LineParts(heads, [progress.latest] if progress.latest else [], share_done)
    spending, rate = progress.spending, f"{progress.calls_now / seconds:.1f}"
    tokens_in, tokens_out = spending.least("input_tokens"), spending.least("output_tokens")
    tokens = None if tokens_in is None or tokens_out is None else tokens_in + tokens_out
    all_tokens = None not in (spending.figure("input_tokens"), spending.figure("output_tokens"))
    cost_usd = spending.least("cost_usd")
    failed = [f"{progress.failures:,} failed"]
    rest = [
        *(failed if progress.failures else ()),
        at_least(cost(cost_usd), cost_usd is None or spending.figure("cost_usd") is not None),
        f"{progress.calls_now:,}/~{max(progress.calls_now, progress.calls_expected):,} calls",
        at_least(f"{count(tokens)} tokens", all_tokens or tokens is None),
        f"{share(spending.least('cached_tokens'), tokens_in)} cached",
        *(() if progress.failures else failed),
    ]
    return LineParts(_heads(whole, progress.unit, f"{rate} calls/s", f"{rate}/s", left), rest, share_done)


def _heads(done: str, unit: str, rate: str, short_rate: str, left: str) -> list[str]:
    """How far, how fast and how long still, in ever fewer characters."""
    return [
        f"{done} {unit} · {rate} · {left}",
        f"{done} · {short_rate} · {left}",
        f"{done} {short_rate} {left}",
        f"{done} {left}",
    ]


def _left(progress: Progress) -> str:
    """How long it still takes, or what it waits for."""
    if progress.awaited is not None:
        return f"waiting for {progress.awaited()}"
    if (words := progress.starting()) is not None:
        return harmless(words)
    eta, silent_s = progress.eta_s(), progress.silent_s()
    if eta is not None:
        return f"{duration(eta)} to go"
    return "? to go" if silent_s < SILENT_S else f"no answer for {duration(silent_s)}"


def _write(line: str) -> None:
    """A line on standard error; one that takes nothing any more changes nothing else."""
    with contextlib.suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
