"""How many calls one model gets at once: additive increase, multiplicative decrease.

Slow start from half the ceiling, at least `START`; a server that says it is overloaded takes the limit to 0.7
of what it was, at most once a second, and a Retry-After pauses all calls. Servers that queue (vLLM) get a
fixed limit. Who waits for a slot gets it in order of tickets.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

from uncanny.providers.waiting import Ticket, WaitingQueue

START = 8
DECREASE = 0.7
DECREASE_INTERVAL_S = 1.0


class Limiter:
    """`async with limiter.slot(ticket):` holds one slot. Not shared between event loops."""

    def __init__(self, ceiling: int, *, fixed: bool = False) -> None:
        if ceiling < 1:
            raise ValueError(f"concurrency must be at least 1, not {ceiling!r}")
        self.ceiling = ceiling
        self.fixed = fixed
        self.limit = float(ceiling if fixed else min(max(START, ceiling // 2), ceiling))
        self.active = 0
        self._slow_start = not fixed
        self._waiting = WaitingQueue[None]()
        self._decreased_at = float("-inf")
        self._paused_until = float("-inf")
        self._closed = self._waking = False

    def slot(self, ticket: Ticket) -> Slot:
        return Slot(self, ticket)

    async def acquire(self, ticket: Ticket) -> None:
        """Take a slot, in turn; to be given back with `release`."""
        if self._has_room() and self._waiting.first() is None:
            self.active += 1
            return
        granted = self._waiting.enter(ticket, None)
        self._wake()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back. Who does has until the loop's next turn to go on with it, if its turn it is."""
        self.active -= 1
        self._wake_soon()

    def succeeded(self) -> None:
        """A call came back well: allow more, one each while starting slowly, one a round trip after."""
        if self.limit < self.ceiling:
            self.limit = min(
                float(self.ceiling), self.limit + (1.0 if self._slow_start else 1.0 / self.limit)
            )
            self._wake()

    def overloaded(self, retry_after: float | None = None) -> None:
        """The server wants fewer calls; with `retry_after` seconds above 0, none at all until then."""
        now = asyncio.get_running_loop().time()
        if retry_after is not None and retry_after > 0:
            self._pause_until(now + retry_after)
        if not self.fixed and now - self._decreased_at >= DECREASE_INTERVAL_S:
            self._decreased_at = now
            self._slow_start = False
            self.limit = max(1.0, self.limit * DECREASE)

    def close(self) -> None:
        """Give out no more slots; whoever waits for one waits until cancelled."""
        self._closed = True

    def _pause_until(self, moment: float) -> None:
        if moment > self._paused_until:
            self._paused_until = moment
            asyncio.get_running_loop().call_at(moment, self._resume, moment)

    def _resume(self, moment: float) -> None:
        # The clock is not asked: timers may fire a little early, and nobody would wake the waiting again.
        if moment == self._paused_until:
            self._paused_until = float("-inf")
            self._wake()

    def _has_room(self) -> bool:
        paused = self._paused_until > float("-inf")
        return not self._closed and not paused and self.active < int(self.limit)

    def _wake_soon(self) -> None:
        if not self._waking:
            self._waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        while self._has_room() and (waiter := self._waiting.first()) is not None:
            self.active += 1
            waiter.granted.set_result(None)


class Slot:
    """A slot of a limiter while this is open."""

    __slots__ = ("_limiter", "_ticket")

    def __init__(self, limiter: Limiter, ticket: Ticket) -> None:
        self._limiter, self._ticket = limiter, ticket

    async def __aenter__(self) -> None:
        await self._limiter.acquire(self._ticket)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.release()
