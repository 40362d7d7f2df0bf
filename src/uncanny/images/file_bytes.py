"""Reading one file whole, without ever hanging on it, and telling later whether it is still the same."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import BinaryIO

from uncanny.errors import ImageError, ImageFault, StorageError, UncannyError
from uncanny.files.beneath import OutsideError, open_allowed
from uncanny.images.remote import read_url
from uncanny.images.row_files import Beside, Remote, Row, check_no_table, read_row, row_of, row_place
from uncanny.settings import settings
from uncanny.wording import option, short_path

_FAULTS: dict[int, tuple[ImageFault, str, str | None]] = {
    errno.ENOENT: ("missing", "the file does not exist", "Was it moved, or is it a link to nowhere?"),
    errno.ENOTDIR: ("missing", "the file does not exist", None),
    errno.ELOOP: ("symlink_loop", "the symbolic link leads back to itself", None),
    errno.ENAMETOOLONG: ("name_too_long", "the name is too long for the file system", None),
    errno.EACCES: ("permission", "no permission to read the file", "Check its mode and its folder's."),
    errno.EPERM: ("permission", "no permission to read the file", "Check its mode and its folder's."),
    errno.EISDIR: ("not_a_file", "this is a folder, not a file", None),
    errno.ENOMEM: ("memory", "not enough memory to read the file", "Run the same again."),
}
# That too many files are open says nothing of this one: others will be closed.
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
PATIENCE_S = 20.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 1.0

# Two changes within one tick of a file system's clock leave the same times; none ticks slower than this.
_TICK_NS = 2 * 10**9
_HASHING_THREADS = 8
_MOST_ROW_BYTES = 2**31  # what Arrow puts into one cell


@dataclass(frozen=True, slots=True)
class ReadFile:
    """A file's bytes, and their `stamp` for records, None where a file changed too shortly before."""

    data: bytes = field(repr=False)
    stamp: str | None


@dataclass(frozen=True, slots=True)
class RecordedFile:
    """A file as a record knows it: the digest of what was read, and its stamp then."""

    path: Path
    sha256: str
    stamp: str | None


def read_image_file(path: Path, max_bytes: int, within: Sequence[Path] | None = None) -> bytes:
    """All bytes of a regular file of at most `max_bytes`, at least one byte.

    Where `within` names folders, by their real paths, it has to lie in one of them, links followed. Raises
    `ImageError` for everything else: pipes and devices are never opened, large files never read.
    """
    return read_stamped(path, max_bytes, within).data


def read_stamped(path: Path, max_bytes: int, within: Sequence[Path] | None = None) -> ReadFile:
    """The same with the stamp of the file, in a table's row that of the table. Raises what it raises."""
    if (row := row_of(path)) is not None:
        with _os_errors_named():
            status = row.file.stat()
            data = _row_bytes(row, max_bytes, within)
    else:
        with _os_errors_named(), open_image_file(path, max_bytes, within) as file:
            status = os.fstat(file.fileno())
            data = file.read(max_bytes + 1)
    check_size(data, max_bytes)
    changed_ns = status.st_mtime_ns if os.name == "nt" else status.st_ctime_ns
    return ReadFile(data, _stamp(status) if time.time_ns() - changed_ns > _TICK_NS else None)


def check_size(data: bytes, max_bytes: int) -> None:
    """Raises `ImageError` for the bytes of a file that is empty or too large."""
    if not data:
        raise ImageError("the file is empty", kind="empty", remedy="Was the download cut off?")
    if len(data) > max_bytes:
        raise _too_large(len(data), max_bytes)


def changed_files(files: Iterable[RecordedFile]) -> set[RecordedFile]:
    """Those that hold other bytes than when they were read, whatever their times say. Blocking.

    A file whose size, times and inode are those of its stamp is not read; all others are. Copies with the
    times of the original, and clocks that were set back, so change nothing. Files that are gone or out of
    reach are left out: the record of what they were stands. Raises StorageError when no file can be opened.
    """
    unsure = sorted(unsure_files(files), key=_place)
    if not unsure:
        return set()
    with ThreadPoolExecutor(_HASHING_THREADS) as threads:
        return {
            file for file, changed in zip(unsure, threads.map(_holds_others, unsure), strict=True) if changed
        }


def unsure_files(files: Iterable[RecordedFile]) -> Iterator[RecordedFile]:
    """Those whose size, times and inode are not those of their stamp."""
    return (file for file in files if not _as_stamped(file))


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size:x}-{status.st_mtime_ns:x}-{status.st_ctime_ns:x}-{status.st_ino:x}"


def _place(file: RecordedFile) -> tuple[str, str, int]:
    """Rows of a table in their order: it is read from front to back."""
    with suppress(UncannyError, OSError):
        if (row := row_of(file.path)) is not None and (place := row_place(row)) is not None:
            return (str(row.file), *place)
    return (str(file.path), "", 0)


