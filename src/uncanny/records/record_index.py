"""An index of many records, so that a run resumes without reading them all.

One line for each record: a checksum, and as JSON its key, where it is, and what the run needs to know of it.
The first line says of which file, and with what the records were made. Where something does not fit, records
are read instead.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from uncanny.errors import StorageError, UsageError
from uncanny.records.jsonl import append_whole, open_to_append, open_to_read, write_atomically

SUFFIX: Final = ".index"
# Fewer are read as fast as their index.
LEAST: Final = 10_000
_FORMAT: Final = 2
# Characters, with the blank behind them.
_CHECKSUM: Final = 9


class Entry(NamedTuple):
    """A record: its key, its place in bytes, and what is known `about` it."""

    key: str
    offset: int
    length: int
    about: list[Any]


class RecordIndex:
    """The index beside a file of records, there once these are `LEAST`. It may be lost at any time."""

    def __init__(self, records: Path) -> None:
        self._records, self.path = records, records.with_suffix(SUFFIX)
        self._whole = 0  # bytes of the index that fit
        self._file: FileIO | None = None
        self._waiting, self._number = bytearray(), 0
        self._made_with: Mapping[str, object] | None = None

    def read(self, made_with: Mapping[str, object]) -> Iterator[Entry]:
        """The entries of records that were `made_with` the same, from the first one on without a gap."""
        try:
            records, index = self._records.stat(), self.path.stat()
            reader = open_to_read(self.path)
        except (OSError, UsageError):
            return
        # A record is written before its entry: what was changed later was changed by somebody else.
        if reader is None or records.st_mtime_ns > index.st_mtime_ns:
            return
        with reader:
            head = reader.readline()
            if head != _head(records, made_with):
                return
            self._whole, end = len(head), 0
            for line in reader:
                entry = _entry(line)
                if entry is None or entry.offset != end or entry.length < 1:
                    return
                end += entry.length
                if end > records.st_size:
                    return
                self._whole += len(line)
                yield entry

    def note(self, entry: Entry) -> None:
        """An entry more, behind those that were read; written down when `open`, and there are enough."""
        self._waiting += _line(entry)
        self._number += 1
        if self._file is not None:
            self._append()
        elif self._made_with is not None and self._number >= LEAST:
            self.open(self._made_with)

    def open(self, made_with: Mapping[str, object]) -> None:
        """Write down what is noted, by now and from now on."""
        self._made_with = made_with
        if self._file is not None or not (self._whole or self._number >= LEAST):
            return
        with contextlib.suppress(OSError, UsageError):
            self._file = open_to_append(self.path)
            self._file.truncate(self._whole)
            os.utime(self._file.fileno())
            if not self._whole:
                self._waiting[:0] = _head(self._records.stat(), made_with)
            self._append()

    def rewrite(self, places: Iterable[tuple[str, int]], made_with: Mapping[str, object]) -> None:
        """The records were written anew, by key and length in this order. Without all entries it is lost."""
        self.close()
        try:
            entries = (_entry(line) for line in self._lines())
            about = {entry.key: entry.about for entry in entries if entry is not None}
            if about:
                head = _head(self._records.stat(), made_with)
                write_atomically(self.path, self._anew(about, places, head))
        except (KeyError, OSError, UsageError):
            self.lose()

    def lose(self) -> None:
        """The records are no longer those of the index."""
        self.close()
        self._waiting.clear()
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Nothing is written any more."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.utime(self._file.fileno())
            self._file.close()
            self._file = None

    def _append(self) -> None:
        assert self._file is not None
        block = bytes(self._waiting)
        self._waiting.clear()
        try:
            append_whole(self._file, block)
        except StorageError:
            self.lose()

    def _lines(self) -> Iterator[bytes]:
        reader = open_to_read(self.path)
        if reader is not None:
            with reader:
                reader.readline()
                yield from reader

    def _anew(
        self, about: Mapping[str, list[Any]], places: Iterable[tuple[str, int]], head: bytes
    ) -> Iterator[bytes]:
        yield head
        offset = 0
        for key, length in places:
            yield _line(Entry(key, offset, length, about[key]))
            offset += length


def _head(records: os.stat_result, made_with: Mapping[str, object]) -> bytes:
    content = {"format": _FORMAT, "inode": records.st_ino, "made_with": dict(made_with)}
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)


def _line(entry: Entry) -> bytes:
    content = orjson.dumps(tuple(entry))
    return b"%08x %b\n" % (zlib.crc32(content), content)


def _entry(line: bytes) -> Entry | None:
    """None for a line that is not whole, or not ours."""
    content = line[_CHECKSUM:-1]
    try:
        if int(line[:_CHECKSUM], 16) != zlib.crc32(content):
            return None
        key, offset, length, about = orjson.loads(content)
    except (ValueError, TypeError):
        return None
    fits = type(key) is str and type(offset) is int and type(length) is int and type(about) is list
    return Entry(key, offset, length, about) if fits else None
