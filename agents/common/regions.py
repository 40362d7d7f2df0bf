"""Which parts of an image are worth enlarging, chosen by code: where something is doubted, where things are,
and what nothing else covers.

All boxes are in pixels of the image file. The choice depends on the answers and the file alone, so that a run
that is repeated asks about the same parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, Literal

from uncanny.answers.boxes import area
from uncanny.schema import Box, Region

# Context around what a part is about, as a share of its sides, on each side.
CONTEXT: Final = 1 / 3
# An image pixel is never shown larger than that: beyond it one sees compression.
MOST_ENLARGED: Final = 4.0
# How many times larger than in the whole image a part has to be: where the model sees every pixel of the
# image anyway, and where it does not.
LEAST_SCALE: Final = 2.0
LEAST_SCALE_OF_LARGE: Final = 1.5
# From that many times the pixels that the model sees of it, an image is large: what nobody named is looked at
# in tiles, and parts may be larger.
LARGE: Final = 1.5
# The long side of a part, in pixels, where the image is large or something is doubted, and elsewhere; a model
# may take less.
LARGE_PART_SIDE, PART_SIDE = 1_024, 512
# A part that shows little is not scaled beyond that for being small in the whole.
SMALL_PART_SIDE: Final = 512
# A tile of less detail than this share of the average shows sky, blur or a plain wall.
LEAST_DETAIL: Final = 0.35
# Neighboring tiles have so much of a side in common, so that a small thing is whole in one of them.
OVERLAP: Final = 0.15
# An image is cut into so many tiles at most, of which those with detail are shown.
MOST_TILES: Final = 256
# A part shows a place of which so much is within it.
COVERED: Final = 0.8
# A doubted place that is too large to be enlarged as one is in so many pieces, at most.
MOST_PIECES: Final = 3

Why = Literal["finding", "object", "tile"]


@dataclass(frozen=True, slots=True)
class View:
    """How a model sees an image: `size` in pixels of the file, `shown` in those it sees of the whole.

    `part` is the long side, in pixels, up to which it takes a part without making it smaller.
    """

    size: tuple[int, int]
    shown: tuple[int, int]
    part: int

    @property
    def reduced(self) -> float:
        """Pixels of the file for one that the model sees, along a side; at least 1."""
        return max(1.0, max(self.size) / max(self.shown))

    @property
    def is_large(self) -> bool:
        return self.reduced**2 >= LARGE

    def side(self, why: Why) -> int:
        """The long side of parts at most."""
        return min(self.part, LARGE_PART_SIDE if self.is_large or why != "object" else PART_SIDE)

    def widest(self, why: Why) -> float:
        """The long side of the largest box that is still worth enlarging."""
        least = LEAST_SCALE_OF_LARGE if self.is_large or why != "object" else LEAST_SCALE
        return self.side(why) * self.reduced / least

    def side_of(self, box: Box, why: Why) -> int:
        """The long side that a part is scaled to: as it is in the file, or larger, where there is room."""
        long = max(box[2] - box[0], box[3] - box[1])
        wanted = max(SMALL_PART_SIDE, long, LEAST_SCALE * long / self.reduced)
        return max(1, math.floor(min(self.side(why), MOST_ENLARGED * long, wanted)))

    def scale(self, box: Box, why: Why) -> float:
        """How many times larger the model sees a part than in the whole image."""
        return self.side_of(box, why) / max(box[2] - box[0], box[3] - box[1]) * self.reduced

    def own_scale(self, box: Box) -> float | None:
        """That of the part that a doubted place would have for itself; None where it is not worth one."""
        own = grown(box, self, "finding")
        worth = max(own[2] - own[0], own[3] - own[1]) <= self.widest("finding")
        return self.scale(own, "finding") if worth else None


@dataclass(frozen=True, slots=True)
class Place:
    """What is to be looked at; an object has a `name`."""

    box: Box
    name: str | None = None


@dataclass(slots=True)
class _Window:
    why: Why
    box: Box
    tight: Box
    objects: list[str] = field(default_factory=list)


def choose_regions(
    doubted: Sequence[Place],
    things: Sequence[Place],
    view: View,
    most: int,
    detail: Callable[[Box], float] | None,
) -> list[Region]:
    """At most `most` parts of an image that are worth enlarging, numbered from 1.

    First those of what is `doubted`. Then, where the model sees every pixel anyway, those of `things`, in
    their order, with neighbors in one part. Where it does not, or no place is known, the rest is laid out in
    tiles; `detail` tells how much there is to see in a box, and None is for no tiles. What would not be
    enlarged is left out.
    """
    windows: list[_Window] = []
    for place in doubted:
        _add(windows, "finding", place, view, most)
    if detail is not None and (view.is_large or not (doubted or things)):
        tiles = _tiles(windows, things, view, most - len(windows), detail)
        in_tiles = {name for tile in tiles for name in tile.objects}
        for place in things:
            showing = next((each for each in windows if shows(each.box, place.box)), None)
            if place.name is not None and place.name not in in_tiles and showing is not None:
                showing.objects.append(place.name)
        windows += tiles
    else:
        for place in things:
            _add(windows, "object", place, view, most)
    return [
        Region(
            number=number,
            box=window.box,
            why=window.why,
            objects=tuple(dict.fromkeys(window.objects)),
            scale=round(view.scale(window.box, window.why), 2),
        )
        for number, window in enumerate(windows, start=1)
    ]


def _add(windows: list[_Window], why: Why, place: Place, view: View, most: int) -> None:
    """Put a place into a part that shows it or has room for it, or into one of its own while there may be."""
    names = [] if place.name is None else [place.name]
    own = grown(place.box, view, why)
    for window in windows:
        if shows(window.box, place.box) and _is_as_close(view, window, own, why):
            # It stays in view when the part takes in another one.
            window.tight = _union(window.tight, place.box)
            window.objects += names
            return
    joined: tuple[float, int, Box] | None = None
    for index, window in enumerate(windows):
        if why != window.why:
            continue  # a doubted place keeps its close view
        box = grown(_union(window.tight, place.box), view, why)
        growth = area(box) / (area(window.box) + area(own))
        roomy = max(box[2] - box[0], box[3] - box[1]) <= _merged_side(view, why)
        if roomy and (growth <= 1.0 or why == "object"):
            joined = min(joined or (math.inf, index, box), (growth, index, box))
    if joined is not None:
        window = windows[joined[1]]
        window.box, window.tight = joined[2], _union(window.tight, place.box)
        window.objects += names
    elif len(windows) < most and max(own[2] - own[0], own[3] - own[1]) <= view.widest(why):
        windows.append(_Window(why, own, place.box, names))


def _merged_side(view: View, why: Why) -> float:
    """How large a part may grow by taking in its neighbors: until pixels of the file would be lost."""
    return min(view.widest(why), view.side(why) / 2) if why == "finding" else view.widest(why)


def _is_as_close(view: View, window: _Window, own: Box, why: Why) -> bool:
    """Whether a place is seen in a part about as large as in one of its own."""
    return view.scale(window.box, window.why) >= 0.5 * view.scale(own, why)


def grown(box: Box, view: View, why: Why) -> Box:
    """The box with its surroundings, within the image: not narrow, and not too small to be shown.

    A large doubted place has fewer of them where with all of them it would not be worth enlarging.
    """
    width, height = box[2] - box[0], box[3] - box[1]
    least = view.side("finding") / MOST_ENLARGED
    most = math.floor(view.widest(why)) if why == "finding" else math.inf
    wide = max(width, min(most, width * (1 + 2 * CONTEXT)), least)
    high = max(height, min(most, height * (1 + 2 * CONTEXT)), least)
    wide, high = max(wide, high / 2), max(high, wide / 2)
    x0, x1 = _span((box[0] + box[2]) / 2, wide, view.size[0])
    y0, y1 = _span((box[1] + box[3]) / 2, high, view.size[1])
    return x0, y0, x1, y1


def pieces(box: Box, view: View) -> list[Box]:
    """A doubted place in as few pieces as are worth enlarging, side by side; itself where it is one."""
    width, height = box[2] - box[0], box[3] - box[1]
    most = math.floor(view.widest("finding"))
    columns, rows = math.ceil(width / most), math.ceil(height / most)
    if not 1 < columns * rows <= MOST_PIECES:
        return [box]
    across = [box[0] + round(each * width / columns) for each in range(columns + 1)]
    down = [box[1] + round(each * height / rows) for each in range(rows + 1)]
    return [(x0, y0, x1, y1) for y0, y1 in pairwise(down) for x0, x1 in pairwise(across)]


def _span(middle: float, length: float, side: int) -> tuple[int, int]:
    """So much of a side, moved rather than cut off at its ends."""
    whole = min(side, math.ceil(length))
    start = min(max(0, round(middle - length / 2)), side - whole)
    return start, start + whole


def _tiles(
    windows: Sequence[_Window],
    things: Sequence[Place],
    view: View,
    most: int,
    detail: Callable[[Box], float],
) -> list[_Window]:
    """Tiles in rows and columns over the whole image, as small as at most `most` of them can be.

    A tile is left out where nothing of `things` is and nothing else is to be seen, or a part of `windows`
    shows it. None is so large that it would not be enlarged: then those with the most detail are taken. None
    is smaller than that takes, or than what is sent as it is in the file.
    """
    if most < 1:
        return []
    finest = min(view.side("tile"), view.widest("tile")) if view.is_large else max(view.size) / (2 - OVERLAP)
    columns, rows = (min(MOST_TILES, tiles_along(side, finest)) for side in view.size)
    numbers = [(x, y) for x in range(1, columns + 1) for y in range(1, min(rows, MOST_TILES // x) + 1)]
    lengths = {each: max(tile_size(view.size, *each)) for each in numbers}
    widest = math.ceil(view.widest("tile"))  # a part of a pixel more is a pixel
    # The finest one first.
    worth = sorted((each for each in numbers if lengths[each] <= widest), key=lengths.__getitem__)
    best: list[Box] = []
    for number in worth:
        boxes = tile_grid(view.size, *number)
        details = {box: detail(box) for box in boxes}
        least = LEAST_DETAIL * sum(details.values()) / len(boxes)
        best = [
            box
            for box in boxes
            if (0 < details[box] >= least or any(_is_in(each.box, box, view) for each in things))
            and not any(
                shows(window.box, box) and _is_as_close(view, window, box, "tile") for window in windows
            )
        ]
        if len(best) <= most:
            break
    else:
        best = sorted(sorted(best, key=lambda box: (-details[box], box))[:most], key=lambda b: (b[1], b[0]))
    return [
        _Window("object" if names else "tile", box, box, names)
        for box in best
        for names in [[each.name for each in things if each.name and _is_in(each.box, box, view)]]
    ]


def tiles_along(length: int, side: float) -> int:
    """How many tiles of a side, with their overlap, cover a length."""
    return max(1, math.ceil((length - OVERLAP * side) / ((1 - OVERLAP) * side)))


def tile_size(size: tuple[int, int], columns: int, rows: int) -> tuple[int, int]:
    """Width and height of tiles that cover an image, each with some overlap with its neighbors."""
    width, height = (
        math.ceil(side / (number - (number - 1) * OVERLAP))
        for side, number in zip(size, (columns, rows), strict=True)
    )
    return width, height


def tile_grid(size: tuple[int, int], columns: int, rows: int) -> list[Box]:
    """Tiles of one size that cover an image, row by row."""
    tile = tile_size(size, columns, rows)
    across, down = (
        [round(index * (side - length) / max(number - 1, 1)) for index in range(number)]
        for side, number, length in zip(size, (columns, rows), tile, strict=True)
    )
    return [(x, y, x + tile[0], y + tile[1]) for y in down for x in across]


def _is_in(box: Box, tile: Box, view: View) -> bool:
    """Whether the middle of a box is in a tile, or most of the tile is in a box that is no background."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    is_background = 2 * area(box) > view.size[0] * view.size[1]
    return (tile[0] <= x < tile[2] and tile[1] <= y < tile[3]) or (not is_background and shows(box, tile))


def _union(first: Box, second: Box) -> Box:
    return (
        min(first[0], second[0]),
        min(first[1], second[1]),
        max(first[2], second[2]),
        max(first[3], second[3]),
    )


def shows(region: Box, box: Box, share: float = COVERED) -> bool:
    """Whether a `share` of a box, most of it by default, is within a region."""
    width, height = (
        min(region[2], box[2]) - max(region[0], box[0]),
        min(region[3], box[3]) - max(region[1], box[1]),
    )
    return width > 0 and height > 0 and width * height >= share * area(box)


def closest_region(box: Box, regions: Sequence[Region]) -> Region | None:
    """The region that shows a box largest, of those that have most of it in view; None where none has."""
    showing = [each for each in regions if shows(each.box, box)]
    return max(showing, key=lambda each: (each.scale or 0.0, -each.number), default=None)


def regions_of(box: Box, regions: Sequence[Region], view: View) -> list[Region]:
    """The region that shows a doubted place largest, or those that show its pieces, if all are shown."""
    whole = closest_region(box, regions)
    if whole is not None:
        return [whole]
    shown = [closest_region(each, regions) for each in pieces(box, view)]
    return list({each.number: each for each in shown if each is not None}.values()) if all(shown) else []
