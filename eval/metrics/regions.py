"""How well predicted regions fit true ones: by pixels, by instances, by presence; and judging authenticity.

Source: *Unveiling Perceptual Artifacts* (X-AIGD), sections 3.3 and 4, and A.5 for instances. Figures lie in
0–1, higher is better, and are NaN where there is nothing to count out of. They are made of sums over images
(pooled), which is what the published tables have: there `IoU = F1 / (2 − F1)` holds, and of means over images
it does not. All functions of sums take arrays, so that a bootstrap is the same call.

Instances, by protocol:

- `paper`: a predicted region is right when at least the share `t` of it lies in one true region; a true
  region is found when some right one lies in it. Precision counts predictions, recall true regions.
- `release`, the authors' scorer: more than `t`. True regions are merged first (`merged`); what is found
  counts in both precision and recall, and precision has the predictions that lie nowhere beside it.

Deviation: annotators' confidence may weigh pixels and regions (A.6 recommends it and gives no formula). What
is true weighs as much as whoever is surest of it says, everything else 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.pixels.crops import Crop, Mask, crop, intersection_area, intersection_areas, union
from uncanny.eval.common.pixels.masks import component_crops
from uncanny.eval.metrics import TOLERANCE, RegionProtocol
from uncanny.eval.metrics.intervals import Bools, Floats

# Side of the square that the authors' scorer widens true regions by before it joins those that touch.
_WIDENED: Final = 5
# Bytes of two masks that stay in a core's cache together.
_BLOCK: Final = 1 << 17
# Predicted and true regions that are compared at once.
_PAIRS: Final = 1 << 21


class PixelCounts(NamedTuple):
    """Pixels that are predicted and true, predicted, and true; their weights where pixels have some."""

    both: float
    predicted: float
    true: float


class InstanceCounts(NamedTuple):
    """What precision counts and is out of, and what recall counts and is out of."""

    right: float
    predicted: float
    found: float
    true: float


class Overlap(NamedTuple):
    """IoU, PixP, PixR and PixF1 of sums of pixels, one entry a sum; NaN where of nothing."""

    iou: Floats
    precision: Floats
    recall: Floats
    f1: Floats


class Agreement(NamedTuple):
    """P@t, R@t and F1@t of sums of instances, one entry a sum; NaN where of nothing."""

    precision: Floats
    recall: Floats
    f1: Floats


class Judgement(NamedTuple):
    """Authenticity, generated as positive: the mean of both classes' accuracies, precision, recall and F1."""

    balanced_accuracy: Floats
    precision: Floats
    recall: Floats
    f1: Floats


def pixel_counts(predicted: Mask, true: Mask) -> PixelCounts:
    """The counts of two masks of the same shape, of one image. Raises ValueError where shapes differ."""
    if predicted.shape != true.shape:
        raise ValueError(f"masks of {predicted.shape} and {true.shape}")
    ours, theirs = np.ravel(predicted), np.ravel(true)
    both = n_predicted = n_true = 0
    # In blocks: what is in common is counted while both are still in the cache.
    common = np.empty(min(_BLOCK, len(ours)), dtype=np.bool_)
    for start in range(0, len(ours), _BLOCK):
        first, second = ours[start : start + _BLOCK], theirs[start : start + _BLOCK]
        of_first = int(np.count_nonzero(first))
        of_second = int(np.count_nonzero(second))
        if of_first and of_second:
            both += int(np.count_nonzero(np.logical_and(first, second, out=common[: len(first)])))
        n_predicted += of_first
        n_true += of_second
    return PixelCounts(both, n_predicted, n_true)


def region_counts(
    predicted: Sequence[Crop], true: Sequence[Crop], weights: Sequence[float] | None = None
) -> PixelCounts:
    """The counts of all predicted and all true regions of one image, each pixel once.

    `weights`, one a true region, make a true pixel count as the highest of the regions that it lies in.
    """
    ours, theirs = union(predicted), union(true)
    if weights is None:
        return PixelCounts(intersection_area(ours, theirs), ours.area, theirs.area)
    weighed = _weights(theirs, true, weights)
    outside = ours.area - intersection_area(ours, theirs)
    on_both = float(weighed[_within(theirs, ours)].sum())
    return PixelCounts(on_both, on_both + outside, float(weighed.sum()))


