"""Finished model answers on disk: no call is made twice, not even after a SIGKILL."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from uncanny.errors import StorageError, UsageError
from uncanny.records import answer_store
from uncanny.records.answer_journal import AnswerJournal, in_use, take_over
from uncanny.records.answer_store import AnswerStore, DamagedError
from uncanny.records.run_folder import check_no_links
from uncanny.wording import option

log = logging.getLogger("uncanny")

# A commit costs as much as some ten writes, so they wait for each other; the journal has them meanwhile.
GATHER_S = 0.1
AGAIN_S = 1.0
# Taking over what a killed process left takes seconds.
OPENING_S = 120.0
MOST_WAITING = 1_000
# Locked while a database is opened, taken over or replaced.
_OPENING = ".opening.lock"


class AnswerCache:
    """Key → bytes. Reads are immediate; one thread commits what has come together.

    `put` returns once the value would survive a kill of the process. Nothing is evicted. A damaged database
    is set aside while the work goes on; `warn` gets a sentence about it.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None] = log.warning) -> None:
        """Raises UsageError."""
        self._folder, self._warn = folder, warn
        self._database = folder / answer_store.NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_no_links(folder, writes=True)
            with FileLock(folder / _OPENING, timeout=OPENING_S):
                self._store = self._open()
                self._take_over()
                self._journal = AnswerJournal(folder)
        except Timeout as error:
            raise UsageError(
                f"Another process has been opening the answer cache in {folder} for {OPENING_S:.0f} s",
                remedy="Try again. If no other process runs, find out what keeps "
                f"{folder / _OPENING} open, or name another folder with {option('cache_dir')}.",
            ) from error
        except (OSError, sqlite3.Error, StorageError, DamagedError) as error:
            raise UsageError(
                f"The answer cache in {folder} cannot be opened: {error.__cause__ or error}",
                remedy="Check the folder's permissions and free space, or name another with "
                f"{option('cache_dir')}. "
                "It may also be deleted; then what was in it is asked again.",
            ) from error
        self._waiting: dict[str, bytes] = {}
        self._turns = threading.Lock()
        self._wake, self._closing = threading.Event(), threading.Event()
        self._failure: StorageError | None = None
        self._writer = threading.Thread(target=self._write, name="answer-cache", daemon=True)
        self._writer.start()

    def get(self, key: str) -> bytes | None:
        """None where there is none. Raises StorageError."""
        value: bytes | None = self._waiting.get(key)
        if value is not None:
            return value
        store = self._store
        try:
            return store.get(key)
        except DamagedError as error:
            self._renew(store, error)
            return self._store.get(key)

    async def put(self, key: str, value: bytes) -> None:
        """Raises StorageError where the disk takes no more."""
        _check(key, value)
        with self._turns:
            if self._failure is not None and len(self._waiting) >= MOST_WAITING:
                raise StorageError(self._failure.message, remedy=self._failure.remedy)
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
            return len(self._store) + sum(self._store.get(key) is None for key in self._waiting)

    def close(self) -> None:
        """Wait until all is in the database; what it does not take now is taken over at the next opening."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._wake.set()
        self._writer.join()
        self._journal.close()
        if self._database.exists():
            self._store.close()
        else:
            self._put_back()

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
                self._commit(batch)
            except StorageError as error:  # a full disk must not end the thread; the journal has it all
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

    def _commit(self, batch: dict[str, bytes]) -> None:
        if not batch:
            return
        store = self._store
        try:
            store.put(batch.items())
        except DamagedError as error:
            self._renew(store, error)
            self._store.put(batch.items())

    def _take_over(self) -> None:
        """Keep what processes that are gone had on its way into the database."""
        try:
            take_over(self._folder, self._store.put)
        except DamagedError as error:
            self._store.close()
            self._store = self._replaced(error)
            take_over(self._folder, self._store.put)

    def _open(self) -> AnswerStore:
        """Raises DamagedError where it is damaged and in use, StorageError, sqlite3.Error, OSError."""
        try:
            return AnswerStore(self._folder)
        except DamagedError as error:
            return self._replaced(error)

    def _renew(self, damaged: AnswerStore, error: DamagedError) -> None:
        """Go on with a new database, unless the other thread has seen to it already. Raises StorageError."""
        try:
            with FileLock(self._folder / _OPENING):
                if self._store is damaged:
                    damaged.close()
                    self._store = self._replaced(error, own=self._journal)
        except (OSError, sqlite3.Error, DamagedError) as problem:
            raise StorageError(
                f"The answer cache in {self._folder} is damaged: {problem}",
                remedy="It may be deleted; then what was in it is asked again.",
            ) from problem

    def _replaced(self, error: DamagedError, own: AnswerJournal | None = None) -> AnswerStore:
        """Raises DamagedError where another process still works with the damaged one."""
        if in_use(self._folder, own):
            raise DamagedError(f"{error}; other processes use it, so it cannot be replaced before they end")
        aside = answer_store.set_aside(self._database)
        store = AnswerStore(self._folder)
        number = store.adopt(answer_store.read_whole(aside))
        self._warn(
            f"{self._database} is damaged ({error}): {number:,} of its answers could be kept, others are "
            f"asked again. The file is now {aside}, and may be deleted"
        )
        return store

    def _put_back(self) -> None:
        """The folder was deleted under way, but is open still: make it again where its parent is there."""
        new = self._database.with_name(f".{self._database.name}")
        try:
            self._folder.mkdir(exist_ok=True)
            self._store.copy(new)
        except (OSError, StorageError, DamagedError) as error:
            log.warning("%s could not be put back: %s", self._folder, error)
            with contextlib.suppress(OSError):
                new.unlink(missing_ok=True)
        self._store.close()  # first: SQLite removes by name what belongs to the deleted one
        if new.exists():
            new.replace(self._database)


def _check(key: object, value: object) -> None:
    if not isinstance(key, str):
        raise TypeError(f"cache keys are str, not {type(key).__name__}")
    if not isinstance(value, bytes):
        raise TypeError(f"cache values are bytes, not {type(value).__name__}")
