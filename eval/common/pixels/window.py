"""A crop of an image that keeps enough of a mask: what a detector is shown in place of the middle.

Source: Semi-Truths, appendix C.1 and algorithm 1. The text, and not the printed line 8, says what is
compared: the mask's pixels in the crop, out of those of the whole mask. The algorithm draws crops until one
is good; here it is drawn among the good ones, which is the same chance and ends. If there is none, the
paper's loop would not end: the crop that keeps most is taken, the one nearest to the middle of several.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from uncanny.eval.common.pixels.crops import Mask

How = Literal["center", "drawn", "most"]


class Window(NamedTuple):
    """A square from `x`, `y`. `kept` is the share of the mask's pixels in it, None of an empty mask.

    `how` says whether it is in the middle, was drawn among those that keep enough, or keeps the most.
    """

    x: int
    y: int
    side: int
    kept: float | None
    how: How

    @property
    def box(self) -> tuple[int, int, int, int]:
        """Left, top, right and bottom, the last two just outside."""
        return self.x, self.y, self.x + self.side, self.y + self.side


def mask_window(mask: Mask, side: int, least: float, rng: np.random.Generator) -> Window:
    """The middle `side` × `side` pixels if they keep the share `least` of the mask, 0–1, else others that do.

    An empty mask has the middle. Raises ValueError for a side below 1 or beyond one of the mask's.
    """
    height, width = mask.shape
    if not 1 <= side <= min(height, width):
        raise ValueError(f"a window of {side} pixels in a mask of {width} × {height}")
    top, left = (height - side) // 2, (width - side) // 2
    sums = np.zeros((height + 1, width + 1), dtype=np.int64)
    sums[1:, 1:] = np.cumsum(np.cumsum(mask, axis=0, dtype=np.int64), axis=1)
    total = int(sums[-1, -1])
    if not total:
        return Window(left, top, side, None, "center")
    counts = sums[side:, side:] - sums[:-side, side:] - sums[side:, :-side] + sums[:-side, :-side]
    enough = counts >= least * total
    how: How = "center"
    if not enough[top, left]:
        if enough.any():
            place, how = int(rng.choice(np.flatnonzero(enough))), "drawn"
        else:
            rows, columns = np.indices(counts.shape)
            distance = (rows - top) ** 2 + (columns - left) ** 2
            place, how = int(np.argmin(np.where(counts == counts.max(), distance, np.inf))), "most"
        top, left = divmod(place, counts.shape[1])
    return Window(int(left), int(top), side, int(counts[top, left]) / total, how)
