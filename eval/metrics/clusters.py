"""Shares and paired tests over images that come in groups: edits of one original, images of one prompt.

Images of a group resemble each other, so that a hundred images of ten originals say less than a hundred of as
many. Shares have Wilson's interval of the number of independent images that would vary as much: n divided by
the design effect, the variance over groups relative to that of independent images, and less where groups are
few. Paired differences are tested by turning the signs of whole groups. With one image a group both are what
they are without groups: Wilson's interval and McNemar's exact test.

Sources: L. Kish, *Survey Sampling*, 1965, section 8.2 (design effect); E. L. Korn and B. I. Graubard,
*Confidence intervals for proportions with small expected number of positive counts estimated from survey
data*, Survey Methodology 24, 1998 (effective size, degrees of freedom), here with Wilson's interval in place
of Clopper and Pearson's, as in C. Franco, R. Little, T. Louis and E. Slud, *Comparative study of confidence
intervals for proportions in complex sample surveys*, Journal of Survey Statistics and Methodology 7, 2019;
R. A. Fisher, *The Design of Experiments*, 1935, chapter III (sign flips).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncanny.eval.metrics.intervals import LEVEL, Interval, wilson_interval

Codes = NDArray[np.int64]
# The exact test keeps a number for each sum that signs can give. Beyond so many its normal limit is as good.
MOST_SUMS = 20_000


def group_codes(groups: Iterable[Hashable]) -> Codes:
    """For each image the number of its group, from 0 in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(each, len(numbers)) for each in groups), dtype=np.int64)


def sums_by_group(values: ArrayLike, codes: Codes) -> NDArray[np.float64]:
    """The sum of `values`, an entry an image, in each group; shape (groups,)."""
    sums: NDArray[np.float64] = np.bincount(codes, weights=np.asarray(values, dtype=np.float64)).astype(
        np.float64
    )
    return sums


def effective_size(hits: ArrayLike, sizes: ArrayLike, *, level: float = LEVEL) -> float:
    """How many independent images say as much of a share as these groups do; `hits` of `sizes` in each.

    At most the number of images. Where the share is 0 or 1 its variance says nothing; images of a group count
    as one then, for groups of one size, and as (Σ sizes)² / Σ sizes² of several. 0 of nothing.
    """
    counts, out_of = (np.asarray(each, dtype=np.float64) for each in (hits, sizes))
    counts, out_of = counts[out_of > 0], out_of[out_of > 0]
    n, groups = float(out_of.sum()), len(out_of)
    if n == groups or not groups:
        return n  # each image by itself
    share = float(counts.sum()) / n
    if share in (0.0, 1.0) or groups < 2:
        return n * n / float((out_of**2).sum())
    variance = groups / (groups - 1) * float(((counts - share * out_of) ** 2).sum()) / n**2
    binomial = share * (1 - share) / n
    size = n / max(1.0, variance / binomial)
    return max(1.0, size * _few_groups(groups, level))


def clustered_interval(hits: ArrayLike, sizes: ArrayLike, *, level: float = LEVEL) -> Interval | None:
    """The interval of the share Σ `hits` / Σ `sizes`, an entry a group, within 0–1; None of nothing."""
    counts, out_of = (np.asarray(each, dtype=np.float64) for each in (hits, sizes))
    n = float(out_of.sum())
    if not n:
        return None
    size = effective_size(counts, out_of, level=level)
    return wilson_interval(size * float(counts.sum()) / n, size, level=level)


def _few_groups(groups: int, level: float) -> float:
    """A variance over few groups is known badly: Student's t in place of the normal, as a factor of size."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    normal = NormalDist().inv_cdf((1 + level) / 2)
    return float((normal / stdtrit(groups - 1, (1 + level) / 2)) ** 2)


def group_sign_test(differences: ArrayLike) -> float | None:
    """The exact two-sided p-value of a sum so far from 0 where the sign of each group is a fair coin's.

    `differences` are whole numbers, an entry a group: how many images only the first gets right, less those
    that only the second does. With one image a group it is McNemar's exact test. None of no groups, 1 where
    nothing differs.
    """
    values = np.asarray(differences, dtype=np.int64)
    if not len(values):
        return None
    steps = np.abs(values[values != 0])
    if not len(steps):
        return 1.0
    total, seen = int(steps.sum()), abs(int(values.sum()))
    if total > MOST_SUMS:
        # Corrected for being whole numbers, as the exact one is.
        spread = float(np.sqrt((steps.astype(np.float64) ** 2).sum()))
        return min(1.0, 2 * NormalDist().cdf(-max(0.0, seen - 1) / spread))
    # The chance of each sum of the steps with a plus: half of all, moved by a step, one step after the other.
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    reach = 0
    for step in steps.tolist():
        moved = chances[: reach + 1] / 2
        chances[: reach + 1] = moved
        chances[step : step + reach + 1] += moved
        reach += step
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(chances[sums >= seen].sum()))
