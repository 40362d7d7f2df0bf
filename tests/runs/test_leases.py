"""What several processes share without Ray: a limit on cost by leases, and answers by slots."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable, Mapping
from pathlib import Path

import pytest

from uncanny.client.budget import Budget, Spend
from uncanny.client.waiting import Ticket
from uncanny.errors import BudgetError, StorageError
from uncanny.records import answer_slots
from uncanny.records.answer_cache import AnswerCache
from uncanny.records.answer_slots import AnswerSlots, SlotReader, enter_slot, slot_of
from uncanny.runs.cluster.budget import LeasedBudget, Leases
from uncanny.runs.parameters import SpendLimits

LIMIT = 10_000


class Holders:
    """Some processes with leases of one limit on tokens."""

    def __init__(self, number: int, steps: int = 0) -> None:
        self.steps = steps
        self.whole = Budget(max_tokens=LIMIT)
        self.leases = Leases(self.whole, number, self.take_back)
        self.parts = [self.part(each) for each in range(number)]

    def part(self, each: int) -> LeasedBudget:
        return LeasedBudget(
            SpendLimits(max_tokens_total=LIMIT),
            # The other process goes on with it, whatever becomes of the call that asked.
            lambda worst: asyncio.shield(asyncio.create_task(self.lease(each, worst))),
            lambda actual, estimated: self.leases.settled(each, actual, estimated),
            usual_calls=1,
        )

    def under_way(self) -> float:
        return sum(part._reserved.tokens for part in self.parts)

    async def lease(self, each: int, worst: Spend) -> Spend | None:
        lease = await self.leases.lease(each, worst)
        for _ in range(self.steps):
            await asyncio.sleep(0)
        return lease

    async def take_back(self) -> Mapping[Hashable, Spend]:
        await asyncio.sleep(0)
        return {number: part.take_back() for number, part in enumerate(self.parts)}

    async def work(self, number: int, dice: random.Random, usd: float) -> None:
        """Calls that take at most 100 tokens, one after the other, until none is covered."""
        part = self.parts[number]
        while True:
            await part.reserve(Spend(100, usd), Ticket(0))
            await asyncio.sleep(dice.random() / 1000)
            used = dice.randrange(10, 101)
            part.settle(Spend(100, usd), Spend(used, usd * used / 100))
            assert self.whole.spent.tokens <= LIMIT


@pytest.mark.parametrize("usd", [0.0, 0.1])  # on which there is no limit
@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("number", [1, 2, 7])
async def test_all_of_a_limit_is_used_and_no_more(number: int, steps: int, usd: float) -> None:
    """Also where leases are taken back at about the moment at which they come."""
    holders, dice = Holders(number, steps), random.Random(number)
    work = [holders.work(each % number, dice, usd) for each in range(3 * number)]
    working = [asyncio.create_task(each) for each in work]
    await asyncio.wait_for(asyncio.wait(working, return_when=asyncio.FIRST_COMPLETED), 60)
    assert LIMIT - holders.under_way() - 100 < holders.whole.spent.tokens <= LIMIT
    ended = await asyncio.wait_for(asyncio.gather(*working, return_exceptions=True), 60)
    assert {type(each) for each in ended} == {BudgetError}
    assert LIMIT - 100 < holders.whole.spent.tokens <= LIMIT


async def test_what_a_lost_process_had_leased_stays_out() -> None:
    holders = Holders(2)
    await holders.parts[0].reserve(Spend(4_000), Ticket(0))
    waiting = asyncio.create_task(holders.parts[1].reserve(Spend(7_000), Ticket(0)))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    holders.parts[0] = holders.part(0)
    holders.leases.lose(0)
    with pytest.raises(BudgetError):
        await asyncio.wait_for(waiting, 10)
    await asyncio.wait_for(holders.parts[1].reserve(Spend(6_000), Ticket(0)), 10)


async def test_a_lost_process_gets_no_lease_that_others_would_wait_for() -> None:
    holders = Holders(2)
    await holders.parts[1].reserve(Spend(LIMIT), Ticket(0))
    asked = asyncio.create_task(holders.leases.lease("gone", Spend(100)))
    await asyncio.sleep(0.01)
    holders.leases.lose("gone")
    holders.parts[1].settle(Spend(LIMIT), Spend(10))
    assert await asyncio.wait_for(asked, 10) is None
    assert await holders.leases.lease("gone", Spend(100)) is None
    await asyncio.wait_for(holders.parts[0].reserve(Spend(LIMIT - 10), Ticket(0)), 10)


async def test_a_lease_that_nobody_waits_for_any_more_comes_back() -> None:
    holders = Holders(2)
    await holders.parts[1].reserve(Spend(LIMIT), Ticket(0))
    waiting = asyncio.create_task(holders.parts[0].reserve(Spend(100), Ticket(0)))
    await asyncio.sleep(0.01)
    waiting.cancel()
    await asyncio.wait([waiting])
    holders.parts[1].settle(Spend(LIMIT), Spend(10))
    await asyncio.sleep(0.01)
    await asyncio.wait_for(holders.parts[1].reserve(Spend(LIMIT - 10), Ticket(0)), 10)


async def test_calls_that_cost_nothing_need_no_lease() -> None:
    holders = Holders(1)
    await holders.parts[0].reserve(Spend(LIMIT), Ticket(0))
    await asyncio.wait_for(holders.parts[0].reserve(Spend(), Ticket(0)), 10)


async def test_answers_are_found_with_and_without_slots(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    await cache.put("local", b"1")
    cache.close()
    slot = slot_of("a.png")
    slots = AnswerSlots(tmp_path)
    async with slots.held(slot):
        assert slots.get("local") == b"1"
        await slots.put("spread", b"2")
        assert slots.get("spread") == b"2"
    async with slots.held(slot_of("b.png")):
        assert slots.get("spread") is None
    await slots.aclose()
    reader = SlotReader(tmp_path)
    again = AnswerCache(tmp_path, more=reader.get)
    for name, found in (("a.png", b"2"), ("b.png", None), ("c.png", None)):
        enter_slot(slot_of(name))
        assert (again.get("spread"), again.get("local"), again.get("none")) == (found, b"1", None)
    again.close()
    reader.close()


async def test_a_slot_waits_for_the_process_that_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_slots, "_FREED_S", 0.2)
    first, second = AnswerSlots(tmp_path), AnswerSlots(tmp_path)
    async with first.held("00"):
        with pytest.raises(StorageError, match="another process has had it open for too long"):
            async with second.held("00"):
                pass
        async with second.held("01"):
            pass
    await first.aclose()
    async with second.held("00"):
        pass
    await second.aclose()


async def test_a_slot_that_cannot_be_opened_ends_the_run_in_good_order(tmp_path: Path) -> None:
    (tmp_path / "slots/00/answers.db").mkdir(parents=True)
    slots = AnswerSlots(tmp_path)
    for _ in range(2):
        with pytest.raises(StorageError, match="slots/00 cannot be opened"):
            async with slots.held("00"):
                pass
    async with slots.held("01"):
        await slots.put("key", b"1")
    await slots.aclose()


def test_slots_are_even_and_keep_their_inputs() -> None:
    slots = {slot_of(f"{number}.png") for number in range(5_000)}
    assert len(slots) == 256
    assert slot_of("images/cat.png") == "f1"
    assert slot_of("\udcff.png") == slot_of("\udcff.png")
