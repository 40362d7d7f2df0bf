"""The folder of a job: what lies where, and how its files are read for answers: never through a link."""

from __future__ import annotations

import errno
import os
import stat
import threading
import zipfile
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from hashlib import file_digest
from io import BufferedReader
from itertools import islice
from pathlib import Path, PurePosixPath
from time import localtime
from typing import Final

from uncanny.errors import NotFoundError
from uncanny.files.beneath import open_file_beneath, open_without_links
from uncanny.service.answers import FilePage, JobFile

# The run, where the command has one, and what it writes besides; what it prints, and what it says.
RUN: Final = "run"
OUT: Final = "out"
# In a run, what was answered so far: it goes on with that, and people have no use for it.
ANSWERS: Final = "answers"
RESULT: Final = "result.json"
LOG: Final = "stderr.log"
MOST_FILES: Final = 20_000
# Of open files: then it is there, and cannot be opened now.
_TOO_MANY: Final = (errno.EMFILE, errno.ENFILE)


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


def paths_within(folder: Path, *, without: str | None = None) -> Iterator[str]:
    """The paths of files below a folder, those directly in it first: no links, and nothing hidden.

    Folders called `without` are passed over.
    """
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != without)
        for name in sorted(names):
            file = Path(root, name)
            path = file.relative_to(folder).as_posix()
            if not name.startswith(".") and not file.is_symlink() and _is_text(path):
                yield path


def list_files(folder: Path, digests: Digests, *, after: str, limit: int) -> FilePage:
    """Regular files below the folder in order of their paths: no links, nothing hidden."""
    paths = sorted(path for path in islice(paths_within(folder), MOST_FILES) if path > after)
    files: list[JobFile] = []
    for path in paths:
        if len(files) == limit:
            return FilePage(files=tuple(files), next=files[-1].path)
        try:
            with open_within(folder, path) as file:
                size = os.fstat(file.fileno()).st_size
                files.append(JobFile(path=path, size=size, sha256=digests.of(file)))
        except (NotFoundError, OSError):
            continue
    return FilePage(files=tuple(files))


def open_within(folder: Path, path: str) -> BufferedReader:
    """A regular file below `folder`. Raises NotFoundError for everything else, as links that lead out."""
    missing = NotFoundError("The job has no such file", remedy="Ask for the list of its files.")
    parts = path.split("/")
    if "\0" in path or "\\" in path or any(part in ("", ".", "..") or part.startswith(".") for part in parts):
        raise missing
    try:
        file = open_file_beneath(folder.joinpath(*parts), [folder.resolve()])
    except OSError as error:
        if error.errno in _TOO_MANY:
            raise
        raise missing from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise missing
    return file


def end_of_log(folder: Path, most: int) -> tuple[str, bool]:
    """The last `most` bytes of what the command said on standard error, and whether it said more.

    Nothing before it has begun.
    """
    try:
        with open_within(folder, LOG) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - most))
            return file.read(most).decode("utf-8", "replace"), size > most
    except (NotFoundError, OSError):
        return "", False


def open_no_link(name: str, _: int) -> int:
    """An opener to read that follows no link, also of a folder, and waits for nobody at the end of a pipe."""
    return open_without_links(name)


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


_CHUNK: Final = 1024 * 1024
# What is packed already would only cost time once more.
_PACKED: Final = frozenset({".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".parquet", ".arrow", ".zip"})
# Dates of zip files begin and end there.
_FIRST_YEAR, _LAST_YEAR = 1980, 2107


class _Pieces:
    """What a zip file is written to: it keeps what has not been sent yet."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def write(self, piece: bytes, /) -> int:
        self._pieces.append(bytes(piece))
        return len(piece)

    def flush(self) -> None:
        """There is nothing between it and its reader."""

    def close(self) -> None:
        """Its reader goes on to take what is left."""

    def taken(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


def zipped(folder: Path, paths: Iterable[str], *, below: str = "") -> Iterator[bytes]:
    """The bytes of a zip file with these files of a job's folder, named from `below` on.

    A file that is gone by its turn is left out.
    """
    pieces = _Pieces()
    with zipfile.ZipFile(pieces, "w") as archive:
        for path in paths:
            try:
                source = open_within(folder, path)
            except (NotFoundError, OSError):
                continue
            with source:
                status = os.fstat(source.fileno())
                entry = zipfile.ZipInfo(path.removeprefix(below), _date(status.st_mtime))
                is_packed = PurePosixPath(path).suffix.lower() in _PACKED
                entry.compress_type = zipfile.ZIP_STORED if is_packed else zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                with archive.open(entry, "w", force_zip64=True) as target:
                    while chunk := source.read(_CHUNK):
                        target.write(chunk)
                        yield pieces.taken()
    yield pieces.taken()


def _date(seconds: float) -> tuple[int, int, int, int, int, int]:
    at = localtime(seconds)
    if not _FIRST_YEAR <= at.tm_year <= _LAST_YEAR:
        return (_FIRST_YEAR, 1, 1, 0, 0, 0)
    return (at.tm_year, at.tm_mon, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec)
