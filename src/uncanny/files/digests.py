"""Digests of whole files and folders. What did not change since is not read again by the same process."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final

from uncanny.errors import UsageError
from uncanny.files import open_file

# What programs write into a folder of data or weights beside its content.
_BESIDE: Final = frozenset({".html", ".log", ".index", ".md"})
# By device, number, size and time of change.
_KNOWN: dict[tuple[int, int, int, int], str] = {}


def file_digest(path: Path, *, anywhere: bool = False) -> str:
    """SHA-256 of a file, in hex. Raises what `open_file` does, which says what `anywhere` is."""
    with open_file(path, anywhere=anywhere) as file:
        status = os.fstat(file.fileno())
        stamp = (status.st_dev, status.st_ino, status.st_size, status.st_ctime_ns)
        if stamp not in _KNOWN:
            _KNOWN[stamp] = hashlib.file_digest(file, "sha256").hexdigest()
    return _KNOWN[stamp]


def folder_digest(folder: Path, *, anywhere: bool = False) -> str:
    """SHA-256, in hex, over the paths and contents of all files in a folder.

    Hidden files do not count, nor do pages, cards, logs and the manifest of a run, which are written again.
    Raises what `open_file` does, which says what `anywhere` is.
    """
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        is_beside = path.suffix in _BESIDE or name.as_posix() == "run.json"
        if path.is_file() and not is_beside and not any(each.startswith(".") for each in name.parts):
            whole.update(f"{name.as_posix()}\0{file_digest(path, anywhere=anywhere)}\n".encode())
    return whole.hexdigest()


def digest(path: Path, *, anywhere: bool = False) -> str:
    """SHA-256, in hex, of a file or of all files in a folder; see `open_file` for `anywhere`.

    Raises UsageError where it cannot be read.
    """
    try:
        read = folder_digest if path.is_dir() else file_digest
        return read(path, anywhere=anywhere)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}", remedy="Pass another file."
        ) from error
