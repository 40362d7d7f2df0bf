"""A file of records to which several people, or processes, add at once: whole lines, under a lock.

`reviews.jsonl` is one, and so are the files of what people answer and judge.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Final, Generic, TypeVar

from filelock import FileLock, Timeout
from pydantic import BaseModel

from uncanny.errors import RecordError, RunLockedError, StorageError, UsageError
from uncanny.files import open_file
from uncanny.records.jsonl import (
    append_whole,
    check_plain,
    open_to_append,
    open_to_read,
    parse_line,
    write_atomically,
)

T = TypeVar("T", bound=BaseModel)
LOCK_WAIT_S: Final = 30.0
_TAIL = 1 << 20


class SharedLog(Generic[T]):
    """A file of records that many may read and append to at once, also from other processes.

    A line that a killed process left half-written is passed over, and dropped by the next one who appends.
    """

    def __init__(
        self, path: Path, model: type[T], *, lock: str, what: str, exclude_none: bool = True
    ) -> None:
        """Creating the object touches nothing on disk.

        `lock` is the name of the file beside it that holds the lock, `what` the records are called in errors.
        Keys that are None are left out of lines, unless `exclude_none` is False.
        """
        self.path = path
        self._model, self._lock_name, self._what = model, lock, what
        self._exclude_none = exclude_none

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else appends meanwhile; may be nested. For reading what stands and adding to it in one go.

        Raises RunLockedError after half a minute, UsageError where the folder cannot be written.
        """
        check_plain(self.path.with_name(self._lock_name), writes=True)
        try:
            self._lock.acquire(timeout=LOCK_WAIT_S)
        except Timeout as error:
            raise RunLockedError(
                f"Another process has been writing {self._what} to {self.path} for {LOCK_WAIT_S:.0f} s",
                remedy="Wait for it, or stop it.",
            ) from error
        except OSError as error:
            raise UsageError(
                f"{self.path} cannot be written: {error.strerror or error}",
                remedy="Make its folder writable.",
            ) from error
        try:
            yield
        finally:
            self._lock.release()

    @cached_property
    def _lock(self) -> FileLock:
        return FileLock(self.path.with_name(self._lock_name))

    def append(self, records: Iterable[T]) -> int:
        """All of `records`, in one write that is on disk when this returns, or none; the file's new size.

        Raises StorageError where they cannot be written, UsageError, RunLockedError.
        """
        lines = b"".join(
            record.model_dump_json(exclude_none=self._exclude_none).encode() + b"\n" for record in records
        )
        with self.locked():
            self.check_no_link()
            with open_to_append(self.path) as file:
                self._mend_end(file.fileno())
                append_whole(file, lines)
                try:
                    os.fsync(file.fileno())
                except OSError as error:
                    raise StorageError(
                        f"{self.path} cannot be written: {error.strerror}", remedy="Free some disk space."
                    ) from error
                return os.fstat(file.fileno()).st_size

    def read(self) -> Iterator[T]:
        """All lines in their order; nothing where there is no file. Raises RecordError, UsageError."""
        yield from (record for _, record in self._lines(0))

    def lines_from(self, offset: int) -> Iterator[tuple[int, int, T]]:
        """What came after byte `offset`, where a line ended, with the bytes at which lines begin and end.

        Raises RecordError, UsageError.
        """
        for end, record in self._lines(offset):
            yield offset, end, record
            offset = end

    def lines_at(self, places: Iterable[tuple[int, int]]) -> list[T]:
        """The lines between these bytes, which `lines_from` gave. Raises RecordError, OSError."""
        with open_file(self.path) as file:
            return [
                parse_line(os.pread(file.fileno(), end - start, start), self._model, self.path, 1)
                for start, end in places
            ]

    def _lines(self, start: int) -> Iterator[tuple[int, T]]:
        """Records with the byte at which their line ends."""
        self.check_no_link()
        return whole_lines(self.path, self._model, start)

    def check_no_link(self) -> None:
        check_plain(self.path)

    def remove(self, unwanted: Callable[[T], bool]) -> int:
        """Write the file anew, in one step, without the lines that are `unwanted`; how many there were.

        The other lines stay byte for byte. Raises RecordError, StorageError, UsageError, RunLockedError.
        """
        with self.locked():
            kept: list[bytes] = []
            removed, start = 0, 0
            with open_to_read(self.path) or BytesIO() as file:
                for end, record in self._lines(0):
                    line = file.read(end - start)
                    start = end
                    if unwanted(record):
                        removed += 1
                    else:
                        kept.append(line if line.endswith(b"\n") else line + b"\n")
            if removed:
                try:
                    write_atomically(self.path, kept)
                except OSError as error:
                    raise StorageError(
                        f"{self.path} cannot be written: {error.strerror}", remedy="Free some disk space."
                    ) from error
            return removed

    def _mend_end(self, file: int) -> None:
        """Give a last line without an end its end where it is a whole record, else drop it."""
        size = os.fstat(file).st_size
        tail = os.pread(file, min(size, _TAIL), max(0, size - _TAIL))
        if not tail or tail.endswith(b"\n"):
            return
        last = tail[tail.rfind(b"\n") + 1 :]
        try:
            parse_line(last, self._model, self.path, 1)
        except RecordError:
            os.ftruncate(file, size - len(last))
        else:
            os.write(file, b"\n")


def file_state(file: Path | int) -> tuple[int, int, int] | None:
    """What is another one when a file, named or open, was written or replaced; None where there is none."""
    try:
        status = os.stat(file)  # noqa: PTH116 - takes descriptors too
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def whole_lines(path: Path, model: type[T], start: int = 0) -> Iterator[tuple[int, T]]:
    """The records from byte `start` on, with the byte at which their line ends; none where there is no file.

    A last line that is half-written is left out. Raises RecordError, UsageError.
    """
    first = start
    reader = open_to_read(path)
    if reader is None:
        return
    with reader:
        reader.seek(start)
        for number, line in enumerate(reader, start=1):
            start += len(line)
            if not line.strip():
                continue
            try:
                record = parse_line(line, model, path, number)
            except RecordError:
                if not line.endswith(b"\n"):
                    return
                before = _lines_before(path, first)
                if not before:
                    raise
                record = parse_line(line, model, path, before + number)  # says where in the file
            yield start, record


def _lines_before(path: Path, end: int) -> int:
    count = 0
    with open_file(path) as file:
        while end > 0 and (block := file.read(min(end, _TAIL))):
            count += block.count(b"\n")
            end -= len(block)
    return count
