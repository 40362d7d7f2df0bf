"""Records of a job as its command writes them: whole lines of a file that grows, from a place on.

That place names the file by its inode: at its end a run puts its records in order, in a new file, and a place
in the old one says nothing any more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, Final, Self

import orjson

from uncanny.errors import ConflictError, UsageError
from uncanny.service.jobs.folder import open_no_link

_LONGEST_LINE: Final = 4 * 2**20
_PAGE_BYTES: Final = 16 * 2**20
_MOST_DIGITS: Final = 18


@dataclass(frozen=True, slots=True)
class Place:
    """Where reading goes on: the inode of the file, 0 before there is one, and bytes from its start."""

    inode: int = 0
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.inode}.{self.offset}"

    @classmethod
    def read(cls, text: str) -> Place:
        """Raises UsageError for what is no place."""
        parts = text.split(".")
        digits = all(part.isascii() and part.isdigit() and len(part) <= _MOST_DIGITS for part in parts)
        if len(parts) != 2 or not digits:
            raise UsageError(
                "This is not a valid page position", remedy="Give `next` from the previous page."
            )
        return cls(*map(int, parts))


@dataclass(frozen=True, slots=True)
class Line:
    """A record as its file has it, and the place after it."""

    text: bytes
    after: Place


class Tail:
    """Reads the records of a file from a place on, also while they are written.

    The file is kept open: where it is put in order meanwhile, what it had is still read to its end.
    """

    def __init__(self, path: Path | None, place: Place | None = None) -> None:
        """`path` None has no records. Raises ConflictError where the file of `place` has been replaced."""
        self._path = path
        self._file: BufferedReader | None = None
        self.place = place or Place()
        opened = self._open()
        if self.place.inode != 0 and (opened is None or os.fstat(opened.fileno()).st_ino != self.place.inode):
            self.close()
            raise ConflictError(
                "The run has put its records in order since", remedy="Read them from the start again."
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def read(self, limit: int) -> list[Line]:
        """The next records, at most `limit`; none is all there are now.

        What is no whole line yet is left for later; what is no JSON, or too long for an answer, is left out.
        """
        lines: list[Line] = []
        file = self._open()
        if file is None:
            return lines
        status, offset, size = os.fstat(file.fileno()), self.place.offset, 0
        if offset > status.st_size:  # nobody was given such a place, and no file system takes every number
            return lines
        inode = status.st_ino
        file.seek(offset)
        whole = whole_lines(file)
        while len(lines) < limit and size < _PAGE_BYTES and (line := next(whole, None)) is not None:
            text, length = line
            offset += length
            if as_record(text) is not None:
                lines.append(Line(text.strip(), Place(inode, offset)))
                size += length
        self.place = Place(inode, offset)
        return lines

    def _open(self) -> BufferedReader | None:
        if self._file is None and self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._file = open(self._path, "rb", opener=open_no_link)  # noqa: SIM115
        return self._file


def whole_lines(file: BufferedReader) -> Iterator[tuple[bytes, int]]:
    """The lines from here on, each with its length in bytes, and empty where it is too long for an answer.

    What is no whole line yet, as it is still being written, is left out.
    """
    while True:
        text = file.readline(_LONGEST_LINE + 1)
        length = len(text)
        while length > _LONGEST_LINE and text and not text.endswith(b"\n"):
            text = file.readline(_LONGEST_LINE)
            length += len(text)
        if not text.endswith(b"\n"):
            return
        yield (text if length <= _LONGEST_LINE else b""), length


def as_record(line: bytes) -> dict[str, Any] | None:
    """The record in a line; None where there is none."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None
