"""Finished model answers on disk: nothing is asked twice, not even after a SIGKILL."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from pathlib import Path
from typing import Any

import diskcache

from uncanny.errors import UsageError

_UNLIMITED = 2**62
# A commit costs as much as some ten writes; a wait no call to a model would notice lets them come together.
GATHER_S = 0.002


class _BytesDisk(diskcache.Disk):  # type: ignore[misc]
    """Stores text keys and byte values as they are, so that nothing in the folder is ever unpickled."""

    def put(self, key: Any) -> tuple[Any, bool]:
        if not isinstance(key, str):
            raise TypeError(f"cache keys are str, not {type(key).__name__}")
        return key, True

    def get(self, key: Any, raw: bool) -> Any:
        return key

    def store(self, value: Any, read: bool, key: Any = diskcache.UNKNOWN) -> tuple[int, int, None, Any]:
        if not isinstance(value, bytes):
            raise TypeError(f"cache values are bytes, not {type(value).__name__}")
        return 0, diskcache.core.MODE_RAW, None, value

    def fetch(self, mode: int, filename: str | None, value: Any, read: bool) -> bytes | None:
        return bytes(value) if mode == diskcache.core.MODE_RAW and value is not None else None


class AnswerCache:
    """Key → bytes. Reads are immediate; writes go through one thread that commits what has come together.

    `put` returns once the value would survive a kill of the process. Nothing is evicted.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._cache = diskcache.Cache(
                str(folder),
                disk=_BytesDisk,
                eviction_policy="none",
                size_limit=_UNLIMITED,
                cull_limit=0,
                statistics=0,
            )
        except Exception as error:  # sqlite3, OS and diskcache errors alike: the folder is unusable
            raise UsageError(
                f"The answer cache in {folder} cannot be opened: {error}",
                remedy="Check the folder's permissions and free space, or name another with --cache-dir.",
            ) from error
        self._pending: queue.SimpleQueue[tuple[str, bytes, asyncio.Future[None]] | None] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, name="answer-cache", daemon=True)
        self._writer.start()

    def get(self, key: str) -> bytes | None:
        value: bytes | None = self._cache.get(key)
        return value

    async def put(self, key: str, value: bytes) -> None:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pending.put((key, value, done))
        await done

    def __len__(self) -> int:
        return len(self._cache)

    def close(self) -> None:
        self._pending.put(None)
        self._writer.join()
        self._cache.close()

    def _write(self) -> None:
        closing = False
        while not closing:
            batch = [self._pending.get()]
            time.sleep(GATHER_S)
            while not self._pending.empty():
                batch.append(self._pending.get())
            closing = None in batch
            self._commit([item for item in batch if item is not None])
        self._cache.close()  # this thread's own connection

    def _commit(self, batch: list[tuple[str, bytes, asyncio.Future[None]]]) -> None:
        if not batch:
            return
        failure: Exception | None = None
        try:
            with self._cache.transact(retry=True):
                for key, value, _ in batch:
                    self._cache.set(key, value)
        except Exception as error:  # a full disk must fail the calls that wait, not the thread
            failure = UsageError(
                f"The answer cache cannot be written: {error}", remedy="Free some disk space."
            )
        waiting: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
        for _, _, done in batch:
            waiting.setdefault(done.get_loop(), []).append(done)
        for loop, futures in waiting.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, futures, failure)


def _settle(futures: list[asyncio.Future[None]], failure: Exception | None) -> None:
    for future in futures:
        if not future.done():
            if failure is None:
                future.set_result(None)
            else:
                future.set_exception(failure)
