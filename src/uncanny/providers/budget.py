"""The user's own limit on what a run may cost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from uncanny.errors import BudgetError


@dataclass(frozen=True, slots=True)
class Spend:
    """An amount of tokens and, where the model has a price, of US dollars."""

    tokens: int = 0
    cost_usd: float = 0.0


class Budget:
    """A hard limit over all calls of a run, earlier sittings included.

    Before a call its worst case is reserved (all output tokens it may use); a call that does not fit waits
    until running ones have settled for less, and fails with `BudgetError` once none is left to wait for.
    So the limit is kept as far as the token estimate of the input is right. None means no limit.
    """

    def __init__(
        self, max_cost_usd: float | None = None, max_tokens: int | None = None, spent: Spend | None = None
    ) -> None:
        self.max_cost_usd, self.max_tokens = max_cost_usd, max_tokens
        self.tokens = spent.tokens if spent else 0
        self.cost_usd = spent.cost_usd if spent else 0.0
        self._held_tokens = 0
        self._held_cost = 0.0
        self._calls = 0
        self._settled = asyncio.Event()

    @property
    def limited(self) -> bool:
        return self.max_cost_usd is not None or self.max_tokens is not None

    async def reserve(self, worst: Spend) -> None:
        """Hold `worst`, waiting for running calls if need be. Raises `BudgetError` when it cannot fit."""
        while not self._fits(worst):
            if not self._calls:
                raise BudgetError(self._says(), remedy="Raise the limit and run the same command to go on.")
            self._settled.clear()
            await self._settled.wait()
        self._calls += 1
        self._held_tokens += worst.tokens
        self._held_cost += worst.cost_usd

    def settle(self, worst: Spend, actual: Spend) -> None:
        """Give back what was reserved and book what was used."""
        self._calls -= 1
        self._held_tokens -= worst.tokens
        self._held_cost -= worst.cost_usd
        self.tokens += actual.tokens
        self.cost_usd += actual.cost_usd
        self._settled.set()

    def _fits(self, worst: Spend) -> bool:
        if self.max_tokens is not None and self.tokens + self._held_tokens + worst.tokens > self.max_tokens:
            return False
        return self.max_cost_usd is None or (
            worst.cost_usd == 0 or self.cost_usd + self._held_cost + worst.cost_usd <= self.max_cost_usd
        )

    def _says(self) -> str:
        limits = []
        if self.max_cost_usd is not None:
            limits.append(f"${self.cost_usd:.4f} of ${self.max_cost_usd:.4f}")
        if self.max_tokens is not None:
            limits.append(f"{self.tokens:,} of {self.max_tokens:,} tokens")
        return "The budget does not cover another call: " + " and ".join(limits) + " spent"
