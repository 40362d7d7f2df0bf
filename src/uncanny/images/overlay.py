"""Boxes with letters drawn onto a picture, for a model to choose between.

Source: SalArt-VQA, question 3: A red, B blue, C teal, D orange; widths and letters grow with the picture.

Small pictures for reports."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from PIL import Image

from uncanny.errors import ImageError, StorageError, UsageError
from uncanny.images.decode import PIXELS, Header, decode, explain, read_header
from uncanny.images.discover import short_path
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import read_image_file
from uncanny.images.glyphs import Letter, glyph
from uncanny.images.pixels import plain
from uncanny.images.png import write_png

Box = tuple[float, float, float, float]
_Colour = tuple[int, int, int]
_Place = tuple[int, int, int, int]

COLOURS: Final[Mapping[Letter, _Colour]] = {
    "A": (220, 20, 30),
    "B": (25, 85, 235),
    "C": (0, 128, 128),
    "D": (240, 115, 0),
}
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


def draw_boxes(image: bytes | Path, boxes: Mapping[Letter, Box], policy: PixelPolicy | None = None) -> bytes:
    """The picture with the boxes on it as PNG: same size, upright, RGB, alpha flattened onto white.

    Boxes are x0, y0, x1, y1 in pixels of the upright picture; parts outside it are cut off, and no boxes is
    the picture alone. Lines lie around a box and hide nothing in it, but for boxes at the border of the
    picture. Later letters cover earlier ones; badges lie above all lines, beside their box where there is
    room. A colour profile is left out and the samples are kept. Of `policy` only the limits on size count.

    The bytes depend on the decoded pixels and the boxes alone. Decoding is exact for lossless files; lossy
    ones, JPEG above all, may decode a shade differently with another version of the decoder. Blocking.
    Raises `ImageError` for a picture that cannot be read, `UsageError` for a box outside it or without area.
    """
    policy, data = policy or PixelPolicy(), b""
    try:
        data = image if isinstance(image, bytes) else read_image_file(image, policy.max_file_bytes)
        header = read_header(data, policy.max_pixels)
        with PIXELS.hold(header.pixels):
            return _drawn(_picture(data, header), boxes)
    except (UsageError, StorageError):
        raise
    except Exception as error:  # decoders raise all kinds of errors on hostile files
        told = explain(error, data)
        where = f"{short_path(image)}: " if isinstance(image, Path) else ""
        raise ImageError(f"{where}{told.message}", kind=told.kind, remedy=told.remedy) from error


def _drawn(picture: Image.Image, boxes: Mapping[Letter, Box]) -> bytes:
    places = {letter: _pixels(letter, boxes[letter], picture.size) for letter in sorted(boxes)}
    pen = _pen(picture.size)
    for letter, place in places.items():
        _draw_frame(picture, place, COLOURS[letter], pen)
    taken: list[_Place] = []
    for letter, place in places.items():
        others = [other for key, other in places.items() if key != letter]
        at = _badge_place(place, others, taken, pen, picture.size)
        taken.append(at)
        _draw_badge(picture, letter, at, pen)
    return write_png(picture)


def _picture(data: bytes, header: Header) -> Image.Image:
    picture, _, _ = plain(decode(data, header))
    if picture.mode in ("LA", "RGBA"):
        white = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(white, picture.convert("RGBA"))
    # A copy in any case: pixels just decoded may be shared, and these are drawn on.
    return picture.convert("RGB")


def _pixels(letter: Letter, box: Box, size: tuple[int, int]) -> _Place:
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


def _draw_frame(picture: Image.Image, place: _Place, colour: _Colour, pen: _Pen) -> None:
    """A coloured line between a white and a black edge: one of them stands out on any ground."""
    outer = _cut(_grown(place, pen.frame), picture.size)
    for ink, width in ((_WHITE, pen.edge), (colour, pen.line), (_BLACK, pen.edge)):
        x0, y0, x1, y1 = outer
        outer = _grown(outer, -width)
        for strip in ((x0, y0, x1, outer[1]), (x0, outer[3], x1, y1)):
            _fill(picture, ink, strip)
        for strip in ((x0, y0, outer[0], y1), (outer[2], y0, x1, y1)):
            _fill(picture, ink, strip)


def _draw_badge(picture: Image.Image, letter: Letter, at: _Place, pen: _Pen) -> None:
    for ink, margin in ((_WHITE, 0), (COLOURS[letter], pen.edge)):
        _fill(picture, ink, _grown(at, -margin))
    mask = glyph(letter, pen.letter)
    left, top = at[0] + (at[2] - at[0] - mask.width) // 2, at[1] + (at[3] - at[1] - mask.height) // 2
    picture.paste(_WHITE, (left, top, left + mask.width, top + mask.height), mask)


def _fill(picture: Image.Image, ink: _Colour, place: _Place) -> None:
    x0, y0, x1, y1 = _cut(place, picture.size)
    if x0 < x1 and y0 < y1:
        picture.paste(ink, (x0, y0, x1, y1))


def _badge_place(
    place: _Place, others: Sequence[_Place], taken: Sequence[_Place], pen: _Pen, size: tuple[int, int]
) -> _Place:
    """Where the badge hides least: no other badge before all, then neither its own box nor the others."""
    frame = _cut(_grown(place, pen.frame), size)
    spots = [_moved(spot, size) for spot in _spots(frame, pen.badge)]

    def hidden(spot: _Place) -> tuple[int, int]:
        badges, boxes = (sum(_shared(spot, one) for one in ones) for ones in (taken, (place, *others)))
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


def _shared(one: _Place, other: _Place) -> int:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(0, width) * max(0, height)


def thumbnail(
    path: Path, side: int = 320, policy: PixelPolicy | None = None, *, sha256: str | None = None
) -> bytes | None:
    """The picture upright as WebP, at most `side` pixels long and never enlarged; None when unreadable.

    Lossy: for people, not for models. Of `policy` only the limits on size count. With `sha256` it is None
    for a file of other bytes, too.
    """
    policy = policy or PixelPolicy()
    try:
        data = read_image_file(path, policy.max_file_bytes)
        if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
            return None
        header = read_header(data, policy.max_pixels)
        with PIXELS.hold(header.pixels):
            image, _, _ = plain(decode(data, header, draft=side))
            image.thumbnail((side, side), Image.Resampling.LANCZOS)
        image.info = {}
        out = BytesIO()
        image.save(out, "WEBP", quality=80, method=4)
    except Exception:  # a report goes without this picture, whatever is wrong with it
        return None
    return out.getvalue()
