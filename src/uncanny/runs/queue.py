"""Working through many inputs, so many at once, until they are done or the run is stopped.

From files to records on disk: duplicates asked once, calls written just before their record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from uncanny.client.calls import CallRecord, dump_calls, usage
from uncanny.client.client import ModelClient
from uncanny.errors import ENDS_RUN
from uncanny.images import PreparedImage
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.runs.inputs import ImageFile, note_record
from uncanny.runs.progress import Progress
from uncanny.runs.stop import Stop
from uncanny.schema import Annotation, StepError

T = TypeVar("T")
GRACE_S = 60.0


async def work_through(
    inputs: Iterable[T],
    work: Callable[[T], Awaitable[None]],
    *,
    at_once: int,
    stop: Stop,
    model_client: ModelClient,
) -> None:
    """Call `work` for each input.

    `work` records its own failures; what it raises besides `ENDS_RUN`, which stops the run, is a defect and
    raised here. After a stop no input is taken up, and work is cancelled once
    the calls in flight have come back (at most `GRACE_S` seconds), or at once after a second interrupt.
    """
    queue = iter(inputs)
    workers = [asyncio.create_task(_worker(queue, work, stop)) for _ in range(at_once)]
    watcher = asyncio.create_task(_cancel_on_stop(workers, stop, model_client))
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


async def _cancel_on_stop(workers: list[asyncio.Task[None]], stop: Stop, model_client: ModelClient) -> None:
    await stop.changed.wait()
    model_client.drain()
    deadline = asyncio.get_running_loop().time() + GRACE_S
    # An event on every slot given back would sit in too hot a place.
    while model_client.in_flight() and not stop.now and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.02)
    for worker in workers:
        worker.cancel()


log = logging.getLogger("uncanny")

A = TypeVar("A", bound=Annotation)


@dataclass(frozen=True, slots=True)
class Annotated(Generic[A]):
    """An image's record and the calls it took."""

    record: A
    calls: list[CallRecord]


class ImageWorker(Protocol[A]):
    """What makes a record of one image: annotation, detection."""

    async def open(self, file: ImageFile) -> PreparedImage | A:
        """The image ready to send, or the record that says why it cannot be read."""
        ...

    async def annotate(self, file: ImageFile, image: PreparedImage) -> Annotated[A]:
        """Raises ModelUnusableError or BudgetError when no question can be asked any more."""
        ...

    def failed(self, file: ImageFile, image: PreparedImage, error: StepError) -> A:
        """The record of an image about which nothing was found out."""
        ...


@dataclass(slots=True)
class ImageQueue(Generic[A]):
    """`work` takes one file to its record. `done` names, by digest, images that have one already."""

    annotator: ImageWorker[A]
    records: RecordFile[A]
    calls: CallFile
    progress: Progress
    done: dict[str, str]
    _running: dict[str, asyncio.Event] = field(default_factory=dict)

    async def work(self, file: ImageFile) -> None:
        """Raises what `ENDS_RUN` names only; whatever else happens is in the record."""
        opened = await self.annotator.open(file)
        if isinstance(opened, Annotation):
            self._write(Annotated(opened, []))
            return
        digest = opened.source_sha256
        while (other := self._running.get(digest)) is not None:
            await other.wait()
        if (first := self.done.get(digest)) is not None:
            self._write(Annotated(self._duplicate(file, opened, first), []))
            return
        finished = self._running[digest] = asyncio.Event()
        try:
            self._write(await self._annotate(file, opened))
            self.done[digest] = file.image
        finally:
            del self._running[digest]
            finished.set()

    async def _annotate(self, file: ImageFile, image: PreparedImage) -> Annotated[A]:
        try:
            return await self.annotator.annotate(file, image)
        except ENDS_RUN:
            raise
        except Exception as defect:  # a defect of ours must cost one image, not the run
            log.exception("annotating %s failed", file.image)
            said = f"{type(defect).__name__}: {defect}"
            error = StepError(agent="uncanny", step=0, kind="defect", message=said)
            return Annotated(self.annotator.failed(file, image, error), [])

    def _duplicate(self, file: ImageFile, image: PreparedImage, first: str) -> A:
        record = self.records.get(first)
        # Where `first` is a duplicate itself, both name the image that was asked about.
        extra = {"duplicate_of": first, **(record.model_extra or {})}
        return type(record).model_validate(
            record.model_dump(exclude=set(record.model_extra or ()))
            | extra
            | {"image": file.image, "usage": usage([]), "file_stamp": image.stamp}
        )

    def _write(self, done: Annotated[A]) -> None:
        if done.calls:
            self.calls.append(dump_calls(done.calls))
        self.records.append(done.record)
        note_record(self.progress, done.record)
