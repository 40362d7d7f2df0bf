"""Regions of parts: boolean arrays of the picture's size, and their boxes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

Mask = NDArray[np.bool_]
Regions = dict[str, Mask]
Box = tuple[int, int, int, int]


class Scenery:
    """The regions of both pictures of a pair. `clean:leg` is where the clean picture has its leg."""

    def __init__(self, own: Regions, clean: Regions) -> None:
        self.own, self.clean = own, clean

    def union(self, parts: list[str], lenient: bool = False) -> Mask:
        """Where any of the parts is; with `lenient`, parts that this picture lacks are left out."""
        regions = [self._region(part) for part in parts if not lenient or part in self.own or ":" in part]
        mask: Mask = np.logical_or.reduce(regions)
        if not mask.any():
            raise SystemExit(f"nothing is visible of {parts}")
        return mask

    def _region(self, part: str) -> Mask:
        place, _, name = part.rpartition(":")
        table = self.clean if place == "clean" else self.own
        if name not in table:
            raise SystemExit(f"no part {name!r}; there are {sorted(table)}")
        return table[name]


def difference(first: Image.Image, second: Image.Image) -> Mask:
    """Where two pictures differ visibly: by more than 6 of 255 in a channel."""
    one, other = (np.asarray(image.convert("RGB")).astype(np.int16) for image in (first, second))
    differs: Mask = np.abs(one - other).max(axis=2) > 6
    return differs


def box_of(mask: Mask, margin: int = 0) -> Box:
    """x0, y0, x1, y1 with x1 and y1 outside, widened by `margin` pixels within the picture."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    height, width = mask.shape
    return (
        max(0, int(columns[0]) - margin),
        max(0, int(rows[0]) - margin),
        min(width, int(columns[-1]) + 1 + margin),
        min(height, int(rows[-1]) + 1 + margin),
    )


def grow(mask: Mask, pixels: int) -> Mask:
    """The mask widened by about `pixels` on every side, so that soft edges lie inside."""
    image = Image.fromarray(mask.astype(np.uint8) * 255).filter(ImageFilter.MaxFilter(2 * pixels + 1))
    return np.asarray(image) > 0
