"""Working through many inputs, so many at once, until they are done or the run is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TypeVar

from uncanny.errors import ENDS_RUN
from uncanny.providers.caller import Caller
from uncanny.runs.stop import Stop

T = TypeVar("T")
GRACE_S = 60.0


async def work_through(
    inputs: Iterable[T],
    work: Callable[[T], Awaitable[None]],
    *,
    at_once: int,
    stop: Stop,
    caller: Caller,
) -> None:
    """Call `work` for each input.

    `work` records its own failures; what it raises besides `ENDS_RUN`, which stops the run, is a defect and
    raised here. After a stop no input is taken up, and work is cancelled once
    the calls in flight have come back (at most `GRACE_S` seconds), or at once after a second interrupt.
    """
    queue = iter(inputs)
    workers = [asyncio.create_task(_worker(queue, work, stop)) for _ in range(at_once)]
    watcher = asyncio.create_task(_cancel_on_stop(workers, stop, caller))
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


async def _worker(queue: Iterator[T], work: Callable[[T], Awaitable[None]], stop: Stop) -> None:
    for each in queue:
        if stop.reason is not None:
            return
        try:
            await work(each)
        except ENDS_RUN as error:
            stop.because(error)


async def _cancel_on_stop(workers: list[asyncio.Task[None]], stop: Stop, caller: Caller) -> None:
    await stop.changed.wait()
    caller.hold()
    deadline = asyncio.get_running_loop().time() + GRACE_S
    # An event on every slot given back would sit in too hot a place.
    while caller.in_flight() and not stop.now and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    for worker in workers:
        worker.cancel()
