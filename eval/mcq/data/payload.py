"""The raw annotation payload: what an annotator's tool stores about one image, alone and as JSON Lines.

Source: SalArt-VQA, appendix D.2. Only A–D are authored; E is added when a question is asked. In a file each
payload stands with the id, image and split of its item.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import by_line, of_validation, repeated_ids
from uncanny.eval.mcq.data.items import ARTIFACT_SPLITS, Box, Item, ItemSet, Letter, Option, Split
from uncanny.eval.mcq.data.load import ITEMS_FILE, OWN_ID, write_items
from uncanny.eval.mcq.data.released_rows import CellError, read_type
from uncanny.files import open_file, read_file
from uncanny.files.json_values import load_json
from uncanny.wording import option


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
    """Whether the file's first line is a payload. False for what is no JSON Lines file."""
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
