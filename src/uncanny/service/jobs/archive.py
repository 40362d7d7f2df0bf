"""Files of a job as one zip file, made while it is sent: neither memory nor disk ever holds it."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from time import localtime
from typing import Final

from uncanny.errors import NotFoundError
from uncanny.service.jobs.folder import open_within

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
