"""The budget: never above the limit, nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.virtual_time import in_virtual_time
from uncanny.client.budget import Budget, Spend
from uncanny.client.waiting import Ticket
from uncanny.errors import BudgetError

FIRST = Ticket(0)


async def test_without_limits_everything_fits() -> None:
    budget = Budget()
    assert not budget.limited
    await budget.reserve(Spend(10**12, 10**6), FIRST)
    budget.settle(Spend(10**12, 10**6), Spend(5, 0.5))
    assert budget.spent == Spend(5, 0.5)


async def test_a_call_that_fits_exactly_is_made() -> None:
    budget = Budget(max_tokens=100, spent=Spend(60))
    await budget.reserve(Spend(40), FIRST)
    budget.settle(Spend(40), Spend(40))
    with pytest.raises(BudgetError, match=r"100 of 100 tokens spent.*Raise the limit"):
        await budget.reserve(Spend(1), FIRST)


async def test_what_is_said_in_the_end_counts_what_was_spent_after_a_call_that_did_not_fit() -> None:
    budget = Budget(max_cost_usd=2.0, spent=Spend(0, 1.0), estimated=Spend(0, 0.25))
    await budget.reserve(Spend(1, 0.5), FIRST)
    large, small = (asyncio.create_task(budget.reserve(Spend(1, usd), FIRST)) for usd in (1.5, 0.25))
    await asyncio.sleep(0)
    budget.settle(Spend(1, 0.5), Spend(1, 0.5), Spend(1, 0.125))
    with pytest.raises(BudgetError, match=r"\$1\.50 of \$2\.00 spent, \$0\.3750 of it estimated"):
        await large
    await small
    budget.settle(Spend(1, 0.25), Spend(1, 0.25))
    assert "$1.75 of $2.00 spent, $0.3750 of it estimated for answers without usage" in str(budget.error())


async def test_what_earlier_sessions_spent_counts() -> None:
    with pytest.raises(BudgetError, match=r"\$1.90 of \$2.00"):
        await Budget(max_cost_usd=2.0, spent=Spend(0, 1.9)).reserve(Spend(1, 0.2), FIRST)


async def test_a_free_call_needs_no_money() -> None:
    budget = Budget(max_cost_usd=1.0, spent=Spend(0, 5.0))
    await budget.reserve(Spend(1_000, 0.0), FIRST)


async def test_a_call_waits_until_a_running_one_has_used_less() -> None:
    budget = Budget(max_tokens=100)
    await budget.reserve(Spend(80), FIRST)
    waiting = asyncio.create_task(budget.reserve(Spend(80), FIRST))
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.settle(Spend(80), Spend(20))
    await waiting


async def test_waiting_ends_with_an_error_once_nobody_can_give_anything_back() -> None:
    budget = Budget(max_tokens=100)
    await budget.reserve(Spend(80), FIRST)
    waiting = [asyncio.create_task(budget.reserve(Spend(80), FIRST)) for _ in range(3)]
    await asyncio.sleep(0)
    budget.settle(Spend(80), Spend(70))
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ended] == [BudgetError] * 3


async def test_the_oldest_input_is_served_first_although_others_need_less() -> None:
    budget = Budget(max_tokens=100)
    await budget.reserve(Spend(60), Ticket(1))
    await budget.reserve(Spend(30), Ticket(1))
    served: list[str] = []

    async def call(name: str, worst: int, taken_up: int) -> None:
        await budget.reserve(Spend(worst), Ticket(taken_up))
        served.append(name)

    waiting = [
        asyncio.create_task(call(*each)) for each in (("young", 10, 7), ("old", 50, 1), ("mid", 40, 3))
    ]
    await asyncio.sleep(0)
    assert served == ["young"], "there was room, and nobody waited yet"
    budget.settle(Spend(60), Spend(10))
    await asyncio.sleep(0.01)
    assert served == ["young", "old"]
    budget.settle(Spend(50), Spend(0))
    await asyncio.gather(*waiting)


async def test_what_a_call_gives_back_is_for_the_next_one_of_its_input_before_others() -> None:
    budget = Budget(max_tokens=100)
    await budget.reserve(Spend(100), Ticket(1))
    younger = asyncio.create_task(budget.reserve(Spend(100), Ticket(2)))
    await asyncio.sleep(0)
    budget.settle(Spend(100), Spend(0))
    await budget.reserve(Spend(100), Ticket(1))
    await asyncio.sleep(0.01)
    assert not younger.done()
    budget.settle(Spend(100), Spend(0))
    await younger


async def test_what_earlier_inputs_will_still_need_is_left_to_them() -> None:
    budget = Budget(max_tokens=100, usual_calls=4)
    for _ in range(2):
        await budget.reserve(Spend(20), Ticket(1))
        budget.settle(Spend(20), Spend(20))
    # The first input is thought to need 40 more, so one call of the second fits beside a running one.
    await budget.reserve(Spend(20), Ticket(1))
    younger = asyncio.create_task(budget.reserve(Spend(20), Ticket(2)))
    await asyncio.sleep(0)
    assert not younger.done()
    await budget.reserve(Spend(20), Ticket(1))
    budget.settle(Spend(20), Spend(10))
    budget.settle(Spend(20), Spend(10))
    budget.close(1, finished=True)
    await younger


async def test_before_any_call_is_paid_for_no_input_is_begun_that_may_not_be_ended() -> None:
    budget = Budget(max_tokens=99, usual_calls=3)
    await budget.reserve(Spend(20), Ticket(1))
    # The first input may need 40 more, and as much again is for the dearest call.
    younger = asyncio.create_task(budget.reserve(Spend(20), Ticket(2)))
    await asyncio.sleep(0)
    assert not younger.done()
    budget.settle(Spend(20), Spend(2))
    await younger  # the other two calls will cost about 4


async def test_with_nothing_running_money_is_not_left_for_anybody() -> None:
    budget = Budget(max_tokens=100, usual_calls=50)
    await budget.reserve(Spend(20), Ticket(1))
    budget.settle(Spend(20), Spend(20))
    await budget.reserve(Spend(20), Ticket(2))


async def test_an_input_that_takes_fewer_calls_than_usual_holds_nobody_up_once_one_has_ended() -> None:
    budget = Budget(max_tokens=200, usual_calls=50)
    await budget.reserve(Spend(10), Ticket(1))
    budget.settle(Spend(10), Spend(10))
    budget.close(1, finished=True)
    await budget.reserve(Spend(10), Ticket(2))
    await budget.reserve(Spend(10), Ticket(3))


amounts = st.integers(0, 60)
# input, worst case, share of it that is used in the end, start, duration, cancelled or not
calls = st.tuples(st.integers(0, 4), amounts, st.floats(0, 1), amounts, amounts, st.booleans())


@given(st.lists(calls, max_size=30), st.integers(0, 200), st.sampled_from(["tokens", "dollars"]))
def test_it_is_never_overdrawn_and_nobody_waits_for_ever(
    made: list[tuple[int, int, float, int, int, bool]], limit: int, currency: str
) -> None:
    tokens = currency == "tokens"
    budget = Budget(max_tokens=limit, usual_calls=3) if tokens else Budget(max_cost_usd=float(limit))
    running: list[int] = []

    def spend(amount: int) -> Spend:
        return Spend(amount) if tokens else Spend(0, float(amount))

    async def call(taken_up: int, worst: int, share: float, start: int, lasts: int) -> None:
        await asyncio.sleep(start)
        await budget.reserve(spend(worst), Ticket(taken_up))
        running.append(worst)
        booked = budget.spent.tokens if tokens else budget.spent.cost_usd
        assert booked + sum(running) <= limit or worst == 0
        used = 0
        try:
            await asyncio.sleep(lasts)
            used = int(worst * share)
        finally:
            running.remove(worst)
            budget.settle(spend(worst), spend(used))

    async def main() -> None:
        loop = asyncio.get_running_loop()
        tasks = []
        for taken_up, worst, share, start, lasts, cancelled in made:
            task = asyncio.create_task(call(taken_up, worst, share, start, lasts))
            if cancelled:
                loop.call_later(start + lasts / 2, task.cancel)
            tasks.append(task)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ended} <= {type(None), BudgetError, asyncio.CancelledError}

    in_virtual_time(main())
    assert (budget.spent.tokens if tokens else budget.spent.cost_usd) <= limit
