"""The records of a job's run, for its page: the latest first, found again by a key, read by their place.

A run appends a line as soon as an input is done, and puts its file in order in the end. `RecordIndex` follows
both; pages name a record by a key that stays, and say which file their numbers count in (`of`).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import Any, Final

from uncanny.service.jobs.folder import open_no_link
from uncanny.service.jobs.kinds import KINDS
from uncanny.service.jobs.records import as_record, whole_lines
from uncanny.service.web.cards import (
    ANSWERED,
    Card,
    Failure,
    advice_on,
    card_of,
    failure_of,
    picture_key,
    status_of,
)

CARDS: Final = 60
_KEPT_INDEXES: Final = 32


@dataclass(frozen=True, slots=True)
class Cards:
    """Some records, the latest first. `first` and `next` are the numbers at their ends, in the file `of`."""

    items: Sequence[Card] = ()
    first: int = 0
    next: int = 0
    of: str = ""

    @property
    def more(self) -> bool:
        """Whether there are earlier ones."""
        return self.first > 0


@dataclass(frozen=True, slots=True)
class Failures:
    """The first failures of a run, how many more there are, and what to do about such ones."""

    items: Sequence[Failure] = ()
    more: int = 0
    advice: str = ""


@dataclass(slots=True)
class RecordIndex:
    """Where the records of one file are, kept up as the file grows. May be used by several threads."""

    file: Path
    _lock: RLock = field(default_factory=RLock)
    _inode: int = 0
    _end: int = 0
    _places: list[tuple[int, int]] = field(default_factory=list)
    _by_key: dict[str, int] = field(default_factory=dict)
    _failed: list[int] = field(default_factory=list)

    def latest(self, before: int | None = None) -> Cards:
        """The latest `CARDS`, or those before number `before`."""
        with self._lock:
            self._catch_up()
            end = len(self._places) if before is None else max(0, min(before, len(self._places)))
            return self._cards(max(0, end - CARDS), end)

    def after(self, number: int, of: str) -> Cards | None:
        """What has come since `number`, at most the latest `CARDS`; None where it is another file now."""
        with self._lock:
            self._catch_up()
            if of != str(self._inode) or number > len(self._places):
                return None
            end = len(self._places)
            return self._cards(max(number, end - CARDS), end)

    def failures(self, most: int = 20) -> Failures:
        """Of records that failed, or did in part, the first `most`."""
        with self._lock:
            self._catch_up()
            shown = [failure_of(record) for record in map(self._record, self._failed[:most]) if record]
            more = len(self._failed) - len(self._failed[:most])
        if not shown:
            return Failures()
        return Failures(shown, more, advice_on({each.kind for each in shown}))

    def by_key(self, key: str) -> dict[str, Any] | None:
        """The record whose card has `key` as its picture."""
        with self._lock:
            self._catch_up()
            number = self._by_key.get(key)
            return None if number is None else self._record(number)

    def _cards(self, first: int, end: int) -> Cards:
        records = map(self._record, range(end - 1, first - 1, -1))
        return Cards([card_of(record) for record in records if record], first, end, str(self._inode))

    def _record(self, number: int) -> dict[str, Any] | None:
        offset, length = self._places[number]
        try:
            with open(self.file, "rb", opener=open_no_link) as file:
                return as_record(os.pread(file.fileno(), length, offset))
        except OSError:
            return None

    def _catch_up(self) -> None:
        try:
            file = open(self.file, "rb", opener=open_no_link)  # noqa: SIM115
        except OSError:
            return
        with file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self._end:
                self._inode, self._end = status.st_ino, 0
                self._places, self._by_key, self._failed = [], {}, []
            file.seek(self._end)
            for line, length in whole_lines(file):
                record = as_record(line)
                if record is not None:
                    self._add(record, length)
                self._end += length

    def _add(self, record: dict[str, Any], length: int) -> None:
        number = len(self._places)
        self._places.append((self._end, length))
        image = record.get("image")
        if isinstance(image, str):
            self._by_key[picture_key(image)] = number
        if status_of(record) not in ANSWERED:
            self._failed.append(number)


def record_index(file: Path | None, kind: str) -> RecordIndex | None:
    """The index of a job's records; None where jobs of this kind have none to show."""
    return _index(file) if file is not None and KINDS[kind].unit else None


@lru_cache(_KEPT_INDEXES)
def _index(file: Path) -> RecordIndex:
    return RecordIndex(file)
