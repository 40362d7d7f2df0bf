"""The picture that question 3 is asked about: the image with its candidate boxes drawn on it.

It is drawn once, stored under the digest of what it is drawn from, and sent from there byte for byte.
`store_overlays` does so for a whole set, to be published with it.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from uncanny.errors import ImageError, UsageError
from uncanny.eval.mcq.data.items import Box, Item, Option
from uncanny.eval.mcq.data.load import image_path, overlay_path, parse_items
from uncanny.eval.mcq.data.released import write_items
from uncanny.images import PixelPolicy, RecordedFile
from uncanny.images.discover import short_path
from uncanny.images.file_bytes import read_image_file, read_stamped
from uncanny.images.overlay import draw_boxes, drawing_digest
from uncanny.records.jsonl import write_atomically

# Two items may share a picture and its boxes; their threads would share the temporary file.
_WRITING = threading.Lock()


def render_overlay(image: bytes | Path, boxes: Mapping[Option, Box]) -> bytes:
    """The image with the boxes on it, A red, B blue, C teal, D orange, as PNG without ancillary chunks.

    The rest is as in `draw_boxes`: same size, upright, RGB, alpha on white, no colour profile. Boxes are x0,
    y0, x1, y1 in pixels of the upright image. Another version of Pillow, or of a decoder of JPEG, AVIF or
    lossy WebP, may give other bytes and a shade of difference in pixels. So what a set is published with
    should be stored (`store_overlay`) and named by the items, not rendered anew by every user. Blocking.
    Raises `ImageError` for an image that cannot be read, `UsageError` for a box without area inside it.
    """
    return draw_boxes(image, boxes)


def store_overlay(image: bytes | Path, boxes: Mapping[Option, Box], folder: Path) -> Path:
    """Render into the folder, which is made if need be; the file is named by `drawing_digest`.

    So it has the same name everywhere, and one that is there already is used as it is and not drawn again.
    Raises what `render_overlay` raises, and `OSError`.
    """
    data = image if isinstance(image, bytes) else read_image_file(image, PixelPolicy().max_file_bytes)
    path = folder / f"{drawing_digest(data, boxes)}.png"
    if _is_stored(path):
        return path
    drawn = render_overlay(data, boxes)
    with _WRITING:
        if not _is_stored(path):
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(path, [drawn])
    return path


def _is_stored(path: Path) -> bool:
    """Whether the file is there; a link is none, since it may lead out of a folder from somebody else."""
    return path.is_file() and not path.is_symlink()


def overlay_for(item: Item, items_file: Path, root: Path | None, folder: Path) -> Path:
    """Where the item's Q3 picture lies: its stored overlay as it is, else one rendered into the folder.

    A stored overlay is not opened here. Raises what `draw_overlay` raises.
    """
    stored = overlay_path(item, items_file, root)
    return draw_overlay(item, items_file, root, folder)[0] if stored is None else stored


def draw_overlay(item: Item, items_file: Path, root: Path | None, folder: Path) -> tuple[Path, RecordedFile]:
    """Render the item's Q3 picture into the folder: where it lies, and the image it was made of.

    Raises `UsageError` where the item has neither overlay nor boxes, `ImageError` for an image that cannot be
    read.
    """
    if item.q3 is None or not item.q3.boxes:
        raise UsageError(
            f"item {item.id!r} has neither a stored overlay nor boxes for Q3",
            remedy="Give it `overlay`, or four boxes in `q3.boxes`.",
        )
    image = image_path(item, items_file, root)
    try:
        file = read_stamped(image, PixelPolicy().max_file_bytes)
        drawn = store_overlay(file.data, item.q3.boxes, folder)
    except ImageError as error:
        message = f"{short_path(image)}: {error.message}"
        raise ImageError(message, kind=error.kind, remedy=error.remedy) from error
    return drawn, RecordedFile(image, hashlib.sha256(file.data).hexdigest(), file.stamp)


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
