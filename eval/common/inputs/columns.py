"""Flat tables read as columns, a hundred thousand rows in a second: JSON Lines, CSV, Parquet, data frames.

What a row does not have is None. What is wrong with a cell is said with file, line, item and field.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from uncanny.errors import Problem, UsageError
from uncanny.eval.common.inputs.image_files import read_bytes
from uncanny.eval.common.inputs.problems import first_line
from uncanny.eval.metrics.intervals import Floats
from uncanny.extras import pyarrow
from uncanny.files import load_json, open_file
from uncanny.files.beneath import place_of
from uncanny.images.row_files import column_paths
from uncanny.wording import shown

_KINDS = "a CSV, Parquet or JSON Lines file, a data frame, or a sequence of mappings"


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table, all of one length.

    `place` is what the table is called in messages, `root` where paths in it start. `lines` are those of the
    file, counted from 1, None where rows have none. `texts` says that all cells are text, as in CSV.
    `problems` are lines that are no rows; checks of columns add to them.
    """

    place: str
    root: Path
    values: Mapping[str, list[Any]]
    length: int
    lines: Sequence[int] | None = None
    texts: bool = False
    problems: list[Problem] = field(default_factory=list)

    def __len__(self) -> int:
        return self.length

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def get(self, name: str) -> list[Any]:
        """The cells of a column; all None where there is none of that name."""
        return self.values.get(name) or [None] * self.length

    def line(self, row: int) -> int | None:
        return None if self.lines is None else self.lines[row]

    def problem(self, row: int, item: str | None, name: str, message: str) -> None:
        """Say that a cell is wrong. Of a table without lines, and an unnamed item, the row is named."""
        if self.lines is None and item is None:
            message = f"row {row + 1}: {message}"
        self.problems.append(Problem(item, name, message, line=self.line(row)))

    def strings(self, name: str, items: Sequence[Any]) -> list[str | None]:
        """A column of texts, None where there is none. Numbers become texts: a label may be one."""
        texts: list[str | None] = []
        for row, cell in enumerate(self.get(name)):
            known = cell is None or isinstance(cell, str | int | float)
            texts.append(str(cell) if known and cell not in (None, "") else None)
            if not known:
                self.problem(row, items[row], name, f"must be a text, not {shown(cell)}")
        return texts

    def numbers(
        self, name: str, items: Sequence[Any], *, low: float = -math.inf, high: float = math.inf
    ) -> Floats:
        """A column of numbers, NaN where there is none; what is no number, or outside `low` to `high`, is a
        problem."""
        within = "" if math.isinf(low) and math.isinf(high) else f" from {low:g} to {high:g}"
        cells = self.get(name)
        if set(map(type, cells)) <= {float}:  # most columns, which need no look at each cell
            values = np.array(cells, dtype=np.float64)
            if bool((np.isfinite(values) & (values >= low) & (values <= high)).all()):
                return values
        numbers = np.full(self.length, np.nan)
        for row, cell in enumerate(cells):
            if cell is None:
                continue
            number = _number(cell, text=self.texts)
            if number is None or not low <= number <= high:
                self.problem(row, items[row], name, f"must be a number{within}, not {shown(cell)}")
            else:
                numbers[row] = number
        return numbers

    def checked(self, name: str, items: Sequence[Any], allowed: Mapping[str, int]) -> list[int | None]:
        """A column of words as what `allowed` has for them, None where there is none."""
        codes: list[int | None] = []
        for row, cell in enumerate(self.get(name)):
            code = allowed.get(cell) if isinstance(cell, str) else None
            if cell is not None and code is None:
                self.problem(row, items[row], name, f"must be {' or '.join(allowed)}, not {shown(cell)}")
            codes.append(code)
        return codes

    def names(self, name: str) -> list[str]:
        """A column of names that every row has once: of images, or ids."""
        if self.length and name not in self:
            there = ", ".join(sorted(map(str, self.values))) or "none"
            self.problems.append(Problem(None, name, f"no row has this column; there are: {there}"))
            return [""] * self.length
        names: list[str] = []
        first: dict[str, int] = {}
        for row, cell in enumerate(self.get(name)):
            if not isinstance(cell, str) or not cell:
                wrong = "is missing" if cell is None else f"must be a text, not {shown(cell)}"
                self.problem(row, None, name, wrong)
                names.append("")
                continue
            names.append(cell)
            before = first.setdefault(cell, row)
            if before != row:
                where = f"row {before + 1}" if self.lines is None else f"line {self.lines[before]}"
                self.problem(row, cell, name, f"was there before, at {where}; keep one of them")
        return names


