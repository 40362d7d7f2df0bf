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
from tests.runs.scripted_run import annotator, image_files, record
from uncanny.annotation.run import AnnotateTask
from uncanny.errors import BudgetError, ModelUnusableError, RequestRejectedError, StorageError
from uncanny.images.encode import PixelPolicy
from uncanny.images.prepared import prepare
from uncanny.records.record_file import CallFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.inputs import ImageFile
from uncanny.runs.resume import load_run
from uncanny.runs.run import Observer, Run
from uncanny.runs.stop import Stop
from uncanny.schema import Annotation


class OpenedRun:
    """A run in a folder of its own whose models follow a script, and which is handed files one by one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = Specialists("cup")
        made = annotator(self.asked)
        self.task, self.engine = made.task, made.engine
        self.task.folder = RunFolder(folder)
        self.task.paths = [image.path for image in image_files(folder / "elsewhere", 1)]
        self.run = Run(self.task, load_run(self.task), Stop(), Observer())
        self.records, self.progress = self.run.loaded.records, self.run.progress
        self.calls = CallFile(folder / "calls.jsonl", lambda _: True)

    async def work(self, file: ImageFile) -> None:
        await self.run._worker(self.engine.queues(self.task, [file])[0], self.calls)

    def files(self, number: int) -> list[ImageFile]:
        return image_files(self.folder / "in", number)

    def copy(self, file: ImageFile, name: str) -> ImageFile:
        return ImageFile(Path(shutil.copy(file.path, file.path.with_name(name))), name)

    def called(self) -> list[dict[str, Any]]:
        lines = (self.folder / "calls.jsonl").read_bytes().splitlines()
        return [orjson.loads(line) for line in lines]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenedRun]:
    made = OpenedRun(tmp_path)
    yield made
    made.records.close()
    made.calls.close()


async def test_each_file_becomes_a_record_and_its_calls_a_block(opened: OpenedRun) -> None:
    files = opened.files(4)
    await asyncio.gather(*(opened.work(file) for file in files))
    assert {opened.records.get(file.image).status for file in files} == {"ok"}
    blocks = [call["image"] for call in opened.called()]
    assert sorted(blocks, key=blocks.index) == blocks  # no block has another's calls in it
    assert len(blocks) == 4 * 10
    assert opened.progress.statuses == {"ok": 4}
    assert opened.progress.items_found == 4


async def test_calls_are_written_before_their_record(
    opened: OpenedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []

    append = opened.records.append

    def watched(record: Annotation) -> None:
        order.extend(call["image"] for call in opened.called()[-1:])
        append(record)

    monkeypatch.setattr(opened.records, "append", watched)
    await opened.work(opened.files(1)[0])
    assert order == ["p00.png"]


async def test_equal_bytes_are_asked_about_once_even_at_the_same_time(opened: OpenedRun) -> None:
    (file,) = opened.files(1)
    files = [file, *(opened.copy(file, f"copy{n}.png") for n in range(4))]
    await asyncio.gather(*(opened.work(each) for each in files))
    assert len(opened.asked.model.requests) == 10
    first = next(each.image for each in files if not (opened.records.get(each.image).model_extra))
    for each in files:
        found = opened.records.get(each.image)
        assert found.anomalies == opened.records.get(first).anomalies
        if each.image != first:
            assert found.model_extra == {"duplicate_of": first}
            assert found.usage.calls == 0
    assert {call["image"] for call in opened.called()} == {first}
    assert opened.progress.duplicates == 4


async def test_a_copy_of_a_copy_names_the_image_that_was_asked_about(opened: OpenedRun) -> None:
    (file,) = opened.files(1)
    await opened.work(file)
    digest = opened.records.get(file.image).sha256
    assert digest is not None
    await opened.work(opened.copy(file, "copy1.png"))
    opened.task._by_digest[digest] = "copy1.png"  # as when the run is taken up again
    await opened.work(opened.copy(file, "copy2.png"))
    assert opened.records.get("copy2.png").model_extra == {"duplicate_of": file.image}


async def test_a_copy_of_a_failed_image_has_failed_too_and_is_not_asked_again(opened: OpenedRun) -> None:
    opened.asked.answers["ObjectPerceiver", 1, None] = lambda _: RequestRejectedError("no")
    (file,) = opened.files(1)
    await opened.work(file)
    await opened.work(opened.copy(file, "copy.png"))
    assert opened.records.get("copy.png").status == "failed"
    assert len(opened.asked.model.requests) == 3


async def test_an_unreadable_file_is_recorded_without_calls(opened: OpenedRun) -> None:
    await opened.work(ImageFile(opened.folder / "gone.png", "gone.png"))
    assert opened.records.get("gone.png").status == "unreadable"
    assert opened.called() == []
    assert opened.progress.statuses == {"unreadable": 1}


def raising(error: Exception) -> Callable[..., Awaitable[Annotation]]:
    async def examine(_self: AnnotateTask, *_: Any) -> Annotation:
        raise error

    return examine


async def test_a_defect_costs_one_image_and_not_the_run(
    opened: OpenedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnnotateTask, "examine", raising(ZeroDivisionError("by zero")))
    await opened.work(opened.files(1)[0])
    found = opened.records.get("p00.png")
    assert found.status == "failed"
    assert found.sha256 is not None
    assert [(error.kind, error.message) for error in found.errors] == [
        ("defect", "ZeroDivisionError: by zero")
    ]


async def test_what_was_paid_before_a_defect_is_in_the_record(
    opened: OpenedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnnotateTask, "_annotation", lambda *_: 1 / 0)
    await opened.work(opened.files(1)[0])
    record = opened.records.get("p00.png")
    assert (record.status, record.usage.calls) == ("failed", 10)
    assert record.usage.input_tokens == sum(call["input_tokens"] for call in opened.called()) > 0


@pytest.mark.parametrize(
    "error", [ModelUnusableError("wrong key"), BudgetError("spent"), StorageError("the disk is full")]
)
async def test_what_ends_the_run_leaves_no_record_and_frees_the_copies(
    opened: OpenedRun, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(AnnotateTask, "examine", raising(error))
    (file,) = opened.files(1)
    works = [opened.work(file), opened.work(opened.copy(file, "copy.png"))]
    await asyncio.wait_for(asyncio.gather(*works), 30)
    assert opened.run.ending.error == error
    assert len(opened.records) == 0


async def test_a_cancelled_image_frees_its_copies(opened: OpenedRun) -> None:
    hold = asyncio.Event()
    reached = asyncio.Event()

    async def answer(_: object) -> RequestRejectedError:
        reached.set()
        await hold.wait()
        return RequestRejectedError("no")

    opened.asked.answers["ObjectPerceiver", 1, None] = answer
    (file,) = opened.files(1)
    first = asyncio.create_task(opened.work(file))
    await asyncio.wait_for(reached.wait(), 30)
    second = asyncio.create_task(opened.work(opened.copy(file, "copy.png")))
    first.cancel()
    hold.set()
    await asyncio.wait_for(second, 30)
    assert [name in opened.records for name in ("p00.png", "copy.png")] == [False, True]


async def test_what_the_first_record_has_of_its_own_is_in_the_copy(opened: OpenedRun) -> None:
    (file,) = opened.files(1)
    image = prepare(file.path, PixelPolicy(), opened.engine.limits)
    cut = [{"name": "spoon", "description": "It lies there."}]
    opened.records.append(record("first.png", sha256=image.source_sha256, cut_objects=cut))
    opened.task._by_digest[image.source_sha256] = "first.png"
    await opened.work(file)
    assert opened.records.get(file.image).model_extra == {"cut_objects": cut, "duplicate_of": "first.png"}
    assert not opened.asked.model.requests