def _weights(whole: Crop, regions: Sequence[Crop], weights: Sequence[float]) -> Floats:
    weighed = np.zeros(whole.pixels.shape)
    # Those of one weight at once: annotators have few.
    by_weight: defaultdict[float, list[Crop]] = defaultdict(list)
    for each, weight in zip(regions, weights, strict=True):
        by_weight[weight].append(each)
    for weight in sorted(by_weight):
        region = union(by_weight[weight])
        height, width = region.pixels.shape
        rows = slice(region.y - whole.y, region.y - whole.y + height)
        columns = slice(region.x - whole.x, region.x - whole.x + width)
        weighed[rows, columns][region.pixels] = weight
    return weighed


def _within(whole: Crop, other: Crop) -> Mask:
    """Where `other` is set, on the pixels of `whole`."""
    inside = np.zeros(whole.pixels.shape, dtype=np.bool_)
    (ax0, ay0, ax1, ay1), (bx0, by0, bx1, by1) = whole.box, other.box
    x0, y0, x1, y1 = max(ax0, bx0), max(ay0, by0), min(ax1, bx1), min(ay1, by1)
    if x0 < x1 and y0 < y1:
        inside[y0 - ay0 : y1 - ay0, x0 - ax0 : x1 - ax0] = other.pixels[
            y0 - by0 : y1 - by0, x0 - bx0 : x1 - bx0
        ]
    return inside


def merged(regions: Sequence[Crop]) -> list[Crop]:
    """The true regions of `release`: those that nearly touch are one.

    Each connected part (8 neighbours) of the union, widened once by a square of 5 × 5, without what was
    added by that.
    """
    from scipy import ndimage  # type: ignore[import-untyped]  # slow to import

    whole = union(regions)
    if not whole.pixels.size:
        return []
    margin = _WIDENED // 2
    padded = np.pad(whole.pixels, margin)
    wide = ndimage.binary_dilation(padded, structure=np.ones((_WIDENED, _WIDENED)))
    # Room that is not in the picture may be at negative places: moved back below.
    parts = component_crops(Crop(0, 0, wide), 8)
    return [
        each._replace(x=whole.x + each.x - margin, y=whole.y + each.y - margin)
        for each in (_trimmed(part, padded) for part in parts)
    ]


def _trimmed(part: Crop, padded: Mask) -> Crop:
    height, width = part.pixels.shape
    return crop(part.pixels & padded[part.y : part.y + height, part.x : part.x + width], part.x, part.y)


