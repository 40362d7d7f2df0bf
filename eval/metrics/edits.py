"""How much an edit changed, and what it left alone: Semi-Truths, sections 3.1 and C.2.

Images are `uint8` arrays of shape (height, width, 3), RGB, both of one size; masks are `bool` arrays of shape
(height, width), True where something was to be edited. Areas are shares of the image in 0–1, distances are in
pixels. Sums are exact whole numbers, so figures do not depend on the order of pixels. What the paper leaves
open is said at each function; every constant is a parameter with the default decided on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics import DEVIATIONS, HIGH_PERCENTILE, LOW_PERCENTILE, WINDOW

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Whole = NDArray[np.signedinteger[Any]]

Bin = Literal["small", "medium", "large"]
BINS: Final[tuple[Bin, ...]] = ("small", "medium", "large")

_TOP: Final = 255
# The largest sum of squared differences over the three channels of a pixel.
MOST_DIFFERENT: Final = 3 * _TOP**2
# Constants of SSIM, as in Wang et al. (2004), table of defaults.
_K1, _K2 = 0.01, 0.03
# So many rows at a time stay in the processor's cache.
_ROWS: Final = 16
# The widest window whose sums fit into 32 bits.
_WIDEST_32: Final = 11
_SQUARES: Final = (np.arange(_TOP + 1, dtype=np.uint32) ** 2).astype(np.uint32)


def normalized(value: float) -> float:
    """A similarity of −1 to 1, such as SSIM, as 0 to 1.

    Semi-Truths, section 3.1, normalizes all sizes of edits to 0–1 and does not say how. This is the way that
    depends on no other edit; bins by percentiles are the same with any.
    """
    return (1 + value) / 2


def mask_ratio(mask: Mask) -> float:
    """The share of the image that the mask covers, 0–1; 0 for an empty mask."""
    return int(np.count_nonzero(mask)) / mask.size


def squared_difference(original: Pixels, edited: Pixels) -> NDArray[np.uint32]:
    """The squared difference summed over the channels, shape (height, width): 0 to 3·255²."""
    _check_pair(original, edited)
    out = np.empty(original.shape[:2], dtype=np.uint32)
    for rows in _strips(len(out)):
        apart = np.maximum(original[rows], edited[rows]) - np.minimum(original[rows], edited[rows])
        squares = _SQUARES[apart]
        np.add(squares[..., 0], squares[..., 1], out=out[rows])
        out[rows] += squares[..., 2]
    return out


def mse(squares: NDArray[np.uint32]) -> float:
    """Mean squared error over RGB of what `squared_difference` gives, in 0–1, lower is more alike.

    Channels are in 0–1, so that black against white is 1.
    """
    return int(squares.sum(dtype=np.uint64)) / (squares.size * MOST_DIFFERENT)


def ssim(original: Pixels, edited: Pixels, *, window: int = WINDOW, mask: Mask | None = None) -> float | None:
    """Structural similarity, mean over windows and channels; −1 to 1, 1 for the same pixels.

    Windows are `window` × `window` pixels with even weights and lie within the image, variances are those of
    a sample (n − 1), constants K1 = 0.01 and K2 = 0.03: what `skimage.metrics.structural_similarity` does
    with `win_size=window, channel_axis=2, data_range=255`. With a `mask`, only windows that hold none of its
    pixels count. None where there is no such window, as in an image smaller than one.

    Source: Wang et al., Image quality assessment, 2004. Semi-Truths does not say which window it takes.
    """
    _check_pair(original, edited)
    if window < 3 or window % 2 == 0:
        raise ValueError(f"window must be odd and 3 at least, not {window!r}")
    height, width = original.shape[0] - window + 1, original.shape[1] - window + 1
    if height < 1 or width < 1:
        return None
    counted = None if mask is None else ~windows_with(mask, window)
    total, windows = 0.0, 0
    for top in range(0, height, _ROWS):
        end = min(height, top + _ROWS)
        first, second = original[top : end + window - 1], edited[top : end + window - 1]
        rows = None if counted is None else counted[top:end]
        number = (end - top) * width if rows is None else int(np.count_nonzero(rows))
        windows += number
        columns = np.flatnonzero((first != second).any(axis=(0, 2)))
        if not number or not len(columns):
            total += number  # the same pixels: 1 each
            continue
        left, right = max(0, int(columns[0]) - window + 1), min(width, int(columns[-1]) + 1)
        part = slice(left, right + window - 1)
        similar = _window_ssim(first[:, part], second[:, part], window)
        if rows is None:
            total += float(similar.sum(dtype=np.float64)) / 3 + (end - top) * (width - (right - left))
        else:
            inside = rows[:, left:right]
            total += float(similar[inside].sum(dtype=np.float64)) / 3 + number - np.count_nonzero(inside)
    return total / windows if windows else None


@dataclass(frozen=True, slots=True)
class Preserved:
    """How well the area outside the mask was kept. Errors are of channels in 0–1, lower is better.

    `psnr` is in decibels, higher is better, infinite where nothing changed; `ssim` as in `ssim`, None where
    no window lies outside the mask.
    """

    psnr: float
    mse: float
    mae: float
    ssim: float | None


def preserved(original: Pixels, edited: Pixels, mask: Mask, *, window: int = WINDOW) -> Preserved | None:
    """PSNR, MSE, MAE and SSIM of the area outside the mask; None where the mask covers everything.

    Source: SAGI, supplementary, table 3. What it leaves open: errors are over the pixels outside and all
    channels, SSIM over the windows that hold no pixel of the mask.
    """
    _check_pair(original, edited)
    _check_mask(original, mask)
    outside = mask.size - int(np.count_nonzero(mask))
    if not outside:
        return None
    squares = absolute = 0
    for rows in _strips(len(mask)):
        apart = np.maximum(original[rows], edited[rows]) - np.minimum(original[rows], edited[rows])
        apart[mask[rows]] = 0
        absolute += int(apart.sum(dtype=np.uint64))
        squares += int(_SQUARES[apart].sum(dtype=np.uint64))
    error = squares / (outside * MOST_DIFFERENT)
    return Preserved(
        -10 * math.log10(error) if error else math.inf,
        error,
        absolute / (outside * 3 * _TOP),
        ssim(original, edited, window=window, mask=mask),
    )


class Cutoffs(NamedTuple):
    """Values below `low` are small, above `high` large, all between medium, both ends included."""

    low: float
    high: float


def percentile_cutoffs(
    values: Iterable[float | None], *, low: float = LOW_PERCENTILE, high: float = HIGH_PERCENTILE
) -> Cutoffs | None:
    """Cut-offs at two percentiles of the values that were measured, interpolated linearly; None of none."""
    measured = [value for value in values if value is not None]
    if not measured:
        return None
    ends = np.percentile(np.array(measured, dtype=np.float64), (low, high))
    return Cutoffs(float(ends[0]), float(ends[1]))


def deviation_cutoffs(values: Iterable[float | None], *, deviations: float = DEVIATIONS) -> Cutoffs | None:
    """Cut-offs at the mean ± so many standard deviations (of the population); None of none.

    For scene diversity, the classes in the original, and scene complexity, its instances: Semi-Truths, C.2.
    """
    measured = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(measured):
        return None
    mean, apart = float(measured.mean()), deviations * float(measured.std())
    return Cutoffs(mean - apart, mean + apart)


def bin_of(value: float | None, cutoffs: Cutoffs | None) -> Bin | None:
    """The bin of a value, None where it was not measured or there are no cut-offs.

    Bins are of the value, whatever its direction: of SSIM and of text similarity `small` is the least alike.
    """
    if value is None or cutoffs is None:
        return None
    return "small" if value < cutoffs.low else "large" if value > cutoffs.high else "medium"


def _check_pair(original: Pixels, edited: Pixels) -> None:
    if original.shape != edited.shape or original.ndim != 3 or original.shape[2] != 3:
        raise ValueError(f"images must be of one size and RGB, not {original.shape} and {edited.shape}")
    if original.dtype != np.uint8 or edited.dtype != np.uint8:
        raise ValueError(f"images must be uint8, not {original.dtype} and {edited.dtype}")
    if not original.size:
        raise ValueError("images must have pixels")


def _check_mask(image: Pixels, mask: Mask) -> None:
    if mask.shape != image.shape[:2] or mask.dtype != np.bool_:
        raise ValueError(
            f"the mask must be bool and of the image's size {image.shape[:2]}, not {mask.dtype} {mask.shape}"
        )


def _strips(height: int) -> Iterator[slice]:
    return (slice(top, top + _ROWS) for top in range(0, height, _ROWS))


def _window_ssim(original: Pixels, edited: Pixels, window: int) -> NDArray[np.float32]:
    """SSIM of every window, summed over the channels. Window sums are exact whole numbers."""
    wide: type[np.signedinteger[Any]] = np.int32 if window <= _WIDEST_32 else np.int64
    width = original.shape[1] - window + 1
    # Channels stay beside each other: a step to the next pixel is three values.
    first: Whole = original.reshape(len(original), -1).astype(wide)
    second: Whole = edited.reshape(len(edited), -1).astype(wide)
    sum_first, sum_second = _window_sums(first, window), _window_sums(second, window)
    products = _window_sums(first * second, window)
    first *= first
    second *= second
    first += second
    squares = _window_sums(first, window)
    n = window * window
    luminance_1, luminance_2 = (_K1 * _TOP) ** 2 * n * n, (_K2 * _TOP) ** 2 * n * (n - 1)
    means = sum_first * sum_second
    sum_first *= sum_first
    sum_second *= sum_second
    sum_first += sum_second
    # All of SSIM's terms multiplied by n² or n(n − 1), so that differences are taken of whole numbers.
    products *= n
    products -= means
    squares *= n
    squares -= sum_first
    top = (2.0 * means.astype(np.float32) + np.float32(luminance_1)) * (
        2.0 * products.astype(np.float32) + np.float32(luminance_2)
    )
    bottom = (sum_first.astype(np.float32) + np.float32(luminance_1)) * (
        squares.astype(np.float32) + np.float32(luminance_2)
    )
    top /= bottom
    similar: NDArray[np.float32] = top.reshape(len(top), width, 3).sum(axis=2)
    return similar


def _window_sums(values: Whole, window: int) -> Whole:
    """Sums over all windows, of values whose neighbours to the right are three places on."""
    sums: Whole = _over_windows(_over_windows(values, window, 1, np.add).T, window, 3, np.add).T
    return sums


def _over_windows(values: NDArray[Any], window: int, step: int, combine: np.ufunc) -> NDArray[Any]:
    """What `combine` makes of each `window` rows that are `step` apart, by doubling: few passes, no loop."""
    length = len(values) - (window - 1) * step
    result: NDArray[Any] | None = None
    power, width, done = values, 1, 0
    while True:
        if window & width:
            part = power[done * step : done * step + length]
            result = part if result is None else combine(result, part)
            done += width
        if 2 * width > window:
            assert result is not None
            return result
        power = combine(power[: len(power) - width * step], power[width * step :])
        width *= 2


def windows_with(mask: Mask, window: int) -> Mask:
    """For every window, whether it holds a pixel of the mask."""
    rows = _over_windows(mask, window, 1, np.logical_or)
    result: Mask = _over_windows(rows.T, window, 1, np.logical_or).T
    return result
