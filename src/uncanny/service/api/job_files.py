"""Files of a job, as they are read for answers: within its folder only, and long ones never whole.

Records are read from where the page before ended. That place names the file by its inode: at its end a run
puts its records in order, in a new file, and a place in the old one says nothing any more.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from io import BufferedReader
from pathlib import Path
from typing import Final, Self

import orjson

from uncanny.errors import ConflictError, NotFoundError, UsageError

MOST_FILES: Final = 20_000
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
            raise UsageError("This is not where a page ended", remedy="Give `next` of the page before.")
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
        inode, offset, size = os.fstat(file.fileno()).st_ino, self.place.offset, 0
        file.seek(offset)
        while len(lines) < limit and size < _PAGE_BYTES:
            text = file.readline(_LONGEST_LINE + 1)
            length = len(text)
            while length > _LONGEST_LINE and text and not text.endswith(b"\n"):
                text = file.readline(_LONGEST_LINE)
                length += len(text)
            if not text.endswith(b"\n"):
                break
            offset += length
            if length <= _LONGEST_LINE and _is_object(text):
                lines.append(Line(text.strip(), Place(inode, offset)))
                size += length
        self.place = Place(inode, offset)
        return lines

    def _open(self) -> BufferedReader | None:
        if self._file is None and self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._file = open(self._path, "rb", opener=_open_no_link)  # noqa: SIM115
        return self._file


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


@dataclass(frozen=True, slots=True)
class JobFile:
    """A file of a job: its path from the job's folder, size in bytes, and digest."""

    path: str
    size: int
    sha256: str


class Digests:
    """sha256 of files, remembered while they stay as they are. Safe from threads."""

    def __init__(self, most: int = 100_000) -> None:
        self._most = most
        self._known: OrderedDict[tuple[int, int, int, int], str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, file: BufferedReader) -> str:
        status = os.fstat(file.fileno())
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        with self._lock:
            if stamp in self._known:
                self._known.move_to_end(stamp)
                return self._known[stamp]
        digest = file_digest(file, "sha256").hexdigest()
        with self._lock:
            self._known[stamp] = digest
            if len(self._known) > self._most:
                self._known.popitem(last=False)
        return digest


def list_files(
    folder: Path, digests: Digests, *, after: str = "", limit: int = 1000
) -> tuple[Sequence[JobFile], str | None]:
    """Regular files below the folder in order of their paths, and the `after` of the next page.

    Links, hidden files and whatever lies outside are none of them.
    """
    paths: list[str] = []
    for root, folders, names in os.walk(folder, followlinks=False):
        folders[:] = [name for name in folders if not name.startswith(".")]
        base = Path(root).relative_to(folder)
        paths += [(base / name).as_posix() for name in names if not name.startswith(".")]
    paths = sorted(path for path in paths[:MOST_FILES] if path > after and _is_text(path))
    files: list[JobFile] = []
    for path in paths:
        if len(files) == limit:
            return files, files[-1].path
        try:
            with open_within(folder, path) as file:
                files.append(JobFile(path, os.fstat(file.fileno()).st_size, digests.of(file)))
        except (NotFoundError, OSError):
            continue
    return files, None


def open_within(folder: Path, path: str) -> BufferedReader:
    """A regular file below `folder`. Raises NotFoundError for everything else, as links that lead out."""
    return open(resolve_within(folder, path), "rb", opener=_open_no_link)


def resolve_within(folder: Path, path: str) -> Path:
    """Where a regular file below `folder` really lies. Raises NotFoundError."""
    missing = NotFoundError("The job has no such file", remedy="Ask for the list of its files.")
    parts = path.split("/")
    if "\0" in path or "\\" in path or any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        raise missing
    try:
        real = folder.joinpath(*parts).resolve(strict=True)
        inside = real.is_relative_to(folder.resolve(strict=True))
        regular = stat.S_ISREG(real.stat().st_mode)
    except (OSError, ValueError, RuntimeError):
        raise missing from None
    if not inside or not regular:
        raise missing
    return real


def _open_no_link(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