def instance_counts(
    predicted: Sequence[Crop],
    true: Sequence[Crop],
    *,
    t: float = TOLERANCE,
    protocol: RegionProtocol = "paper",
    weights: Sequence[float] | None = None,
) -> InstanceCounts:
    """The counts of one image and one category.

    `t` is above 0 and up to 1. A predicted region without pixels, such as a box outside the image, is one
    that lies nowhere. `weights`, one a true region, count those that are found, or are to be, and the
    predictions that are right; a merged region has the highest of its own.
    """
    regions = list(true) if protocol == "paper" else merged(true)
    worth = np.ones(len(regions)) if weights is None else _worth(regions, true, weights, protocol)
    right = np.zeros(len(predicted), dtype=np.bool_)
    found_regions = np.zeros(len(regions), dtype=np.bool_)
    valued = 0.0
    step = max(1, _PAIRS // max(1, len(regions)))
    for start in range(0, len(predicted), step):
        some = predicted[start : start + step]
        areas = np.array([region.area for region in some], dtype=np.float64)
        with np.errstate(invalid="ignore"):
            shares = intersection_areas(some, regions) / areas[:, None]
        indicates: Bools = shares >= t if protocol == "paper" else shares > t
        right[start : start + step] = are_right = indicates.any(axis=1)
        found_regions |= indicates.any(axis=0)
        valued += float(np.where(indicates, worth, 0.0).max(axis=1, initial=0.0)[are_right].sum())
    found = float(worth[found_regions].sum())
    wrong = int(np.count_nonzero(~right))
    if protocol == "release":
        return InstanceCounts(found, found + wrong, found, float(worth.sum()))
    return InstanceCounts(valued, valued + wrong, found, float(worth.sum()))


def _worth(
    regions: Sequence[Crop], true: Sequence[Crop], weights: Sequence[float], protocol: RegionProtocol
) -> Floats:
    if protocol == "paper":
        return np.asarray(weights, dtype=np.float64)
    worth = np.zeros(len(regions))
    step = max(1, _PAIRS // max(1, len(regions)))
    for start in range(0, len(true), step):
        common = intersection_areas(true[start : start + step], regions) > 0
        some = np.asarray(weights[start : start + step], dtype=np.float64)
        np.maximum(worth, np.where(common, some[:, None], 0.0).max(axis=0, initial=0.0), out=worth)
    return worth


def overlap(both: Floats, predicted: Floats, true: Floats) -> Overlap:
    """The pixel metrics of sums. IoU and F1 are NaN where nothing is predicted and nothing true, precision
    where nothing is predicted, recall where nothing is true."""
    return Overlap(
        _ratio(both, predicted + true - both),
        _ratio(both, predicted),
        _ratio(both, true),
        _ratio(2 * both, predicted + true),
    )


def agreement(right: Floats, predicted: Floats, found: Floats, true: Floats) -> Agreement:
    """The instance metrics of sums. F1 is the harmonic mean of the other two; 0 where one of them is 0, also
    where the other one is of nothing, and NaN where both are of nothing."""
    precision, recall = _ratio(right, predicted), _ratio(found, true)
    p, r = np.nan_to_num(precision), np.nan_to_num(recall)
    f1 = np.where((predicted > 0) | (true > 0), np.nan_to_num(_ratio(2 * p * r, p + r)), np.nan)
    return Agreement(precision, recall, f1)


def presence(right: Floats, predicted: Floats, true: Floats) -> Floats:
    """Image-level F1: `right` are the images with the category on both sides; NaN where none has it."""
    return _ratio(2 * right, predicted + true)


def presence_by_chance(true: float, images: float, *, chance: float = 0.5) -> float | None:
    """F1 of presence for a guesser who says yes to each image with probability `chance`, 0–1.

    `true` of the `images` have the category. The value is of expected counts; None if no image has it.
    Source: X-AIGD, table 9, row Random. The paper does not say how it guesses. A fair coin fits its table 7;
    guessing with the frequency of a category does not, since commonsense artifacts would be in more images
    than there are such artifacts.
    """
    return 2 * chance * true / (chance * images + true) if true else None


def judgement(generated: Floats, called_generated: Floats, real: Floats, called_real: Floats) -> Judgement:
    """Authenticity judgment of sums over images: how many of each class there are, and were called that.

    Balanced accuracy is NaN without images of both classes, precision where no image is called generated.
    """
    recall = _ratio(called_generated, generated)
    positives = called_generated + real - called_real
    return Judgement(
        (recall + _ratio(called_real, real)) / 2,
        _ratio(called_generated, positives),
        recall,
        np.where(generated > 0, _ratio(2 * called_generated, generated + positives), np.nan),
    )


def artifact_ratio(true: Sequence[Crop], size: tuple[int, int]) -> float:
    """PAR: the share of the image that is artifact, 0–1; lower is better. `size` is width and height."""
    return union(true).area / (size[0] * size[1])


class Bin(NamedTuple):
    """Values from `lo` to `hi`, and where they are; the last of several bins holds its `hi` too."""

    lo: float
    hi: float
    where: Bools


def value_bins(values: Floats, number: int, *, zero_apart: bool = False) -> list[Bin]:
    """Bins with about as many values each, in order; NaN is in none. Fewer where values repeat.

    `zero_apart` gives 0 a bin of its own, as PAR has it: images without artifacts.
    """
    known = ~np.isnan(values)
    zero = known & (values == 0)
    bins = [Bin(0.0, 0.0, zero)] if zero_apart and zero.any() else []
    rest: Bools = known & ~zero if zero_apart else known
    if not rest.any():
        return bins
    edges = np.unique(np.quantile(values[rest], np.linspace(0, 1, number + 1)))
    if len(edges) == 1:
        return [*bins, Bin(float(edges[0]), float(edges[0]), rest)]
    places: NDArray[np.int64] = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return [
        *bins,
        *(
            Bin(float(low), float(high), rest & (places == place))
            for place, (low, high) in enumerate(pairwise(edges))
        ),
    ]


def _ratio(part: Floats, whole: Floats) -> Floats:
    part, whole = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    shape = np.broadcast_shapes(part.shape, whole.shape)
    shares: Floats = np.divide(part, whole, out=np.full(shape, np.nan), where=whole > 0)
    return shares
