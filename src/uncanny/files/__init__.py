"""Files that somebody named, as they are opened for reading: no device, no pipe, no line without an end.

`/dev/zero` never ends, and a named pipe that nobody writes to never begins. Only pipes that a shell has
opened for this process, `/dev/stdin` and `<(command)`, are read like files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
from pydantic_core import from_json, to_json

from uncanny.errors import RecordError, UsageError
from uncanny.files.beneath import open_named

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_LINE: Final = 64 * 2**20
"""Bytes of a line of JSON Lines, its end included. The longest that are written have some 10 MB."""
MOST_DOCUMENT: Final = 4 * 2**30
"""Bytes of what is read as a whole, and of what comes out of a pipe."""
_OWN = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")


class InputFile(BufferedReader):
    """A file opened for reading, whose lines are at most `MOST_LINE` long."""

    def __init__(self, raw: FileIO, path: Path) -> None:
        super().__init__(raw)
        self._path, self._line = path, 0

    @property
    def name(self) -> str:
        """The path that it was opened by; that of the raw file is a number."""
        return str(self._path)

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        """Raises RecordError for a line that is too long."""
        line = super().readline(MOST_LINE + 1)
        if not line:
            raise StopIteration
        self._line += 1
        if len(line) > MOST_LINE:
            raise RecordError(
                f"the line has more than {MOST_LINE // 2**20} MiB",
                path=self._path,
                line=self._line,
                remedy="Is it a file of JSON Lines?",
            )
        return line


def open_file(path: Path, *, anywhere: bool = False, within: Sequence[Path] | None = None) -> InputFile:
    """Open a file for reading, where the setting `input_folders` allows it.

    `anywhere` is for files that no parameter of a job names: `--config` and the prices of `UNCANNY_PRICES`.
    Where `within` names folders, by their real paths, the file has to lie in one of them, links followed.
    Raises OSError, OutsideError among them, and UsageError for what is not a file or a pipe of our own.
    """
    if within is None and (anywhere or _is_own(path)):
        # Without waiting for somebody to write to a pipe; of a file it makes no difference.
        descriptor = os.open(path, os.O_RDONLY | (0 if _is_own(path) else getattr(os, "O_NONBLOCK", 0)))
    else:
        descriptor = open_named(path, within)
    try:
        status = os.fstat(descriptor)
        check_status(path, status)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        return InputFile(FileIO(descriptor, closefd=True), path)
    except BaseException:
        os.close(descriptor)
        raise


def read_file(path: Path, *, anywhere: bool = False) -> bytes:
    """All of a file. Raises what `open_file` does, and UsageError where it is larger than `MOST_DOCUMENT`."""
    with open_file(path, anywhere=anywhere) as file:
        data = file.read(MOST_DOCUMENT + 1)
    if len(data) > MOST_DOCUMENT:
        raise too_large(path)
    return data


def read_json(path: Path, *, remedy: str) -> Any:
    """What a file of JSON holds. Raises UsageError where it cannot be read, or holds something else."""
    try:
        return load_json(read_file(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", remedy=remedy) from error
    except ValueError as error:
        raise UsageError(f"{path} is not valid JSON: {error}", remedy=remedy) from error


def too_large(path: Path) -> UsageError:
    """For what is more than can be read as a whole, or comes out of a pipe without an end."""
    return UsageError(
        f"{path} contains more than {MOST_DOCUMENT // 2**30} GiB", remedy="Split it, or pass another file."
    )


def check_file(path: Path) -> None:
    """Raises UsageError where a device, a socket or a named pipe is where a file or a folder is meant.

    What is not there, or cannot be looked at, is told apart by whoever opens it.
    """
    try:
        status = path.stat()
    except (OSError, ValueError):
        return
    if not stat.S_ISDIR(status.st_mode):
        check_status(path, status)


def is_own_pipe(path: Path) -> bool:
    """Whether a shell has opened a pipe, or a terminal, under this name for this process."""
    return _is_own(path) and path.exists() and not path.is_file()


def _is_own(path: Path) -> bool:
    return os.path.abspath(path).startswith(_OWN)  # noqa: PTH100  links stay links


def check_status(path: Path, status: os.stat_result) -> None:
    """Raises UsageError where what was found at `path` is a device, a socket or a named pipe."""
    mode = status.st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return
    own = _is_own(path)
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        if own:
            return
        what = "a named pipe" if stat.S_ISFIFO(mode) else "a socket"
    else:
        what = "a device"
        if (own and _is_terminal(path)) or _is_null(status):
            return
    raise UsageError(f"{path} is {what}, not a file", remedy="Pass a file.")


def _is_terminal(path: Path) -> bool:
    try:
        with path.open("rb", buffering=0) as device:
            return device.isatty()
    except OSError:
        return False


def _is_null(status: os.stat_result) -> bool:
    """The null device is as good as an empty file."""
    try:
        return status.st_rdev == os.stat(os.devnull).st_rdev  # noqa: PTH116
    except OSError:
        return False


# Of whole numbers with fewer digits none has more than 64 bits.
_LONG_NUMBER = re.compile(rb"\d{19}")


def dump_json(value: object, *, indent: bool = False) -> bytes:
    """Any JSON, on one line or with `indent`; figures that are no numbers become null.

    What files of other tools have under keys of their own is written as it was read, also whole numbers of
    more than 64 bits, which `orjson` refuses. Raises TypeError for a value that JSON does not have.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 if indent else None)
    except TypeError:
        with contextlib.suppress(ValueError):
            return to_json(value, indent=2 if indent else None, inf_nan_mode="null")
        raise


def load_json(data: bytes) -> Any:
    """What stands in JSON, whole numbers of any size as they are. Raises ValueError.

    For what is written again: `orjson` makes a float of a number of more than 64 bits.
    """
    content = orjson.loads(data)
    return from_json(data, allow_inf_nan=False) if _LONG_NUMBER.search(data) else content
