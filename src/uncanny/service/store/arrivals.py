"""Tells waiting workers at once that there is something in the queue, whichever process put it there."""

from __future__ import annotations

import threading
from typing import Final

import psycopg

from uncanny.service.store.database import Database

CHANNEL: Final = "uncanny_jobs"
_ANEW_S: Final = 1.0


class Arrivals:
    """Wakes all threads of this process that wait for jobs."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._count = 0

    def set(self) -> None:
        """There may be something new."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def seen(self) -> int:
        """To be asked before looking into the queue, and handed to `wait` when nothing was there."""
        return self._count

    def wait(self, seen: int, timeout_s: float) -> bool:
        """Until something has come since `seen`, at most `timeout_s` seconds. Says whether something has."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count != seen, timeout_s)


class Listener:
    """Sets `arrivals` whenever another process on the same PostgreSQL says that it put something there.

    It has a connection of its own. While the server is away workers look into the queue now and then.
    """

    def __init__(self, database: Database, arrivals: Arrivals) -> None:
        self._address = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
        self._arrivals = arrivals
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="listener", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ending.set()
        self._thread.join()

    def _listen(self) -> None:
        while not self._ending.is_set():
            try:
                with psycopg.connect(self._address, autocommit=True) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    # What came before this moment nobody has told.
                    self._arrivals.set()
                    while not self._ending.is_set():
                        for _ in connection.notifies(timeout=0.5):
                            self._arrivals.set()
            except psycopg.Error:
                self._ending.wait(_ANEW_S)
