"""Answers of a run that several processes work on: many small caches, each open in one process at a time.

SQLite's write-ahead log does not work between machines. So inputs are divided into `SLOTS` slots by their
names, and each slot has an answer cache of its own, whichever process asks about its inputs.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final, Protocol

from filelock import FileLock, Timeout

from uncanny.errors import StorageError, UsageError
from uncanny.records.answer_cache import AnswerCache
from uncanny.records.answer_store import NAME, AnswerReader

log = logging.getLogger("uncanny")

SLOTS: Final = 256
_FOLDER: Final = "slots"
# A process that was killed holds its slots until it has ended.
_FREED_S: Final = 120.0
# So many that nobody asks about now are kept open to be read.
_MOST_OPEN: Final = 32
_SLOT: ContextVar[str] = ContextVar("slot")


class Answers(Protocol):
    """Where a model client keeps answers; `AnswerCache` says what each method does."""

    def get(self, key: str) -> bytes | None: ...
    def check(self) -> None: ...
    async def put(self, key: str, value: bytes) -> None: ...


def slot_of(name: str) -> str:
    """The slot of an input: the first two hexadecimal digits of its name's SHA-256.

    >>> slot_of("images/cat.png")
    'f1'
    """
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:2]


def enter_slot(slot: str) -> None:
    """What this task, and tasks it creates from now on, ask about is in the slot."""
    _SLOT.set(slot)


class AnswerSlots:
    """The slots in a folder, opened as inputs need them, to be read and written.

    What a slot does not have may be among the answers that the local engine has kept in the folder.
    """

    def __init__(self, folder: Path, warn: Callable[[str], None] = log.warning) -> None:
        """Raises UsageError."""
        self._folder, self._warn = folder, warn
        self._other = AnswerReader(folder / NAME)
        self._caches: dict[str, AnswerCache] = {}
        self._locks: dict[str, FileLock] = {}
        self._users = Counter[str]()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def held(self, slot: str) -> AsyncIterator[None]:
        """With the slot open, for this task; others wait for it. Raises StorageError."""
        self._users[slot] += 1
        try:
            async with self._turn:
                if slot not in self._caches:
                    await self._close({each for each in self._caches if not self._users[each]})
                    await asyncio.to_thread(self._open, slot)
            enter_slot(slot)
            yield
        finally:
            self._users[slot] -= 1

    def get(self, key: str) -> bytes | None:
        """Raises StorageError."""
        stored = self._caches[_SLOT.get()].get(key)
        return self._other.get(key) if stored is None else stored

    def check(self) -> None:
        """Raises StorageError if an answer could not be kept a moment ago."""
        self._caches[_SLOT.get()].check()

    async def put(self, key: str, value: bytes) -> None:
        """Raises StorageError where the disk takes no more."""
        await self._caches[_SLOT.get()].put(key, value)

    async def aclose(self) -> None:
        """Wait until all is in the databases."""
        async with self._turn:
            await self._close(set(self._caches))
        self._other.close()

    def _open(self, slot: str) -> None:
        folder = self._folder / _FOLDER / slot
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder / ".lock", timeout=_FREED_S, thread_local=False)
            lock.acquire()
        except (OSError, Timeout) as error:
            why = "another process has had it open for too long" if isinstance(error, Timeout) else error
            raise StorageError(
                f"The answers in {folder} cannot be opened: {why}",
                remedy="End the other process, or check the folder's permissions and free space.",
            ) from error
        try:
            self._caches[slot], self._locks[slot] = AnswerCache(folder, self._warn), lock
        except UsageError as error:  # the run is under way: it ends in good order
            lock.release()
            raise StorageError(error.message, remedy=error.remedy) from error

    async def _close(self, slots: set[str]) -> None:
        for slot in slots:
            await asyncio.to_thread(self._caches.pop(slot).close)
            self._locks.pop(slot).release()


class SlotReader:
    """The slots of a folder, to be read: what several processes have asked before one goes on."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / _FOLDER
        self._is_there = self._folder.is_dir()
        self._readers: OrderedDict[str, AnswerReader] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        """What the slot of this task's input has; None where there is none."""
        slot = _SLOT.get(None)
        if not self._is_there or slot is None:
            return None
        if slot not in self._readers:
            self._readers[slot] = AnswerReader(self._folder / slot / NAME)
            if len(self._readers) > _MOST_OPEN:
                self._readers.popitem(last=False)[1].close()
        self._readers.move_to_end(slot)
        return self._readers[slot].get(key)

    def close(self) -> None:
        while self._readers:
            self._readers.popitem()[1].close()
