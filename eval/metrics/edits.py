"""How much an edit changed, where, and what it left alone: Semi-Truths, section 3.1, C.2 and algorithm 2.

Images are `uint8` arrays of shape (height, width, 3), RGB, both of one size; masks are `bool` arrays of shape
(height, width), True where something was to be edited. Areas are shares of the image in 0–1, distances are in
pixels. Sums are exact whole numbers, so figures do not depend on the order of pixels. What the paper leaves
open is said at each function; every constant is a parameter with the default decided on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
Mask = NDArray[np.bool_]
Whole = NDArray[np.signedinteger[Any]]

Shape = Literal["localized", "diffused"]
Bin = Literal["small", "medium", "large"]
BINS: Final[tuple[Bin, ...]] = ("small", "medium", "large")

WINDOW: Final = 5
THRESHOLD: Final = 0.1
LEAST_OBJECT: Final = 10
DILATION: Final = 11
LEAST_COMPONENT: Final = 200
NEIGHBOURS: Final = 200.0
DIFFUSED_RATIO: Final = 0.2
LOW_PERCENTILE, HIGH_PERCENTILE = 25.0, 75.0
DEVIATIONS: Final = 1.0

_TOP: Final = 255
# The largest sum of squared differences over the three channels of a pixel.
_MOST_DIFFERENT: Final = 3 * _TOP**2
# Constants of SSIM, as in Wang et al. (2004), table of defaults.
_K1, _K2 = 0.01, 0.03
# So many rows at a time stay in the processor's cache.
_ROWS: Final = 16
# The widest window whose sums fit into 32 bits.
_WIDEST_32: Final = 11
# Above it, distances are taken between the outermost points alone.
_MANY_POINTS: Final = 1000
_SQUARES: Final = (np.arange(_TOP + 1, dtype=np.uint32) ** 2).astype(np.uint32)


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
    return int(squares.sum(dtype=np.uint64)) / (squares.size * _MOST_DIFFERENT)


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
    counted = None if mask is None else ~_windows_with(mask, window)
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


class Component(NamedTuple):
    """One connected part of a post-edit mask: pixels, and the row and column of its centroid from 0."""

    area: int
    row: float
    column: float


@dataclass(frozen=True, slots=True)
class PostEdit:
    """Where an edit changed the picture, found from the pixels alone.

    `components` are the largest first. Ratios are shares of the image, 0 where nothing changed enough.
    `largest_centroid_distance` is between two of the centroids, 0 with fewer than two components.
    `clusters` counts components that lie near each other as one.
    """

    mask: Mask
    components: tuple[Component, ...]
    ratio: float
    largest_component_ratio: float
    largest_centroid_distance: float
    clusters: int


def post_edit(
    squares: NDArray[np.uint32],
    *,
    threshold: float = THRESHOLD,
    least_object: int = LEAST_OBJECT,
    dilation: int = DILATION,
    least_component: int = LEAST_COMPONENT,
    neighbours: float = NEIGHBOURS,
) -> PostEdit:
    """The post-edit mask of what `squared_difference` gives, and what is measured on it.

    Pixels whose squared difference / (3·255²) exceeds `threshold` (0–1) are changed. Changed objects under
    `least_object` pixels are dropped, the others dilated by a square of `dilation` pixels (odd), and
    connected components under `least_component` pixels dropped; pixels that touch at a corner are connected.
    Components whose centroids are nearer than `neighbours` pixels, directly or by way of others, are one
    cluster.

    Source: Semi-Truths, algorithm 2, which names the threshold and the 11 × 11 square. It dilates before it
    removes what is small and says neither sizes nor what merging does; here small objects go first, so that
    noise is not grown, and merging changes no mask but counts clusters.
    """
    if dilation < 1 or dilation % 2 == 0:
        raise ValueError(f"dilation must be odd and 1 at least, not {dilation!r}")
    changed = squares > threshold * _MOST_DIFFERENT
    box = _bounding_box(changed, dilation // 2)
    mask = np.zeros(squares.shape, dtype=np.bool_)
    components: list[Component] = []
    if box is not None:
        objects, _ = _without_small(changed[box], least_object)
        kept, components = _without_small(_dilate(objects, dilation), least_component)
        mask[box] = kept
        top, left = box[0].start, box[1].start
        components = [Component(area, row + top, column + left) for area, row, column in components]
    components.sort(reverse=True)
    centroids = np.array([each[1:] for each in components], dtype=np.float64).reshape(-1, 2)
    return PostEdit(
        mask,
        tuple(components),
        sum(each.area for each in components) / squares.size,
        (components[0].area if components else 0) / squares.size,
        _largest_distance(centroids),
        count_clusters(centroids, neighbours),
    )


def count_clusters(centroids: NDArray[np.float64], nearer_than: float = NEIGHBOURS) -> int:
    """Groups of points, shape (n, 2), that are linked by steps shorter than `nearer_than`; 0 of no point."""
    if len(centroids) < 2:
        return len(centroids)
    from scipy.sparse import coo_array  # type: ignore[import-untyped]  # slow to import
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]
    from scipy.spatial import KDTree  # type: ignore[import-untyped]

    links = KDTree(centroids).query_pairs(math.nextafter(nearer_than, 0.0), output_type="ndarray")
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(len(centroids),) * 2)
    return int(connected_components(graph, directed=False)[0])


class ShapeRule(NamedTuple):
    """When an edit counts as diffused.

    `clusters` and `distance` are what a set of edits has on average, None where there is no set to compare
    with: then the ratio alone decides.
    """

    ratio: float = DIFFUSED_RATIO
    clusters: float | None = None
    distance: float | None = None


def shape_rule(
    clusters: Sequence[int], distances: Sequence[float], *, ratio: float = DIFFUSED_RATIO
) -> ShapeRule:
    """The rule for a set: the mean number of clusters and the median largest centroid distance of its edits.

    Edits without a component count with 0 and 0. Of no edits, both are None.
    """
    if not clusters:
        return ShapeRule(ratio)
    return ShapeRule(ratio, math.fsum(clusters) / len(clusters), float(np.median(distances)))


def edit_shape(
    largest_component_ratio: float, clusters: int, largest_centroid_distance: float, rule: ShapeRule
) -> Shape | None:
    """Whether an edit is spread over the image: None where nothing changed enough to have a place.

    `diffused` is what has a component of at least `rule.ratio` of the image, or more clusters than
    `rule.clusters` and a largest centroid distance above `rule.distance`. The paper does not say what the
    distance is compared with.
    """
    if not clusters:
        return None
    spread = (
        rule.clusters is not None
        and rule.distance is not None
        and clusters > rule.clusters
        and largest_centroid_distance > rule.distance
    )
    return "diffused" if largest_component_ratio >= rule.ratio or spread else "localized"


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
    error = squares / (outside * _MOST_DIFFERENT)
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


def _windows_with(mask: Mask, window: int) -> Mask:
    """For every window, whether it holds a pixel of the mask."""
    rows = _over_windows(mask, window, 1, np.logical_or)
    result: Mask = _over_windows(rows.T, window, 1, np.logical_or).T
    return result


def _dilate(mask: Mask, side: int) -> Mask:
    """Every pixel that has one of the mask in the square of `side` pixels around it."""
    return _windows_with(np.pad(mask, side // 2), side)


def _bounding_box(mask: Mask, margin: int) -> tuple[slice, slice] | None:
    """Where the mask is not empty, with a margin as far as the image goes."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    top, left = max(0, int(rows[0]) - margin), max(0, int(columns[0]) - margin)
    return slice(top, int(rows[-1]) + margin + 1), slice(left, int(columns[-1]) + margin + 1)


