"""Flat tables as files: rows, one at a time, of Parquet, CSV or JSON Lines, and pictures beside a table."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Collection, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from uncanny.errors import UsageError
from uncanny.extras import pyarrow
from uncanny.files import open_file
from uncanny.files.beneath import place_of
from uncanny.images.signature import sniff

SUFFIXES = (".parquet", ".csv", ".jsonl")
_ROWS_AT_ONCE = 8
_BUFFER = 2**20  # bytes; without one, all columns of a row group would be read before the first row
_CELL_LIMIT = 2**30  # bytes in one CSV cell: a picture as text


def table_files(path: Path) -> tuple[Path, ...]:
    """The table's files in order of their names. A folder holds shards, itself or in `data/`.

    Raises UsageError where there is no table.
    """
    if not path.is_dir():
        if not path.is_file():
            raise UsageError(f"{path} does not exist", remedy="Give the table's file or folder.")
        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(
                f"{path} is not a table", remedy=f"Pass a file that ends in {', '.join(SUFFIXES)}."
            )
        return (path,)
    for folder in (path, path / "data"):
        for suffix in SUFFIXES:
            shards = sorted(entry for entry in folder.glob(f"*{suffix}") if entry.is_file())
            if shards:
                return tuple(shards)
    raise UsageError(
        f"{path} contains no table", remedy=f"Files in {', '.join(SUFFIXES)} are looked for, also in data/."
    )


def columns(file: Path) -> frozenset[str]:
    """A table's columns; of JSON Lines, the keys of the first row. Raises UsageError."""
    if file.suffix.lower() == ".parquet":
        with _parquet(file) as table:
            return frozenset(table.schema_arrow.names)
    return frozenset(key for key in next(rows(file), {}) if isinstance(key, str))


def rows(file: Path, *, without: Collection[str] = ()) -> Iterator[dict[str, Any]]:
    """All rows, one Parquet row group or one row in memory at a time; columns in `without` may be left out.

    Raises UsageError where the file cannot be read.
    """
    kind = file.suffix.lower()
    if kind == ".parquet":
        yield from _parquet_rows(file, without)
    elif kind == ".csv":
        yield from _csv_rows(file)
    else:
        yield from _json_rows(file)


def _parquet(file: Path) -> Any:
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    try:
        with open_file(file) as source:
            return parquet.ParquetFile(place_of(source), buffer_size=_BUFFER, pre_buffer=False)
    except (arrow.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error


def _parquet_rows(file: Path, without: Collection[str]) -> Iterator[dict[str, Any]]:
    arrow = pyarrow("pyarrow")
    with _parquet(file) as table:
        wanted = [name for name in table.schema_arrow.names if name not in without]
        try:
            for batch in table.iter_batches(batch_size=_ROWS_AT_ONCE, columns=wanted):
                yield from batch.to_pylist()
        except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise _unreadable(file, error) from error


def _csv_rows(file: Path) -> Iterator[dict[str, Any]]:
    csv.field_size_limit(_CELL_LIMIT)
    try:
        with TextIOWrapper(open_file(file), encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(stream, strict=True)
            head = next(reader, [])
            for row in reader:
                if len(row) not in (0, len(head)):
                    wrong = f"has {len(row)} cells, and the head of the table {len(head)}"
                    raise csv.Error(f"line {reader.line_num} {wrong}")
                if row:
                    yield {key: value or None for key, value in zip(head, row, strict=True)}
    except (csv.Error, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _json_rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with open_file(file) as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} is not an object")
                yield row
    except (ValueError, RecursionError, OSError) as error:
        raise _unreadable(file, error) from error


def _unreadable(file: Path, error: Exception) -> UsageError:
    return UsageError(f"{file} cannot be read as a table: {error}", remedy="Was the download cut off?")


class ImageFolder:
    """Writes pictures under names made from their content, and can take back what it wrote.

    The same bytes are written once. Raises UsageError where the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Path] = []
        self._known: set[str] = set()

    def put(self, data: bytes) -> str:
        """The file's name relative to the folder's parent."""
        kind = sniff(data)
        suffix = "bin" if kind is None else {"JPEG": "jpg"}.get(kind, kind.lower())
        name = f"{hashlib.sha256(data).hexdigest()[:24]}.{suffix}"
        if name not in self._known:
            self._write(self._folder / name, data)
            self._known.add(name)
        return f"{self._folder.name}/{name}"

    def _write(self, path: Path, data: bytes) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if path.exists() and path.read_bytes() == data:
                return
            self._made.append(path)
            path.write_bytes(data)
        except OSError as error:
            raise UsageError.unwritten(path, error) from error

    def take_back(self) -> None:
        """Remove what was written, and the folder where that leaves it empty."""
        for path in self._made:
            path.unlink(missing_ok=True)
        if self._folder.is_dir() and not any(self._folder.iterdir()):
            self._folder.rmdir()
