"""How far a job on a service is, on standard error: live on a terminal, now and then in a log file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from uncanny.service.answers import Job, JobProgress
from uncanny.wording import cost, count, duration, harmless

_FIRST_S = 10.0
_EVERY_S = 30.0

Show = Callable[[Job], None]


@contextmanager
def shown_progress(*, enabled: bool) -> Iterator[Show]:
    """A function that is to be called with the job whenever there is something new of it."""
    if not enabled:
        yield lambda _job: None
    elif sys.stderr is not None and sys.stderr.isatty():
        with _live() as show:
            yield show
    else:
        yield _Log()


@contextmanager
def _live() -> Iterator[Show]:
    from uncanny.runs.live_line import LineParts, LiveLine

    last: list[Job] = []

    def parts() -> LineParts:
        if not last:
            return LineParts(["queued"])
        job, progress = last[-1], last[-1].progress or JobProgress()
        if progress.total is None:
            return LineParts([job.state])
        done, total = progress.done or 0, progress.total
        heads = _heads(progress)
        lines = [
            (f"{job.state} {done:,}/{total:,}", heads[0]),
            *((f"{done:,}/{total:,}", each) for each in heads),
        ]
        words = [" · ".join(filter(None, line)) for line in lines]
        return LineParts([harmless(each) for each in words], _rest(progress), done / total if total else None)

    def show(job: Job) -> None:
        last[:] = [job]
        line.draw()

    line = LiveLine(parts)
    line.open()
    try:
        yield show
    finally:
        line.close()


class _Log:
    """A line now and then, and one whenever the job is in another state."""

    def __init__(self) -> None:
        self._state: str | None = None
        self._next = time.monotonic() + _FIRST_S

    def __call__(self, job: Job) -> None:
        if job.state == self._state and time.monotonic() < self._next:
            return
        first, self._state = self._state is None, job.state
        self._next = time.monotonic() + (_FIRST_S if first else _EVERY_S)
        progress = job.progress
        line = f"{job.id} {job.state}"
        if progress is not None and progress.total is not None:
            line += f" · {progress.done or 0:,}/{progress.total:,} · {facts(progress)}"
        # Whoever reads the log may have gone; the job does not mind.
        with suppress(OSError, ValueError):
            print(harmless(line), file=sys.stderr, flush=True)


def facts(progress: JobProgress) -> str:
    """Calls a second, time to go, failures, cost, calls and tokens; what is not known is left out."""
    return " · ".join(filter(None, [_heads(progress)[0], *_rest(progress)]))


def _heads(progress: JobProgress) -> list[str]:
    """The rate and the time to go, in ever fewer characters."""
    rate, eta = progress.rate, round(progress.eta_s or 0)
    # What rounds to nothing is no time to wait for.
    left = None if eta < 1 else f"{duration(eta)} to go"
    long, short = (None, None) if rate is None else (f"{rate:.1f} calls/s", f"{rate:.1f}/s")
    return [" · ".join(filter(None, (each, left))) for each in (long, short)]


def _rest(progress: JobProgress) -> list[str]:
    tokens = (progress.input_tokens, progress.output_tokens)
    parts = [
        None if progress.failed is None else f"{progress.failed:,} failed",
        None if progress.cost_usd is None else cost(progress.cost_usd),
        None if progress.calls is None else f"{progress.calls:,} calls",
        None if None in tokens else f"{count(sum(each or 0 for each in tokens))} tokens",
    ]
    return [part for part in parts if part is not None]
