"""Files to records on disk: each picture asked about once, calls before their record, nothing lost."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.agents.specialists import Specialists
from tests.runs.scripted_run import Annotator, annotator, image_files, record, records_of
from uncanny.errors import BudgetError, ModelUnusableError, RequestRejectedError, StorageError
from uncanny.eval.annotate.run import AnnotateTask
from uncanny.images import PixelPolicy, prepare
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.runs.inputs import ImageFile
from uncanny.runs.progress import Progress
from uncanny.runs.queue import Recorder
from uncanny.schema import Annotation


class Desk:
    """A queue with its files in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = Specialists("cup")
        self.records = records_of(folder / "annotations.jsonl")
        self.calls = CallFile(folder / "calls.jsonl", lambda _: True)
        self.progress = Progress()
        self.queue = self.with_annotator(annotator(self.asked))

    def with_annotator(self, made: Annotator) -> Recorder[ImageFile, Annotation]:
        self.task = made.task
        self.task._records = self.records
        self.queue = Recorder(made.task, made.engine, self.records, self.calls, self.progress)
        return self.queue

    def files(self, number: int) -> list[ImageFile]:
        return image_files(self.folder / "in", number)

    def copy(self, file: ImageFile, name: str) -> ImageFile:
        return ImageFile(Path(shutil.copy(file.path, file.path.with_name(name))), name)

    def called(self) -> list[dict[str, Any]]:
        lines = (self.folder / "calls.jsonl").read_bytes().splitlines()
        return [orjson.loads(line) for line in lines]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.records.close()
    made.calls.close()


async def test_each_file_becomes_a_record_and_its_calls_a_block(desk: Desk) -> None:
    files = desk.files(4)
    await asyncio.gather(*(desk.queue.work(file) for file in files))
    assert {desk.records.get(file.image).status for file in files} == {"ok"}
    blocks = [call["image"] for call in desk.called()]
    assert sorted(blocks, key=blocks.index) == blocks  # no block has another's calls in it
    assert len(blocks) == 4 * 10
    assert desk.progress.statuses == {"ok": 4}
    assert desk.progress.items_found == 4


async def test_calls_are_written_before_their_record(desk: Desk) -> None:
    order: list[str] = []

    class Watched(RecordFile[Annotation]):
        def append(self, record: Annotation) -> None:
            order.extend(call["image"] for call in desk.called()[-1:])
            super().append(record)

    desk.records = Watched(desk.folder / "other.jsonl", Annotation, lambda record: record.image)
    await desk.with_annotator(annotator(desk.asked)).work(desk.files(1)[0])
    assert order == ["p00.png"]


async def test_equal_bytes_are_asked_about_once_even_at_the_same_time(desk: Desk) -> None:
    (file,) = desk.files(1)
    files = [file, *(desk.copy(file, f"copy{n}.png") for n in range(4))]
    await asyncio.gather(*(desk.queue.work(each) for each in files))
    assert len(desk.asked.model.requests) == 10
    first = next(each.image for each in files if not (desk.records.get(each.image).model_extra))
    for each in files:
        found = desk.records.get(each.image)
        assert found.anomalies == desk.records.get(first).anomalies
        if each.image != first:
            assert found.model_extra == {"duplicate_of": first}
            assert found.usage.calls == 0
    assert {call["image"] for call in desk.called()} == {first}
    assert desk.progress.duplicates == 4


async def test_a_copy_of_a_copy_names_the_image_that_was_asked_about(desk: Desk) -> None:
    (file,) = desk.files(1)
    await desk.queue.work(file)
    digest = desk.records.get(file.image).sha256
    assert digest is not None
    await desk.queue.work(desk.copy(file, "copy1.png"))
    desk.task._by_digest[digest] = "copy1.png"  # as when the run is taken up again
    await desk.queue.work(desk.copy(file, "copy2.png"))
    assert desk.records.get("copy2.png").model_extra == {"duplicate_of": file.image}


async def test_a_copy_of_a_failed_image_has_failed_too_and_is_not_asked_again(desk: Desk) -> None:
    desk.asked.answers["ObjectPerceiver", 1, None] = lambda _: RequestRejectedError("no")
    (file,) = desk.files(1)
    await desk.queue.work(file)
    await desk.queue.work(desk.copy(file, "copy.png"))
    assert desk.records.get("copy.png").status == "failed"
    assert len(desk.asked.model.requests) == 3


async def test_an_unreadable_file_is_recorded_without_calls(desk: Desk) -> None:
    await desk.queue.work(ImageFile(desk.folder / "gone.png", "gone.png"))
    assert desk.records.get("gone.png").status == "unreadable"
    assert desk.called() == []
    assert desk.progress.statuses == {"unreadable": 1}


def raising(error: Exception) -> Callable[..., Awaitable[Annotation]]:
    async def examine(_self: AnnotateTask, *_: Any) -> Annotation:
        raise error

    return examine


async def test_a_defect_costs_one_image_and_not_the_run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AnnotateTask, "examine", raising(ZeroDivisionError("by zero")))
    await desk.queue.work(desk.files(1)[0])
    found = desk.records.get("p00.png")
    assert found.status == "failed"
    assert found.sha256 is not None
    assert [(error.kind, error.message) for error in found.errors] == [
        ("defect", "ZeroDivisionError: by zero")
    ]


@pytest.mark.parametrize(
    "error", [ModelUnusableError("wrong key"), BudgetError("spent"), StorageError("the disk is full")]
)
async def test_what_ends_the_run_leaves_no_record_and_frees_the_copies(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(AnnotateTask, "examine", raising(error))
    (file,) = desk.files(1)
    works = [desk.queue.work(file), desk.queue.work(desk.copy(file, "copy.png"))]
    ended = await asyncio.wait_for(asyncio.gather(*works, return_exceptions=True), 30)
    assert ended == [error, error]
    assert len(desk.records) == 0


async def test_a_cancelled_image_frees_its_copies(desk: Desk) -> None:
    hold = asyncio.Event()
    reached = asyncio.Event()

    async def answer(_: object) -> RequestRejectedError:
        reached.set()
        await hold.wait()
        return RequestRejectedError("no")

    desk.asked.answers["ObjectPerceiver", 1, None] = answer
    (file,) = desk.files(1)
    first = asyncio.create_task(desk.queue.work(file))
    await asyncio.wait_for(reached.wait(), 30)
    second = asyncio.create_task(desk.queue.work(desk.copy(file, "copy.png")))
    first.cancel()
    hold.set()
    await asyncio.wait_for(second, 30)
    assert [name in desk.records for name in ("p00.png", "copy.png")] == [False, True]


async def test_what_the_first_record_has_of_its_own_is_in_the_copy(desk: Desk) -> None:
    (file,) = desk.files(1)
    opened = prepare(file.path, PixelPolicy(), desk.queue.engine.limits)
    cut = [{"name": "spoon", "description": "It lies there."}]
    desk.records.append(record("first.png", sha256=opened.source_sha256, cut_objects=cut))
    desk.task._by_digest[opened.source_sha256] = "first.png"
    await desk.queue.work(file)
    assert desk.records.get(file.image).model_extra == {"cut_objects": cut, "duplicate_of": "first.png"}
    assert not desk.asked.model.requests
