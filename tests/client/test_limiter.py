"""The limiter in virtual time: which call gets a slot when, and that it never loses a slot."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual_time import in_virtual_time
from uncanny.client.endpoint import DECREASE, LONGEST_ASKED_WAIT_S, RECOVERED, RECOVERY, START, Limiter
from uncanny.client.waiting import Ticket


async def enter(limiter: Limiter, number: int) -> list[asyncio.Task[None]]:
    """So many tasks, each of which has a slot or waits for one."""
    tasks = [asyncio.create_task(limiter.acquire(Ticket(0))) for _ in range(number)]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    return tasks


def inside(tasks: list[asyncio.Task[None]]) -> int:
    return sum(task.done() and not task.cancelled() for task in tasks)


async def drop(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize(
    ("ceiling", "fixed", "first"), [(100, False, 50), (12, False, START), (3, False, 3), (100, True, 100)]
)
def test_it_starts_slowly_below_its_ceiling_unless_fixed(ceiling: int, fixed: bool, first: int) -> None:
    async def main() -> None:
        limiter = Limiter(ceiling, fixed=fixed)
        tasks = await enter(limiter, 150)
        assert inside(tasks) == limiter.active == first
        await drop(tasks)

    in_virtual_time(main())


def test_each_success_allows_one_more_until_the_first_overload() -> None:
    async def main() -> None:
        limiter = Limiter(30)
        tasks = await enter(limiter, 30)
        for _ in range(10):
            limiter.succeeded()
        await asyncio.sleep(0)
        assert inside(tasks) == 15 + 10
        limiter.overloaded()
        assert limiter.limit == pytest.approx(25 * DECREASE)
        before = limiter.limit
        limiter.succeeded()
        assert limiter.limit == pytest.approx(before + 1 / before)
        await drop(tasks)

    in_virtual_time(main())


def test_where_some_are_refused_as_too_many_it_falls_to_those_that_are_not() -> None:
    async def main() -> None:
        limiter = Limiter(200)
        tasks = await enter(limiter, 100)
        for _ in range(60):
            limiter.overloaded(too_many=True)
            limiter.release()
        assert limiter.active == 40
        assert 40 * DECREASE <= limiter.limit <= 40
        await drop(tasks[60:])

    in_virtual_time(main())


def test_it_grows_faster_well_above_the_limit_at_which_the_server_wanted_fewer_calls() -> None:
    limiter = Limiter(400)

    async def main() -> None:
        limiter.limit = 20 / DECREASE
        limiter.overloaded()
        assert limiter.limit == pytest.approx(20)
        answers = 0
        while limiter.limit < 20 * RECOVERED:
            limiter.succeeded()
            answers += 1
        assert answers == pytest.approx(5 * 22.5, abs=5)  # one more in each round trip
        for _ in range(100):
            limiter.succeeded()
        assert limiter.limit == pytest.approx(20 * RECOVERED + 100 * RECOVERY, abs=1)

    in_virtual_time(main())


def test_it_never_grows_above_its_ceiling_nor_shrinks_below_one() -> None:
    async def main() -> None:
        limiter = Limiter(10)
        for _ in range(50):
            limiter.succeeded()
        assert limiter.limit == 10
        for _ in range(50):
            await asyncio.sleep(1)
            limiter.overloaded()
        assert limiter.limit == 1
        tasks = await enter(limiter, 3)
        assert inside(tasks) == 1
        await drop(tasks)

    in_virtual_time(main())


def test_many_overloads_within_a_second_count_once() -> None:
    async def main() -> None:
        limiter = Limiter(10)
        for _ in range(9):
            limiter.overloaded()
            await asyncio.sleep(0.1)
        assert limiter.limit == pytest.approx(START * DECREASE)
        await asyncio.sleep(0.2)
        limiter.overloaded()
        assert limiter.limit == pytest.approx(START * DECREASE**2)

    in_virtual_time(main())


@pytest.mark.parametrize("fixed", [False, True])
def test_a_retry_after_pauses_everybody_until_then(fixed: bool) -> None:
    async def main() -> None:
        limiter = Limiter(10, fixed=fixed)
        limiter.overloaded(30)
        limiter.overloaded(5)  # a shorter one does not cut it short
        tasks = await enter(limiter, 5)
        await asyncio.sleep(29.9)
        assert inside(tasks) == 0
        await asyncio.sleep(0.2)
        assert inside(tasks) == 5
        assert limiter.limit == pytest.approx(10 if fixed else START * DECREASE)
        await drop(tasks)

    in_virtual_time(main())


def test_a_wait_of_days_is_not_believed() -> None:
    async def main() -> float:
        limiter = Limiter(2)
        limiter.overloaded(86_400)
        async with limiter.slot(Ticket(0)):
            return asyncio.get_running_loop().time()

    assert in_virtual_time(main()) == LONGEST_ASKED_WAIT_S


@pytest.mark.parametrize("retry_after", [None, 0.0, -5.0])
def test_a_wait_that_is_none_pauses_nobody(retry_after: float | None) -> None:
    async def main() -> None:
        limiter = Limiter(10)
        limiter.overloaded(retry_after)
        assert limiter.limit == pytest.approx(START * DECREASE)
        tasks = [asyncio.create_task(limiter.acquire(Ticket(0))) for _ in range(3)]
        await asyncio.sleep(0)  # before any timer could fire
        assert inside(tasks) == 3
        await drop(tasks)

    in_virtual_time(main())


def test_a_pause_ends_although_its_timer_fires_early(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        at_once = loop.call_at
        # As on systems whose clock is coarse: the loop takes what is due within one tick as due.
        monkeypatch.setattr(loop, "call_at", lambda when, *rest: at_once(when - 0.015, *rest))
        limiter = Limiter(10)
        limiter.overloaded(30)
        await asyncio.gather(*await enter(limiter, 3))
        assert limiter.active == 3

    in_virtual_time(main())


def test_a_longer_retry_after_prolongs_the_pause() -> None:
    async def main() -> None:
        limiter = Limiter(10)
        limiter.overloaded(5)
        limiter.overloaded(30)
        tasks = await enter(limiter, 1)
        await asyncio.sleep(29.9)
        assert inside(tasks) == 0
        await tasks[0]

    in_virtual_time(main())


def test_closed_it_gives_out_nothing_and_takes_back_what_is_out() -> None:
    async def main() -> None:
        limiter = Limiter(2)
        tasks = await enter(limiter, 4)
        limiter.close()
        limiter.release()
        limiter.release()
        tasks += await enter(limiter, 1)
        assert inside(tasks) == 2
        assert limiter.active == 0
        await drop(tasks)
        assert limiter.active == 0

    in_virtual_time(main())


def test_first_come_first_served() -> None:
    async def main() -> None:
        limiter = Limiter(1, fixed=True)
        order: list[int] = []

        async def work(name: int) -> None:
            async with limiter.slot(Ticket(0)):
                order.append(name)
                await asyncio.sleep(1)

        await asyncio.gather(*(work(name) for name in range(6)))
        assert order == list(range(6))

    in_virtual_time(main())


def test_who_was_taken_up_first_goes_first_whenever_it_comes() -> None:
    async def main() -> None:
        limiter = Limiter(1, fixed=True)
        order: list[str] = []

        async def work(name: str, taken_up: int) -> None:
            async with limiter.slot(Ticket(taken_up)):
                order.append(name)
                await asyncio.sleep(1)

        came = [("first in", 9), ("young", 5), ("old", 1), ("younger", 7), ("old again", 1), ("middle", 3)]
        await asyncio.gather(*(work(name, taken_up) for name, taken_up in came))
        assert order == ["first in", "old", "old again", "middle", "young", "younger"]

    in_virtual_time(main())


def test_a_released_slot_is_for_the_next_call_of_its_input_before_others() -> None:
    async def main() -> None:
        limiter = Limiter(1, fixed=True)
        order: list[str] = []

        async def chain(name: str, taken_up: int) -> None:
            for step in range(3):
                async with limiter.slot(Ticket(taken_up)):
                    order.append(f"{name}{step}")
                    await asyncio.sleep(1)

        await asyncio.gather(chain("a", 1), chain("b", 2))
        assert order == ["a0", "a1", "a2", "b0", "b1", "b2"]

    in_virtual_time(main())


def test_a_slot_given_to_a_caller_that_is_cancelled_at_that_moment_goes_to_the_next() -> None:
    async def main() -> None:
        limiter = Limiter(1)
        await limiter.acquire(Ticket(0))
        late, next_one = await enter(limiter, 2)
        limiter.release()  # hands the slot to `late`, which has not run yet
        late.cancel()
        await next_one
        assert late.cancelled()
        assert limiter.active == 1

    in_virtual_time(main())


def test_no_concurrency_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 1, not 0"):
        Limiter(0)


@dataclass(frozen=True)
class Guest:
    taken_up: int
    comes: float
    stays: float
    cancelled_after: float | None
    outcome: str


moments = st.floats(0, 5, allow_nan=False)
guests = st.builds(
    Guest,
    taken_up=st.integers(0, 5),
    comes=moments,
    stays=moments,
    cancelled_after=st.none() | moments,
    outcome=st.sampled_from(["succeeded", "overloaded", "paused", "nothing"]),
)


@given(st.lists(guests, max_size=40), st.integers(1, 12), st.booleans())
def test_whoever_is_cancelled_whenever_no_slot_is_lost_or_given_twice(
    come: list[Guest], ceiling: int, fixed: bool
) -> None:
    async def visit(limiter: Limiter, guest: Guest) -> None:
        await asyncio.sleep(guest.comes)
        async with limiter.slot(Ticket(guest.taken_up)):
            assert limiter.active <= limiter.ceiling
            await asyncio.sleep(guest.stays)
            if guest.outcome == "succeeded":
                limiter.succeeded()
            elif guest.outcome != "nothing":
                limiter.overloaded(2.0 if guest.outcome == "paused" else None)

    async def main() -> None:
        limiter = Limiter(ceiling, fixed=fixed)
        loop = asyncio.get_running_loop()
        tasks = []
        for guest in come:
            task = asyncio.create_task(visit(limiter, guest))
            if guest.cancelled_after is not None:
                loop.call_later(guest.comes + guest.cancelled_after, task.cancel)
            tasks.append(task)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert not [end for end in ended if isinstance(end, AssertionError)]
        assert limiter.active == 0
        last = await enter(limiter, ceiling)
        await asyncio.sleep(3)  # the longest pause is 2 s
        assert inside(last) == limiter.active == int(limiter.limit)
        await drop(last)

    in_virtual_time(main())
