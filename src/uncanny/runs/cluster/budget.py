"""A limit on cost that several processes keep together: each has a lease, a part of what is left.

All leases and all that was spent are never more than the limit. What is left becomes leases in ever smaller
parts, and where it does not cover a call, leases that nobody uses are taken back first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from functools import partial

from uncanny.client.budget import Budget, Spend
from uncanny.client.waiting import Ticket
from uncanny.runs.parameters import SpendLimits

# A lease is for so many calls like the one it is for, if there is enough.
_CALLS = 16

NOTHING = Spend()
_LEAST = Spend(0.5, 1e-9)


class LeasedBudget(Budget):
    """The part of a limit that this process may use; it grows by `lease`, which is None where none is left.

    `on_settled` is told what was used, and how much of it was estimated.
    """

    def __init__(
        self,
        limits: SpendLimits,
        lease: Callable[[Spend], Awaitable[Spend | None]],
        on_settled: Callable[[Spend, Spend], None],
        *,
        usual_calls: int,
    ) -> None:
        """Of `limits` counts only which there are."""
        super().__init__(
            None if limits.max_cost_usd is None else 0.0,
            None if limits.max_tokens_total is None else 0,
            usual_calls=usual_calls,
        )
        self._lease, self._on_settled = lease, on_settled
        self._asking = asyncio.Lock()
        self._borrowing: set[asyncio.Task[bool]] = set()

    async def reserve(self, worst: Spend, ticket: Ticket) -> None:
        """As for all budgets, with what is leased for it."""
        if not self.covers(worst):
            async with self._asking:
                if not self.covers(worst):
                    # To its end, also where nobody waits any more: what is leased has to be known here.
                    borrowing = asyncio.create_task(self._borrow(worst, ticket))
                    self._borrowing.add(borrowing)
                    borrowing.add_done_callback(self._borrowing.discard)
                    try:
                        if await asyncio.shield(borrowing):
                            return
                    except asyncio.CancelledError:
                        borrowing.add_done_callback(partial(self._give_back, worst))
                        raise
        await super().reserve(worst, ticket)

    async def _borrow(self, worst: Spend, ticket: Ticket) -> bool:
        """Whether it is reserved: at once, since a lease that nobody uses may be taken back."""
        if (lease := await self._lease(worst)) is None:
            return False
        self._grow(lease)
        self._grant(worst, ticket)
        self._serve()
        return True

    def _give_back(self, worst: Spend, borrowing: asyncio.Task[bool]) -> None:
        if not borrowing.cancelled() and borrowing.exception() is None and borrowing.result():
            self.settle(worst, NOTHING)

    def settle(self, worst: Spend, actual: Spend, estimated: Spend | None = None) -> None:
        super().settle(worst, actual, estimated)
        self._on_settled(actual, estimated or NOTHING)

    def take_back(self) -> Spend:
        """What of the lease nobody uses, which is not part of it any more."""
        used = self.spent + self._reserved
        tokens = 0 if self.max_tokens is None else max(0, int(self.max_tokens - used.tokens))
        usd = 0.0 if self.max_cost_usd is None else max(0.0, self.max_cost_usd - used.cost_usd)
        self._grow(Spend(-tokens, -usd))
        return Spend(tokens, usd)

    def _needed_before(self, ticket: Ticket) -> Spend:  # noqa: ARG002
        """Nothing is left for others: a lease is short always, and there is more to be had."""
        return NOTHING

    def _grow(self, by: Spend) -> None:
        if self.max_tokens is not None:
            self.max_tokens += int(by.tokens)
        if self.max_cost_usd is not None:
            self.max_cost_usd += by.cost_usd


class Leases:
    """The other side: what of the run's `budget` each of `most` processes has leased.

    `take_back` asks all of them for what they do not use.
    """

    def __init__(
        self, budget: Budget, most: int, take_back: Callable[[], Awaitable[Mapping[Hashable, Spend]]]
    ) -> None:
        self._budget, self._most, self._take_back = budget, most, take_back
        self._leased: dict[Hashable, Spend] = {}
        # Of processes that are gone: what they have used of it nobody knows.
        self._lost, self._gone = NOTHING, set[Hashable]()
        self._turn, self._changed = asyncio.Lock(), asyncio.Event()

    async def lease(self, holder: Hashable, worst: Spend) -> Spend | None:
        """A lease that covers `worst` at least; None where there is not as much left, or the holder is gone.

        It waits while others may still give back what they have.
        """
        async with self._turn:
            while holder not in self._gone and not self._has(worst):
                for each, returned in (await self._take_back()).items():
                    self._give(each, returned * -1)
                if self._has(worst):
                    break
                if not any(map(_is_some, self._leased.values())):
                    return None
                self._changed.clear()
                await self._changed.wait()
            if holder in self._gone:
                return None  # it would never come back
            lease = self._part(worst)
            self._give(holder, lease)
            return lease

    def settled(self, holder: Hashable, actual: Spend, estimated: Spend) -> None:
        """A process has used so much of its lease."""
        self._give(holder, actual * -1)
        self._budget.book(actual, estimated)
        self._changed.set()

    def lose(self, holder: Hashable) -> None:
        """A process is gone, and its lease with it; what it asks for still, it does not get."""
        self._gone.add(holder)
        self._lost += self._leased.pop(holder, NOTHING)
        self._changed.set()

    def _give(self, holder: Hashable, part: Spend) -> None:
        self._leased[holder] = self._leased.get(holder, NOTHING) + part

    def _out(self) -> Spend:
        return sum(self._leased.values(), self._lost)

    def _has(self, worst: Spend) -> bool:
        return self._budget.covers(self._out() + worst)

    def _part(self, worst: Spend) -> Spend:
        """So much that all could have as much again: near the end leases are for one call each."""
        left = self._budget.left() - self._out()
        most = left * (1 / (2 * self._most))
        tokens = max(worst.tokens, min(_CALLS * worst.tokens, most.tokens))
        usd = max(worst.cost_usd, min(_CALLS * worst.cost_usd, most.cost_usd))
        # Of what has no limit nothing comes back.
        has_tokens, has_usd = self._budget.max_tokens is not None, self._budget.max_cost_usd is not None
        return Spend(int(tokens) if has_tokens else 0, usd if has_usd else 0.0)


def _is_some(lease: Spend) -> bool:
    """Whether it is more than what sums of fractions leave."""
    return lease.tokens > _LEAST.tokens or lease.cost_usd > _LEAST.cost_usd
