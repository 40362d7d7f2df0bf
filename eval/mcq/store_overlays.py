"""A set with all its Q3 images drawn and stored, so that everybody sends the same bytes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from uncanny.eval.mcq.flat_table import write_items
from uncanny.eval.mcq.items import Item
from uncanny.eval.mcq.load import image_path, parse_items
from uncanny.eval.mcq.overlay import overlay_for


def store_overlays(items: Sequence[Item], items_file: Path, root: Path | None, out: Path) -> Path:
    """Write `out/items.jsonl`, whose items name their image and overlay from there. Raises UncannyError."""
    drawn = []
    for item in items:
        update = {"image": _from(out, item, items_file, root)}
        if item.q3 is not None:
            update["overlay"] = os.path.relpath(overlay_for(item, items_file, root, out / "overlays"), out)
        drawn.append(Item.model_validate({**item.model_dump(exclude_unset=True), **update}))
    target = out / "items.jsonl"
    write_items(drawn, target)
    return target


def drawn_before(file: Path, items: Sequence[Item], items_file: Path, root: Path | None) -> bool:
    """Whether `file` holds these items as `store_overlays` writes them, wherever their overlays lie."""
    found, problems = parse_items(file)
    wanted = [
        item.model_copy(update={"image": _from(file.parent, item, items_file, root), "overlay": None})
        for item in items
    ]
    return not problems and [item.model_copy(update={"overlay": None}) for _, item in found] == wanted


def _from(out: Path, item: Item, items_file: Path, root: Path | None) -> str:
    return os.path.relpath(image_path(item, items_file, root), out)
