"""The records of a run under review: where each lies, and what the queue knows of its findings."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from uncanny.errors import RecordError, UsageError
from uncanny.eval.common.anomalies.doubt import doubts
from uncanny.files import open_file
from uncanny.records.jsonl import parse_line
from uncanny.schema import Annotation

# Of a finding that somebody has added: nobody else has seen it yet.
ADDED: Final = 1.0
# Doubt, kind, agents and confidence of a finding.
Known = tuple[float, str | None, tuple[str, ...], float | None]


@dataclass(slots=True)
class ImageRecord:
    """Where the record of an image lies in the run's file, and what the queue and the log have of it."""

    name: str
    key: str
    sha256: str | None
    offset: int
    length: int
    # Where its reviews are in the log, and its findings in the queue.
    lines: list[tuple[int, int]]
    rows: list[int]


def read_records(path: Path) -> Iterable[tuple[ImageRecord, list[Known]]]:
    """What the queue knows of the last record of each image, in the order of the file.

    One that is still being written is left out.
    """
    records: dict[str, tuple[ImageRecord, list[Known]]] = {}
    offset = 0
    with open_file(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    record = parse_line(line, Annotation, path, number)
                except RecordError:
                    if line.endswith(b"\n"):
                        raise
                    break
                key = image_key(record.image)
                image = ImageRecord(record.image, key, record.sha256, offset, len(line), [], [])
                known = zip(record.anomalies, doubts(record), strict=True)
                records[record.image] = (
                    image,
                    [(doubt.value, each.kind, each.found_by or (), each.confidence) for each, doubt in known],
                )
            offset += len(line)
    return records.values()


def image_key(name: str) -> str:
    """What pages call an image by: they never name a file."""
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def state_of(file: Path) -> tuple[int, int]:
    """Which file it is, and how long. Raises UsageError where it is gone."""
    try:
        status = file.stat()
    except OSError as error:
        raise UsageError(
            f"{file} cannot be read: {error.strerror}", remedy="Put the run back where it was."
        ) from error
    return status.st_ino, status.st_size


@contextmanager
def no_collection() -> Iterator[None]:
    """No looking for garbage: what is read here stays, and to look through it takes a third of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
