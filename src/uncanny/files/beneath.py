"""Opening files only where they lie below allowed folders: what was opened is checked, not what has its name.

A name may stand for another file between a look at it and its opening, and each folder of a path for another
folder. Linux opens a path so that it cannot leave a folder (`openat2`); where it does not know how, the file
is opened first and then asked where it lies.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Final

_OPENAT2: Final = 437  # on every architecture that Python runs on
_NO_MAGIC_LINKS, _NO_LINKS, _BENEATH = 0x02, 0x04, 0x08
# Not for this kernel, or not for this process, as some containers have it.
_UNKNOWN: Final = frozenset({errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG})
# Something on the way was moved, or has become a link, since the links were followed.
_CHANGED: Final = frozenset({errno.ELOOP, errno.EXDEV, errno.EAGAIN, errno.ENOENT, errno.ENOTDIR})
_TRIES: Final = 3
_FLAGS: Final = os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


class OutsideError(PermissionError):
    """A path that leads to no allowed folder, whatever is there."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EACCES, "the file lies in no folder that may be read", path)


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class _Kernel:
    """`openat2`, as long as it is known to work here."""

    def __init__(self) -> None:
        self.knows = hasattr(os, "O_PATH")
        self._library: ctypes.CDLL | None = None

    def open(self, path: str, flags: int) -> int | None:
        """A descriptor of what lies at an absolute path, of which no part may be a link.

        None where the kernel cannot do it. Raises OSError.
        """
        if not self.knows:
            return None
        if self._library is None:
            self._library = ctypes.CDLL(None, use_errno=True)
        how = _How(flags, 0, _BENEATH | _NO_LINKS | _NO_MAGIC_LINKS)
        start = os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            descriptor: int = self._library.syscall(
                ctypes.c_long(_OPENAT2),
                ctypes.c_int(start),
                ctypes.c_char_p(os.fsencode(path.lstrip("/") or ".")),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
        finally:
            os.close(start)
        if descriptor >= 0:
            return descriptor
        number = ctypes.get_errno()
        if number in _UNKNOWN:
            self.knows = False
            return None
        raise OSError(number, os.strerror(number), path)


KERNEL: Final = _Kernel()


def open_beneath(path: str | os.PathLike[str], folders: Iterable[Path]) -> int:
    """A descriptor to read a file, or a folder, that lies in one of `folders`, links followed.

    `folders` are real paths. Nobody is waited for at the other end of a pipe. Raises OutsideError where it
    lies elsewhere, also for a moment and whether it is there or not, and OSError as `os.open` does.
    """
    name = os.fspath(path)
    roots = [os.fspath(folder) for folder in folders]
    error = OSError()
    for _ in range(_TRIES):
        real = os.path.realpath(name)
        if not any(_is_within(real, root) for root in roots):
            raise OutsideError(name)
        try:
            # From the top: a folder that may be read may itself be swapped for a link.
            descriptor = KERNEL.open(real, _FLAGS)
        except OSError as latest:
            if latest.errno not in _CHANGED:
                raise
            error = latest
        else:
            return _opened_and_asked(name, roots) if descriptor is None else descriptor
    raise OutsideError(name) if error.errno in (errno.EXDEV, errno.EAGAIN) else error


def open_file_beneath(path: str | os.PathLike[str], folders: Iterable[Path]) -> BufferedReader:
    """The same as a file to be read. Raises also IsADirectoryError."""
    return open(path, "rb", opener=lambda name, _: open_beneath(name, folders))


def open_allowed(path: str | os.PathLike[str], within: Sequence[Path] | None = None) -> BufferedReader:
    """A file to be read that lies where the setting `folders` allows; anywhere where that names none.

    It has to lie `within` one of these real folders, too, where they are given, and in the folder below which
    it is named where that is confined. Raises as `open_file_beneath`.
    """
    from uncanny.settings import settings  # with pydantic, which those who only lock a run do not need

    allowed = settings().folders
    if _CONFINED:
        place = os.path.abspath(path)  # noqa: PTH100  as it is named, links not followed
        # Looked up, and not gone through: another thread may confine a folder meanwhile.
        for named in (place, *map(str, Path(place).parents)):
            if (real := _CONFINED.get(named)) is not None:
                within = [real] if within is None else common_folders([real], within)
    if allowed is None and within is None:
        return open(path, "rb", opener=lambda name, _: os.open(name, _FLAGS))
    return open_file_beneath(path, common_folders(allowed, within))


def open_named(path: str | os.PathLike[str], within: Sequence[Path] | None = None) -> int:
    """A descriptor to read a file, or a folder, where the setting `input_folders` allows it, or our own copy.

    It has to lie `within` one of these real folders, too, where they are given. Raises as `open_beneath`.
    """
    from uncanny.settings import settings

    allowed = settings().input_folders
    if allowed is None and within is None:
        return os.open(path, _FLAGS)
    return open_beneath(path, common_folders(None if allowed is None else [*allowed, *_OWN], within))


def names_in(folder: str | os.PathLike[str]) -> list[str]:
    """What is in a folder that `open_named` opens, in order. Raises OSError, ValueError for a zero byte."""
    from uncanny.settings import settings

    if settings().input_folders is None:
        return sorted(os.listdir(folder))  # noqa: PTH208
    descriptor = open_named(folder)
    try:
        return sorted(os.listdir(descriptor))  # noqa: PTH208
    finally:
        os.close(descriptor)


def open_without_links(path: str | os.PathLike[str]) -> int:
    """A descriptor to read what lies at an absolute path of which no part is a link. Raises OSError."""
    name = os.path.abspath(path)  # noqa: PTH100
    descriptor = KERNEL.open(name, _FLAGS)
    return _opened_and_asked(name, [name]) if descriptor is None else descriptor


def allow_own(folder: Path) -> None:
    """Let `open_named` open what this process itself has written to `folder`."""
    _OWN.append(folder.resolve())


_OWN: Final[list[Path]] = []


def confine(folder: Path, real: Path) -> None:
    """From now on `open_allowed` opens what is named below `folder` only where it lies in its `real` path.

    For the rest of the process, as folders that come from elsewhere hold lists of files that are read later.
    Safe from threads.
    """
    _CONFINED[os.path.abspath(folder)] = real  # noqa: PTH100


_CONFINED: Final[dict[str, Path]] = {}


def common_folders(allowed: Sequence[Path] | None, within: Sequence[Path] | None) -> Sequence[Path]:
    """Folders that hold what lies in folders of both, where None is anywhere."""
    if allowed is None or within is None:
        return (allowed if within is None else within) or ()
    pairs = [(one, other) for one in allowed for other in within]
    return [one if one.is_relative_to(other) else other for one, other in pairs if _overlap(one, other)]


def _overlap(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


def place_of(file: BufferedReader) -> str:
    """A path to the very file that is open, for libraries that open files themselves; its name where Linux'
    `/proc` is not there. Good as long as the file is open."""
    place = f"/proc/self/fd/{file.fileno()}"
    return place if Path(place).exists() else file.name


def _opened_and_asked(name: str, roots: Iterable[str]) -> int:
    descriptor = os.open(name, _FLAGS)
    try:
        place = str(Path(f"/proc/self/fd/{descriptor}").readlink())
    except OSError as error:
        os.close(descriptor)
        raise OutsideError(name) from error
    if any(_is_within(place, root) for root in roots):
        return descriptor
    os.close(descriptor)
    raise OutsideError(name)


def _is_within(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
