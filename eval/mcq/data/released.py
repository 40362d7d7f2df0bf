"""The release's flat table, one row an image, imported as a set of items with its pictures.

Which rows belong together is found out first (`places`), from all rows without their pictures; then every row
becomes an item.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import of_validation
from uncanny.eval.common.inputs.table_files import ImageFolder, columns, rows, table_files
from uncanny.eval.mcq.data.checks import check
from uncanny.eval.mcq.data.items import Item, ItemSet
from uncanny.eval.mcq.data.load import ITEMS_FILE, write_items
from uncanny.eval.mcq.data.payload import holds_payloads, import_payloads
from uncanny.eval.mcq.data.places import Outline, Place, outline, places, row_item
from uncanny.eval.mcq.data.released_rows import (
    IMAGE_COLUMNS,
    CellError,
    Row,
    missing_columns,
    pictures,
    problem_of,
    text,
)
from uncanny.eval.mcq.parameters import ImportParameters
from uncanny.parameters import path_of, takes


@takes(ImportParameters)
def import_table(source: str | os.PathLike[str], parameters: ImportParameters) -> ItemSet:
    """Import a table: write `out/items.jsonl` and `out/images/`, and return the new set.

    `source` is a Parquet, CSV or JSON Lines file, or a folder of shards. Pictures and stored overlays are
    written byte for byte under names made from their content. Prompts become whole texts, as a model is to
    see them. Boxes are known only where the table has a column `q3_boxes`. Pairs: see `places`. The pictures
    of one Parquet row group, or of one row, are in memory at a time. `images` opens each of them to check it.

    A JSON Lines file of raw annotation payloads is taken too; its images stay where they are
    (`import_payloads`).

    Raises ItemsError with everything that is wrong with the table, in its form or by `check`, and UsageError
    where a file cannot be read or written, pyarrow is missing, or `out` holds items already. Nothing is left
    behind then.

    >>> table = uncanny.mcq.export_table("scenes", out="scenes.csv")
    >>> len(uncanny.mcq.import_table(table, out="set"))
    34
    """
    path, folder = path_of("source", source), Path(parameters.out)
    if holds_payloads(path):
        return import_payloads(path, folder)
    target = folder / ITEMS_FILE
    if target.exists():
        raise UsageError(
            f"{target} already exists", remedy="Choose another folder: this file may contain your edits."
        )
    files = table_files(path)
    where = _survey(path, files)
    stored = ImageFolder(folder / "images")
    fresh = not folder.exists()
    try:
        items = ItemSet(tuple(_items(path, files, where, stored)), target, whole=True)
        problems = check(items, images=parameters.images)
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise ItemsError(str(path), errors, remedy="Correct the table; nothing was imported.")
        write_items(items, target)
    except BaseException:
        stored.take_back()
        if fresh and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        raise
    return items


def _survey(path: Path, files: tuple[Path, ...]) -> list[Place]:
    """Everything that can be said without the pictures. Raises ItemsError."""
    problems = [
        Problem(None, column, f"the table has no such column ({file.name})")
        for file in files
        for column in missing_columns(columns(file))
    ]
    if problems:
        raise ItemsError(str(path), problems, remedy="Is this the release's flat table?")
    outlines: list[Outline] = []
    seen: dict[str, int] = {}
    for number, (_, row) in enumerate(_all_rows(files, light=True), start=1):
        row_id = _row_id(row, number, problems)
        if row_id in seen:
            message = f"row {number}: the id was used before, in row {seen[row_id]}"
            problems.append(Problem(row_id, "row_id", message))
        seen.setdefault(row_id, number)
        try:
            outlines.append(outline(row_id, row))
        except CellError as error:
            problems.append(problem_of(row_id, error, number))
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct the table; nothing was imported.")
    if not outlines:
        raise UsageError(f"{path} contains no rows")
    return places(outlines)


def _items(path: Path, files: tuple[Path, ...], where: list[Place], folder: ImageFolder) -> list[Item]:
    items: list[Item] = []
    problems: list[Problem] = []
    for number, (file, row) in enumerate(_all_rows(files, light=False), start=1):
        row_id = str(row["row_id"])
        try:
            image, overlay = pictures(row, file.parent)
            stored = None if overlay is None else folder.put(overlay)
            items.append(row_item(row_id, row, where[number - 1], folder.put(image), stored))
        except CellError as error:
            problems.append(problem_of(row_id, error, number))
        except ValidationError as error:
            problems += of_validation(error, item=row_id, line=None)
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct the table; nothing was imported.")
    return items


def _row_id(row: Row, number: int, problems: list[Problem]) -> str:
    try:
        row_id = text(row, "row_id")
    except CellError:
        row_id = None
    if row_id is None:
        problems.append(Problem(None, "row_id", f"row {number}: no id, or none that is text"))
    return row_id if row_id is not None else f"row {number}"


def _all_rows(files: tuple[Path, ...], *, light: bool) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in files:
        for row in rows(file, without=IMAGE_COLUMNS if light else ()):
            yield file, row