def _without_small(mask: Mask, least: int) -> tuple[Mask, list[Component]]:
    """The mask without 8-connected components under `least` pixels, and the others."""
    from scipy.ndimage import label  # type: ignore[import-untyped]  # slow to import

    labels, number = label(mask, structure=np.ones((3, 3), dtype=np.int8))
    rows, columns = np.nonzero(labels)
    numbers = labels[rows, columns]
    areas = np.bincount(numbers, minlength=number + 1)
    keep = areas >= least
    keep[0] = False
    # Sums of whole numbers below 2**53: exact.
    row_sums = np.bincount(numbers, weights=rows, minlength=number + 1)
    column_sums = np.bincount(numbers, weights=columns, minlength=number + 1)
    components = [
        Component(
            int(areas[each]), float(row_sums[each] / areas[each]), float(column_sums[each] / areas[each])
        )
        for each in np.flatnonzero(keep)
    ]
    return keep[labels], components


def _largest_distance(points: NDArray[np.float64]) -> float:
    if len(points) < 2:
        return 0.0
    from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

    if len(points) > _MANY_POINTS:
        points = _outermost(points)
    return float(pdist(points).max())


def _outermost(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Those on the convex hull, among which the two farthest apart are."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        vertices: NDArray[np.intp] = ConvexHull(points).vertices
        return points[vertices]
    except QhullError:  # all on a line, where the two ends are the farthest apart
        order = np.lexsort(points.T)
        return points[order[[0, -1]]]
