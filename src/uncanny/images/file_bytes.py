"""Reading one file whole, without ever hanging on it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from uncanny.errors import ImageError, ImageFault

_FAULTS: dict[int, tuple[ImageFault, str, str | None]] = {
    errno.ENOENT: ("missing", "the file does not exist", "Was it moved, or is it a link to nowhere?"),
    errno.ENOTDIR: ("missing", "the file does not exist", None),
    errno.ELOOP: ("symlink_loop", "the symbolic link leads back to itself", None),
    errno.ENAMETOOLONG: ("name_too_long", "the name is too long for the file system", None),
    errno.EACCES: ("permission", "no permission to read the file", "Check its mode and its folder's."),
    errno.EPERM: ("permission", "no permission to read the file", "Check its mode and its folder's."),
    errno.EISDIR: ("not_a_file", "this is a folder, not a file", None),
}


def read_image_file(path: Path, max_bytes: int) -> bytes:
    """All bytes of a regular file of at most `max_bytes`, at least one byte.

    Raises `ImageError` for everything else: pipes and devices are never opened, large files never read.
    """
    with open_image_file(path, max_bytes) as file:
        data = file.read(max_bytes + 1)
    if not data:
        raise ImageError("the file is empty", kind="empty", remedy="Was the download cut off?")
    if len(data) > max_bytes:
        raise _too_large(len(data), max_bytes)
    return data


@contextmanager
def open_image_file(path: Path, max_bytes: int) -> Iterator[BinaryIO]:
    """The regular file of at most `max_bytes`, to be read. Raises `ImageError`, also where reading fails."""
    try:
        _check(path.stat(), max_bytes)
        with open(path, "rb", opener=_open_without_waiting) as file:
            # Looked at again: the name may stand for another file than a moment ago.
            _check(os.fstat(file.fileno()), max_bytes)
            yield file
    except OSError as error:
        raise _from_os(error) from error
    except ValueError as error:  # a name with a zero byte in it
        raise ImageError(f"the name is not valid: {error}", kind="missing") from error


def _open_without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


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
    kind, message, remedy = _FAULTS.get(
        error.errno or 0, ("damaged", f"the file cannot be read: {error.strerror or error}", None)
    )
    return ImageError(message, kind=kind, remedy=remedy)
