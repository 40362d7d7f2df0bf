"""A JSON Lines file with one record a key, appended to while a run goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel

from uncanny.records.jsonl import append_whole, open_to_append, parse_line, write_atomically

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class _Place:
    offset: int
    length: int


class RecordFile(Generic[T]):
    """Append-only while open; `finish` puts it in order of keys.

    Opening it drops an incomplete last line, left by a process that was killed while writing. Of several
    records with one key the last stands. Raises RecordError for any other line that does not validate.
    Memory grows by an index entry a record, not by the records.
    """

    def __init__(self, path: Path, model: type[T], key: Callable[[T], str]) -> None:
        self.path, self._model, self._key = path, model, key
        self._places: dict[str, _Place] = {}
        self._in_order = True
        self._file = open_to_append(path)
        self._end = 0

    def load(self) -> Iterator[T]:
        """Read what is there; to be consumed whole before anything is appended."""
        last = ""
        self._file.seek(0)
        reader = self.path.open("rb")
        with reader:
            for number, line in enumerate(reader, start=1):
                if not line.endswith(b"\n"):
                    break
                if line.strip():
                    record = parse_line(line, self._model, self.path, number)
                    key = self._key(record)
                    self._in_order = self._in_order and last < key
                    self._places[key] = _Place(self._end, len(line))
                    last = key
                    yield record
                self._end += len(line)
        if os.fstat(self._file.fileno()).st_size > self._end:
            os.ftruncate(self._file.fileno(), self._end)

    def append(self, record: T) -> None:
        """One write call, so that a kill leaves a whole line or an incomplete last one. Raises UsageError."""
        line = record.model_dump_json().encode() + b"\n"
        append_whole(self._file, line)
        self._places[self._key(record)] = _Place(self._end, len(line))
        self._end += len(line)
        self._in_order = False

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def get(self, key: str) -> T:
        """Raises KeyError."""
        return self._model.model_validate_json(self._line(self._places[key]))

    def finish(self) -> None:
        """One line a key, in order of keys."""
        if not self._in_order:
            lines = (self._line(self._places[key]) for key in sorted(self._places))
            write_atomically(self.path, lines)
        self.close()

    def close(self) -> None:
        self._file.close()

    def _line(self, place: _Place) -> bytes:
        return os.pread(self._file.fileno(), place.length, place.offset)
