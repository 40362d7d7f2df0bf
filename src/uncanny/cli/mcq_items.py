"""ITEMS as the commands of `uncanny mcq` take them."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from uncanny.eval.mcq.items import Item
from uncanny.eval.mcq.load import item_files, load_items
from uncanny.records.run_folder import check_no_links, check_within

SCENES = "scenes"
STORED = "items"


def items_path(name: str, folder: Path | None = None) -> Path:
    """The item file; `scenes` is the bundled set, copied into `folder` or else kept while we run."""
    if name != SCENES or Path(name).exists():
        return Path(name)
    from uncanny.eval.mcq.from_scenes import scene_items

    target = _for_now() if folder is None else folder / STORED
    check_no_links(target)
    known = target / "items.jsonl"
    return known if known.is_file() else scene_items(target)


def _for_now() -> Path:
    """A folder that goes with this process."""
    parent = tempfile.mkdtemp(prefix="uncanny-")
    atexit.register(shutil.rmtree, parent, ignore_errors=True)
    return Path(parent) / "bundled-scenes"


def named_items(
    name: str, folder: Path | None = None, root: Path | None = None
) -> tuple[tuple[Item, ...], Path]:
    """The items and the file their paths start from. Raises UsageError."""
    path = items_path(name, folder)
    items = load_items(path, root=root)
    if folder is not None and str(path) != name:
        remedy = f"It is not the bundled set: remove {path.parent}, or name another run with -o."
        check_within(folder, path, item_files(items, path, root), remedy=remedy)
    return items, path
