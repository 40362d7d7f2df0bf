"""The release's flat table, one row an image, imported as a set of items with its pictures.

A table names roles, a set has splits and pairs: which rows belong together is found out first, from all rows
without their pictures; then every row becomes an item.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import of_validation
from uncanny.eval.common.inputs.table_files import ImageFolder, columns, rows, table_files
from uncanny.eval.mcq.data.checks import check
from uncanny.eval.mcq.data.items import Item, ItemSet, Split
from uncanny.eval.mcq.data.load import ITEMS_FILE, write_items
from uncanny.eval.mcq.data.payload import holds_payloads, import_payloads
from uncanny.eval.mcq.data.released_rows import (
    IMAGE_COLUMNS,
    ROLES,
    CellError,
    Row,
    artifact_type,
    item_fields,
    missing_columns,
    options,
    pictures,
    problem_of,
    text,
)
from uncanny.parameters import check_needed
from uncanny.wording import shown


@dataclass(frozen=True, slots=True)
class Outline:
    """What decides about a row's pair. `options` is equal for equal texts, None where there are none."""

    row_id: str
    role: str
    pair_id: str | None
    options: str | None


@dataclass(frozen=True, slots=True)
class Place:
    """A row's split and pair."""

    split: Split
    pair_id: str | None


def places(outlines: Sequence[Outline]) -> list[Place]:
    """A place for each row, in their order.

    A `pair_id` that one artifact and one reference share decides; others are dropped. Generated
    counterparts left over belong to an artifact with the same options A–D: the closest one before, which is
    how releases order their rows, or else the closest one after. One without any stays without a pair.
    """
    partner = _by_pair_id(outlines)
    _by_options(outlines, partner)
    return [_place(outlines, number, partner) for number in range(len(outlines))]


def _place(outlines: Sequence[Outline], number: int, partner: dict[int, int]) -> Place:
    row = outlines[number]
    other = outlines[partner[number]] if number in partner else None
    if row.role == "artifact":
        paired = other is not None and other.role == "paired_generated_counterpart"
        return Place("art_pg" if paired else "art_dg", _pair_id(row, other))
    return Place("ref_real" if row.role == "clean_reference" else "ref_pg", _pair_id(other, row))


def _pair_id(artifact: Outline | None, reference: Outline | None) -> str | None:
    if artifact is None or reference is None:
        return None
    shared = artifact.pair_id if artifact.pair_id == reference.pair_id else None
    return shared if shared is not None else f"{artifact.row_id}+{reference.row_id}"


def _by_pair_id(outlines: Sequence[Outline]) -> dict[int, int]:
    groups: dict[str, dict[str, list[int]]] = {}
    for number, row in enumerate(outlines):
        if row.pair_id is not None:
            groups.setdefault(row.pair_id, {}).setdefault(row.role, []).append(number)
    partner: dict[int, int] = {}
    for roles in groups.values():
        artifacts = roles.get("artifact", [])
        others = roles.get("paired_generated_counterpart") or roles.get("clean_reference") or []
        if len(artifacts) == len(others) == 1:
            partner |= {artifacts[0]: others[0], others[0]: artifacts[0]}
    return partner


def _by_options(outlines: Sequence[Outline], partner: dict[int, int]) -> None:
    free: dict[str, list[int]] = {}
    for number, row in enumerate(outlines):
        if row.role == "artifact" and row.options is not None and number not in partner:
            free.setdefault(row.options, []).append(number)
    for number, row in enumerate(outlines):
        candidates = free.get(row.options or "", [])
        if row.role != "paired_generated_counterpart" or number in partner or not candidates:
            continue
        before = [candidate for candidate in candidates if candidate < number]
        chosen = before[-1] if before else candidates[0]
        candidates.remove(chosen)
        partner |= {number: chosen, chosen: number}


def import_table(
    source: str | os.PathLike[str], out: str | os.PathLike[str], *, images: bool = True
) -> ItemSet:
    """Write `out/items.jsonl` and `out/images/` from a table; the new set.

    `source` is a Parquet, CSV or JSON Lines file, or a folder of shards. Pictures and stored overlays are
    written byte for byte under names made from their content. Prompts become whole texts, as a model is to
    see them. Boxes are known only where the table has a column `q3_boxes`. Pairs: see `places`. The pictures
    of one Parquet row group, or of one row, are in memory at a time. `images` opens each of them to check it.

    A JSON Lines file of raw annotation payloads is taken too; its images stay where they are
    (`import_payloads`).

    Raises ItemsError with everything that is wrong with the table, in its form or by `check`, and UsageError
    where a file cannot be read or written, pyarrow is missing, or `out` holds items already. Nothing is left
    behind then.

    >>> table = uncanny.mcq.export_table(uncanny.mcq.load("scenes")[:3], "scenes.csv")
    >>> len(uncanny.mcq.import_table(table, "set"))
    3
    """
    check_needed(table=source, out=out)
    path, folder = Path(source), Path(out)
    if holds_payloads(path):
        return import_payloads(path, folder)
    target = folder / ITEMS_FILE
    if target.exists():
        raise UsageError(f"{target} exists already", remedy="Choose another folder; it may have been edited.")
    files = table_files(path)
    where = _survey(path, files)
    stored = ImageFolder(folder / "images")
    fresh = not folder.exists()
    try:
        items = ItemSet(tuple(_items(path, files, where, stored)), target, whole=True)
        errors = [problem for problem in check(items, images=images) if problem.severity == "error"]
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
            outlines.append(_outline(row_id, row))
        except CellError as error:
            problems.append(problem_of(row_id, error, number))
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct the table; nothing was imported.")
    if not outlines:
        raise UsageError(f"{path} holds no rows")
    return places(outlines)


def _outline(row_id: str, row: Row) -> Outline:
    role = text(row, "image_role")
    if role not in ROLES:
        raise CellError("image_role", f"{shown(role)} is none of {', '.join(ROLES)}")
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
        except CellError as error:
            problems.append(problem_of(row_id, error, number))
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