def _number(cell: object, *, text: bool) -> float | None:
    if isinstance(cell, bool) or not isinstance(cell, int | float | str) or (isinstance(cell, str) != text):
        return None
    try:
        number = float(cell)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def read_columns(source: object, what: str, *, root: Path | None = None) -> Columns:
    """The columns of a file, a data frame, or rows of a program; `what` they are says the errors.

    A file is CSV or Parquet by its suffix, else JSON Lines with an object a line. Paths start at `root`, else
    at the file's folder. Raises UsageError for what cannot be read, holds no rows, or is nothing of that.
    """
    if isinstance(source, str | PathLike):
        path = Path(source)
        base = path.parent if root is None else root
        kind = path.suffix.lower()
        if kind == ".parquet":
            columns = _of_parquet(path, base)
        elif kind == ".csv":
            columns = _of_csv(path, base)
        else:
            columns = _of_json_lines(path, base)
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        frame: Any = source
        cells = {str(name): _without_nan(frame[name].tolist()) for name in frame.columns}
        columns = Columns(what, root or Path(), cells, len(frame))
    elif isinstance(source, Iterable) and not isinstance(source, bytes | Mapping):
        columns = _of_rows(what, root or Path(), list(source), None, [])
    else:
        raise UsageError(f"{what} are {_KINDS}, not {shown(source)}")
    if not len(columns) and not columns.problems:
        raise UsageError(f"{columns.place} contains no rows", remedy="Give a file with a row an image.")
    return columns


def _of_json_lines(path: Path, root: Path) -> Columns:
    rows: list[Any] = []
    lines: list[int] = []
    problems: list[Problem] = []
    for number, line in enumerate(first_line(read_bytes(path), path).split(b"\n"), start=1):
        if not line or line.isspace():
            continue
        try:
            rows.append(load_json(line))
            lines.append(number)
        except orjson.JSONDecodeError as error:
            problems.append(Problem(None, None, f"not valid JSON ({error.msg})", line=number))
    return _of_rows(str(path), root, rows, lines, problems)


def _of_rows(
    place: str, root: Path, rows: list[Any], lines: list[int] | None, problems: list[Problem]
) -> Columns:
    if not set(map(type, rows)) <= {dict}:
        kept = []
        for row, value in enumerate(rows):
            if isinstance(value, Mapping):
                kept.append(row)
            else:
                line = None if lines is None else lines[row]
                problems.append(Problem(None, None, f"must be an object, not {shown(value)}", line=line))
        rows = [dict(rows[row]) for row in kept]
        lines = None if lines is None else [lines[row] for row in kept]
    names = dict.fromkeys(name for row in rows for name in row)
    values = {name: [row.get(name) for row in rows] for name in names}
    return Columns(place, root, values, len(rows), lines, problems=problems)


def _of_csv(path: Path, root: Path) -> Columns:
    try:
        text = read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8", remedy="Save it as UTF-8.") from error
    rows: list[list[str]] = []
    lines: list[int] = []
    problems: list[Problem] = []
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    try:
        head = next(reader, [])
        for row in reader:
            if not row:
                continue
            if len(row) == len(head):
                rows.append(row)
                lines.append(reader.line_num)
            else:
                message = f"has {len(row)} cells, and the head of the table {len(head)}"
                problems.append(Problem(None, None, message, line=reader.line_num))
    except csv.Error as error:
        problems.append(Problem(None, None, f"is not valid CSV: {error}", line=reader.line_num))
        head = head if rows else []
    twice = sorted({name for name in head if head.count(name) > 1})
    if twice:
        problems.append(Problem(None, None, f"columns of the same name: {', '.join(twice)}", line=1))
    cells = zip(*rows, strict=True) if rows else ([] for _ in head)
    values = {
        name: [cell or None for cell in column] if "" in column else list(column)
        for name, column in zip(head, cells, strict=True)
    }
    return Columns(str(path), root, values, len(rows), lines, texts=True, problems=problems)


def _of_parquet(path: Path, root: Path) -> Columns:
    arrow, parquet = pyarrow("pyarrow"), pyarrow("pyarrow.parquet")
    try:
        pictures = column_paths(path)
        with open_file(path) as source, parquet.ParquetFile(place_of(source)) as content:
            names = [name for name in content.schema_arrow.names if name not in pictures]
            table = content.read(columns=names)
    except (arrow.ArrowException, OSError) as error:
        raise UsageError(f"{path} cannot be read as Parquet: {error}") from error
    values = {name: table.column(name).to_pylist() for name in table.column_names}
    where = Path(os.path.relpath(path, root)).as_posix()
    values |= {column: [f"{where}/{row}" for row in rows] for column, rows in pictures.items()}
    return Columns(str(path), root, {n: _without_nan(v) for n, v in values.items()}, table.num_rows)


def _without_nan(cells: list[Any]) -> list[Any]:
    """What pandas has for nothing becomes None: its marks are unequal to themselves or not comparable."""
    plain: Callable[[type], bool] = {str, int, bool, type(None), dict, list}.__contains__
    if all(map(plain, set(map(type, cells)))):
        return cells
    return [None if _is_missing(cell) else cell for cell in cells]


def _is_missing(cell: object) -> bool:
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"
