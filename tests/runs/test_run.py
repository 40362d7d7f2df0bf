"""Working through inputs until they are done or the run is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from tests.client.scripted import ScriptedProvider, generate, guarded, make_request, text_response
from tests.virtual_time import in_virtual_time
from uncanny.client.client import ModelClient
from uncanny.client.prices import PriceTable
from uncanny.errors import BudgetError, ModelUnusableError
from uncanny.models.base import ModelRequest, ModelResponse, Sampling
from uncanny.models.registry import ModelId, ModelOptions
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.engine import Engine, common_limits
from uncanny.runs.progress import Progress
from uncanny.runs.resume import load_run
from uncanny.runs.run import GRACE_S, Observer, Run
from uncanny.runs.stop import Stop
from uncanny.runs.task import Task
from uncanny.schema import StepError

Work = Callable[[int], Awaitable[None]]


class Counted(BaseModel):
    number: int
    status: str = "ok"


@dataclass(kw_only=True)
class Counting(Task[int, Counted]):
    """Numbers to work on, in place of images."""

    name = "counting"
    unit = "numbers"
    statuses = ("ok", "failed")
    record_file = "numbers.jsonl"
    record_type = Counted
    sampling = Sampling()
    calls_per_input = 1
    roles: ClassVar[Mapping[str, str]] = {}

    prompts: PromptSet = field(default_factory=lambda: prompt_set("detect"))
    numbers: Sequence[int]
    work: Work
    at_once: int = 3

    @property
    def inputs_at_once(self) -> int:
        return self.at_once

    def config_json(self) -> dict[str, Any]:
        return {}

    def key(self, record: Counted) -> str:
        return str(record.number)

    def load_pending(self, _records: RecordFile[Counted], _progress: Progress) -> Sequence[int]:
        return self.numbers

    async def process(self, item: int, *_: object) -> Sequence[Counted]:
        await self.work(item)
        return (Counted(number=item),)

    def failed(self, _item: int, error: StepError, _calls: object) -> Sequence[Counted]:
        raise AssertionError(error.message)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def run_of(
    folder: RunFolder,
    numbers: Sequence[int],
    work: Work,
    *,
    at_once: int = 3,
    provider: ScriptedProvider | None = None,
    observer: Observer | None = None,
) -> Run[int, Counted]:
    """A run whose model is open; work on it in virtual time."""
    folder.path.mkdir(parents=True)
    provider = provider or ScriptedProvider(lambda _: text_response("1"))
    model, endpoint = ModelId("script", "one"), guarded(provider, concurrency=2)
    task = Counting(folder=folder, models=ModelOptions(model), numbers=numbers, work=work, at_once=at_once)
    run = Run(task, load_run(task), Stop(), observer or Observer())
    limits = common_limits([provider.capabilities])
    run.engine = Engine(ModelClient({"": [endpoint]}), {model: endpoint}, limits, PriceTable([]))
    return run


@pytest.mark.parametrize("number", [0, 1, 3, 50])
def test_each_input_is_worked_on_once_and_not_too_many_at_a_time(number: int, folder: RunFolder) -> None:
    done: list[int] = []
    now = most = 0

    async def work(each: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(each % 7)
        now -= 1
        done.append(each)

    run = run_of(folder, range(number), work)
    in_virtual_time(run.work())
    assert run.ending.reason is None
    assert run.progress.done == number
    assert sorted(done) == list(range(number))
    assert most == min(3, number)


def test_inputs_are_taken_up_in_order_as_there_is_room(folder: RunFolder) -> None:
    taken: list[int] = []
    done: list[int] = []

    async def work(each: int) -> None:
        taken.append(each)
        await asyncio.sleep(1)
        done.append(each)
        assert len(taken) <= len(done) + 3

    in_virtual_time(run_of(folder, range(10), work).work())
    assert taken == list(range(10))


@pytest.mark.parametrize(
    ("error", "reason"), [(BudgetError("spent"), "budget"), (ModelUnusableError("wrong key"), "model")]
)
def test_what_ends_the_run_stops_it_with_its_reason(
    error: BudgetError | ModelUnusableError, reason: str, folder: RunFolder
) -> None:
    begun: list[int] = []

    async def work(each: int) -> None:
        begun.append(each)
        await asyncio.sleep(1)
        if each == 1:
            raise error

    run = run_of(folder, range(100), work)
    in_virtual_time(run.work())
    assert (run.ending.reason, run.ending.error) == (reason, error)
    assert max(begun) < 6


def test_what_a_callback_raises_is_raised_when_the_others_have_ended(folder: RunFolder) -> None:
    ended: list[int] = []

    async def work(each: int) -> None:
        if each == 1:
            await asyncio.sleep(1)
            return
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(each)

    def on_record(record: Counted) -> None:
        raise BudgetError(f"of the host's own, at {record.number}")

    run = run_of(folder, range(10), work, observer=Observer(on_record=on_record))
    with pytest.raises(BudgetError, match="own, at 1"):
        in_virtual_time(run.work())
    assert sorted(ended) == [0, 2]
    assert run.ending.reason == "interrupt"


class Asking:
    """Inputs of one call each; a stop comes at second 5. `answers_s` is how long a call takes."""

    def __init__(self, folder: RunFolder, answers_s: float) -> None:
        async def script(_: ModelRequest) -> ModelResponse:
            await asyncio.sleep(answers_s)
            return text_response("1")

        self.model = ScriptedProvider(script)
        self.run = run_of(folder, range(100), self.work, at_once=4, provider=self.model)
        self.done: list[int] = []
        self.ended_at = 0.0

    async def work(self, each: int) -> None:
        assert isinstance(self.run.engine, Engine)
        await generate(self.run.engine.model_client, make_request(str(each)))
        self.done.append(each)

    async def main(self, interrupts: Iterable[float]) -> None:
        loop = asyncio.get_running_loop()
        for moment in interrupts:
            loop.call_later(moment, self.run.ending.interrupt)
        await self.run.work()
        self.ended_at = loop.time()


def test_after_an_interrupt_calls_in_flight_come_back_and_no_others_are_made(folder: RunFolder) -> None:
    asking = Asking(folder, answers_s=10)
    in_virtual_time(asking.main([5]))
    assert sorted(asking.done) == [0, 1]
    assert len(asking.model.requests) == 2
    assert asking.ended_at == pytest.approx(10, abs=0.5)


def test_a_second_interrupt_does_not_wait_for_them(folder: RunFolder) -> None:
    asking = Asking(folder, answers_s=50)
    in_virtual_time(asking.main([5, 6]))
    assert asking.done == []
    assert asking.ended_at == pytest.approx(6, abs=0.5)


def test_the_wait_for_them_has_an_end(folder: RunFolder) -> None:
    asking = Asking(folder, answers_s=1e5)
    in_virtual_time(asking.main([5]))
    assert asking.done == []
    assert asking.ended_at == pytest.approx(5 + GRACE_S, abs=0.5)
    assert asking.model.now == 0


def test_a_run_stopped_before_it_began_does_nothing(folder: RunFolder) -> None:
    async def work(_: int) -> None:
        raise AssertionError

    run = run_of(folder, range(5), work)
    run.ending.interrupt()
    in_virtual_time(run.work())
    assert run.progress.done == 0
