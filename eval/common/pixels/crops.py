"""Regions of an image without what is empty around them, and what is counted over many of them.

Most regions are a small part of their image: a `Crop` is a mask without the empty rows and columns around it.
A box, whose pixels are all set, is known by its corners alone, so that ten thousand boxes of a whole image
cost no more than their corners: areas are worked out, what they have in common with a mask is read off its
integral image (Crow, 1984), and their union is the running sum of where they begin and end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError

Mask = NDArray[np.bool_]
# Width and height.
Size = tuple[int, int]
Box = tuple[int, int, int, int]
Counts = NDArray[np.int64]

# Pixels whose sums are in memory at once.
_BAND: Final = 1 << 20
# From so many boxes on an integral image is quicker than to look at the pixels of each.
_MANY: Final = 4


class Crop(NamedTuple):
    """The part of a mask that holds all of its pixels: `pixels[0, 0]` is row `y`, column `x` of the image.

    An empty mask is a crop of no pixels. Coordinates are never negative. `solid` says that all pixels are
    set; where it is not known, it is False.
    """

    x: int
    y: int
    pixels: Mask
    solid: bool = False

    @property
    def area(self) -> int:
        """How many pixels are set."""
        return self.pixels.size if self.solid else int(np.count_nonzero(self.pixels))

    @property
    def box(self) -> Box:
        """x0, y0, x1, y1; x1 and y1 are the first column and row outside."""
        height, width = self.pixels.shape
        return self.x, self.y, self.x + width, self.y + height

    def on(self, size: Size) -> Mask:
        """The same as a mask of the whole image. Raises UsageError where it does not fit in."""
        x0, y0, x1, y1 = self.box
        if x1 > size[0] or y1 > size[1]:
            raise UsageError(f"A region of {self.box} does not fit into {size[0]} × {size[1]} pixels")
        mask = np.zeros((size[1], size[0]), dtype=np.bool_)
        mask[y0:y1, x0:x1] = self.pixels
        return mask


EMPTY: Final = Crop(0, 0, np.zeros((0, 0), dtype=np.bool_))


def crop(mask: Mask, x: int = 0, y: int = 0) -> Crop:
    """What is set of `mask`, without empty rows and columns around it. `x`, `y` is where the mask begins."""
    rows = np.flatnonzero(mask.any(axis=1))
    if not len(rows):
        return EMPTY
    top, bottom = int(rows[0]), int(rows[-1]) + 1
    columns = np.flatnonzero(mask[top:bottom].any(axis=0))
    left, right = int(columns[0]), int(columns[-1]) + 1
    return Crop(x + left, y + top, mask[top:bottom, left:right])


def solid_crop(x0: int, y0: int, x1: int, y1: int) -> Crop:
    """All pixels of a box; x1 and y1 are the first column and row outside. Empty where there are none."""
    if x0 >= x1 or y0 >= y1:
        return EMPTY
    # One value seen everywhere takes no memory.
    return Crop(x0, y0, np.broadcast_to(np.True_, (y1 - y0, x1 - x0)), solid=True)


def intersection_area(first: Crop, second: Crop) -> int:
    """How many pixels both have."""
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = first.box, second.box
    x0, y0, x1, y1 = max(ax0, bx0), max(ay0, by0), min(ax1, bx1), min(ay1, by1)
    if x0 >= x1 or y0 >= y1:
        return 0
    if first.solid and second.solid:
        return (x1 - x0) * (y1 - y0)
    ours = first.pixels[y0 - ay0 : y1 - ay0, x0 - ax0 : x1 - ax0]
    theirs = second.pixels[y0 - by0 : y1 - by0, x0 - bx0 : x1 - bx0]
    if first.solid or second.solid:
        return int(np.count_nonzero(theirs if first.solid else ours))
    return int(np.count_nonzero(ours & theirs))


def intersection_areas(first: Sequence[Crop], second: Sequence[Crop]) -> Counts:
    """How many pixels each of `first` has in common with each of `second`: `(len(first), len(second))`."""
    ours, theirs = _boxes(first), _boxes(second)
    low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
    sides = np.minimum(ours[:, None, 2:], theirs[None, :, 2:]) - low
    areas: Counts = np.where((sides > 0).all(axis=2), sides[..., 0] * sides[..., 1], 0)
    solid, other_solid = (
        np.array([each.solid for each in crops], dtype=np.bool_) for crops in (first, second)
    )
    for row in np.flatnonzero(~solid).tolist():
        near = areas[row] > 0
        boxes = np.flatnonzero(near & other_solid)
        areas[row, boxes] = _within(first[row], theirs[boxes])
        for column in np.flatnonzero(near & ~other_solid).tolist():
            areas[row, column] = intersection_area(first[row], second[column])
    for column in np.flatnonzero(~other_solid).tolist():
        rows = np.flatnonzero((areas[:, column] > 0) & solid)
        areas[rows, column] = _within(second[column], ours[rows])
    return areas


def union(crops: Sequence[Crop]) -> Crop:
    """The pixels that any of them has; of none an empty crop."""
    filled = [each for each in crops if each.pixels.size]
    if len(filled) < 2:
        return filled[0] if filled else EMPTY
    boxes = _boxes(filled)
    whole = (*boxes[:, :2].min(axis=0).tolist(), *boxes[:, 2:].max(axis=0).tolist())
    if any(each.solid and each.box == whole for each in filled):
        return solid_crop(*whole)
    x0, y0, x1, y1 = whole
    pixels = np.zeros((y1 - y0, x1 - x0), dtype=np.bool_)
    solid = np.array([each.solid for each in filled])
    if np.count_nonzero(solid) >= _MANY:
        _fill(pixels, boxes[solid] - (x0, y0, x0, y0))
        filled = [each for each in filled if not each.solid]
    for each in filled:
        height, width = each.pixels.shape
        pixels[each.y - y0 : each.y - y0 + height, each.x - x0 : each.x - x0 + width] |= each.pixels
    return Crop(x0, y0, pixels)


def _boxes(crops: Sequence[Crop]) -> Counts:
    return np.array([each.box for each in crops], dtype=np.int64).reshape(len(crops), 4)


def _within(mask: Crop, boxes: Counts) -> Counts:
    """How many pixels of `mask` lie in each of the boxes, all of which overlap with its own."""
    x0, y0, x1, y1 = mask.box
    places = np.clip(boxes, (x0, y0, x0, y0), (x1, y1, x1, y1)) - (x0, y0, x0, y0)
    areas = np.zeros(len(boxes), dtype=np.int64)
    if len(boxes) < _MANY:
        for place, (left, top, right, bottom) in enumerate(places.tolist()):
            areas[place] = np.count_nonzero(mask.pixels[top:bottom, left:right])
        return areas
    left, top, right, bottom = places.T
    for start, rows in _bands(mask.pixels):
        sums = np.zeros((len(rows) + 1, rows.shape[1] + 1), dtype=np.int64)
        np.cumsum(rows, axis=0, out=sums[1:, 1:])
        np.cumsum(sums[1:, 1:], axis=1, out=sums[1:, 1:])
        above, below = (np.clip(each - start, 0, len(rows)) for each in (top, bottom))
        areas += sums[below, right] - sums[above, right] - sums[below, left] + sums[above, left]
    return areas


def _fill(pixels: Mask, boxes: Counts) -> None:
    """Set what lies in any of the boxes: a pixel does where more of them have begun than ended."""
    left, top, right, bottom = boxes.T
    # Where the number of boxes changes from one row, and one column, to the next.
    rows = np.concatenate([top, top, bottom, bottom])
    columns = np.concatenate([left, right, left, right])
    steps = np.repeat((1, -1, -1, 1), len(boxes))
    order = np.argsort(rows, kind="stable")
    rows, columns, steps = rows[order], columns[order], steps[order]
    open_boxes = np.zeros(pixels.shape[1] + 1, dtype=np.int64)
    for start, band in _bands(pixels):
        first, last = np.searchsorted(rows, (start, start + len(band)))
        changes = np.zeros((len(band), len(open_boxes)), dtype=np.int64)
        np.add.at(changes, (rows[first:last] - start, columns[first:last]), steps[first:last])
        changes[0] += open_boxes
        np.cumsum(changes, axis=0, out=changes)
        open_boxes = changes[-1].copy()
        band |= np.cumsum(changes, axis=1)[:, :-1] > 0


def _bands(pixels: Mask) -> Iterator[tuple[int, Mask]]:
    """Rows that lie together, and the number of the first."""
    height, width = pixels.shape
    step = max(1, _BAND // width)
    return ((start, pixels[start : start + step]) for start in range(0, height, step))
