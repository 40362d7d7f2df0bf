"""Finished model answers on disk: no call is made twice, not even after a SIGKILL."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import NamedTuple
from uuid import uuid4

from filelock import FileLock, Timeout

from uncanny.errors import StorageError, UsageError
from uncanny.records import answer_store
from uncanny.records.answer_store import AnswerStore, DamagedError
from uncanny.records.run_folder import check_no_links
from uncanny.wording import option

log = logging.getLogger("uncanny")

# Reading what is whole in a damaged database takes seconds.
OPENING_S = 120.0
# A commit costs as much as some ten answers, so those of fast models wait this long for each other.
GATHER_S = 0.01
# For so long after a failed commit no call is made whose answer would be lost, too.
AGAIN_S = 1.0
# Locked while a database is opened or replaced.
_OPENING = ".opening.lock"
# Locked by each process for as long as it has the cache open.
_IN_USE = "in-use-*.lock"


class _Put(NamedTuple):
    key: str
    value: bytes
    loop: asyncio.AbstractEventLoop
    kept: asyncio.Future[None]


class AnswerCache:
    """Key → bytes. Reads are immediate; one thread commits what has come together.

    `put` returns once the value is committed to SQLite's write-ahead log, and so would survive a kill of the
    process. Nothing is evicted. A damaged database is set aside while the work goes on; `warn` gets a
    sentence about it. What is not in it may be in `more`.
    """

    def __init__(
        self,
        folder: Path,
        warn: Callable[[str], None] = log.warning,
        more: Callable[[str], bytes | None] = lambda _key: None,
    ) -> None:
        """Raises UsageError."""
        self._folder, self._warn, self._more = folder, warn, more
        self._database = folder / answer_store.NAME
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_no_links(folder, writes=True)
            with FileLock(folder / _OPENING, timeout=OPENING_S):
                self._store = self._open()
                self._in_use = FileLock(folder / _IN_USE.replace("*", uuid4().hex), thread_local=False)
                self._in_use.acquire()
        except Timeout as error:
            raise UsageError(
                f"Another process has been opening the answer cache in {folder} for {OPENING_S:.0f} s",
                remedy="Try again. If no other process runs, find out what keeps "
                f"{folder / _OPENING} open, or pass another folder with {option('cache_dir')}.",
            ) from error
        except (OSError, sqlite3.Error, StorageError, DamagedError) as error:
            raise UsageError(
                f"The answer cache in {folder} cannot be opened: {error.__cause__ or error}",
                remedy="Check the folder's permissions and free space, or pass another with "
                f"{option('cache_dir')}. "
                "It may also be deleted; then what was in it is asked again.",
            ) from error
        self._queue: SimpleQueue[_Put | None] = SimpleQueue()
        self._closed = False
        self._failure: StorageError | None = None
        self._failed_at = 0.0
        self._writer = threading.Thread(target=self._write, name="answer-cache", daemon=True)
        self._writer.start()

    def get(self, key: str) -> bytes | None:
        """None where there is none. Raises StorageError."""
        store = self._store
        try:
            stored = store.get(key)
        except DamagedError as error:
            self._renew(store, error)
            stored = self._store.get(key)
        return self._more(key) if stored is None else stored

    def check(self) -> None:
        """Raises StorageError if an answer could not be kept a moment ago."""
        if self._failure is not None and time.monotonic() - self._failed_at < AGAIN_S:
            raise self._failure.with_traceback(None)

    async def put(self, key: str, value: bytes) -> None:
        """Raises StorageError where the disk takes no more."""
        _check(key, value)
        if self._closed:
            raise RuntimeError("the answer cache is closed")
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[None] = loop.create_future()
        self._queue.put(_Put(key, value, loop, kept))
        await kept

    def __len__(self) -> int:
        return len(self._store)

    def close(self) -> None:
        """Wait until all is in the database."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._writer.join()
        if self._database.exists():
            self._store.close()
        else:
            self._put_back()
        _end_use(self._in_use)

    def _write(self) -> None:
        closing = False
        while not closing:
            puts = [self._queue.get()]
            time.sleep(GATHER_S)
            with contextlib.suppress(Empty):
                while True:
                    puts.append(self._queue.get_nowait())
            closing = None in puts
            batch = [put for put in puts if put is not None]
            problem: Exception | None = None
            try:
                self._commit({put.key: put.value for put in batch})
            except Exception as error:  # goes to those who wait; the thread must not end
                problem = error
                if isinstance(error, StorageError):
                    self._failure, self._failed_at = error, time.monotonic()
            for loop in {put.loop for put in batch}:
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                    kept = [put.kept for put in batch if put.loop is loop]
                    loop.call_soon_threadsafe(_settle, kept, problem)

    def _commit(self, batch: dict[str, bytes]) -> None:
        store = self._store
        try:
            store.put(batch.items())
        except DamagedError as error:
            self._renew(store, error)
            self._store.put(batch.items())

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
                    self._store = self._replaced(error, own=Path(self._in_use.lock_file))
        except (OSError, sqlite3.Error, DamagedError) as problem:
            raise StorageError(
                f"The answer cache in {self._folder} is damaged: {problem}",
                remedy="It may be deleted; then what was in it is asked again.",
            ) from problem

    def _replaced(self, error: DamagedError, own: Path | None = None) -> AnswerStore:
        """Raises DamagedError where another process still works with the damaged one."""
        if _used_by_others(self._folder, own):
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


def _settle(waiting: Iterable[asyncio.Future[None]], problem: Exception | None) -> None:
    for kept in waiting:
        if kept.done():  # cancelled
            continue
        if problem is None:
            kept.set_result(None)
        else:
            kept.set_exception(problem)


def _used_by_others(folder: Path, own: Path | None) -> bool:
    for path in folder.glob(_IN_USE):
        if path == own:
            continue
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        _end_use(lock)
    return False


def _end_use(lock: FileLock) -> None:
    lock.release()
    Path(lock.lock_file).unlink(missing_ok=True)
