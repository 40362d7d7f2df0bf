"""File names fit for records and messages."""

from __future__ import annotations

import os
from pathlib import Path

_LONGEST_SHOWN = 200


def display_path(path: Path) -> str:
    """The path as posix text that can always be encoded; bytes that are not UTF-8 appear as `\\xff`."""
    return os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")


def short_path(path: Path) -> str:
    """`display_path` for a message: on one line, and its middle left out where it is very long."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in display_path(path))
    if len(shown) <= _LONGEST_SHOWN:
        return shown
    half = _LONGEST_SHOWN // 2
    return f"{shown[:half]}…{shown[-half:]}"
