"""Percentile bootstrap intervals for ratios of sums over images."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.mcq import Ratio

RESAMPLES = 10_000
LEVEL = 0.95
_CELLS_AT_ONCE = 1 << 20

Floats = NDArray[np.float64]


def replicates(ratios: Sequence[Ratio], *, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """The value of each ratio in each resample of the images, shape (resamples, ratios).

    All ratios see the same resamples. NaN stands where a resample holds nothing to count out of.

    Images with the same entries in every column are one kind, and how often each kind is drawn is
    multinomial. Drawing the kinds' counts is the same as drawing the images, at the cost of the kinds alone.
    """
    if not ratios or not len(ratios[0].counts):
        return np.full((resamples, len(ratios)), np.nan)
    columns = np.stack([ratio.counts for ratio in ratios] + [ratio.out_of for ratio in ratios], axis=1)
    kinds, often = np.unique(columns, axis=0, return_counts=True)
    images, cells = len(columns), kinds.astype(np.float64)
    rng = np.random.default_rng(seed)
    found = np.empty((resamples, len(ratios)))
    step = max(1, _CELLS_AT_ONCE // len(kinds))
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        drawn = rng.multinomial(images, often / images, size=stop - start).astype(np.float64)
        counts, out_of = np.split(drawn @ cells, 2, axis=1)
        with np.errstate(invalid="ignore"):
            found[start:stop] = counts / out_of
    return found


def percentile_intervals(values: Floats, *, level: float = LEVEL) -> list[tuple[float, float] | None]:
    """Low and high end per column of `values`; NaN entries are left out, None where nothing is left."""
    tail = (1 - level) / 2
    ends: list[tuple[float, float] | None] = []
    for column in values.T:
        kept = column[~np.isnan(column)]
        low, high = np.quantile(kept, [tail, 1 - tail]) if len(kept) else (np.nan, np.nan)
        ends.append((float(low), float(high)) if len(kept) else None)
    return ends


def ratio_intervals(
    ratios: Sequence[Ratio], *, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> list[tuple[float, float] | None]:
    """Percentile intervals, one a ratio, resampling images; None where a ratio has no value."""
    return percentile_intervals(replicates(ratios, resamples=resamples, seed=seed), level=level)
