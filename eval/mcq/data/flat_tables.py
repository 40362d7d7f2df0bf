"""Flat tables read as sets of items where they lie: Parquet or Arrow, with the pictures in them.

So a published benchmark is asked about as it was downloaded, with its prompts and drawn boxes, and nothing is
unpacked. `released` copies such a table into an item file instead.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from uncanny.errors import Problem
from uncanny.eval.common.inputs.problems import of_validation, repeated
from uncanny.eval.common.inputs.table_records import open_lines, record_tables
from uncanny.eval.mcq.data.items import Item
from uncanny.eval.mcq.data.places import Outline, outline, places, row_item
from uncanny.eval.mcq.data.released_rows import IMAGE_COLUMNS, CellError, Row, missing_columns, text
from uncanny.images.row_readers import opened

_MARKS = frozenset({"row_id", "image_role"})


def is_flat_table(path: Path) -> bool:
    """Whether these are the columns of a flat table, and not those of item files. Raises UsageError."""
    tables = record_tables(path)
    if not tables:
        return False
    with opened(tables[0]) as rows:
        return set(rows.schema.names) >= _MARKS


def flat_items(path: Path, root: Path | None = None) -> tuple[list[tuple[int, Item]], list[Problem]]:
    """The items of the rows with their numbers from 1, and what is wrong with the others.

    Images and stored overlays are the paths of their rows, from `root` or the folder that `path` lies in.
    Raises UsageError for what cannot be read.
    """
    problems = _missing(path)
    if problems:
        return [], problems
    drawn = [not each for table in record_tables(path) for each in _absent(table, IMAGE_COLUMNS[1])]
    others = _further_pictures(path)
    with open_lines(path, root) as lines:
        rows = [(number, _without(orjson.loads(line), others)) for number, line in enumerate(lines, start=1)]
    outlines: dict[int, Outline] = {}
    for number, row in rows:
        try:
            outlines[number] = outline(_row_id(row), row)
        except CellError as error:
            problems.append(Problem(_name(row), error.column, error.message, line=number))
    where = dict(zip(outlines, places(list(outlines.values())), strict=True))
    items: list[tuple[int, Item]] = []
    for number, row in rows:
        if number in where:
            image, overlay = row["image"], row[IMAGE_COLUMNS[1]] if drawn[number - 1] else None
            try:
                items.append((number, row_item(_row_id(row), row, where[number], image, overlay)))
            except ValidationError as error:
                problems += of_validation(error, item=_name(row), line=number)
            except CellError as error:
                problems.append(Problem(_name(row), error.column, error.message, line=number))
    names = [(number, item.id) for number, item in items]
    return items, [*problems, *repeated(names, "id", "give every row its own", problems)]


def _missing(path: Path) -> list[Problem]:
    problems = []
    for table in record_tables(path):
        with opened(table) as rows:
            problems += [
                Problem(None, column, f"the table has no such column ({table.name})")
                for column in missing_columns(rows.schema.names)
            ]
            if "image" in rows.schema.names and "image" not in rows.columns:
                message = f"{table.name} names images it does not hold; run `uncanny mcq import`"
                problems.append(Problem(None, "image", message))
    return problems


def _absent(table: Path, column: str) -> list[bool]:
    with opened(table) as rows:
        return rows.absent(column) if column in rows.columns else [True] * rows.length


def _further_pictures(path: Path) -> frozenset[str]:
    """Columns of pictures that are none of a flat table's."""
    found: set[str] = set()
    for table in record_tables(path):
        with opened(table) as rows:
            found |= set(rows.columns)
    return frozenset(found) - set(IMAGE_COLUMNS)


def _without(row: dict[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys} if keys else row


def _row_id(row: Row) -> str:
    row_id = text(row, "row_id")
    if row_id is None:
        raise CellError("row_id", "the row has no id; give it one")
    return row_id


def _name(row: Row) -> str | None:
    name = row.get("row_id")
    return name if isinstance(name, str) else None
