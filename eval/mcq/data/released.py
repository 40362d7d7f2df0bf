"""Sets in forms of others, imported as items: the release's flat table, and raw annotation payloads.

Which rows of a table belong together is found out first (`places`), without their pictures; then every row
becomes an item.

A payload is what an annotator's tool stores about one image (SalArt-VQA, appendix D.2). Only A–D are
authored; E is added when a question is asked. In a file each payload stands with the id, image and split of
its item.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import by_line, of_validation, repeated_ids
from uncanny.eval.common.inputs.table_files import ImageFolder, columns, rows, table_files
from uncanny.eval.mcq.data.checks import check
from uncanny.eval.mcq.data.flat_tables import Outline, Place, outline, places, row_item
from uncanny.eval.mcq.data.items import ARTIFACT_SPLITS, Box, Item, ItemSet, Letter, Option, Split
from uncanny.eval.mcq.data.load import ITEMS_FILE, OWN_ID, write_items
from uncanny.eval.mcq.data.released_rows import (
    IMAGE_COLUMNS,
    CellError,
    Row,
    missing_columns,
    pictures,
    problem_of,
    read_type,
    text,
)
from uncanny.eval.mcq.parameters import ImportParameters
from uncanny.files import load_json, open_file, read_file
from uncanny.parameters import path_of, takes
from uncanny.wording import option


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


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)


class _Texts(_Part):
    ref: Letter
    options: dict[Option, str]


class _Boxes(_Part):
    ref: Letter
    candidates: dict[Option, Box] = Field(default_factory=dict)


class _Payload(_Part):
    artifact_type: str | None = None
    q1_ref: Literal["yes", "no"] | None = None
    semantic_loc: _Texts | None = None
    box: _Boxes | None = None
    evidence: _Texts | None = None


def from_payload(
    payload: Mapping[str, Any], *, id: str, image: str, split: Split, pair_id: str | None = None
) -> Item:
    """The item of one payload; parts that are absent become questions that are not asked.

    Types are understood as annotators write them, such as `count_anomaly`; references have none. Further
    keys of the payload are kept in the item. Raises ItemsError with every field that cannot be read; what
    `check` finds is left to it.
    """
    try:
        parts = _Payload.model_validate(payload)
    except ValidationError as error:
        raise ItemsError("annotation payload", of_validation(error, item=id, line=None)) from error
    fields: dict[str, Any] = {**(parts.model_extra or {}), "id": id, "image": image, "split": split}
    if pair_id is not None:
        fields["pair_id"] = pair_id
    if split in ARTIFACT_SPLITS and (parts.artifact_type or "").strip():
        fields["artifact_type"] = _type(parts.artifact_type or "", id)
    fields["q1"] = {"answer": parts.q1_ref} if parts.q1_ref else None
    fields["q2"] = _choice(parts.semantic_loc)
    fields["q3"] = {"boxes": parts.box.candidates, "answer": parts.box.ref} if parts.box else None
    fields["q4"] = _choice(parts.evidence)
    try:
        return Item.model_validate(fields)
    except ValidationError as error:
        raise ItemsError("annotation payload", of_validation(error, item=id, line=None)) from error


def _choice(part: _Texts | None) -> dict[str, Any] | None:
    return None if part is None else {"options": part.options, "answer": part.ref}


def _type(written: str, id: str) -> str:
    try:
        return read_type(written)
    except CellError as error:
        raise ItemsError("annotation payload", [Problem(id, error.column, error.message)]) from error


_PARTS = frozenset({"q1_ref", "semantic_loc", "box", "evidence"})
_NAMES = ("id", "image", "split")


def holds_payloads(path: Path) -> bool:
    """Whether the file's first line is a payload. False if it is not JSON Lines."""
    if not path.is_file() or path.suffix.lower() not in (".jsonl", ".json"):
        return False
    with open_file(path) as file:
        first = next((line for line in file if line.strip()), b"")
    try:
        fields = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    return isinstance(fields, dict) and bool(_PARTS & _payload(fields).keys())


def import_payloads(path: Path, folder: Path) -> ItemSet:
    """Write `folder/items.jsonl`; image paths in it start from there, the images stay where they are.

    A line is the payload with `id`, `image` (relative to the file), `split` and perhaps `pair_id` added, or
    these with the payload under `payload`. Raises ItemsError with everything that is wrong, UsageError where
    the target is there already.
    """
    target = folder / ITEMS_FILE
    if target.exists():
        raise UsageError(f"{target} already exists", remedy=f"Pass another folder with {option('out')}.")
    items: list[tuple[int, Item]] = []
    problems: list[Problem] = []
    for number, line in enumerate(read_file(path).splitlines(), start=1):
        if line.strip():
            item = _item(line, number, path.parent, folder)
            if isinstance(item, Item):
                items.append((number, item))
            else:
                problems += item
    problems += repeated_ids(items, OWN_ID, problems)
    if problems:
        problems.sort(key=by_line)
        raise ItemsError(str(path), problems, remedy="Correct these lines; nothing was written.")
    made = tuple(item for _, item in items)
    write_items(made, target)
    return ItemSet(made, target, whole=True)


def _item(line: bytes, number: int, base: Path, folder: Path) -> Item | list[Problem]:
    try:
        fields: Any = load_json(line)
    except ValueError as error:
        return [Problem(None, None, f"not JSON: {error}", line=number)]
    if not isinstance(fields, dict):
        return [Problem(None, None, "not a JSON object", line=number)]
    name = fields.get("id") if isinstance(fields.get("id"), str) else None
    absent = [key for key in _NAMES if not isinstance(fields.get(key), str)]
    if absent:
        return [Problem(name, key, "missing; each payload needs it beside it", line=number) for key in absent]
    image = os.path.relpath(base / fields["image"], folder)
    pair = fields.get("pair_id")
    payload = {key: value for key, value in _payload(fields).items() if key not in (*_NAMES, "pair_id")}
    try:
        return from_payload(payload, id=fields["id"], image=image, split=fields["split"], pair_id=pair)
    except ItemsError as error:
        return [replace(problem, line=number) for problem in error.problems]


def _payload(fields: dict[str, Any]) -> dict[str, Any]:
    inner = fields.get("payload")
    return inner if isinstance(inner, dict) else fields
