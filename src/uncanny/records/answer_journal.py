"""Answers on their way into the answer cache, on disk from the moment they are there.

A database takes many answers in one go as easily as one, so they wait for each other a little. Until they are
in it, they stand here: a kill of the process loses none, and whoever opens the cache next takes them over.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from uuid import uuid4

from filelock import FileLock, Timeout

from uncanny.records.jsonl import append_whole, open_to_append

# Number of the entry, length of key and value, checksum of both.
_HEADER = struct.Struct("<QIII")
_PREFIX = "pending-"


class AnswerJournal:
    """Two files that take turns: while the entries of one go into the database, new ones go to the other.

    Not safe between threads; the lock file beside them says that their process is alive.
    """

    def __init__(self, folder: Path) -> None:
        """Raises UsageError, OSError."""
        name = f"{_PREFIX}{uuid4().hex}"
        self._lock = FileLock(folder / f"{name}.lock")
        self._lock.acquire()
        self._files: list[FileIO] = [open_to_append(path) for path in _files(folder / name)]
        self._active = 0
        self._number = 0

    @property
    def lock_path(self) -> Path:
        return Path(self._lock.lock_file)

    def append(self, key: str, value: bytes) -> None:
        """Keep an entry; from here on it survives a kill. Raises StorageError where it cannot be written."""
        self._number += 1
        content = key.encode() + value
        header = _HEADER.pack(self._number, len(content) - len(value), len(value), zlib.crc32(content))
        append_whole(self._files[self._active], header + content)

    def turn(self) -> None:
        """Let new entries go to the other file, if that is empty."""
        if not os.fstat(self._files[1 - self._active].fileno()).st_size:
            self._active = 1 - self._active

    def forget(self) -> None:
        """Drop what had been appended before the last `turn`."""
        os.ftruncate(self._files[1 - self._active].fileno(), 0)

    def close(self) -> None:
        """Removes the files if nothing is left in them."""
        sizes = [os.fstat(file.fileno()).st_size for file in self._files]
        for file in self._files:
            file.close()
        if not any(sizes):
            _remove(self.lock_path)
        self._lock.release()
        if not any(sizes):
            self.lock_path.unlink(missing_ok=True)


def take_over(folder: Path, keep: Callable[[list[tuple[str, bytes]]], None]) -> None:
    """Hand to `keep` what processes that are gone have left in `folder`, then remove it.

    What `keep` raises is raised here, and everything stays as it is. So do files of a process that runs.
    """
    for path in sorted(folder.glob(f"{_PREFIX}*.lock")):
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            continue
        try:
            entries = sorted(entry for file in _files(path.with_suffix("")) for entry in _entries(file))
            if entries:
                keep([(key, value) for _, key, value in entries])
            _remove(path)
        finally:
            lock.release()
        path.unlink(missing_ok=True)


def in_use(folder: Path, own: AnswerJournal | None = None) -> bool:
    """Whether a process works with the cache in `folder`, apart from the one whose journal is `own`."""
    for path in folder.glob(f"{_PREFIX}*.lock"):
        if own is not None and path == own.lock_path:
            continue
        lock = FileLock(path)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return True
        lock.release()
    return False


def _files(stem: Path) -> tuple[Path, Path]:
    return stem.with_name(f"{stem.name}.0"), stem.with_name(f"{stem.name}.1")


def _remove(lock: Path) -> None:
    for path in _files(lock.with_suffix("")):
        path.unlink(missing_ok=True)


def _entries(path: Path) -> Iterator[tuple[int, str, bytes]]:
    """What is whole in a file; a kill may have cut off the last entry."""
    data = path.read_bytes() if path.exists() else b""
    start = 0
    while start + _HEADER.size <= len(data):
        number, of_key, of_value, checksum = _HEADER.unpack_from(data, start)
        start += _HEADER.size
        content = data[start : start + of_key + of_value]
        if len(content) < of_key + of_value or zlib.crc32(content) != checksum:
            return
        yield number, content[:of_key].decode(errors="replace"), content[of_key:]
        start += len(content)
