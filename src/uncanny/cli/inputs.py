"""Inputs that can be read only once: pipes, as `<(command)` and `/dev/stdin` are."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from uncanny.errors import UsageError


def at_rest(path: Path) -> Path:
    """`path`, or where it is a pipe a copy of what comes out of it, kept while this process runs.

    To be used for files that are looked at more than once: a second look into a pipe finds nothing, or the
    rest. Raises UsageError where it cannot be read.
    """
    if not path.exists() or path.is_file() or path.is_dir():
        return path
    folder = Path(tempfile.mkdtemp(prefix="uncanny-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    copy = folder / path.name
    try:
        with path.open("rb") as pipe, copy.open("wb") as file:
            shutil.copyfileobj(pipe, file)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}", remedy="Name a file.") from None
    return copy
