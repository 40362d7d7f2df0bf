"""Flat tables read as sets of items where they lie: Parquet or Arrow, with the pictures in them.

So a published benchmark is asked about as it was downloaded, with its prompts and drawn boxes, and nothing is
unpacked. `released` copies such a table into an item file instead.

A table names roles, a set has splits and pairs: which rows belong together has to be found out first. The
release says neither; tables that uncanny writes do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import orjson
from pydantic import ValidationError

from uncanny.errors import Problem
from uncanny.eval.common.inputs.problems import of_validation, repeated
from uncanny.eval.common.inputs.table_records import open_lines, record_tables
from uncanny.eval.mcq.data.items import ARTIFACT_SPLITS, Item, Split
from uncanny.eval.mcq.data.released_rows import (
    IMAGE_COLUMNS,
    ROLE,
    ROLES,
    CellError,
    Row,
    artifact_type,
    further_keys,
    item_fields,
    missing_columns,
    options,
    text,
)
from uncanny.images.row_readers import opened
from uncanny.wording import shown


@dataclass(frozen=True, slots=True)
class Outline:
    """What decides about a row's pair. `options` is equal for equal texts, None where there are none.

    `split` is given where the table has it; then nothing is left to be found out.
    """

    row_id: str
    role: str
    pair_id: str | None
    options: str | None
    split: Split | None = None


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
    if row.split is not None:
        return Place(row.split, row.pair_id)
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


def outline(row_id: str, row: Row) -> Outline:
    """What a row says of its place, all else that it says being read along. Raises CellError."""
    role = text(row, "image_role")
    if role not in ROLES:
        raise CellError("image_role", f"{shown(role)} is not one of {', '.join(ROLES)}")
    item_fields(row)
    if role == "artifact":
        artifact_type(row)
    split = text(row, "split")
    if split is not None and (split not in get_args(Split) or ROLE[split] != role):  # type: ignore[index]
        raise CellError("split", f"{shown(split)} is not a split of images of the role {role}")
    texts = [list(options(row, question).items())[:4] for question in ("q2", "q4")]
    digest = hashlib.sha256(json.dumps(texts).encode()).hexdigest() if any(texts) else None
    return Outline(row_id, role, text(row, "pair_id"), digest, split)  # type: ignore[arg-type]


def row_item(row_id: str, row: Row, place: Place, image: str, overlay: str | None) -> Item:
    """The item of a row at its place, with the paths of its pictures. Raises CellError, ValidationError."""
    fields: dict[str, Any] = {
        **further_keys(row),
        "id": row_id,
        "image": image,
        "split": place.split,
    }
    if place.pair_id is not None:
        fields["pair_id"] = place.pair_id
    if place.split in ARTIFACT_SPLITS and (kind := artifact_type(row)) is not None:
        fields["artifact_type"] = kind
    fields |= item_fields(row)
    if overlay is not None:
        fields["overlay"] = overlay
    return Item.model_validate(fields)


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
    drawn: list[bool] = []
    # Columns of pictures that are none of a flat table's.
    others: set[str] = set()
    for table in record_tables(path):
        with opened(table) as opened_rows:
            others |= set(opened_rows.columns) - set(IMAGE_COLUMNS)
            if IMAGE_COLUMNS[1] in opened_rows.columns:
                drawn += [not each for each in opened_rows.absent(IMAGE_COLUMNS[1])]
            else:
                drawn += [False] * opened_rows.length
    with open_lines(path, root) as lines:
        rows = [
            (number, {key: value for key, value in orjson.loads(line).items() if key not in others})
            for number, line in enumerate(lines, start=1)
        ]
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


def _row_id(row: Row) -> str:
    row_id = text(row, "row_id")
    if row_id is None:
        raise CellError("row_id", "the row has no id; give it one")
    return row_id


def _name(row: Row) -> str | None:
    name = row.get("row_id")
    return name if isinstance(name, str) else None
