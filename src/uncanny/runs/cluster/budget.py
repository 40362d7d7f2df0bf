"""A limit on cost that several processes keep together: each has a lease, a part of what is left.

All leases and all that was spent are never more than the limit. What is left becomes leases in ever smaller
parts, and where it does not cover a call, leases that nobody uses are taken back first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from uncanny.client.budget import Budget, Spend
from uncanny.client.waiting import Ticket
from uncanny.errors import BudgetError
from uncanny.runs.parameters import SpendLimits

# A lease is for so many calls like the one it is for, if there is enough.
_CALLS = 16
# After a refusal others may have given back what they did not need.
_AGAIN_S = 1.0

NOTHING = Spend()


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
        self._refused_at = float("-inf")

    async def reserve(self, worst: Spend, ticket: Ticket) -> None:
        """As for all budgets, with what is leased for it."""
        await self._covered(worst)
        try:
            await super().reserve(worst, ticket)
        except BudgetError:
            # All calls here have come back; so may have others' since the last refusal.
            self._refused_at = float("-inf")
            if not await self._covered(worst):
                raise
            await super().reserve(worst, ticket)

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

    async def _covered(self, worst: Spend) -> bool:
        """Whether there is as much left, or has been leased."""
        loop = asyncio.get_running_loop()
        async with self._asking:
            if not self.covers(worst) and loop.time() - self._refused_at >= _AGAIN_S:
                lease = await self._lease(worst)
                if lease is None:
                    self._refused_at = loop.time()
                else:
                    self._grow(lease)
                    self._serve()
        return self.covers(worst)

    def _grow(self, by: Spend) -> None:
        if self.max_tokens is not None:
            self.max_tokens += int(by.tokens)
        if self.max_cost_usd is not None:
            self.max_cost_usd += by.cost_usd


class Leases:
    """The other side: what of the run's `budget` is leased. `holders` are the processes that may have leases.

    `take_back` asks all of them for what they do not use. The lease of a process that is lost stays out: what
    it used last nobody knows.
    """

    def __init__(self, budget: Budget, holders: int, take_back: Callable[[], Awaitable[Spend]]) -> None:
        self._budget, self._holders, self._take_back = budget, holders, take_back
        self._leased = NOTHING
        self._turn = asyncio.Lock()

    async def lease(self, worst: Spend) -> Spend | None:
        """A lease that covers `worst` at least; None where there is not as much left."""
        async with self._turn:
            if not self._has(worst):
                self._leased -= await self._take_back()
                if not self._has(worst):
                    return None
            lease = self._part(worst)
            self._leased += lease
            return lease

    def settled(self, actual: Spend, estimated: Spend) -> None:
        """A process has used so much of its lease."""
        self._leased -= actual
        self._budget.book(actual, estimated)

    def _has(self, worst: Spend) -> bool:
        return self._budget.covers(self._leased + worst)

    def _part(self, worst: Spend) -> Spend:
        """So much that all holders could have as much again: near the end leases are for one call each."""
        left = self._budget.left() - self._leased
        most = left * (1 / (2 * self._holders))
        tokens = max(worst.tokens, min(_CALLS * worst.tokens, most.tokens))
        return Spend(int(tokens), max(worst.cost_usd, min(_CALLS * worst.cost_usd, most.cost_usd)))