def _row_bytes(row: Row, max_bytes: int, within: Sequence[Path] | None = None) -> bytes:
    content = read_row(row, within)
    if isinstance(content, Beside):
        return read_image_file(content.file, max_bytes, None if content.folder is None else [content.folder])
    if isinstance(content, Remote):
        content = read_url(content.url, max_bytes)
    if len(content) > max_bytes:
        raise _too_large(len(content), max_bytes)
    return content


def current_stamp(path: Path) -> str | None:
    """The stamp that a file has now; None where there is none."""
    try:
        return _stamp(path.stat())
    except (OSError, ValueError):
        return None


def _as_stamped(file: RecordedFile) -> bool:
    row = row_of(file.path)
    return file.stamp is not None and current_stamp(file.path if row is None else row.file) == file.stamp


def _holds_others(file: RecordedFile) -> bool:
    try:
        if (row := row_of(file.path)) is not None:
            return hashlib.sha256(_row_bytes(row, _MOST_ROW_BYTES)).hexdigest() != file.sha256
        status = file.path.stat()
        if not stat.S_ISREG(status.st_mode):
            return True
        if file.stamp is not None and not file.stamp.startswith(f"{status.st_size:x}-"):
            return True
        with _open(file.path) as content:
            return hashlib.file_digest(content, "sha256").hexdigest() != file.sha256
    except (OSError, ValueError, ImageError):
        return False


@contextmanager
def open_image_file(path: Path, max_bytes: int, within: Sequence[Path] | None = None) -> Iterator[BinaryIO]:
    """The regular file, or picture in a table's row, of at most `max_bytes`, to be read.

    It lies `within` folders as in `read_image_file`. Raises `ImageError` where it cannot be opened, and
    `StorageError` where too many files stay open. What is raised while it is read stays as it is.
    """
    with _os_errors_named():
        file = _opened(path, max_bytes, within)
    with file:
        yield file


def _opened(path: Path, max_bytes: int, within: Sequence[Path] | None) -> BinaryIO:
    if (row := row_of(path)) is not None:
        return BytesIO(_row_bytes(row, max_bytes, within))
    if within is None and settings().folders is None:
        # Devices are not even opened. Where folders are named this would tell what lies elsewhere.
        _check(path.stat(), max_bytes)
    file = _open(path, within)
    try:
        # Looked at again: the name may stand for another file than a moment ago.
        _check(os.fstat(file.fileno()), max_bytes)
        check_no_table(path)
    except BaseException:
        file.close()
        raise
    return file


@contextmanager
def _os_errors_named() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _from_os(error) from error
    except ValueError as error:  # a name with a zero byte in it
        raise ImageError(f"the name is not valid: {error}", kind="missing") from error


def _open(path: Path, within: Sequence[Path] | None = None) -> BufferedReader:
    """Opens a file where the setting `folders` allows it, and `within` those that are given.

    Waits where too many files are open, until others are closed. Raises OSError, at last StorageError.
    """
    until, pause_s = time.monotonic() + PATIENCE_S, _FIRST_PAUSE_S
    while True:
        try:
            return open_allowed(path, within)
        except OSError as error:
            if error.errno not in _TOO_MANY:
                raise
            if time.monotonic() >= until:
                less = option("concurrency")
                remedy = f"Allow more of them (ulimit -n) or lower {less}, and run the same again."
                raise StorageError(
                    f"{short_path(path)} cannot be opened: {error.strerror}", remedy=remedy
                ) from error
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _check(status: os.stat_result, max_bytes: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise ImageError("this is a folder, not a file", kind="not_a_file")
    if not stat.S_ISREG(status.st_mode):
        raise ImageError("this is a pipe, socket or device, not a file", kind="not_a_file")
    if status.st_size > max_bytes:
        raise _too_large(status.st_size, max_bytes)


def _too_large(size: int, max_bytes: int) -> ImageError:
    return ImageError(
        f"the file has {size:,} bytes, the limit is {max_bytes:,}",
        kind="too_large",
        remedy="Raise the limit, or make the file smaller.",
    )


def _from_os(error: OSError) -> ImageError:
    # What is not about the name or the rights is about the disk, or a drive on the network.
    other: tuple[ImageFault, str, str | None] = (
        "io_error",
        f"the file cannot be read: {error.strerror or error}",
        "Check the disk or the drive on the network, and run the same again.",
    )
    kind, message, remedy = _FAULTS.get(error.errno or 0, other)
    if isinstance(error, OutsideError):
        message, remedy = str(error.strerror), None
    return ImageError(message, kind=kind, remedy=remedy)
