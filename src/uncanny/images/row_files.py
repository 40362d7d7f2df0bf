"""Pictures in the rows of Parquet and Arrow files, by paths as if each file were a folder.

`data/train.parquet/cat.png` is the picture of a row of `data/train.parquet`. Whoever opens image files opens
such paths, too, so that runs, pages and reviews know nothing of tables. A row is called as its picture's own
`path` says, where no other row of the file is called so, else by its number from 0, `000017`. Where a file
has several columns of pictures, the column comes first: `pairs.parquet/edited/000017`. The files are read
in `row_readers`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, overload

import orjson

from uncanny.errors import ImageError, UsageError
from uncanny.files import read_file
from uncanny.files.beneath import OutsideError
from uncanny.images.row_readers import RowFile, Stored, opened
from uncanny.wording import option, short_path

_TABLE = re.compile(r"[^/]\.(?:parquet|arrow)(?=/)", re.IGNORECASE)
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
ROW_SUFFIXES = frozenset({".parquet", ".arrow"})


class Row(NamedTuple):
    """The row of a path: the file, and what follows in the path."""

    file: Path
    name: str


class Beside(NamedTuple):
    """A file that a row names, to be opened only where it still lies in the `folder`, the table's, if any."""

    file: Path
    folder: Path | None


class Remote(NamedTuple):
    """An address that a row names."""

    url: str


def row_of(path: Path) -> Row | None:
    """The row that a path leads to, None where it leads to none. The row need not exist."""
    text = os.fspath(path)
    for match in reversed([*_TABLE.finditer(text)]):
        if os.path.isfile(text[: match.end()]):  # noqa: PTH113  a million times, when a run resumes
            return Row(Path(text[: match.end()]), text[match.end() + 1 :])
    return None


def has_pictures(file: Path, column: str | None = None) -> bool:
    """Whether a file has pictures, in itself or where the texts of `column` say.

    Raises UsageError where it cannot be read.
    """
    with opened(file) as rows:
        return bool(rows.columns) or column in rows.texts


@dataclass(frozen=True)
class RowPaths(Sequence[Path]):
    """The paths of rows, by what the rows are called; each is made when it is asked for."""

    file: Path
    names: Sequence[str]

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, row: int) -> Path: ...
    @overload
    def __getitem__(self, row: slice) -> RowPaths: ...
    def __getitem__(self, row: int | slice) -> Path | RowPaths:
        return RowPaths(self.file, self.names[row]) if isinstance(row, slice) else self.file / self.names[row]


def row_paths(file: Path, column: str | None = None) -> RowPaths:
    """A path for each picture of a file, in order of its rows; the column has to be named among several.

    Raises UsageError for a file that cannot be read, and where no column, or not that one, has pictures.
    """
    with opened(file) as rows:
        return RowPaths(file, rows.names_of(_chosen(rows, column)))


def column_paths(file: Path) -> Mapping[str, Sequence[str]]:
    """By column of pictures the names of the rows, as they follow on the file's path. Raises UsageError."""
    with opened(file) as rows:
        return {column: rows.names_of(column) for column in rows.columns}


def read_row(row: Row, within: Sequence[Path] | None = None) -> bytes | Beside | Remote:
    """The picture of a row, or where the row says that it is; the table lies `within` folders.

    Raises ImageError for whatever keeps it from being read, but OutsideError for a table that lies elsewhere:
    that is said as of any file, so that nobody learns whether there is one.
    """
    try:
        with opened(row.file, within) as rows:
            place = rows.place(row.name)
            if place is None:
                message = f"{short_path(row.file)} has no row {row.name!r}"
                raise ImageError(message, kind="missing", remedy="Was the file made anew?")
            column, number = place
            stored, named = rows.stored(column, number), column in rows.texts
    except UsageError as error:
        if isinstance(error.__cause__, OutsideError):
            raise error.__cause__ from None
        raise ImageError(error.message, kind="damaged", remedy=error.remedy) from error
    where = f"row {number} of {short_path(row.file)}, column {column!r}"
    return _named(stored.path, row.file, where) if named else _content(stored, row.file, where)


