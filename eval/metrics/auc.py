"""Areas under curves, of images and of pixels, with intervals; without a threshold anywhere.

That under the ROC curve is the chance that a generated image, or an edited pixel, scores above a real one,
ties counting half: 0–1, 1/2 is guessing, below it scores point the wrong way. That under the precision–recall
curve, average precision, is 0–1 too; guessing has the share of generated images, so it depends on how many
real ones there are.

Sources: E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, *Comparing the areas under two or more
correlated receiver operating characteristic curves*, Biometrics 44, 1988, by ranks as in X. Sun and W. Xu,
IEEE Signal Processing Letters 21, 2014; R. G. Newcombe, *Confidence intervals for an effect size measure
based on the Mann–Whitney statistic, part 2*, Statistics in Medicine 25, 2006, method 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics import RESAMPLES
from uncanny.eval.metrics.intervals import (
    LEVEL,
    Bools,
    Codes,
    Floats,
    Interval,
    percentile_intervals,
    sums_by_group,
    units,
)

Counts = NDArray[np.int64]
# Counts of many images, which need not be as wide.
ManyCounts = NDArray[np.int32]

# Levels that scores of pixels are counted in: those of 16 bits, so that maps of 8 or 16 bits are exact.
LEVELS: Final = 1 << 16
# For intervals over images, whose counts are kept apart.
COARSE: Final = 1 << 8
_IMAGES_AT_ONCE: Final = 1 << 10
# Cells that fit the cache of a core.
_DRAWN_AT_ONCE: Final = 1 << 16
# Of a curve in files and plots.
MOST_POINTS: Final = 200


@dataclass(frozen=True, slots=True)
class Auc:
    """`value` is None where one of the two classes is missing. `placements` has for each positive its share
    of negatives below it, ties half: their mean is the value, and that over a group of positives the group's.
    """

    value: float | None
    interval: Interval | None
    positives: int
    negatives: int
    placements: Floats = field(compare=False, repr=False)


def auc(scores: Floats, positive: Bools) -> Auc:
    """The AUC of `scores`, one an image, with its interval; `positive` says which are to score high.

    The interval is DeLong's on the scale of the logit, so that it stays within 0–1; where its variance is 0,
    as at an AUC of 1, Newcombe's, which has a width there too. Raises ValueError for scores that are no
    numbers, and where the two differ in length.
    """
    _check(scores, positive)
    above, below = scores[positive], scores[~positive]
    m, n = len(above), len(below)
    if not m or not n:
        return Auc(None, None, m, n, np.full(m, np.nan))
    placements = _shares_below(above, below)
    value = float(placements.mean())
    variance = _variance(placements) / m + _variance(1 - _shares_below(below, above)) / n
    return Auc(value, _interval(value, variance, m, n), m, n, placements)


def _check(scores: Floats, positive: Bools) -> None:
    if scores.shape != positive.shape or scores.ndim != 1:
        raise ValueError(f"scores of shape {scores.shape} against classes of shape {positive.shape}")
    if np.isnan(scores).any():
        raise ValueError("a score is not a number")


def _shares_below(values: Floats, others: Floats) -> Floats:
    """For each value the share of `others` below it, those equal to it counting half."""
    ordered = np.sort(others)
    low, high = np.searchsorted(ordered, values, "left"), np.searchsorted(ordered, values, "right")
    shares: Floats = (low + high) / (2 * len(others))
    return shares


def _variance(values: Floats) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


def _interval(value: float, variance: float, m: int, n: int) -> Interval:
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    if variance <= 0 or not 0 < value < 1:
        return _newcombe(value, m, n, z)
    middle = math.log(value / (1 - value))
    half = z * math.sqrt(variance) / (value * (1 - value))
    return _logistic(middle - half), _logistic(middle + half)


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def _newcombe(value: float, m: int, n: int, z: float) -> Interval:
    """Where the difference from `value` is as large as z standard errors, those of the end itself."""
    from scipy.optimize import brentq  # type: ignore[import-untyped]  # slow to import

    half = (m + n) / 2 - 1

    def apart(end: float) -> float:
        spread = 1 + half * ((1 - end) / (2 - end) + end / (1 + end))
        return (end - value) ** 2 - z * z * end * (1 - end) * spread / (m * n)

    tiny = 1e-12
    low = 0.0 if value <= tiny else brentq(apart, tiny, value - tiny) if apart(tiny) > 0 else 0.0
    high = 1.0 if value >= 1 - tiny else brentq(apart, value + tiny, 1 - tiny) if apart(1 - tiny) > 0 else 1.0
    return float(low), float(high)


class Curve(NamedTuple):
    """Precision and recall when the images from a threshold on are called positive, 0–1 each.

    An entry a different score, from the highest down; recall rises to 1.
    """

    thresholds: Floats
    precision: Floats
    recall: Floats

    def thinned(self, most: int = MOST_POINTS) -> Curve:
        """The same at `most` thresholds at most, the first and the last among them."""
        n = len(self.thresholds)
        kept = np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))
        return Curve(*(each[kept] for each in self))


@dataclass(frozen=True, slots=True)
class AveragePrecision:
    """`value` is None where one of the two classes is missing. `guessing` is the value of random scores."""

    value: float | None
    interval: Interval | None
    positives: int
    negatives: int
    curve: Curve = field(compare=False, repr=False)

    @property
    def guessing(self) -> float | None:
        images = self.positives + self.negatives
        return self.positives / images if images else None


def average_precision(
    scores: Floats, positive: Bools, *, groups: Codes | None = None, resamples: int = RESAMPLES, seed: int = 0
) -> AveragePrecision:
    """Average precision of `scores`, one an image: the sum of (Rₙ − Rₙ₋₁) Pₙ over the precision–recall curve.

    Nothing is interpolated, and equal scores are one step, as in scikit-learn. The interval is a percentile
    bootstrap over images, or `groups` of them. Raises ValueError as `auc` does.

    Source: Semi-Truths, appendix F, figures 23 and 24, which do not say how the area is computed.
    """
    _check(scores, positive)
    order = np.argsort(-scores, kind="stable")
    ordered, hits = scores[order], positive[order].astype(np.float64)
    ends = np.flatnonzero(np.append(np.diff(ordered) != 0, True)) if len(ordered) else np.zeros(0, np.int64)
    m, n = int(positive.sum()), int((~positive).sum())
    called, right = ends + 1, np.cumsum(hits)[ends]
    with np.errstate(invalid="ignore"):
        curve = Curve(ordered[ends], right / called, right / m)
    if not m or not n:
        return AveragePrecision(None, None, m, n, curve)
    starts = np.append(0, ends[:-1] + 1)
    area = float(_areas(np.ones((1, len(hits)), dtype=np.int64), hits, starts)[0])
    interval = None
    if resamples:
        codes = np.arange(len(scores)) if groups is None else groups[order]
        size = int(codes.max()) + 1
        rng, drawn = np.random.default_rng(seed), np.empty(resamples)
        step = max(1, _DRAWN_AT_ONCE // len(scores))
        for start in range(0, resamples, step):
            rows = min(step, resamples - start)
            # How often each is drawn, counted in one go: a tenth of the time of `rng.multinomial`.
            places = rng.integers(size, size=(rows, size)) + size * np.arange(rows)[:, None]
            times = np.bincount(places.ravel(), minlength=rows * size).reshape(rows, size)
            drawn[start : start + rows] = _areas(times if groups is None else times[:, codes], hits, starts)
        rarer = min(units(positive, groups), units(~positive, groups))
        interval = percentile_intervals(drawn[:, None], images=[rarer])[0]
    return AveragePrecision(area, interval, m, n, curve)


def _areas(weights: Counts, hits: Floats, starts: Counts) -> Floats:
    """Areas of images with `weights`, of shape (n, images), highest score first; NaN without positives.

    A step of the curve begins at each of `starts`.
    """
    right = weights * hits
    if len(starts) < len(hits):
        weights, right = (np.add.reduceat(each, starts, axis=1) for each in (weights, right))
    called, found = np.cumsum(weights, axis=1), np.cumsum(right, axis=1)
    with np.errstate(invalid="ignore"):
        areas: Floats = (right * found / np.maximum(called, 1)).sum(axis=1) / found[:, -1]
    return areas


def pixel_counts(heat_map: Floats, mask: Bools, levels: int = LEVELS) -> Counts:
    """How many pixels outside and inside the mask have each level, shape (2, levels), for `pixel_auc`.

    The heat map is in 0–1. Maps of 8 or 16 bits lose nothing with 65,536 levels; of finer ones what lies
    within a level counts as equal. Counts of several images may be added up. Raises ValueError where the two
    differ in shape.
    """
    if heat_map.shape != mask.shape:
        raise ValueError(f"a heat map of shape {heat_map.shape} against a mask of shape {mask.shape}")
    places = np.rint(heat_map.ravel() * (levels - 1)).astype(np.int64)
    places += levels * mask.ravel()
    counts: Counts = np.bincount(places, minlength=2 * levels).reshape(2, levels)
    return counts


def coarse(counts: Counts) -> Counts:
    """The same counts in `COARSE` levels, each as wide as the next, which divide those of `counts`."""
    fewer: Counts = counts.reshape(2, COARSE, -1).sum(axis=2)
    return fewer


def pixel_auc(counts: Counts) -> float | None:
    """The AUC of pixels that are counted by level, shape (2, levels): outside and inside the mask.

    None where all pixels are on one side. Source: SAGI, supplementary, section 3.1 and table 5, where the
    maps of a group are put one after the other, each pixel counting the same.
    """
    value = float(_auc_of(counts.astype(np.float64)[None])[0])
    return None if math.isnan(value) else value


def pixel_auc_interval(
    counts: ManyCounts,
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """A percentile bootstrap over images of their common AUC; `counts` has shape (images, 2, levels).

    Pixels of one image belong together, so images are drawn, or `groups` of them. None of nothing, of
    images that are alike unless they are at 0 or 1, and with 0 resamples.
    """
    if not len(counts) or not resamples:
        return None
    rng = np.random.default_rng(seed)
    rows = counts.reshape(len(counts), -1).astype(np.float64)
    if groups is not None:
        rows = sums_by_group(rows, groups)
    images = len(rows)
    values = np.empty(resamples)
    for start in range(0, resamples, _IMAGES_AT_ONCE):
        stop = min(start + _IMAGES_AT_ONCE, resamples)
        drawn = rng.multinomial(images, np.full(images, 1 / images), size=stop - start)
        values[start:stop] = _auc_of(
            (drawn.astype(np.float64) @ rows).reshape(stop - start, *counts.shape[1:])
        )
    return percentile_intervals(values[:, None], images=[images])[0]


def _auc_of(counts: Floats) -> Floats:
    """Of shape (n, 2, levels); NaN where a side is empty."""
    outside, inside = counts[:, 0], counts[:, 1]
    below = np.cumsum(outside, axis=1) - outside / 2
    pairs = outside.sum(axis=1) * inside.sum(axis=1)
    with np.errstate(invalid="ignore"):
        values: Floats = (inside * below).sum(axis=1) / pairs
    return values
