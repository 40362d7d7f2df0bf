"""What the rows of a table are called."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import PureWindowsPath
from typing import overload

_LONGEST_NAME = 200
_DIGITS, _MOST_DIGITS = 6, 18
_NUMBER = re.compile(r"\d{6,}")


class RowNames(Sequence[str]):
    """What the rows of a file are called, `prefix` first; numbers take no memory."""

    def __init__(self, prefix: str, own: Sequence[str | None], length: int) -> None:
        self._prefix, self._length = prefix, length
        self._own = row_names(own, length) if any(own) else None
        self._rows = {name: row for row, name in enumerate(self._own or ())}

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self[each] for each in range(*row.indices(self._length))]
        number = range(self._length)[row]
        return self._prefix + (f"{number:06d}" if self._own is None else self._own[number])

    def row_of(self, name: str) -> int | None:
        """The number of the row of that name, from 0; None where there is none."""
        bare = name.removeprefix(self._prefix)
        if self._own is not None:
            return self._rows.get(bare)
        # A million times, when a run resumes.
        padded = len(bare) == _DIGITS or (len(bare) > _DIGITS and bare[0] != "0")
        if not (padded and bare.isascii() and bare.isdigit() and len(bare) <= _MOST_DIGITS):
            return None
        row = int(bare)
        return row if row < self._length else None


def row_names(own: Sequence[str | None], length: int) -> list[str]:
    """A name for each row: its picture's own where that is fit for one and no other row's, else its number.

    >>> row_names(["a/cat.png", "dog.png", "dog.png", None], 4)
    ['a/cat.png', '000001', '000002', '000003']
    """
    fit = [_fit(each) for each in own] or [None] * length
    times = Counter(fit)
    return [name if name is not None and times[name] == 1 else f"{row:06d}" for row, name in enumerate(fit)]


def _fit(own: str | None) -> str | None:
    """A path as part of a longer one; of an absolute one, which names somebody's machine, the end."""
    if not own:
        return None
    if own.startswith("/") or PureWindowsPath(own).drive:
        own = PureWindowsPath(own).name
    fit = (
        0 < len(own.encode("utf-8", "replace")) <= _LONGEST_NAME
        and own.isprintable()
        and "\\" not in own
        and not _NUMBER.fullmatch(own)
        and all(part not in ("", ".", "..") for part in own.split("/"))
    )
    return str(own) if fit else None
