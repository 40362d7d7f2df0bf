"""JSON Lines with pydantic: an invalid line is an error that names file, line number and field."""

from __future__ import annotations

import atexit
import contextlib
import errno
import os
import shutil
import stat
import tempfile
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from io import FileIO
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Final, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from uncanny.errors import RecordError, StorageError, UsageError
from uncanny.files import open_file
from uncanny.files.beneath import allow_own
from uncanny.parameters import in_words
from uncanny.wording import another_run

T = TypeVar("T", bound=BaseModel)
V = TypeVar("V")


def is_json(line: bytes) -> bool:
    """Whether a line is whole: a record or anything else, but no piece of one, or one within another."""
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def parse_line(line: bytes, model: type[T], path: Path, number: int, *, remedy: str | None = None) -> T:
    """One record. Raises RecordError, with the remedy."""
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or None
        raise RecordError(in_words(first), path=path, line=number, field=field, remedy=remedy) from error


def read_records(path: Path, model: type[T]) -> Iterator[T]:
    """All records of a file, lazily; blank lines are skipped. Raises RecordError, OSError."""
    with open_file(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                yield parse_line(line, model, path, number)


def open_to_read(path: Path) -> BinaryIO | None:
    """None where there is no such file. Raises UsageError where it cannot be opened."""
    try:
        return open_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(
            f"{path} cannot be opened: {error.strerror}",
            remedy=f"Move what is in the way, or {another_run()}.",
        ) from error


class ByImage(Mapping[str, list[V]]):
    """What each line about an image says, `of_line`, as the file was when this was made.

    They are read when they are asked for: memory grows by 16 bytes a line and the names of images. An
    incomplete last line is left out; of one that names no image the name is the empty string.
    """

    def __init__(self, path: Path) -> None:
        """No lines where there is no file. Raises UsageError where it cannot be opened."""
        self.path, self.lines = path, 0
        self._places: dict[str, array[int]] = {}
        reader = open_to_read(path)
        if reader is None:
            return
        offset = 0
        with reader:
            for number, line in enumerate(reader, start=1):
                if line.strip() and (image := _image_of(line)) is not None:
                    self._places.setdefault(image, array("q")).extend((offset, number))
                    self.lines += 1
                offset += len(line)

    @abstractmethod
    def of_line(self, number: int, line: bytes) -> V:
        """What the line says that has this number, from 1."""

    def __getitem__(self, image: str) -> list[V]:
        places = self._places[image]
        with open_file(self.path) as file:
            values = []
            for offset, number in zip(places[::2], places[1::2], strict=True):
                file.seek(offset)
                values.append(self.of_line(number, file.readline()))
            return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, image: object) -> bool:
        return image in self._places


class LinesByImage(ByImage[tuple[int, bytes]]):
    """The lines about each image, with their numbers from 1."""

    def of_line(self, number: int, line: bytes) -> tuple[int, bytes]:
        return number, line


def _image_of(line: bytes) -> str | None:
    """The empty string where it says none; None for an incomplete last line."""
    try:
        content = orjson.loads(line)
    except orjson.JSONDecodeError:
        return "" if line.endswith(b"\n") else None
    image = content.get("image") if isinstance(content, dict) else None
    return image if isinstance(image, str) else ""


def open_to_append(path: Path) -> FileIO:
    """Raises UsageError where the file cannot be opened, as when a folder has its name, and `shared_file`."""
    try:
        file = FileIO(path, "a+")
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            file.close()
            raise shared_file(path)
        return file
    except OSError as error:
        raise UsageError(
            f"{path} cannot be opened: {error.strerror}",
            remedy=f"Move what is in the way, or {another_run()}.",
        ) from error


def shared_file(path: Path) -> UsageError:
    """For a file with more than one name: what is written to it is written to the other, wherever that is."""
    return UsageError(
        f"{path} has another name, too (a hard link), and would be written to under both",
        remedy="Put a copy of it in its place, or pass another run folder.",
    )


def check_plain(path: Path, *, writes: bool = False) -> None:
    """Raises UsageError where something else than a file bears the name.

    With `writes` also where the file has another name.
    """
    if path.is_symlink() or (path.exists() and not path.is_file()):
        raise UsageError(
            f"{path} is not a regular file; uncanny never follows links to the files of a run",
            remedy="Put the file itself there, or remove it.",
        )
    if writes and path.exists() and path.stat().st_nlink > 1:
        raise shared_file(path)


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


# Threads that write one file, such as two pictures that are the same, do so one after the other.
_WRITING: Final = tuple(Lock() for _ in range(64))


def write_atomically(path: Path, chunks: Iterable[bytes]) -> None:
    """Replace `path` in one step, so that a reader or a kill never meets half a file.

    Raises OSError that names `path`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with _WRITING[hash(path) % len(_WRITING)]:
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


def write_named(path: Path, chunks: Iterable[bytes]) -> None:
    """Replace a file that a user named, in one step; the folders it goes to are made.

    Raises OSError that names what could not be written.
    """
    make_folder_of(path)
    write_atomically(path, chunks)


def write_in_run(path: Path, chunks: Iterable[bytes]) -> None:
    """The same for a file of a run under way, which ends where it cannot be kept. Raises StorageError."""
    try:
        write_named(path, chunks)
    except OSError as error:
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}",
            remedy="Free some disk space and run the same again.",
        ) from error


def make_folder_of(path: Path) -> None:
    """Make the folders that a file which a user named goes to. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)


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
            remedy="Make room there, or set TMPDIR to another folder.",
        ) from error


@cache
def _folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="uncanny-"))
    allow_own(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
