"""Intervals of shares: Wilson's where a figure is a plain share of images, else a bootstrap over images.

A bootstrap of a share of 0 or 100 % has no width, however few the images are. Wilson's score interval has
one, and holds what it promises for few images too. E. B. Wilson, Probable inference, the law of succession,
and statistical inference, JASA 22 (1927); L. D. Brown, T. T. Cai, A. DasGupta, Interval estimation for a
binomial proportion, Statistical Science 16 (2001).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import numpy as np

from uncanny.eval.metrics.bootstrap import LEVEL, RESAMPLES, ratio_intervals
from uncanny.eval.metrics.mcq import Ratio

METHOD = "Wilson for plain shares, else percentile bootstrap over images"


def wilson_interval(count: int, out_of: int, *, level: float = LEVEL) -> tuple[float, float] | None:
    """The interval of the share `count` / `out_of`, within 0–1; None of nothing."""
    if not out_of:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = count / out_of, z * z / out_of
    middle = (share + weight / 2) / (1 + weight)
    half = z * sqrt(share * (1 - share) / out_of + weight / (4 * out_of)) / (1 + weight)
    return (0.0 if count == 0 else middle - half, 1.0 if count == out_of else middle + half)


def is_plain(found: Ratio) -> bool:
    """Whether each image counts for one or for nothing: no weights, and no image with several answers."""
    counts, out_of = np.asarray(found.counts), np.asarray(found.out_of)
    return bool(((out_of == 0) | (out_of == 1)).all() and ((counts == 0) | (counts == out_of)).all())


def share_intervals(
    ratios: Sequence[Ratio], *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> list[tuple[float, float] | None]:
    """One interval a ratio, None where it has no value; with 0 resamples there are none at all."""
    if not resamples:
        return [None] * len(ratios)
    plain = [is_plain(found) for found in ratios]
    others = [found for found, simple in zip(ratios, plain, strict=True) if not simple]
    drawn = iter(ratio_intervals(others, resamples=resamples, seed=seed, level=level))
    return [
        wilson_interval(*(int(column.sum(dtype=np.int64)) for column in found), level=level)
        if simple
        else next(drawn)
        for found, simple in zip(ratios, plain, strict=True)
    ]
