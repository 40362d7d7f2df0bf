"""Working through inputs until they are done or the run is stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest

from tests.client.scripted import ScriptedProvider, generate, guarded, make_request, text_response
from tests.virtual_time import in_virtual_time
from uncanny.client.client import ModelClient
from uncanny.errors import BudgetError, ModelUnusableError
from uncanny.models.base import ModelRequest, ModelResponse
from uncanny.runs.queue import GRACE_S, work_through
from uncanny.runs.stop import Ending

Work = Callable[[int], Awaitable[None]]


def run(inputs: Iterable[int], work: Work, *, at_once: int = 3, ending: Ending | None = None) -> Ending:
    ending = ending or Ending()
    model_client = ModelClient({"": [guarded(ScriptedProvider(lambda _: text_response("1")))]})
    in_virtual_time(work_through(inputs, work, at_once=at_once, ending=ending, model_client=model_client))
    return ending


@pytest.mark.parametrize("number", [0, 1, 3, 50])
def test_each_input_is_worked_on_once_and_not_too_many_at_a_time(number: int) -> None:
    done: list[int] = []
    now = most = 0

    async def work(each: int) -> None:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(each % 7)
        now -= 1
        done.append(each)

    assert run(range(number), work).reason is None
    assert sorted(done) == list(range(number))
    assert most == min(3, number)


def test_inputs_are_taken_up_in_order_as_there_is_room() -> None:
    taken: list[int] = []

    def inputs() -> Iterable[int]:
        for each in range(10):
            taken.append(each)
            yield each

    async def work(each: int) -> None:
        await asyncio.sleep(1)
        assert len(taken) <= each + 4

    run(inputs(), work)
    assert taken == list(range(10))


@pytest.mark.parametrize(
    ("error", "reason"), [(BudgetError("spent"), "budget"), (ModelUnusableError("wrong key"), "model")]
)
def test_what_ends_the_run_stops_it_with_its_reason(
    error: BudgetError | ModelUnusableError, reason: str
) -> None:
    begun: list[int] = []

    async def work(each: int) -> None:
        begun.append(each)
        await asyncio.sleep(1)
        if each == 1:
            raise error

    stop = run(range(100), work)
    assert (stop.reason, stop.error) == (reason, error)
    assert max(begun) < 6


def test_a_defect_is_raised_and_the_others_are_ended() -> None:
    ended: list[int] = []

    async def work(each: int) -> None:
        if each == 1:
            raise ZeroDivisionError("a defect")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(each)

    with pytest.raises(ZeroDivisionError, match="a defect"):
        run(range(10), work)
    assert sorted(ended) == [0, 2]


class Asking:
    """Inputs that each ask one question; a stop comes at second 5. `answers_s` is how long a call takes."""

    def __init__(self, answers_s: float) -> None:
        async def script(_: ModelRequest) -> ModelResponse:
            await asyncio.sleep(answers_s)
            return text_response("1")

        self.model = ScriptedProvider(script)
        self.model_client = ModelClient({"": [guarded(self.model, concurrency=2)]})
        self.ending = Ending()
        self.done: list[int] = []
        self.ended_at = 0.0

    async def work(self, each: int) -> None:
        await generate(self.model_client, make_request(str(each)))
        self.done.append(each)

    async def main(self, interrupts: Iterable[float]) -> None:
        loop = asyncio.get_running_loop()
        for moment in interrupts:
            loop.call_later(moment, self.ending.interrupt)
        await work_through(
            range(100), self.work, at_once=4, ending=self.ending, model_client=self.model_client
        )
        self.ended_at = loop.time()


def test_after_an_interrupt_calls_in_flight_come_back_and_no_others_are_made() -> None:
    asking = Asking(answers_s=10)
    in_virtual_time(asking.main([5]))
    assert asking.done == [0, 1]
    assert len(asking.model.requests) == 2
    assert asking.ended_at == pytest.approx(10, abs=0.5)


def test_a_second_interrupt_does_not_wait_for_them() -> None:
    asking = Asking(answers_s=50)
    in_virtual_time(asking.main([5, 6]))
    assert asking.done == []
    assert asking.ended_at == pytest.approx(6, abs=0.5)


def test_the_wait_for_them_has_an_end() -> None:
    asking = Asking(answers_s=1e5)
    in_virtual_time(asking.main([5]))
    assert asking.done == []
    assert asking.ended_at == pytest.approx(5 + GRACE_S, abs=0.5)
    assert asking.model.now == 0


def test_a_run_stopped_before_it_began_does_nothing() -> None:
    async def work(_: int) -> None:
        raise AssertionError

    ending = Ending()
    ending.interrupt()
    run(range(5), work, ending=ending)
