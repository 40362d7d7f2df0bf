"""Boxes with letters drawn onto a picture, for a model to choose between.

Source: SalArt-VQA, question 3: A red, B blue, C teal, D orange; lines and letters grow with the picture.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal, TypeVar

import orjson
from PIL import Image, ImageDraw, ImageFont

from uncanny.errors import UsageError
from uncanny.images.decode import without_warnings
from uncanny.images.encode import PixelPolicy, png_bytes
from uncanny.images.prepared import read_rgb

Letter = Literal["A", "B", "C", "D"]
Box = tuple[float, float, float, float]
_Colour = tuple[int, int, int]
_Place = tuple[int, int, int, int]

COLOURS: Final[Mapping[Letter, _Colour]] = {
    "A": (220, 20, 30),
    "B": (25, 85, 235),
    "C": (0, 128, 128),
    "D": (240, 115, 0),
}
NUMBERED: Final = (200, 20, 30)
T = TypeVar("T", bound=str)
_CAPITAL: Final = 0.7  # height of a capital letter of Pillow's font, as a share of its size
DRAWING: Final = 2
"""Goes up with any change to how boxes are drawn, so that stored drawings get other names."""

_WHITE: Final = (255, 255, 255)
_BLACK: Final = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class _Pen:
    """Widths in pixels: the coloured line, each of the two edges beside it, the letter's height."""

    line: int
    edge: int
    letter: int

    @property
    def frame(self) -> int:
        return self.line + 2 * self.edge

    @property
    def badge(self) -> int:
        return self.letter + 2 * max(2, self.letter // 4) + 2 * self.edge


def drawing_digest(image: bytes, boxes: Mapping[Letter, Box]) -> str:
    """SHA-256 of all that decides a drawing: the image file's bytes, the boxes, the way they are drawn.

    The order of the boxes does not count. The same on every machine, other than the drawing's own bytes.
    """
    content = {
        "drawing": DRAWING,
        "image": hashlib.sha256(image).hexdigest(),
        "boxes": {letter: [float(value) for value in box] for letter, box in boxes.items()},
    }
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()


@without_warnings()
def draw_boxes(image: bytes | Path, boxes: Mapping[Letter, Box], policy: PixelPolicy | None = None) -> bytes:
    """The picture with the boxes on it as PNG: same size, upright, RGB, alpha flattened onto white.

    Boxes are x0, y0, x1, y1 in pixels of the upright picture; parts outside it are cut off, and no boxes is
    the picture alone. Lines lie around a box and hide nothing in it, but for boxes at the border of the
    picture. Later letters cover earlier ones; badges lie above all lines, beside their box where there is
    room. A colour profile is left out and the samples are kept. Of `policy` only the limits on size count.

    Nothing but the picture is in the file. Its bytes are the same for the same input with one version of
    Pillow; another may pack them otherwise, and shade the letters' edges otherwise. Blocking. Raises
    `ImageError` for a picture that cannot be read, `UsageError` for a box outside it or without area.
    """
    picture = read_rgb(image, policy)[0].copy()  # pixels just decoded may be shared
    places = {letter: _pixels(letter, boxes[letter], picture.size) for letter in sorted(boxes)}
    _draw(picture, places, COLOURS)
    return png_bytes(picture)


def draw_numbers(picture: Image.Image, boxes: Mapping[int, Box]) -> None:
    """Draw boxes with their numbers onto an RGB picture, for people to look at.

    Boxes are x0, y0, x1, y1 in pixels of `picture`, of which they have a part.
    """
    places = {str(number): _pixels(str(number), box, picture.size) for number, box in boxes.items()}
    _draw(picture, places, dict.fromkeys(places, NUMBERED))


def _draw(picture: Image.Image, places: Mapping[T, _Place], colours: Mapping[T, _Colour]) -> None:
    pen, draw = _pen(picture.size), ImageDraw.Draw(picture)
    for name, place in places.items():
        _draw_frame(draw, place, colours[name], pen)
    taken: list[_Place] = []
    for name, place in places.items():
        others = [other for key, other in places.items() if key != name]
        badge = _badge_place(place, others, taken, pen, picture.size)
        taken.append(badge)
        _draw_badge(draw, name, colours[name], badge, pen)


def _pixels(letter: str, box: Box, size: tuple[int, int]) -> _Place:
    """The box in whole pixels, widened to the pixels it touches, inside the picture."""
    whole = all(math.isfinite(value) for value in box) and box[0] < box[2] and box[1] < box[3]
    if whole:
        x0, y0 = (max(0, math.floor(value)) for value in box[:2])
        x1, y1 = (min(side, math.ceil(value)) for value, side in zip(box[2:], size, strict=True))
        if x0 < x1 and y0 < y1:
            return x0, y0, x1, y1
    raise UsageError(
        f"box {letter} {box!r} has no area inside {size[0]} × {size[1]} pixels",
        remedy="Give x0, y0, x1, y1 in pixels of the upright picture, x0 < x1 and y0 < y1.",
    )


def _pen(size: tuple[int, int]) -> _Pen:
    """Widths by the geometric mean of the sides, so that a panorama gets neither huge nor tiny ones."""
    side = math.isqrt(size[0] * size[1])
    letter = min(max(11, side // 36), max(3, min(size) // 3))
    return _Pen(line=max(2, side // 160), edge=max(1, side // 1000), letter=letter)


def _draw_frame(draw: ImageDraw.ImageDraw, place: _Place, colour: _Colour, pen: _Pen) -> None:
    """A coloured line between a white and a black edge: one of them stands out on any ground."""
    outer = _cut(_grown(place, pen.frame), draw.im.size)
    for ink, width, margin in (
        (_WHITE, pen.frame, 0),
        (colour, pen.line + pen.edge, pen.edge),
        (_BLACK, pen.edge, pen.line + pen.edge),
    ):
        x0, y0, x1, y1 = _grown(outer, -margin)
        if x0 < x1 and y0 < y1:
            draw.rectangle((x0, y0, x1 - 1, y1 - 1), outline=ink, width=width)


def _draw_badge(draw: ImageDraw.ImageDraw, name: str, colour: _Colour, badge: _Place, pen: _Pen) -> None:
    for ink, margin in ((_WHITE, 0), (colour, pen.edge)):
        x0, y0, x1, y1 = _grown(badge, -margin)
        draw.rectangle((x0, y0, x1 - 1, y1 - 1), fill=ink)
    # A number of several digits is smaller, as a badge is a square.
    font, stroke = _font(pen.letter if len(name) == 1 else max(1, round(1.4 * pen.letter / len(name))))
    left, top, right, bottom = draw.textbbox((0, 0), name, font=font, stroke_width=stroke)
    at = (
        badge[0] + (badge[2] - badge[0] - right - left) // 2,
        badge[1] + (badge[3] - badge[1] - top - bottom) // 2,
    )
    draw.text(at, name, fill=_WHITE, font=font, stroke_width=stroke)


@lru_cache(maxsize=64)
def _font(height: int) -> tuple[ImageFont.FreeTypeFont | ImageFont.ImageFont, float]:
    """Pillow's own font, whose capitals with the stroke that makes them bold are `height` pixels high."""
    stroke = height / 22
    return ImageFont.load_default(max(1, (height - 2 * stroke) / _CAPITAL)), stroke


def _badge_place(
    place: _Place, others: Sequence[_Place], taken: Sequence[_Place], pen: _Pen, size: tuple[int, int]
) -> _Place:
    """Where the badge hides least: no other badge before all, then neither its own box nor the others."""
    frame = _cut(_grown(place, pen.frame), size)
    spots = [_moved(spot, size) for spot in _spots(frame, pen.badge)]

    def hidden(spot: _Place) -> tuple[int, int]:
        badges, boxes = (sum(_shared(spot, each) for each in places) for places in (taken, (place, *others)))
        return badges, boxes

    return min(spots, key=hidden)


def _spots(frame: _Place, side: int) -> Iterator[_Place]:
    """Above, below, left and right of the frame, then in its corners; the first is the usual one."""
    x0, y0, x1, y1 = frame
    corners = [(x, y) for y in (y0, y1 - side) for x in (x0, x1 - side)]
    above = [(x, y) for y in (y0 - side, y1) for x in (x0, x1 - side)]
    beside = [(x, y) for y in (y0, y1 - side) for x in (x0 - side, x1)]
    for x, y in (*above, *beside, *corners):
        yield x, y, x + side, y + side


def _cut(place: _Place, size: tuple[int, int]) -> _Place:
    return max(0, place[0]), max(0, place[1]), min(size[0], place[2]), min(size[1], place[3])


def _moved(place: _Place, size: tuple[int, int]) -> _Place:
    """The same size, moved into the picture."""
    x = max(0, min(place[0], size[0] - (place[2] - place[0])))
    y = max(0, min(place[1], size[1] - (place[3] - place[1])))
    return x, y, x + place[2] - place[0], y + place[3] - place[1]


def _grown(place: _Place, by: int) -> _Place:
    return place[0] - by, place[1] - by, place[2] + by, place[3] + by


def _shared(left: _Place, right: _Place) -> int:
    """Pixels that lie in both."""
    width = min(left[2], right[2]) - max(left[0], right[0])
    height = min(left[3], right[3]) - max(left[1], right[1])
    return max(0, width) * max(0, height)
