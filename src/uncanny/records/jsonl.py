"""JSON Lines with pydantic: an invalid line is an error that names file, line number and field."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from io import FileIO
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError

from uncanny.errors import RecordError, StorageError, UsageError
from uncanny.wording import option

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


def open_to_read(path: Path) -> BinaryIO | None:
    """None where there is no such file. Raises UsageError where it cannot be opened."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be opened: {error.strerror}",
            remedy=f"Move what is in the way, or name another run with {option('out')}.",
        ) from error


def open_to_append(path: Path) -> FileIO:
    """Raises UsageError where the file cannot be opened, as when a folder has its name."""
    try:
        return FileIO(path, "a+")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be opened: {error.strerror}",
            remedy=f"Move what is in the way, or name another run with {option('out')}.",
        ) from error


def append_whole(file: FileIO, data: bytes) -> None:
    """Append all of `data` or nothing. Raises StorageError where it cannot be written, as on a full disk."""
    end = os.fstat(file.fileno()).st_size
    try:
        if file.write(data) != len(data):  # the disk filled up on the way, which is no error to write()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError as error:
        os.ftruncate(file.fileno(), end)
        raise StorageError(
            f"{file.name} cannot be written: {error.strerror}",
            remedy="Free some disk space and run the same again.",
        ) from error


def is_deleted(file: FileIO) -> bool:
    """Whether an open file has lost its last name: what is written to it ends with the process."""
    return os.fstat(file.fileno()).st_nlink == 0


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Replace `path` in one step, so that a reader or a kill never meets half a file.

    Raises OSError that names `path`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        # What bears this name was left by a process that is gone, or is a link somebody has laid out.
        temporary.unlink(missing_ok=True)
        with temporary.open("xb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
