"""Finished model answers on disk: nothing is asked twice, not even after a SIGKILL."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

import diskcache

from uncanny.errors import UsageError
from uncanny.records.answer_journal import AnswerJournal, take_over

_UNLIMITED = 2**62
# A commit costs as much as some ten writes, so they wait for each other; the journal has them meanwhile.
GATHER_S = 0.1
AGAIN_S = 1.0
MOST_WAITING = 1_000


class _BytesDisk(diskcache.Disk):  # type: ignore[misc]
    """Stores text keys and byte values as they are, so that nothing in the folder is ever unpickled."""

    def put(self, key: Any) -> tuple[Any, bool]:
        _check(key, b"")
        return key, True

    def get(self, key: Any, raw: bool) -> Any:
        return key

    def store(self, value: Any, read: bool, key: Any = diskcache.UNKNOWN) -> tuple[int, int, None, Any]:
        _check("", value)
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> bytes | None:
        return bytes(value) if mode == diskcache.core.MODE_RAW and value is not None else None


class AnswerCache:
    """Key → bytes. Reads are immediate; one thread commits what has come together.

    `put` returns once the value would survive a kill of the process. Nothing is evicted.
    """

    def __init__(self, folder: Path) -> None:
        """Raises UsageError."""
        try:
            self._cache = diskcache.Cache(
                str(folder),
                disk=_BytesDisk,
                eviction_policy="none",
                size_limit=_UNLIMITED,
                cull_limit=0,
                statistics=0,
            )
            take_over(folder, self._commit)
            self._journal = AnswerJournal(folder)
        except Exception as error:  # sqlite3, OS and diskcache errors alike: the folder is unusable
            raise UsageError(
                f"The answer cache in {folder} cannot be opened: {error}",
                remedy="Check the folder's permissions and free space, or name another with --cache-dir.",
            ) from error
        self._waiting: dict[str, bytes] = {}
        self._turns = threading.Lock()
        self._wake, self._closing = threading.Event(), threading.Event()
        self._failure: Exception | None = None
        self._writer = threading.Thread(target=self._write, name="answer-cache", daemon=True)
        self._writer.start()

    def get(self, key: str) -> bytes | None:
        value: bytes | None = self._waiting.get(key)
        return self._cache.get(key) if value is None else value

    async def put(self, key: str, value: bytes) -> None:
        """Raises UsageError where the disk takes no more."""
        _check(key, value)
        with self._turns:
            if self._failure is not None and len(self._waiting) >= MOST_WAITING:
                raise UsageError(
                    f"The answer cache cannot be written: {self._failure}", remedy="Free some disk space."
                )
            self._journal.append(key, value)
            self._waiting[key] = value
        if not self._wake.is_set():
            self._wake.set()
        # Models faster than the database would fill the memory. It is a thread: no event of this loop is set.
        while self._full():  # noqa: ASYNC110
            await asyncio.sleep(GATHER_S)

    def _full(self) -> bool:
        going_on = self._failure is None and not self._closing.is_set()
        return going_on and len(self._waiting) >= MOST_WAITING

    def __len__(self) -> int:
        with self._turns:
            return len(self._cache) + sum(key not in self._cache for key in self._waiting)

    def close(self) -> None:
        """Wait until all is in the database; what it does not take now is taken over at the next opening."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._wake.set()
        self._writer.join()
        self._journal.close()
        self._cache.close()

    def _write(self) -> None:
        closing = False
        while not closing:
            self._wake.wait()
            # Before looking: what comes from here on wakes this thread once more.
            self._wake.clear()
            closing = self._closing.wait(GATHER_S)
            with self._turns:
                batch = dict(self._waiting)
                self._journal.turn()
            try:
                self._commit(batch.items())
            except Exception as error:  # a full disk must not end the thread; the journal has it all
                self._failure = error
                self._closing.wait(0 if closing else AGAIN_S)
                self._wake.set()
                continue
            with self._turns:
                self._failure = None
                self._journal.forget()
                for key, value in batch.items():
                    if self._waiting[key] is value:
                        del self._waiting[key]
        self._cache.close()  # this thread's own connection

    def _commit(self, batch: Collection[tuple[str, bytes]]) -> None:
        if not batch:
            return
        with self._cache.transact(retry=True):
            for key, value in batch:
                self._cache.set(key, value)


def _check(key: object, value: object) -> None:
    if not isinstance(key, str):
        raise TypeError(f"cache keys are str, not {type(key).__name__}")
    if not isinstance(value, bytes):
        raise TypeError(f"cache values are bytes, not {type(value).__name__}")
