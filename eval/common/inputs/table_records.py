"""Records in Parquet files and in data sets of Hugging Face: keys of JSON Lines are columns, a line is a row.

A column of pictures becomes the paths of its rows, as `images.row_files` has them, so that whatever takes a
path of an image takes the picture. Their bytes are not read here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from datetime import timedelta
from decimal import Decimal
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import orjson

from uncanny.errors import UsageError
from uncanny.files import load_json, open_file, read_file
from uncanny.images.row_cells import class_names
from uncanny.images.row_files import ROW_SUFFIXES, saved_files
from uncanny.images.row_readers import RowFile, opened
from uncanny.records.annotation_table import is_annotation_table, lines_of

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_ROWS_AT_ONCE = 1_000
_BUFFER = 2**16
_SPLITS = "dataset_dict.json"


def record_tables(path: Path) -> tuple[Path, ...]:
    """The files of a table of records, in their order: a Parquet or Arrow file, or those of a data set.

    A folder is a data set where `datasets` saved it, or where there are Parquet files, itself or in `data/`.
    Empty for everything else, and for the folder of a run, which has its records under names of their own.
    """
    if not path.is_dir():
        return (path,) if path.suffix.lower() in ROW_SUFFIXES and path.is_file() else ()
    if (path / "run.json").is_file():
        return ()
    return data_set_files(path) or tuple(sorted(path.glob("*.parquet")))


def data_set_files(folder: Path) -> tuple[Path, ...]:
    """The same of what is laid out as a data set: as `datasets` saves it, or with Parquet in `data/`.

    Raises UsageError for one that does not say which files it has, or has lost a split.
    """
    if (saved := saved_files(folder)) is not None:
        return tuple(saved)
    if not (folder / _SPLITS).is_file():
        return tuple(sorted(folder.glob("data/*.parquet")))
    try:
        names = [Path(str(name)).name for name in orjson.loads(read_file(folder / _SPLITS))["splits"]]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise UsageError(
            f"{folder / _SPLITS} does not say which splits the data set has",
            remedy="Save it again with `save_to_disk`, or pass the folder of a split.",
        ) from error
    files: list[Path] = []
    for name in names:
        if (of_split := saved_files(folder / name)) is None:
            raise UsageError(
                f"{folder} is incomplete: its split {name} is missing",
                remedy="Save the data set again, or pass the folder of a split.",
            )
        files += of_split
    return tuple(files)


def open_lines(path: Path, root: Path | None = None, *, needed: Set[str] = frozenset()) -> BinaryIO:
    """A file of records to be read line by line, a table as the JSON Lines that it stands for.

    Line N is row N, counted from 1 over all files of a data set. Paths of pictures start at `root`, else at
    the folder that `path` lies in. Cells without a value are left out, but for the `needed` columns, where
    they are null. Rows are read as lines are taken, some at a time. Opening and reading raise OSError, and
    UsageError for a table that cannot be read or holds what JSON does not have.
    """
    if not record_tables(path):
        return open_file(path)
    return BufferedReader(_RowLines(_json_lines(path, root, needed)), _BUFFER)


class _RowLines(RawIOBase):
    """Lines as a file, each made when it is read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines, self._rest = lines, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if not self._rest:
            self._rest = memoryview(next(self._lines, b""))
        target = memoryview(buffer).cast("B")
        size = min(len(target), len(self._rest))
        target[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _json_lines(path: Path, root: Path | None, needed: Set[str]) -> Iterator[bytes]:
    for number, row in enumerate(_rows(path, root, needed), 1):
        try:
            yield orjson.dumps(row, default=_as_json, option=orjson.OPT_APPEND_NEWLINE)
        except orjson.JSONEncodeError as error:
            raise UsageError(
                f"row {number} of {path}, column {_column_of(row)!r}, cannot be written as JSON: {error}",
                remedy="Leave the column out, or write it as text or numbers.",
            ) from error


def _as_json(value: object) -> float | int | str:
    """What JSON has for a value of Arrow that Python has a type of its own for."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, timedelta):
        return str(value)
    raise TypeError


def _column_of(row: Mapping[str, Any]) -> str | None:
    """The first column of a row that JSON has no form for."""
    for column, value in row.items():
        try:
            orjson.dumps(value, default=_as_json)
        except orjson.JSONEncodeError:
            return column
    return None


def _rows(path: Path, root: Path | None, needed: Set[str]) -> Iterator[dict[str, Any]]:
    base = path.parent if root is None else root
    for table in record_tables(path):
        with opened(table) as rows:
            if is_annotation_table(rows.schema):
                batches = rows.batches(rows.others, _ROWS_AT_ONCE)
                cells = (row for batch in batches for row in batch.to_pylist())
                yield from map(load_json, lines_of(cells, table))
                continue
            where = Path(os.path.relpath(table, base)).as_posix()
            pictures = {column: rows.names_of(column) for column in rows.columns}
            for number, row in enumerate(_cells(rows)):
                for column, names in pictures.items():
                    row[column] = f"{where}/{names[number]}"
                yield {
                    key: _without_nulls(value)
                    for key, value in row.items()
                    if key in needed or not _is_missing(value)
                }


def _cells(rows: RowFile) -> Iterator[dict[str, Any]]:
    if not rows.others:
        yield from ({} for _ in range(rows.length))
        return
    words = class_names(rows.schema)
    for batch in rows.batches(rows.others, _ROWS_AT_ONCE):
        for row in batch.to_pylist():
            for column, names in words.items():
                if isinstance(row[column], int) and 0 <= row[column] < len(names):
                    row[column] = names[row[column]]
            yield row


def _without_nulls(value: Any) -> Any:
    """Structures have all keys in every row: one without a value is one that is not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if not _is_missing(each)}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _is_missing(value: object) -> bool:
    """None, and NaN, which data frames write where there is nothing."""
    return value is None or value != value
