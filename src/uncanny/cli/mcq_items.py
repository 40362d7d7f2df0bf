"""ITEMS as the commands of `uncanny mcq` take them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from uncanny.eval.mcq.items import Item
from uncanny.eval.mcq.load import load_items

SCENES = "scenes"


def named_items(
    name: str, folder: Path | None = None, root: Path | None = None
) -> tuple[tuple[Item, ...], Path]:
    """The items and the file their paths start from; `scenes` is the bundled set, copied into `folder`.

    Without a folder it goes to a temporary one, for commands that only read. Raises UsageError.
    """
    if name != SCENES or Path(name).exists():
        path = Path(name)
        return load_items(path, root=root), path
    from uncanny.eval.mcq.from_scenes import scene_items

    target = Path(tempfile.mkdtemp(prefix="uncanny-scenes-")) if folder is None else folder / "items"
    path = scene_items(target)
    return load_items(path), path