def check_no_table(path: Path) -> None:
    """Raises ImageError for a table as a whole, which is no picture; a damaged one says what is wrong."""
    if path.suffix.lower() not in ROW_SUFFIXES:
        return
    try:
        with opened(path):
            pass
    except UsageError as error:
        raise ImageError(error.message, kind="damaged", remedy=error.remedy) from error
    raise ImageError(
        "this is a table, not a picture",
        kind="not_an_image",
        remedy="Pass a row of it: table.parquet/000017.",
    )


def row_place(row: Row) -> tuple[str, int] | None:
    """Column and number, from 0, of a row; None where there is none. Raises UsageError."""
    with opened(row.file) as rows:
        return rows.place(row.name)


def saved_files(folder: Path) -> list[Path] | None:
    """The files of a data set that `save_to_disk` wrote into a folder; None where it is no such folder.

    What else lies there are caches, so a `state.json` that cannot be read leaves no choice: UsageError. One
    of another program, which names no files, is none.
    """
    state = folder / "state.json"
    if not state.is_file():
        return None
    try:
        content = orjson.loads(read_file(state))
        if isinstance(content, dict) and "_data_files" not in content:
            return None
        names = [str(each["filename"]) for each in content["_data_files"]]
        if any("\0" in name for name in names):
            raise ValueError("no file is called so")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"{short_path(state)} does not say which files the data set has",
            remedy="Save it again with `save_to_disk`.",
        ) from error
    return [folder / Path(name).name for name in names]  # beside it, whatever path it names


def _chosen(rows: RowFile, column: str | None) -> str:
    there = ", ".join(map(repr, rows.schema.names)) or "none"
    pictures = (
        "Pictures are columns of bytes, or of structures with `bytes` and `path` as `datasets` writes them."
    )
    if column is not None:
        if column in (*rows.columns, *rows.texts):
            return column
        what = "contains no pictures" if column in rows.others else "is not there"
        raise UsageError(
            f"{short_path(rows.file)}: the column {column!r} {what}; the columns are {there}",
            remedy=f"Pass {' or '.join(map(repr, rows.columns))}." if rows.columns else pictures,
        )
    if not rows.columns:
        by_name = f" Name a column of paths or URLs with {option('image_column')}." if rows.texts else ""
        raise UsageError(
            f"{short_path(rows.file)} has no column of pictures; the columns are {there}",
            remedy=pictures + by_name,
        )
    choice = rows.marked or rows.columns
    if len(choice) > 1:
        raise UsageError(
            f"{short_path(rows.file)} has several columns of pictures: {', '.join(map(repr, choice))}",
            remedy=f"Pass one with {option('image_column', choice[0])}.",
        )
    return str(choice[0])


def _named(text: str | None, file: Path, where: str) -> Beside | Remote:
    """What the user has named a column of: paths, from the table's folder, and URLs."""
    if not text:
        raise ImageError(f"{where}, is empty", kind="missing", remedy="Remove the row.")
    if _URL.match(text):
        return Remote(text)
    beside = file.parent / text
    if "\0" in text or row_of(beside) is not None:
        raise ImageError(f"{where}, is not the path of a file", kind="missing")
    return Beside(beside, None)


def _content(stored: Stored, file: Path, where: str) -> bytes | Beside:
    if stored.data:
        return stored.data
    if stored.data is not None:
        raise ImageError(f"{where}, is empty", kind="empty", remedy="Was the download cut off?")
    if not stored.path:
        raise ImageError(f"{where}, contains no picture (null)", kind="missing", remedy="Remove the row.")
    folder = file.parent.resolve()
    beside = (folder / stored.path).resolve()
    if not beside.is_relative_to(folder) or row_of(beside) is not None:
        raise ImageError(
            f"{where}, contains no bytes, and its path leads to no file in the table's folder",
            kind="missing",
            remedy="Save the data set with `save_to_disk`, which takes the pictures into it.",
        )
    return Beside(beside, folder)
