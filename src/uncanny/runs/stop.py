"""How a run comes to an end before its inputs do."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from uncanny.errors import BudgetError, RunError, StorageError

Reason = Literal["interrupt", "budget", "model", "storage"]


class Stop:
    """Set once, with the reason. A stop lets calls in flight come back; an interrupt after it does not."""

    def __init__(self) -> None:
        self.reason: Reason | None = None
        self.error: RunError | None = None
        self.now = False
        self.changed = asyncio.Event()

    def interrupt(self) -> None:
        self.now = self.reason is not None
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

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """SIGINT and SIGTERM stop the run while this is open; without a main thread they are left alone."""
        loop = asyncio.get_running_loop()
        installed: list[signal.Signals] = []
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                loop.add_signal_handler(number, self.interrupt)
            except (NotImplementedError, RuntimeError, ValueError):
                continue
            installed.append(number)
        try:
            yield
        finally:
            for number in installed:
                loop.remove_signal_handler(number)
