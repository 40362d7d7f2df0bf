"""Rows of a flat table, one at a time: Parquet, CSV or JSON Lines, one file or a folder of shards."""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

from uncanny.errors import UsageError

IMAGE_COLUMNS = ("image", "q3_overlay_image")
SUFFIXES = (".parquet", ".csv", ".jsonl")

_ROWS_AT_ONCE = 8
_BUFFER = 2**20  # bytes; without one, all columns of a row group would be read before the first row
_CELL_LIMIT = 2**30  # bytes in one CSV cell: a picture as text


def pyarrow(module: str) -> Any:
    """A module of pyarrow. Raises UsageError where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed",
            remedy="Run `pip install 'uncanny[parquet]'`, or use CSV.",
        ) from error


def table_files(path: Path) -> tuple[Path, ...]:
    """The table's files in order of their names. A folder holds shards, itself or in `data/`.

    Raises UsageError where there is no table.
    """
    if not path.is_dir():
        if not path.is_file():
            raise UsageError(f"{path} does not exist", remedy="Give the table's file or folder.")
        if path.suffix.lower() not in SUFFIXES:
            raise UsageError(f"{path} is no table", remedy=f"Give a file in {', '.join(SUFFIXES)}.")
        return (path,)
    for folder in (path, path / "data"):
        for suffix in SUFFIXES:
            found = sorted(entry for entry in folder.glob(f"*{suffix}") if entry.is_file())
            if found:
                return tuple(found)
    raise UsageError(
        f"{path} holds no table", remedy=f"Files in {', '.join(SUFFIXES)} are looked for, also in data/."
    )


def columns(file: Path) -> frozenset[str]:
    """The table's columns; of JSON Lines, the keys of the first row. Raises UsageError."""
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
        return parquet.ParquetFile(file, buffer_size=_BUFFER, pre_buffer=False)
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
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for row in csv.DictReader(stream, strict=True):
                yield {key: value or None for key, value in row.items() if key is not None}
    except (csv.Error, OSError, UnicodeDecodeError) as error:
        raise _unreadable(file, error) from error


def _json_rows(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.strip():
                    continue
                row = json.loads(line)
                if not isinstance(row, dict):
                    raise ValueError(f"line {number} is no object")
                yield row
    except (ValueError, RecursionError, OSError) as error:
        raise _unreadable(file, error) from error


def missing_columns(found: Collection[str]) -> Sequence[str]:
    """What a flat table needs and this one lacks."""
    needed = ["row_id", "image_role", *(f"q{number}_answer" for number in range(1, 5))]
    missing = [column for column in needed if column not in found]
    missing += [f"{q}_options" for q in ("q2", "q4") if not {f"{q}_options", f"{q}_option_a"} & set(found)]
    if not {"image", "image_path"} & set(found):
        missing.append("image")
    return missing


def _unreadable(file: Path, error: Exception) -> UsageError:
    return UsageError(f"{file} cannot be read as a table: {error}", remedy="Was the download cut off?")
