"""The records of a job's run, for its page: each in a few words, the latest first, found again by a key.

A run appends a line as soon as an input is done, and puts its file in order in the end. `RecordIndex` follows
both; pages name a record by a key that stays, and say which file their numbers count in (`of`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, Final

from uncanny.service import is_id
from uncanny.service.jobs.folder import open_no_link
from uncanny.service.jobs.records import as_record, whole_lines

# What a page says of a text that a model or a file gave.
_LONGEST: Final = 300
# An answer that declines, or that nothing can be read from, is one all the same: nothing asks for it again.
ANSWERED: Final = ("ok", "refused", "undetermined")


@dataclass(frozen=True, slots=True)
class Card:
    """A record as a page shows it: what it is about, its worst finding in a line, and how many more it has.

    `severity` runs from 0 to 100, realistic; None where the record has none. `picture` is the key of its
    image, None where it has no image, or none whose bytes are known.
    """

    name: str
    status: str
    headline: str
    severity: int | None
    others: int
    picture: str | None


@dataclass(frozen=True, slots=True)
class Failure:
    name: str
    kind: str
    message: str


def image_name(image: str) -> str:
    """An image as people call it: uploads by the name they came with, others from their folder's name on."""
    steps = [step for step in image.split("/") if step not in ("..", ".", "")]
    if image.startswith("../") and len(steps) > 2 and steps[0] == "images" and is_id(steps[1], "set"):
        return "/".join(steps[2:])
    return "/".join(steps[-2:]) if image.startswith("../") else image


def picture_key(image: str) -> str:
    return sha256(image.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def status_of(record: Mapping[str, Any]) -> str:
    """`ok`, or what its record says of an input that failed, in whole or in part."""
    status = record.get("status")
    if isinstance(status, str):
        return status
    if record.get("outcome") in ANSWERED:
        return str(record["outcome"])
    return "failed" if record.get("error") or record.get("errors") else "ok"


def card_of(record: Mapping[str, Any]) -> Card:
    status = status_of(record)
    image = record.get("image")
    headline, severity, others = _headline(record, status)
    readable = isinstance(image, str) and isinstance(record.get("sha256"), str)
    return Card(
        _name(record),
        status,
        _short(headline),
        severity,
        others,
        picture_key(str(image)) if readable else None,
    )


def _name(record: Mapping[str, Any]) -> str:
    image = record.get("image")
    if isinstance(image, str):
        return image_name(image)
    return " ".join(_short(record[name]) for name in ("id", "question") if record.get(name))


def _headline(record: Mapping[str, Any], status: str) -> tuple[str, int | None, int]:
    """What the card says, with the severity of the worst finding, and how many findings there are besides."""
    findings = [each for each in _list(record, "anomalies") if isinstance(each.get("severity"), int)]
    if findings:
        worst = min(findings, key=lambda each: int(each["severity"]))
        severity = max(0, min(100, worst["severity"])) if worst.get("severity_rated", True) else None
        return str(worst.get("name", "")), severity, len(findings) - 1
    if status in ("failed", "unreadable"):
        return failure_of(record).message, None, 0
    # An annotation has regions, too: the parts that were looked at again.
    if regions := [each for each in _list(record, "regions") if "category" in each]:
        return str(regions[0]["category"] or "region").replace("_", " "), None, len(regions) - 1
    for key in ("label", "raw", "source"):
        if isinstance(record.get(key), str):
            return str(record[key]).replace("_", " "), None, 0
    return ("in part only" if status == "partial" else "nothing found"), None, 0


def failure_of(record: Mapping[str, Any]) -> Failure:
    errors = _list(record, "errors")
    error = errors[0] if errors else record.get("error")
    if isinstance(error, dict):
        kind, message = str(error.get("kind", "")), str(error.get("message", ""))
    else:
        kind, message = "", str(error or "It could not be done.")
    return Failure(_name(record), kind, _short(message))


def advice_on(kinds: set[str]) -> str:
    words = " ".join(kinds)
    if "authentication" in words or "permission" in words:
        return "The provider refused the key. Have the service's operator set it, then ask again."
    if "unreadable" in words or "image" in words:
        return (
            "A picture that cannot be read stays as it is: mend or leave out the file, and start a new job."
        )
    return "What failed is recorded and costs nothing further. “Ask failed again” asks for these only."


def _list(record: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = record.get(key)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


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


# By file, the latest ones.
record_index = lru_cache(_KEPT_INDEXES)(RecordIndex)
