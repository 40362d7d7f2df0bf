"""How a run comes to an end before its inputs do: because somebody asks for it, or because it has to."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Literal

from uncanny.errors import BudgetError, RunError, StorageError

Reason = Literal["interrupt", "budget", "model", "storage"]


class Stop:
    """Asks runs to end, from any thread or signal handler, before they start or while they work.

    The first `request` lets calls in flight come back and be recorded; a second one does not wait for them.
    One object may be handed to several runs, which then all end."""

    def __init__(self) -> None:
        # Reentrant: a signal handler may ask while its own thread is just doing so.
        self._lock = threading.RLock()
        self._requests = 0
        self._listeners: list[tuple[asyncio.AbstractEventLoop, Callable[[], None]]] = []

    @property
    def requested(self) -> bool:
        return self._requests > 0

    def request(self) -> None:
        """End as soon as calls in flight are back; at once, when it was asked for before."""
        with self._lock:
            self._requests += 1
            listeners = list(self._listeners)
        for loop, listener in listeners:
            with contextlib.suppress(RuntimeError):  # its loop was closed meanwhile
                loop.call_soon_threadsafe(listener)

    @contextlib.contextmanager
    def listening(self, listener: Callable[[], None]) -> Iterator[None]:
        """Call `listener` in the running loop at every request, and at once for those made before."""
        entry = (asyncio.get_running_loop(), listener)
        with self._lock:
            before = self._requests
            self._listeners.append(entry)
        for _ in range(before):
            listener()
        try:
            yield
        finally:
            with self._lock:
                self._listeners.remove(entry)

    def waiting(self, calls: int) -> None:
        """Called in a run's event loop when it was asked to end and waits for so many calls in flight.

        Hosts show it to whoever asked; here it does nothing."""

    @contextlib.contextmanager
    def while_working(self) -> Iterator[None]:
        """Open while inputs are worked on, for hosts that want to listen to signals then; here it does
        nothing."""
        yield


class Ending:
    """Why one run ends early, set once. `now` says not to wait for calls in flight.

    `raised` is what a callback of the host raised, or an ExtensionError of the work on an input:
    it ends the run in good order and is raised then.
    """

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.error: RunError | None = None
        self.raised: Exception | asyncio.CancelledError | None = None
        self.now = False
        self.changed = asyncio.Event()
        self._interrupts = 0

    def interrupt(self) -> None:
        """Asked for from outside: the second time calls in flight are not waited for."""
        self._interrupts += 1
        self.now = self._interrupts > 1
        self._set("interrupt")

    def raise_when_over(self, error: Exception | asyncio.CancelledError) -> None:
        self.raised = self.raised or error
        self._set("interrupt")

    def because(self, error: RunError) -> None:
        if self.reason is None:
            self.error = error
            if isinstance(error, BudgetError):
                self._set("budget")
            else:
                self._set("storage" if isinstance(error, StorageError) else "model")

    def _set(self, reason: Reason) -> None:
        self.reason = self.reason or reason
        self.changed.set()
