"""Checks of an item's image, its stored overlay and its boxes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from uncanny.errors import ImageError, StorageError
from uncanny.eval.mcq.items import Box, Item, Option
from uncanny.eval.mcq.load import image_path, overlay_path
from uncanny.eval.mcq.problems import Problem
from uncanny.images import PixelPolicy
from uncanny.images.decode import PIXELS, decode, explain, read_header
from uncanny.images.file_bytes import read_image_file

Size = tuple[int, int]

_TURNED = range(5, 9)  # EXIF orientations with width and height exchanged


def check_images(
    item: Item, items_file: Path, root: Path | None = None
) -> tuple[Size | None, tuple[Problem, ...]]:
    """The image's width and height as seen, None where it does not open; and what is wrong with the files."""
    size, problem = _size(item, "image", image_path(item, items_file, root))
    found = [problem] if problem else []
    stored = overlay_path(item, items_file, root)
    if stored is not None:
        other, problem = _size(item, "overlay", stored)
        found += [problem] if problem else []
        if size and other and size != other:
            message = (
                f"the overlay is {other[0]} × {other[1]} pixels, the image {size[0]} × {size[1]}; "
                "draw the boxes on the image itself"
            )
            found.append(Problem(item.id, "overlay", message))
    return size, tuple(found)


def check_boxes(item: Item, size: Size | None = None) -> Iterator[Problem]:
    """What is wrong with the boxes of Q3; without `size`, only what shows without the image.

    Boxes may be absent altogether where an overlay is stored, because it shows them.
    """
    if item.q3 is None:
        return
    boxes = item.q3.boxes
    missing = [letter for letter in get_args(Option) if letter not in boxes]
    if missing and (boxes or item.overlay is None):
        yield Problem(item.id, "q3.boxes", f"no box {', '.join(missing)}; give four boxes, A–D")
    for letter, box in boxes.items():
        fault = box_fault(box, size)
        if fault:
            yield Problem(item.id, f"q3.boxes.{letter}", fault)


def box_fault(box: Box, size: Size | None = None) -> str | None:
    """What is wrong with a box, x0, y0, x1, y1 in pixels; None where nothing is."""
    x0, y0, x1, y1 = box
    told = f"[{x0:g}, {y0:g}, {x1:g}, {y1:g}]"
    if not all(math.isfinite(value) for value in box):
        return f"{told} has a side that is no number; give x0, y0, x1, y1 in pixels"
    if x1 < x0 or y1 < y0:
        return f"{told} is reversed; give x0, y0, x1, y1 with x0 < x1 and y0 < y1"
    if x0 == x1 or y0 == y1:
        return f"{told} has no area; give x0, y0, x1, y1 with x0 < x1 and y0 < y1"
    if x0 < 0 or y0 < 0:
        return f"{told} starts outside the image; no side may be below 0"
    if size is not None and (x1 > size[0] or y1 > size[1]):
        return f"{told} reaches outside the image of {size[0]} × {size[1]} pixels; cut it at the edge"
    return None


def _size(item: Item, field: str, path: Path) -> tuple[Size | None, Problem | None]:
    policy = PixelPolicy()
    data = b""
    try:
        data = read_image_file(path, policy.max_file_bytes)
        header = read_header(data, policy.max_pixels)
        with PIXELS.hold(header.pixels):
            decoded = decode(data, header)
            (width, height), turned = decoded.image.size, decoded.orientation
            del decoded
    except StorageError:
        raise
    except Exception as error:  # decoders raise all kinds of errors on hostile files
        told: ImageError = explain(error, data)
        advice = f"; {told.remedy}" if told.remedy else ""
        return None, Problem(item.id, field, f"{path}: {told.message}{advice}")
    return ((height, width) if turned in _TURNED else (width, height)), None
