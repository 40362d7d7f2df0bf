"""Means over images with percentile bootstrap intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.bootstrap import RESAMPLES, percentile_intervals
from uncanny.eval.metrics.clusters import resampled_sums

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Columns that are resampled together: of 10,774 images half a thousand are 44 MB.
_AT_ONCE = 512


class Mean:
    """The mean of `values` over the images that are `counted`; both have one entry an image."""

    __slots__ = ("counted", "values")

    def __init__(self, values: Floats, counted: Bools) -> None:
        self.values, self.counted = values, counted

    @property
    def value(self) -> float | None:
        """None where no image counts."""
        return float(self.values[self.counted].mean()) if self.counted.any() else None


def mean_intervals(
    means: Iterable[Mean], *, resamples: int = RESAMPLES, seed: int = 0
) -> Iterator[tuple[float, float] | None]:
    """The 95 % interval of each mean, resampling images; None where no image counts or `resamples` is 0.

    For a paired bootstrap of two means, give the mean of their difference image by image.
    """
    left = iter(means)
    while batch := list(islice(left, _AT_ONCE)):
        if resamples:
            yield from percentile_intervals(_replicates(batch, resamples, seed))
        else:
            yield from (None for _ in batch)


def _replicates(means: Sequence[Mean], resamples: int, seed: int) -> Floats:
    """The value of each mean in each resample, NaN where it counts no image; shape (resamples, means)."""
    places: dict[bytes, int] = {}
    counted: list[Bools] = []
    which = []
    for mean in means:
        key = mean.counted.tobytes()
        if key not in places:
            places[key] = len(counted)
            counted.append(mean.counted)
        which.append(places[key])
    columns = [np.where(mean.counted, mean.values, 0.0) for mean in means]
    table = np.stack([*columns, *(column.astype(np.float64) for column in counted)], axis=1)
    sums = resampled_sums(table, np.random.default_rng(seed), resamples=resamples)
    totals, sizes = sums[:, : len(means)], sums[:, len(means) :]
    with np.errstate(invalid="ignore"):
        found: Floats = totals / sizes[:, which]
    return found
