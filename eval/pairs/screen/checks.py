"""What the pixels of a candidate say: is it kept outside the mask, is it a picture, and did enough change?

Source: SalArt-VQA, appendix B.3, stage 4 (one salient artifact in the region, the rest of the image visually
unchanged); Semi-Truths, section 3.2, for edits that are all black. The limits are ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.pixels.crops import Mask
from uncanny.eval.pairs.data import Rejection
from uncanny.eval.pairs.make.compose import is_kept
from uncanny.eval.pairs.parameters import ScreenConfig


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of a candidate.

    `changed_of_mask` is the share of the mask's pixels that changed, `changed_of_image` that of the image's,
    both 0-1. `brightness_spread` is the standard deviation of brightness within the mask, 0-127.5. All are
    None of an empty mask.
    """

    changed_of_mask: float | None = None
    changed_of_image: float | None = None
    brightness_spread: float | None = None


def measure(original: NDArray[np.uint8], edited: NDArray[np.uint8], mask: Mask, change: int) -> Measured:
    """The figures of two RGB pictures of shape (height, width, 3) and a mask of (height, width).

    A pixel has changed where a channel differs by `change` (1-255) or more. Only pixels of the mask count.
    """
    number = int(np.count_nonzero(mask))
    if not number:
        return Measured()
    before, after = original[mask].astype(np.int16), edited[mask].astype(np.int16)
    changed = int(np.count_nonzero((np.abs(before - after) >= change).any(axis=1)))
    # Rec. 601, as Pillow makes grey of colors.
    spread = float((after @ np.array([0.299, 0.587, 0.114])).std())
    return Measured(changed / number, changed / mask.size, spread)


def rejection_of(
    original: NDArray[np.uint8],
    edited: NDArray[np.uint8],
    mask: Mask,
    measured: Measured,
    config: ScreenConfig,
) -> Rejection | None:
    """The first check that a candidate fails; None where it passes all."""
    if original.shape != edited.shape:
        sizes = " and ".join(f"{each.shape[1]} × {each.shape[0]}" for each in (original, edited))
        return Rejection(step="outside", why=f"the pictures are of {sizes} pixels")
    if not is_kept(original, edited, mask):
        number = int(np.count_nonzero((original != edited).any(axis=2) & ~mask))
        return Rejection(step="outside", why=f"{number:,} pixels outside the mask differ from the original")
    spread = measured.brightness_spread
    if spread is None:
        return Rejection(step="size", why="the mask is empty")
    if not edited[mask].any():
        return Rejection(step="quality", why="the region is black")
    if spread <= config.flat:
        return Rejection(step="quality", why="the region is one flat color")
    assert measured.changed_of_mask is not None
    assert measured.changed_of_image is not None
    if measured.changed_of_mask < config.least_change:
        return Rejection(step="size", why=f"{_percent(measured.changed_of_mask)} of the region changed")
    if measured.changed_of_image > config.largest_change:
        return Rejection(step="size", why=f"{_percent(measured.changed_of_image)} of the image changed")
    return None


def _percent(share: float) -> str:
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
