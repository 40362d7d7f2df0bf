"""Raw annotation payloads as a file: JSON Lines, each payload with the id, image and split of its item."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson

from uncanny.errors import UsageError
from uncanny.eval.mcq.flat_table import write_items
from uncanny.eval.mcq.items import Item
from uncanny.eval.mcq.payload import from_payload
from uncanny.eval.mcq.problems import ItemsError, Problem

_PARTS = frozenset({"q1_ref", "semantic_loc", "box", "evidence"})
_NAMES = ("id", "image", "split")


def holds_payloads(path: Path) -> bool:
    """Whether the file's first line is a payload. False for what is no JSON Lines file."""
    if not path.is_file() or path.suffix.lower() not in (".jsonl", ".json"):
        return False
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
    try:
        found = orjson.loads(first)
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and bool(_PARTS & _payload(found).keys())


def import_payloads(path: Path, out_dir: Path) -> Path:
    """Write `out_dir/items.jsonl`; image paths in it start from there, the images stay where they are.

    A line is the payload with `id`, `image` (relative to the file), `split` and perhaps `pair_id` added, or
    these with the payload under `payload`. Raises ItemsError with everything that is wrong, UsageError where
    the target is there already.
    """
    target = out_dir / "items.jsonl"
    if target.exists():
        raise UsageError(f"{target} is there already", remedy="Name another folder with -o.")
    items: list[Item] = []
    problems: list[Problem] = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            found = _item(line, number, path.parent, out_dir)
            if isinstance(found, Item):
                items.append(found)
            else:
                problems += found
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct these lines; nothing was written.")
    write_items(items, target)
    return target


def _item(line: bytes, number: int, base: Path, out_dir: Path) -> Item | list[Problem]:
    try:
        fields: Any = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return [Problem(None, None, f"not JSON: {error}", line=number)]
    if not isinstance(fields, dict):
        return [Problem(None, None, "not a JSON object", line=number)]
    name = fields.get("id") if isinstance(fields.get("id"), str) else None
    absent = [key for key in _NAMES if not isinstance(fields.get(key), str)]
    if absent:
        return [Problem(name, key, "missing; each payload needs it beside it", line=number) for key in absent]
    image = os.path.relpath(base / fields["image"], out_dir)
    pair = fields.get("pair_id")
    payload = {key: value for key, value in _payload(fields).items() if key not in (*_NAMES, "pair_id")}
    try:
        return from_payload(payload, id=fields["id"], image=image, split=fields["split"], pair_id=pair)
    except ItemsError as error:
        return [Problem(p.item, p.field, p.message, p.severity, number) for p in error.problems]


def _payload(fields: dict[str, Any]) -> dict[str, Any]:
    held = fields.get("payload")
    return held if isinstance(held, dict) else fields
