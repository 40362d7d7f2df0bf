"""The release's flat table, one row an image, read as a set of items."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from uncanny.errors import UsageError
from uncanny.eval.mcq.check import check_items
from uncanny.eval.mcq.flat_row import (
    ROLES,
    Row,
    RowFault,
    artifact_type,
    item_fields,
    options,
    problem_of,
    text,
)
from uncanny.eval.mcq.items import Item
from uncanny.eval.mcq.problems import ItemsError, Problem, of_validation, shown
from uncanny.eval.mcq.table_images import ImageFolder, pictures
from uncanny.eval.mcq.table_pairs import Outline, Place, places
from uncanny.eval.mcq.table_rows import IMAGE_COLUMNS, columns, missing_columns, rows, table_files
from uncanny.records.jsonl import write_atomically

ITEMS_FILE = "items.jsonl"


def import_table(path: Path, out_dir: Path, *, open_images: bool = True) -> Path:
    """Write `out_dir/items.jsonl` and `out_dir/images/` from a table; the item file's path.

    `path` is a Parquet, CSV or JSON Lines file, or a folder of shards. Pictures and stored overlays are
    written byte for byte under names made from their content. Prompts become whole texts, as a model is to
    see them. Boxes are known only where the table has a column `q3_boxes`. Pairs: see `table_pairs.places`.
    The pictures of one Parquet row group, or of one row, are in memory at a time.

    Raises ItemsError with everything that is wrong with the table, in its form or by `check_items`, and
    UsageError where a file cannot be read or written, pyarrow is missing, or `out_dir` holds items already.
    Nothing is left behind then.
    """
    target = out_dir / ITEMS_FILE
    if target.exists():
        raise UsageError(f"{target} exists already", remedy="Choose another folder; it may have been edited.")
    files = table_files(path)
    where = _survey(path, files)
    folder = ImageFolder(out_dir / "images")
    fresh = not out_dir.exists()
    try:
        items = _items(path, files, where, folder)
        problems = check_items(items, items_file=target, open_images=open_images)
        errors = [problem for problem in problems if problem.severity == "error"]
        if errors:
            raise ItemsError(str(path), errors, remedy="Correct the table; nothing was imported.")
        write_items(items, target)
    except BaseException:
        folder.take_back()
        if fresh and out_dir.is_dir() and not any(out_dir.iterdir()):
            out_dir.rmdir()
        raise
    return target


def write_items(items: list[Item] | tuple[Item, ...], target: Path) -> None:
    """Write an item file in one step."""
    target.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(target, item_lines(items))


def item_lines(items: Iterable[Item]) -> Iterator[bytes]:
    """The lines of an item file; keys that were not set are left out."""
    return (orjson.dumps(item.model_dump(mode="json", exclude_unset=True)) + b"\n" for item in items)


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
            outlines.append(_outline(row_id, row))
        except RowFault as fault:
            problems.append(problem_of(row_id, fault, number))
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct the table; nothing was imported.")
    if not outlines:
        raise UsageError(f"{path} holds no rows")
    return places(outlines)


def _outline(row_id: str, row: Row) -> Outline:
    role = text(row, "image_role")
    if role not in ROLES:
        raise RowFault("image_role", f"{shown(role)} is none of {', '.join(ROLES)}")
    item_fields(row)
    if role == "artifact":
        artifact_type(row)
    texts = [list(options(row, question).items())[:4] for question in ("q2", "q4")]
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest() if any(texts) else None
    return Outline(row_id, role, text(row, "pair_id"), digest)


def _items(path: Path, files: tuple[Path, ...], where: list[Place], folder: ImageFolder) -> list[Item]:
    items: list[Item] = []
    problems: list[Problem] = []
    for number, (file, row) in enumerate(_all_rows(files, light=False), start=1):
        row_id = str(row["row_id"])
        try:
            items.append(_item(row_id, row, where[number - 1], folder, file.parent))
        except RowFault as fault:
            problems.append(problem_of(row_id, fault, number))
        except ValidationError as error:
            problems += of_validation(error, item=row_id, line=None)
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct the table; nothing was imported.")
    return items


def _item(row_id: str, row: dict[str, Any], place: Place, folder: ImageFolder, base: Path) -> Item:
    image, overlay = pictures(row, base)
    fields: dict[str, Any] = {"id": row_id, "image": folder.put(image), "split": place.split}
    if place.pair_id is not None:
        fields["pair_id"] = place.pair_id
    if place.split in ("art_dg", "art_pg") and (kind := artifact_type(row)) is not None:
        fields["artifact_type"] = kind
    fields |= item_fields(row)
    if overlay is not None:
        fields["overlay"] = folder.put(overlay)
    return Item.model_validate(fields)


def _row_id(row: Row, number: int, problems: list[Problem]) -> str:
    try:
        found = text(row, "row_id")
    except RowFault:
        found = None
    if found is None:
        problems.append(Problem(None, "row_id", f"row {number}: no id, or none that is text"))
    return found if found is not None else f"row {number}"


def _all_rows(files: tuple[Path, ...], *, light: bool) -> Iterator[tuple[Path, dict[str, Any]]]:
    for file in files:
        for row in rows(file, without=IMAGE_COLUMNS if light else ()):
            yield file, row
