"""How far a job on a service is, on standard error: live on a terminal, now and then in a log file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from uncanny.service.client.answers import JobProgress, JobRecord
from uncanny.wording import cost, count, duration, harmless

_FIRST_S = 10.0
_EVERY_S = 30.0

Show = Callable[[JobRecord], None]


@contextmanager
def shown_progress(*, enabled: bool) -> Iterator[Show]:
    """A function that is to be called with the job whenever there is something new of it."""
    if not enabled:
        yield lambda _job: None
    elif sys.stderr is not None and sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        yield _Log()


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn())
    words = TextColumn("{task.fields[facts]}", markup=False)
    with Progress(*columns, words, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("queued", total=None, facts="")

        def show(job: JobRecord) -> None:
            progress = job.progress or JobProgress()
            bar.update(
                task,
                description=job.state,
                total=progress.total,
                completed=progress.done or 0,
                facts=harmless(facts(progress)),
            )

        yield show


class _Log:
    """A line now and then, and one whenever the job is in another state."""

    def __init__(self) -> None:
        self._state: str | None = None
        self._next = time.monotonic() + _FIRST_S

    def __call__(self, job: JobRecord) -> None:
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
    """Calls, and a second, tokens, cost, failures, time to go; what is not known is left out."""
    tokens = (progress.input_tokens, progress.output_tokens)
    parts = [
        None if progress.calls is None else f"{progress.calls:,} calls",
        None if progress.rate is None else f"{progress.rate:.1f}/s",
        None if None in tokens else f"{count(sum(each or 0 for each in tokens))} tokens",
        None if progress.cost_usd is None else cost(progress.cost_usd),
        None if progress.failed is None else f"{progress.failed:,} failed",
        # What rounds to nothing is no time to wait for.
        None if round(progress.eta_s or 0) < 1 else f"{duration(progress.eta_s or 0)} to go",
    ]
    return " · ".join(part for part in parts if part is not None)
