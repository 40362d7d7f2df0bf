"""The picture that Q3 is asked about: the image with its candidate boxes drawn on it.

It is drawn once, stored under the digest of what it is drawn from, and sent from there byte for byte.
`overlay` does so for a whole set, to be published with it.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from uncanny.errors import ImageError, UsageError
from uncanny.eval.mcq.data.items import Box, Item, ItemSet, Option
from uncanny.eval.mcq.data.load import ITEMS_FILE, ItemSource, load, parse_items, write_items
from uncanny.eval.mcq.parameters import OverlayParameters
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import RecordedFile, read_image_file, read_stamped
from uncanny.images.overlay import draw_boxes, drawing_digest
from uncanny.parameters import takes
from uncanny.records.jsonl import write_atomically
from uncanny.wording import short_path

# The folder of drawn Q3 images, in a run and beside a set.
OVERLAYS = "overlays"
# Two items may share a picture and its boxes; their threads would share the temporary file.
_WRITING = threading.Lock()


def store_overlay(image: bytes | Path, boxes: Mapping[Option, Box], folder: Path) -> Path:
    """Draw the boxes (`draw_boxes`) into the folder, which is made if need be; the name is `drawing_digest`.

    So it has the same name everywhere, and one that is there already is used as it is and not drawn again:
    another version of Pillow, or of a decoder of JPEG, AVIF or lossy WebP, may give other bytes and a shade
    of difference in pixels. Raises what `draw_boxes` raises, and `OSError`.
    """
    data = image if isinstance(image, bytes) else read_image_file(image, PixelPolicy().max_file_bytes)
    path = folder / f"{drawing_digest(data, boxes)}.png"
    if _is_stored(path):
        return path
    drawn = draw_boxes(data, boxes)
    with _WRITING:
        if not _is_stored(path):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, [drawn])
    return path


def _is_stored(path: Path) -> bool:
    """Whether the file is there; a link is none, since it may lead out of a folder from somebody else."""
    return path.is_file() and not path.is_symlink()


def overlay_for(item: Item, items: ItemSet, folder: Path) -> Path:
    """Where the item's Q3 picture lies: its stored overlay as it is, else one rendered into the folder.

    A stored overlay is not opened here. Raises what `draw_overlay` raises.
    """
    stored = items.overlay_path(item)
    return draw_overlay(item, items, folder)[0] if stored is None else stored


def draw_overlay(item: Item, items: ItemSet, folder: Path) -> tuple[Path, RecordedFile]:
    """Render the item's Q3 picture into the folder: where it lies, and the image it was made of.

    Raises `UsageError` where the item has neither overlay nor boxes, `ImageError` for an image that cannot be
    read.
    """
    if item.q3 is None or not item.q3.boxes:
        raise UsageError(
            f"item {item.id!r} has neither a stored overlay nor boxes for Q3",
            remedy="Give it `overlay`, or four boxes in `q3.boxes`.",
        )
    image = items.image_path(item)
    try:
        file = read_stamped(image, PixelPolicy().max_file_bytes)
        drawn = store_overlay(file.data, item.q3.boxes, folder)
    except ImageError as error:
        message = f"{short_path(image)}: {error.message}"
        raise ImageError(message, kind=error.kind, remedy=error.remedy) from error
    return drawn, RecordedFile(image, hashlib.sha256(file.data).hexdigest(), file.stamp)


@takes(OverlayParameters)
def overlay(source: ItemSource, parameters: OverlayParameters) -> ItemSet:
    """Draw the Q3 images, write `out/items.jsonl` that names them, and return the new set.

    `source` is as in `load`; the bundled set is copied to `out/items`. Overlays that are stored already stay
    where they are, others are drawn into `out/overlays`. Raises UsageError where the new set would replace
    the one it is made of, ImageError for an image that cannot be read.

    >>> drawn = uncanny.mcq.overlay(uncanny.mcq.load("scenes")[:1], out="drawn")
    >>> drawn.overlay_path(drawn[0]).is_file()
    True
    """
    folder = Path(parameters.out)
    items = load(source, root=parameters.root, folder=folder)
    target = folder / ITEMS_FILE
    if target.exists() and items.file.exists() and target.samefile(items.file):
        raise UsageError(f"{target} is the item file itself", remedy="Pass another folder to write to.")
    drawn = []
    for item in items:
        paths = {"image": _from(folder, item, items)}
        if item.q3 is not None:
            paths["overlay"] = os.path.relpath(overlay_for(item, items, folder / OVERLAYS), folder)
        drawn.append(Item.model_validate({**item.model_dump(exclude_unset=True), **paths}))
    write_items(drawn, target)
    return ItemSet(tuple(drawn), target, whole=True)


def drawn_before(file: Path, items: ItemSet) -> bool:
    """Whether `file` holds these items as `overlay` writes them, wherever their overlays lie."""
    numbered, problems = parse_items(file)
    wanted = [
        item.model_copy(update={"image": _from(file.parent, item, items), "overlay": None}) for item in items
    ]
    return not problems and [item.model_copy(update={"overlay": None}) for _, item in numbered] == wanted


def _from(folder: Path, item: Item, items: ItemSet) -> str:
    return os.path.relpath(items.image_path(item), folder)
