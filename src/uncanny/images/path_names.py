"""Paths as text: for records, where no two may be alike, and for messages."""

from __future__ import annotations

import os
import re
from pathlib import Path

_LONGEST_SHOWN = 200
_LIKE_A_BYTE = re.compile(r"\\(?=x[0-9a-f]{2})")


def display_path(path: Path) -> str:
    """The path as posix text that can always be encoded, another one for every path.

    Bytes that are not UTF-8 appear as `\\xff`, these four characters themselves as `\\x5cxff`.
    """
    text = path.as_posix()
    if "\\x" in text:
        text = _LIKE_A_BYTE.sub(r"\\x5c", text)
    return os.fsencode(text).decode("utf-8", "backslashreplace")


def short_path(path: Path) -> str:
    """`display_path` for a message: on one line, and its middle left out where it is very long."""
    shown = "".join(char if char.isprintable() else repr(char)[1:-1] for char in display_path(path))
    if len(shown) <= _LONGEST_SHOWN:
        return shown
    half = _LONGEST_SHOWN // 2
    return f"{shown[:half]}…{shown[-half:]}"
