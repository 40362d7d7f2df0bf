"""Shapes of annotation tools as pixels: polygons, boxes, circles, lines and points.

Tools do not agree on which pixels a polygon has, so there is a function for each rule: `polygon_crop`,
`circle_crop` and `line_crop` fill what labelme fills, `coco_polygon_crop` what pycocotools does. Sizes are
(width, height); what lies outside the image is cut off. All raise UsageError for an image of more pixels than
can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.pixels.crops import EMPTY, Box, Crop, Mask, Size, crop, solid_crop
from uncanny.eval.common.pixels.masks import Floats, check_size

if TYPE_CHECKING:
    from PIL import ImageDraw

Point = tuple[float, float]
Whole = NDArray[np.int64]

# What labelme draws a point and a line with, in pixels.
POINT_RADIUS: Final = 5
LINE_WIDTH: Final = 10
# pycocotools rounds corners to a fifth of a pixel; it fills what lies between two of its edges.
_FINER: Final = 5
# Columns crossed by edges that are worked on at once.
_CROSSINGS: Final = 1 << 18
# Edges of an outline that are looked at together, how many pairs of edges at once, and how many at all.
_PIECE: Final = 64
_PAIRS_AT_ONCE: Final = 1 << 20
_MOST_PAIRS: Final = 1 << 27


def polygon_crop(points: Sequence[Point], size: Size) -> Crop:
    """The pixels inside a polygon and on its outline, as labelme fills it.

    A corner is the pixel of its coordinates without what follows the point. What an outline that crosses
    itself encloses an even number of times is outside. Raises ValueError for fewer than three corners.

    Source: `labelme.utils.shape_to_mask`, which draws with Pillow.
    """
    corners = np.trunc(_corners(points))
    box = _visible(corners.min(axis=0), corners.max(axis=0), size)
    if box is not None and _is_upright(corners):
        return solid_crop(*box)
    return _drawn(box, lambda draw, y0: draw.polygon(_moved(corners, y0), outline=1, fill=1))


def circle_crop(middle: Point, radius: float, size: Size) -> Crop:
    """The pixels of a circle and on its outline, as labelme fills it; `radius` in pixels, 0 and more.

    Source: `labelme.utils.shape_to_mask`, which draws with Pillow.
    """
    low, high = (np.trunc([each + step for each in middle]) for step in (-radius, radius))
    box = _visible(low, high, size)
    return _drawn(box, lambda draw, y0: draw.ellipse(_moved((low, high), y0), outline=1, fill=1))


def line_crop(points: Sequence[Point], size: Size) -> Crop:
    """The pixels of a line through the points, 10 wide, as labelme draws it.

    Source: `labelme.utils.shape_to_mask`, which draws with Pillow.
    """
    places = np.trunc(np.asarray(points, dtype=np.float64))
    box = _visible(places.min(axis=0) - LINE_WIDTH, places.max(axis=0) + LINE_WIDTH, size)
    return _drawn(box, lambda draw, y0: draw.line(_moved(places, y0), fill=1, width=LINE_WIDTH))


def coco_polygon_crop(points: Sequence[Point], size: Size) -> Crop:
    """The pixels of a polygon as pycocotools has them: of whole corners those inside, without the outline.

    Corners are rounded to a fifth of a pixel, and edges become steps of a fifth. A pixel is inside where an
    odd number of edges has crossed the middle of its column above it. Raises ValueError for fewer than three
    corners.

    Source: `rleFrPoly` of pycocotools, bit for bit. That walks along the whole outline; here each crossing is
    worked out by itself, so that long edges take neither time nor memory.
    """
    check_size(size, None, "its image")
    corners = np.trunc(_FINER * _corners(points) + 0.5)
    crossings = _odd_crossings(np.concatenate([corners, np.roll(corners, -1, axis=0)], axis=1), size)
    columns, rows = np.divmod(crossings, size[1] + 1)
    if not len(columns):
        return EMPTY
    x0, x1, y0, y1 = int(columns[0]), int(columns[-1]) + 1, int(rows.min()), int(rows.max())
    # Down one column after the other, every crossing is where the pixels change sides.
    places = (columns - x0) * (y1 - y0) + rows - y0
    runs = np.diff(places, prepend=0, append=(x1 - x0) * (y1 - y0))
    inside = np.repeat(np.arange(len(runs)) % 2 == 1, runs).reshape(x1 - x0, y1 - y0)
    return crop(np.ascontiguousarray(inside.T), x0, y0)


def _odd_crossings(edges: Floats, size: Size) -> Whole:
    """Where an odd number of `edges` (x, y, x, y in fifths) crosses the middle of a column, in order.

    A place is column · (height + 1) + the row of the first pixel below it.
    """
    width, height = size
    low, high = np.sort(edges[:, ::2], axis=1).T
    # The middle of column n lies between the fifths 5n + 2 and 5n + 3.
    first = np.maximum(np.ceil((low - 2) / _FINER), 0)
    last = np.minimum(np.floor((high - 3) / _FINER), width - 1)
    number = np.maximum(last - first + 1, 0).astype(np.int64)
    parts: list[Whole] = []
    for some in _in_parts(number):
        count = number[some]
        columns = np.repeat(first[some] - np.cumsum(count) + count, count) + np.arange(count.sum())
        rows = _crossing_rows(np.repeat(edges[some], count, axis=0), _FINER * columns + 2)
        tops = np.ceil(np.clip((rows + 0.5) / _FINER - 0.5, 0, height))
        parts.append(_odd((columns * (height + 1) + tops).astype(np.int64)))
    return _odd(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)


def _in_parts(numbers: Whole) -> Iterator[slice]:
    """Neighbours whose numbers come to about `_CROSSINGS`."""
    sums = np.cumsum(numbers)
    start = 0
    while start < len(numbers):
        before = sums[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(sums, before + _CROSSINGS, side="right")))
        yield slice(start, end)
        start = end


def _odd(values: Whole) -> Whole:
    """The values that are there an odd number of times, in order."""
    different, counts = np.unique(values, return_counts=True)
    odd: Whole = different[counts % 2 == 1]
    return odd


def _crossing_rows(edges: Floats, left: Floats) -> Floats:
    """The upper of the two steps, in fifths, between which each edge gets from `left` to the next fifth.

    An edge that is rather level takes a step a column of fifths, one that is rather steep a step a row; the
    other coordinate is rounded.
    """
    along, across = np.abs(edges[:, 2:] - edges[:, :2]).T
    level = along >= across
    rows = np.empty(len(edges))
    x, y, slope = _forwards(edges[level])
    step = left[level] - x
    rows[level] = np.trunc(np.minimum(y + slope * step + 0.5, y + slope * (step + 1) + 0.5))
    y, x, slope = _forwards(edges[~level][:, [1, 0, 3, 2]])
    goal = left[~level] + 1
    step = np.maximum(np.ceil((goal - 0.5 - x) / slope) - 1, 1)
    # The quotient may be off by a hair; what counts is the first step that is across.
    for _ in range(2):
        step += (x + slope * step + 0.5 >= goal) != (slope > 0)
    rows[~level] = y + step - 1
    return rows


def _forwards(edges: Floats) -> tuple[Floats, Floats, Floats]:
    """Where edges begin, turned so that the first coordinate grows, and what the second grows by with it."""
    start, end = edges[:, :2], edges[:, 2:]
    backwards = (start[:, 0] > end[:, 0])[:, None]
    start, end = np.where(backwards, end, start), np.where(backwards, start, end)
    return *start.T, (end[:, 1] - start[:, 1]) / (end[:, 0] - start[:, 0])


def box_crop(box: Sequence[float], size: Size) -> Crop:
    """The pixels of a box; x1 and y1 are the first column and row outside. What lies outside is cut off.

    Of broken numbers every pixel that the box touches is in. Raises UsageError for an image of more pixels
    than can be read.
    """
    check_size(size, None, "its image")
    x0, y0 = (max(0, int(np.floor(value))) for value in box[:2])
    x1, y1 = (min(most, int(np.ceil(value))) for value, most in zip(box[2:], size, strict=True))
    return solid_crop(x0, y0, x1, y1)


def coco_box_crop(box: Sequence[float], size: Size) -> Crop:
    """The pixels of a box as pycocotools has them, for which it is a polygon of four corners."""
    x0, y0, x1, y1 = box
    if all(float(each).is_integer() for each in box):
        return box_crop(box, size)
    return coco_polygon_crop([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], size)


def point_crop(point: Point, size: Size) -> Crop:
    """The one pixel a point lies in; empty where that is outside."""
    x, y = (int(np.floor(value)) for value in point)
    inside = 0 <= x < size[0] and 0 <= y < size[1]
    return solid_crop(x, y, x + 1, y + 1) if inside else EMPTY


def crosses_itself(points: Sequence[Point]) -> bool | None:
    """Whether two edges of the polygon cross in their inside. Edges that only touch do not cross.

    None where so many edges lie across one another that it would take minutes to say.
    """
    corners = np.asarray(points, dtype=np.float64)
    if len(corners) < 4:
        return False
    # Edges that cross have boxes that overlap, and so have the pieces of the outline that they are in.
    piece = min(_PIECE, len(corners))
    padding = np.repeat(corners[:1], -len(corners) % piece + 1, axis=0)
    path = np.concatenate([corners, padding])
    pieces = np.lib.stride_tricks.sliding_window_view(path, piece + 1, axis=0)[::piece].transpose(0, 2, 1)
    low, high = pieces.min(axis=1), pieces.max(axis=1)
    step, left = max(1, _PAIRS_AT_ONCE // piece**2), _MOST_PAIRS
    for place, edges in enumerate(pieces):
        near = (low[place:] <= high[place]).all(axis=1) & (high[place:] >= low[place]).all(axis=1)
        others = place + np.flatnonzero(near)
        left -= len(others) * piece**2
        if left < 0:
            return None
        for first in range(0, len(others), step):
            paths = pieces[others[first : first + step]]
            if bool((_apart(edges[None], paths) & _apart(paths, edges[None]).transpose(0, 2, 1)).any()):
                return True
    return False


def _apart(edges: Floats, paths: Floats) -> Mask:
    """For each edge along `edges` and each along `paths`: whether the ends of the second lie on both sides of
    the line through the first. Both are stacks of paths, of the same number or of one."""
    x, y = edges[:, :-1, 0, None], edges[:, :-1, 1, None]
    along_x, along_y = np.diff(edges[..., 0])[..., None], np.diff(edges[..., 1])[..., None]
    sides = np.sign(along_x * (paths[:, None, :, 1] - y) - along_y * (paths[:, None, :, 0] - x))
    return np.asarray(sides[..., :-1] * sides[..., 1:] < 0)


def _corners(points: Sequence[Point]) -> Floats:
    corners = np.asarray(points, dtype=np.float64)
    if len(corners) < 3:
        raise ValueError(f"a polygon has three corners and more, not {len(corners)}")
    return corners


def _is_upright(corners: Floats) -> bool:
    """Whether four corners go around a box with sides along rows and columns, as rectangles are drawn."""
    if len(corners) != 4:
        return False
    along, across = (np.roll(corners, -1, axis=0) == corners).T
    first, second = slice(0, None, 2), slice(1, None, 2)
    return bool(
        (along[first].all() and across[second].all()) or (across[first].all() and along[second].all())
    )


def _visible(low: Floats, high: Floats, size: Size) -> Box | None:
    """The pixels of the image between two corners, both included; None where there are none."""
    check_size(size, None, "its image")
    (x0, y0), (x1, y1) = np.maximum(low, 0), np.minimum(high + 1, size)
    return (int(x0), int(y0), int(x1), int(y1)) if x0 < x1 and y0 < y1 else None


def _drawn(box: Box | None, draw: Callable[[ImageDraw.ImageDraw, int], None]) -> Crop:
    """What `draw` draws within the box, told at which row of the image its picture begins.

    Not at which column: Pillow's rounding depends on it.
    """
    from PIL import Image, ImageDraw

    if box is None:
        return EMPTY
    x0, y0, x1, y1 = box
    image = Image.new("L", (x1, y1 - y0))
    draw(ImageDraw.Draw(image), y0)
    return crop(np.asarray(image.crop((x0, 0, x1, y1 - y0))) != 0, x0, y0)


def _moved(places: Sequence[Floats] | Floats, y0: int) -> list[tuple[float, float]]:
    return [(x, y - y0) for x, y in np.asarray(places).tolist()]
