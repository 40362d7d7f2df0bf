"""The budget: never above the limit, nobody waits for ever."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.virtual_time import in_virtual_time
from uncanny.errors import BudgetError
from uncanny.providers.budget import Budget, Spend


async def test_without_limits_everything_fits() -> None:
    budget = Budget()
    assert not budget.limited
    await budget.reserve(Spend(10**12, 10**6))
    budget.settle(Spend(10**12, 10**6), Spend(5, 0.5))
    assert (budget.tokens, budget.cost_usd) == (5, 0.5)


async def test_a_call_that_fits_exactly_is_made() -> None:
    budget = Budget(max_tokens=100, spent=Spend(60))
    await budget.reserve(Spend(40))
    budget.settle(Spend(40), Spend(40))
    with pytest.raises(BudgetError, match=r"100 of 100 tokens spent.*Raise the limit"):
        await budget.reserve(Spend(1))


async def test_what_earlier_sittings_spent_counts() -> None:
    with pytest.raises(BudgetError, match=r"\$1.9000 of \$2.0000"):
        await Budget(max_cost_usd=2.0, spent=Spend(0, 1.9)).reserve(Spend(1, 0.2))


async def test_a_free_call_needs_no_money() -> None:
    budget = Budget(max_cost_usd=1.0, spent=Spend(0, 5.0))
    await budget.reserve(Spend(1_000, 0.0))


async def test_a_call_waits_until_a_running_one_has_used_less() -> None:
    budget = Budget(max_tokens=100)
    await budget.reserve(Spend(80))
    waiting = asyncio.create_task(budget.reserve(Spend(80)))
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.settle(Spend(80), Spend(20))
    await waiting


async def test_waiting_ends_with_an_error_once_nobody_can_give_anything_back() -> None:
    budget = Budget(max_tokens=100)
    await budget.reserve(Spend(80))
    waiting = [asyncio.create_task(budget.reserve(Spend(80))) for _ in range(3)]
    await asyncio.sleep(0)
    budget.settle(Spend(80), Spend(70))
    ended = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(end) for end in ended] == [BudgetError] * 3


amounts = st.integers(0, 60)
# worst case, share of it that is used in the end, start, duration, cancelled or not
calls = st.tuples(amounts, st.floats(0, 1), amounts, amounts, st.booleans())


@given(st.lists(calls, max_size=30), st.integers(0, 200), st.sampled_from(["tokens", "dollars"]))
@settings(max_examples=80, deadline=None)
def test_it_is_never_overdrawn_and_nobody_waits_for_ever(
    made: list[tuple[int, float, int, int, bool]], limit: int, currency: str
) -> None:
    tokens = currency == "tokens"
    budget = Budget(max_tokens=limit) if tokens else Budget(max_cost_usd=float(limit))
    running: list[int] = []

    def spend(amount: int) -> Spend:
        return Spend(amount) if tokens else Spend(0, float(amount))

    async def call(worst: int, share: float, start: int, lasts: int) -> None:
        await asyncio.sleep(start)
        await budget.reserve(spend(worst))
        running.append(worst)
        booked = budget.tokens if tokens else budget.cost_usd
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
        for worst, share, start, lasts, cancelled in made:
            task = asyncio.create_task(call(worst, share, start, lasts))
            if cancelled:
                loop.call_later(start + lasts / 2, task.cancel)
            tasks.append(task)
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ended} <= {type(None), BudgetError, asyncio.CancelledError}

    in_virtual_time(main())
    assert (budget.tokens if tokens else budget.cost_usd) <= limit
