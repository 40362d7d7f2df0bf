"""Where in an image something is, in words: nine places, by thirds of it each way."""

from __future__ import annotations

from typing import Final

from uncanny.schema import Box

PLACES: Final = tuple(
    f"at the {words}" if (words := " ".join(filter(None, (down, across)))) else "in the middle"
    for down in ("top", "", "bottom")
    for across in ("left", "", "right")
)
"""Row by row, from the upper left."""


def place_of(box: Box, size: tuple[int, int]) -> str:
    """The place of the middle of a box in an image of this width and height."""
    column, row = (min(2, int(3 * (box[at] + box[at + 2]) / 2 / side)) for at, side in enumerate(size))
    return PLACES[3 * row + column]
