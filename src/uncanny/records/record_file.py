"""A JSON Lines file with one record a key, appended to while a run goes on.

`calls.jsonl`: one line for every call, in blocks of one image."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import FileIO
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel

from uncanny.errors import RecordError, RunMismatchError, StorageError
from uncanny.records.jsonl import (
    append_whole,
    is_deleted,
    is_json,
    open_to_append,
    open_to_read,
    parse_line,
    write_atomically,
)
from uncanny.records.record_index import Entry, RecordIndex
from uncanny.wording import another_run

T = TypeVar("T", bound=BaseModel)


class _Place(NamedTuple):
    offset: int
    length: int


class RecordFile(Generic[T]):
    """Append-only while open; `finish` puts it in order of keys.

    `load` changes nothing on disk. An incomplete last line, left by a process that was killed while writing,
    is passed over by `load` and dropped by `open`. Broken lines, as two processes leave them that write at
    once, are passed over, too, where there are whole records beside them; `open` moves them to the file
    `set_aside_in`. Of several records with one key the last stands. Memory grows by an index entry a record,
    not by the records.

    `made_with` are fields that every record must have with this value, where it has them at all. Where
    there is an `about`, an index has what it says of each record, as JSON.
    """

    def __init__(
        self,
        path: Path,
        model: type[T],
        key: Callable[[T], str],
        about: Callable[[T], list[Any]] | None = None,
    ) -> None:
        self.path, self._model, self._key = path, model, key
        self._about, self._index = about, RecordIndex(path)
        self.made_with: Mapping[str, str] = {}
        self._places: dict[str, _Place] = {}
        self._in_order = True
        self._file: FileIO | None = None
        self._end = 0
        self._last_line_ends = True
        self._broken: list[_Place] = []

    @property
    def broken(self) -> int:
        """Lines that `load` passed over because they are no JSON."""
        return len(self._broken)

    @property
    def set_aside_in(self) -> Path:
        """Where `open` moves them."""
        return broken_lines_of(self.path)

    def load(self, known: Callable[[str, list[Any]], bool] | None = None) -> Iterator[T]:
        """Read what is there; to be consumed whole before anything is appended.

        Records that are `known` by their keys and what the index says about them are not read.

        Raises RecordError for a line that does not validate, unless it is an incomplete last one, and for a
        broken one where no other is a record, RunMismatchError for one that is not `made_with` the same,
        UsageError where the file cannot be read.
        """
        last = ""
        first_error: RecordError | None = None
        reader = open_to_read(self.path)
        if reader is None:
            return
        with reader:
            if known is not None and self._about is not None:
                for entry in self._index.read(self.made_with):
                    self._end += entry.length
                    self._in_order = self._in_order and last < entry.key
                    self._places[entry.key] = _Place(entry.offset, entry.length)
                    last = entry.key
                    if not known(entry.key, entry.about):
                        reader.seek(entry.offset)
                        record = parse_line(reader.readline(), self._model, self.path, len(self._places))
                        self._check_made_with(record, len(self._places))
                        yield record
                reader.seek(self._end)
            for number, line in enumerate(reader, start=1 + len(self._places)):
                whole = line.endswith(b"\n")
                if line.strip():
                    place = _Place(self._end, len(line))
                    try:
                        record = parse_line(line, self._model, self.path, number)
                    except RecordError as error:
                        if not whole and line.startswith(b"{"):
                            break
                        if is_json(line):
                            raise
                        self._broken.append(place)
                        first_error = first_error or error
                    else:
                        self._check_made_with(record, number)
                        key = self._key(record)
                        self._in_order = self._in_order and last < key
                        self._place(key, place, record)
                        last = key
                        yield record
                self._end += len(line)
                self._last_line_ends = whole
        if first_error is not None and not self._places:
            raise first_error  # another file than ours

    def open(self) -> None:
        """Make ready to append, after `load`.

        Raises UsageError where the file cannot be written, StorageError where its broken lines cannot be
        moved.
        """
        self._opened()
        if self._broken:
            self._set_broken_aside()
        if self._about is not None:
            self._index.open(self.made_with)

    def _set_broken_aside(self) -> None:
        keep_broken(self.path, [self._line(place) for place in self._broken])
        places: dict[str, _Place] = {}
        end = 0

        def kept() -> Iterator[bytes]:
            nonlocal end
            for key, place in sorted(self._places.items(), key=lambda each: each[1].offset):
                line = self._line(place)
                places[key] = _Place(end, len(line))
                end += len(line)
                yield line

        try:
            write_atomically(self.path, kept())
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror}",
                remedy="Free some disk space and run the same again.",
            ) from error
        self.close()
        self._index.lose()
        self._about = None  # until the next session reads them all
        self._file = open_to_append(self.path)
        self._places, self._end = places, end

    def append(self, record: T) -> None:
        """One write call: a kill leaves a whole line or an incomplete last one. Raises StorageError."""
        file = self._opened()
        line = record.model_dump_json().encode() + b"\n"
        append_whole(file, line)
        self._place(self._key(record), _Place(self._end, len(line)), record)
        self._end += len(line)
        self._in_order = False

    def _place(self, key: str, place: _Place, record: T) -> None:
        self._places[key] = place
        if self._about is not None:
            self._index.note(Entry(key, place.offset, place.length, self._about(record)))

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[str]:
        """The keys, in order of their last records."""
        return iter(self._places)

    def get(self, key: str) -> T:
        """Raises KeyError."""
        return self._model.model_validate_json(self._line(self._places[key]))

    def set_aside(self, keys: Iterable[str], path: Path) -> None:
        """Move the records of `keys` to the end of the file at `path`; `finish` takes them out of this one.

        Raises UsageError where that file cannot be opened, StorageError where it cannot be written.
        """
        with open_to_append(path) as file:
            append_whole(file, b"".join(self._line(self._places[key]) for key in keys))
        for key in keys:
            del self._places[key]
        self._in_order = False

    def finish(self, *, write: bool = True) -> None:
        """One line a key, in order of keys; also puts the file back where it was deleted meanwhile.

        Without `write` the file is only closed. Raises OSError where the ordered file cannot be written; the
        records then stand as they came.
        """
        try:
            if write and (not self._in_order or is_deleted(self._opened())):
                keys = sorted(self._places)
                write_atomically(self.path, (self._line(self._places[key]) for key in keys))
                if self._about is not None:
                    self._index.rewrite(((key, self._places[key].length) for key in keys), self.made_with)
        finally:
            self.close()

    def close(self) -> None:
        self._index.close()
        if self._file is not None:
            self._file.close()

    def _opened(self) -> FileIO:
        if self._file is None:
            self._file = open_to_append(self.path)
            if os.fstat(self._file.fileno()).st_size > self._end:
                os.ftruncate(self._file.fileno(), self._end)
            if not self._last_line_ends:
                append_whole(self._file, b"\n")
                self._end += 1
        return self._file

    def _check_made_with(self, record: T, number: int) -> None:
        if getattr(record, "status", None) == "unreadable":
            return  # whoever was to be asked
        for field, value in self.made_with.items():
            own = getattr(record, field, None)
            if own is not None and own != value:
                raise RunMismatchError(
                    f"{self.path}:{number} was made with other settings ({field}: {own!r} before, "
                    f"{value!r} now)",
                    remedy=f"Give the same settings to resume it, or {another_run()}.",
                )

    def _line(self, place: _Place) -> bytes:
        line = os.pread(self._opened().fileno(), place.length, place.offset)
        return line if line.endswith(b"\n") else line + b"\n"


_BLOCK = 1 << 20


class CallFile:
    """Append-only. An image's block is written just before its record, so only the last can be an orphan."""

    def __init__(self, path: Path, recorded: Callable[[str], bool]) -> None:
        """Opens the file and drops an incomplete last line and calls of an image without a record.

        Lines among these that are no calls are moved aside. Raises UsageError, StorageError.
        """
        self.path = path
        self._file = open_to_append(path)
        self._drop_orphans(recorded)

    def append(self, block: bytes) -> None:
        """Raises StorageError."""
        append_whole(self._file, block)

    def close(self, *, write: bool = True) -> None:
        """With `write` put the file back where it was deleted meanwhile. Raises OSError where that fails."""
        try:
            if write and is_deleted(self._file):
                write_atomically(self.path, _content(self._file))
        finally:
            self._file.close()

    def _drop_orphans(self, recorded: Callable[[str], bool]) -> None:
        size = os.fstat(self._file.fileno()).st_size
        window = _BLOCK
        while True:
            start = max(0, size - window)
            tail = os.pread(self._file.fileno(), size - start, start)
            kept = self._keep(tail, recorded)
            if kept or not start:
                break
            window *= 4
        if start + kept < size:
            # No calls, nor the beginning of one that a kill cut off.
            lost = [
                line
                for line in tail[kept:].split(b"\n")
                if line.strip() and image_of(line) is None and not line.startswith(b'{"image":')
            ]
            if lost:
                keep_broken(self.path, lost)
            os.ftruncate(self._file.fileno(), start + kept)
        if kept and not tail[:kept].endswith(b"\n"):
            append_whole(self._file, b"\n")

    @staticmethod
    def _keep(lines: bytes, recorded: Callable[[str], bool]) -> int:
        """Bytes of `lines` up to the last call of an image that has a record."""
        end = len(lines)
        while end:
            start = lines.rfind(b"\n", 0, end - 1) + 1
            image = image_of(lines[start:end])
            if image is not None and recorded(image):
                break
            end = start
        return end


def image_of(line: bytes) -> str | None:
    """The image that a line of records is about; None where it says none."""
    try:
        image = orjson.loads(line)["image"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None
    return image if isinstance(image, str) else None


def broken_lines_of(path: Path) -> Path:
    """Where the broken lines of a file of records are moved."""
    return path.with_name(f"{path.stem}.broken{path.suffix}")


def keep_broken(path: Path, lines: Iterable[bytes]) -> None:
    """Add lines of the file `path` to the one for its broken lines. Raises UsageError, StorageError."""
    with open_to_append(broken_lines_of(path)) as file:
        append_whole(file, b"".join(line.removesuffix(b"\n") + b"\n" for line in lines))


def _content(file: FileIO) -> Iterator[bytes]:
    offset = 0
    while block := os.pread(file.fileno(), _BLOCK, offset):
        offset += len(block)
        yield block
