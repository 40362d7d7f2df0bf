"""JSON Lines with pydantic: an invalid line is an error that names file, line number and field."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from uncanny.errors import RecordError, UsageError

T = TypeVar("T", bound=BaseModel)


def parse_line(line: bytes, model: type[T], path: Path, number: int) -> T:
    """One record. Raises RecordError."""
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        raise RecordError(first["msg"], path=path, line=number, field=field) from error


def read_records(path: Path, model: type[T]) -> Iterator[T]:
    """All records of a file, lazily; blank lines are skipped. Raises RecordError, OSError."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield parse_line(line, model, path, number)


def open_to_append(path: Path) -> FileIO:
    """Raises UsageError where the file cannot be opened, as when a folder has its name."""
    try:
        return FileIO(path, "a+")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be opened: {error.strerror}",
            remedy="Move what is in the way, or name another run with -o.",
        ) from error


def append_whole(file: FileIO, data: bytes) -> None:
    """Append all of `data` or nothing. Raises UsageError where it cannot be written, as on a full disk."""
    end = os.fstat(file.fileno()).st_size
    try:
        if file.write(data) != len(data):  # the disk filled up on the way, which is no error to write()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        os.ftruncate(file.fileno(), end)
        raise UsageError(
            f"{file.name} cannot be written: {error.strerror}",
            remedy="Free some disk space and run the same command again.",
        ) from error


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Replace `path` in one step, so that a reader or a kill never meets half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
