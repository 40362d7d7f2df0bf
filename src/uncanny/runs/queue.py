"""From inputs to records on disk, many inputs at a time, until they are done or the run ends early."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel

from uncanny.client.calls import CallRecord, dump_calls
from uncanny.client.client import ModelClient
from uncanny.errors import ENDS_RUN
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.runs.engine import Engine
from uncanny.runs.progress import Progress
from uncanny.runs.stop import Ending
from uncanny.runs.task import Task
from uncanny.schema import StepError

log = logging.getLogger("uncanny")

T = TypeVar("T")
R = TypeVar("R", bound=BaseModel)
GRACE_S = 60.0


@dataclass(frozen=True, slots=True)
class Recorder(Generic[T, R]):
    """Takes one input after the other to its records; `on_record` sees each when it is on disk."""

    task: Task[T, R]
    engine: Engine
    records: RecordFile[R]
    calls: CallFile
    progress: Progress
    on_record: Callable[[R], None] = lambda _record: None

    async def work(self, item: T) -> None:
        """Raises what `ENDS_RUN` names; whatever else goes wrong with an input is in its record."""
        calls: list[CallRecord] = []
        try:
            records = await self.task.process(item, self.engine, calls)
        except ENDS_RUN:
            raise
        except Exception as defect:  # a defect of ours must cost one input, not the run
            log.exception("%s: an input failed", self.task.name)
            message = f"{type(defect).__name__}: {defect}"
            error = StepError(agent="uncanny", step=0, kind="defect", message=message)
            records = self.task.failed(item, error)
        # Calls first: an input with a record is never worked on again.
        if calls:
            self.calls.append(dump_calls(calls))
        for record in records:
            self.records.append(record)
            self.task.note(self.progress, record)
            self.on_record(record)


async def work_through(
    inputs: Iterable[T],
    work: Callable[[T], Awaitable[None]],
    *,
    at_once: int,
    ending: Ending,
    model_client: ModelClient,
) -> None:
    """Call `work` for each input.

    `work` records its own failures; what it raises besides `ENDS_RUN`, which stops the run, is a defect and
    raised here. Once the run is ending no input is taken up, and work is cancelled when the calls in flight
    have come back (after `GRACE_S` seconds at most), or at once after a second request.
    """
    queue = iter(inputs)
    workers = [asyncio.create_task(_worker(queue, work, ending)) for _ in range(at_once)]
    watcher = asyncio.create_task(_cancel_when_ending(workers, ending, model_client))
    try:
        done, _ = await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        for worker in done:
            if not worker.cancelled() and (defect := worker.exception()) is not None:
                raise defect
    finally:
        watcher.cancel()
        for worker in workers:
            worker.cancel()
        await asyncio.gather(watcher, *workers, return_exceptions=True)


async def _worker(queue: Iterator[T], work: Callable[[T], Awaitable[None]], ending: Ending) -> None:
    for each in queue:
        if ending.reason is not None:
            return
        try:
            await work(each)
        except ENDS_RUN as error:
            ending.because(error)


async def _cancel_when_ending(
    workers: list[asyncio.Task[None]], ending: Ending, model_client: ModelClient
) -> None:
    await ending.changed.wait()
    model_client.drain()
    deadline = asyncio.get_running_loop().time() + GRACE_S
    # Polled: an event for every call that comes back would cost more than this does.
    while model_client.in_flight() and not ending.now and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    for worker in workers:
        worker.cancel()
