"""Bold letters A–D as polygons, drawn without any font: the same pixels on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Literal

from PIL import Image

Letter = Literal["A", "B", "C", "D"]
_Polygon = Sequence[tuple[int, int]]

# The box that every letter is drawn in, in the units of the polygons.
WIDTH: Final = 104
HEIGHT: Final = 140

_FINE: Final = 4  # samples a pixel, along each side

# By the even-odd rule: a polygon inside another is a hole.
_SHAPES: Final[dict[Letter, Sequence[_Polygon]]] = {
    "A": (
        ((36, 0), (68, 0), (104, 140), (75, 140), (69, 111), (35, 111), (29, 140), (0, 140)),
        ((52, 31), (64, 88), (40, 88)),
    ),
    "B": (
        (
            *((2, 0), (62, 0), (80, 4), (92, 15), (97, 33), (93, 51), (81, 64)),
            *((95, 74), (102, 88), (103, 101), (98, 120), (85, 134), (66, 140), (2, 140)),
        ),
        ((30, 23), (55, 23), (64, 27), (68, 37), (64, 49), (55, 54), (30, 54)),
        ((30, 77), (58, 77), (69, 83), (73, 97), (69, 111), (58, 117), (30, 117)),
    ),
    "C": (
        (
            *((102, 44), (74, 49), (68, 32), (54, 24), (40, 29), (32, 43), (29, 70), (32, 97), (40, 111)),
            *((54, 116), (68, 108), (74, 91), (102, 96), (95, 121), (78, 136), (54, 140), (28, 133)),
            *((11, 115), (2, 92), (0, 70), (2, 48), (11, 25), (28, 7), (54, 0), (78, 4), (95, 19)),
        ),
    ),
    "D": (
        (
            *((2, 0), (52, 0), (74, 5), (91, 19), (101, 42), (104, 70)),
            *((101, 98), (91, 121), (74, 135), (52, 140), (2, 140)),
        ),
        ((30, 24), (50, 24), (63, 30), (71, 45), (74, 70), (71, 95), (63, 110), (50, 116), (30, 116)),
    ),
}


@lru_cache(maxsize=64)
def glyph(letter: Letter, height: int) -> Image.Image:
    """The letter as a gray mask `height` pixels high, 255 where it is solid. Kept: not to be drawn on.

    Raises `ValueError` for a height below 1.
    """
    if height < 1:
        raise ValueError(f"a letter {height} pixels high cannot be drawn")
    width = max(1, height * WIDTH // HEIGHT)
    rows = (_row(_SHAPES[letter], y, width * _FINE, height * _FINE) for y in range(height * _FINE))
    fine = Image.frombytes("L", (width * _FINE, height * _FINE), b"".join(rows))
    return fine.reduce(_FINE)


def _row(shape: Sequence[_Polygon], y: int, width: int, height: int) -> bytes:
    """One row of samples, taken at its middle."""
    crossings = sorted(
        _crossing(one, other, y, width, height)
        for polygon in shape
        for one, other in zip(polygon, (*polygon[1:], polygon[0]), strict=True)
        if _above(one, y, height) != _above(other, y, height)
    )
    row = bytearray(width)
    for start, end in zip(crossings[::2], crossings[1::2], strict=True):
        row[start:end] = b"\xff" * (end - start)
    return bytes(row)


def _above(point: tuple[int, int], y: int, height: int) -> bool:
    return 2 * height * point[1] < (2 * y + 1) * HEIGHT


def _crossing(one: tuple[int, int], other: tuple[int, int], y: int, width: int, height: int) -> int:
    """The first sample whose middle lies right of the edge. In whole numbers, so the same anywhere."""
    rise = 2 * height * (other[1] - one[1])
    along = (2 * y + 1) * HEIGHT - 2 * height * one[1]
    top, bottom = width * (one[0] * rise + (other[0] - one[0]) * along), WIDTH * rise
    # Half a sample less, rounded up.
    return max(0, min(width, -((bottom - 2 * top) // (2 * bottom))))
