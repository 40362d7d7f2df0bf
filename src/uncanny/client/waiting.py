"""The order in which generations that wait go on: those about the input that was begun first.

With all inputs on an equal footing all of them end at about the same time, and a run that is stopped by a
budget or an interrupt has paid for parts of many and the whole of none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Ticket:
    """A generation's place in the order: lower `order` first, among equals who came first.

    `input` is the number of the input it is about, and its order unless somebody waits for it that comes
    first. It waits in one place at a time, in a queue or for the generation of another ticket. `moved` tells
    the queue of a new order.
    """

    input: int
    order: int = field(init=False)
    moved: Callable[[], None] | None = None
    behind: Ticket | None = None

    def __post_init__(self) -> None:
        self.order = self.input

    def hurry(self, order: int) -> None:
        """Take over `order` where it is lower, and so does whatever this one waits for."""
        ticket: Ticket | None = self
        while ticket is not None and order < ticket.order:
            ticket.order = order
            if ticket.moved is not None:
                ticket.moved()
            ticket = ticket.behind


class Gate:
    """Shut until the call of `opener` has come back.

    That generation goes on with the lowest order of those who wait, or they would wait for everything that
    comes before it.
    """

    def __init__(self, opener: Ticket) -> None:
        self._opener, self._opened = opener, asyncio.Event()

    def open(self) -> None:
        self._opened.set()

    async def passed(self, ticket: Ticket) -> None:
        """Wait until it is open."""
        if self._opened.is_set():
            return
        ticket.behind = self._opener
        self._opener.hurry(ticket.order)
        try:
            await self._opened.wait()
        finally:
            ticket.behind = None


@dataclass(slots=True, eq=False)
class Waiter(Generic[T]):
    """Who waits: what for, and the future that is to be given a result, or the reason why there is none."""

    ticket: Ticket
    wanted: T
    granted: asyncio.Future[None]


class WaitingQueue(Generic[T]):
    """Waiters in order of their tickets, also when those change. Not shared between event loops."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Waiter[T]]] = []
        self._entered = 0

    def enter(self, ticket: Ticket, wanted: T) -> asyncio.Future[None]:
        """Wait for `wanted`; whoever serves the queue sets the future that is returned."""
        self._entered += 1
        number = self._entered
        waiter = Waiter(ticket, wanted, asyncio.get_running_loop().create_future())

        def place() -> None:
            heappush(self._heap, (ticket.order, number, waiter))

        ticket.moved = place
        place()
        return waiter.granted

    def first(self) -> Waiter[T] | None:
        """Whose turn it is, None where nobody waits; whoever was cancelled or served is left out."""
        while self._heap:
            waiter = self._heap[0][2]
            if not waiter.granted.done():
                return waiter
            waiter.ticket.moved = None
            heappop(self._heap)
        return None
