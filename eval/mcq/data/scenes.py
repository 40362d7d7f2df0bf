"""The bundled scenes as a set of items: a small set that is complete, free and known to be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from uncanny.demo.scenes import Scene, scenes
from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import Item
from uncanny.eval.mcq.data.released import ITEMS_FILE, write_items
from uncanny.records.jsonl import write_atomically


def scene_items(folder: Path) -> Path:
    """Write `folder/items.jsonl` and the pictures, byte for byte, to `folder/images`; the item file's path.

    Ids are those of the scenes. The same call gives the same files; earlier ones are replaced. Raises
    UsageError where the folder cannot be written.
    """
    target = folder / ITEMS_FILE
    try:
        (folder / "images").mkdir(parents=True, exist_ok=True)
        for scene in scenes():
            place = folder / "images" / scene.image_path.name
            write_atomically(place, [scene.image_path.read_bytes()])
        write_items([scene_item(scene) for scene in scenes()], target)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error
    return target


def scene_item(scene: Scene) -> Item:
    """The item of one scene, its picture at `images/<file name>`; Q1 is left out on ref_pg."""
    truth = scene.mcq
    fields: dict[str, Any] = {
        "id": scene.id,
        "image": f"images/{scene.image_path.name}",
        "split": scene.split,
        "pair_id": scene.pair_id,
        **({"artifact_type": scene.artifact_type} if scene.artifact_type is not None else {}),
        "q1": None if scene.split == "ref_pg" else truth.q1.model_dump(),
        "q2": truth.q2.model_dump(),
        "q3": truth.q3.model_dump(),
        "q4": truth.q4.model_dump(),
    }
    return Item.model_validate(fields)
