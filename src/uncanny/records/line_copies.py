"""Copies of tables as JSON Lines, for readers that look lines up: one a table, until this process ends."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from uncanny.errors import UsageError
from uncanny.files.beneath import allow_own

_COPIES: dict[tuple[Path, tuple[int, int, int]], Path] = {}
_COPYING = Lock()


def line_copy(table: Path, write: Callable[[BinaryIO], object]) -> Path:
    """The copy of a table, made with `write`, which is given an empty file.

    A table has one copy however often it is opened, until it changes; all of them go with this process.
    Raises UsageError for a table that cannot be read or copied, and what `write` raises.
    """
    try:
        status = table.stat()
        key = table.resolve(), (status.st_size, status.st_mtime_ns, status.st_ino)
        with _COPYING:
            copy = _COPIES.get(key)
            if copy is None:
                copy = _folder() / f"{len(_COPIES)}-{table.stem}.jsonl"
                with copy.open("wb") as file:
                    write(file)
                _COPIES[key] = copy
            return copy
    except OSError as error:
        raise UsageError(
            f"{table} cannot be copied to {tempfile.gettempdir()}, where its rows are looked up: "
            f"{error.strerror or error}",
            remedy="Make room there, or name another folder for such copies with TMPDIR.",
        ) from error


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="uncanny-"))
    allow_own(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
