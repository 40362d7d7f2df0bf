"""Percentile bootstrap intervals for ratios of sums over images.

Bootstrap over clusters: what belongs together is drawn together.

Means over images with percentile bootstrap intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

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


Counts = NDArray[np.int64]
Rng = np.random.Generator

# Small arrays are used again; larger ones go back to the system, and every page is fetched anew.
_CELLS_A_DRAW = 1 << 14
# BLAS shares a larger product among cores, which is worth the while for many columns only.
_CELLS_A_PRODUCT = 1 << 20
_FEW_COLUMNS = 8
# A count drawn for a kind costs as much as this many clusters drawn one by one (measured: 12 to 25).
_KIND_COST = 16


def resampled_sums(columns: Floats, rng: Rng, *, resamples: int = RESAMPLES) -> Floats:
    """The sum of each column in each resample, shape (resamples, columns).

    `columns` has a row a cluster, with what it adds to each sum. A resample draws as many clusters as there
    are, with replacement; all columns see the same ones. Without clusters all sums are 0.

    Where many rows are equal, how often each kind of row is drawn is multinomial, and drawing these counts is
    the same as drawing the clusters. Memory does not grow with `resamples` times clusters.
    """
    if not len(columns):
        return np.zeros((resamples, columns.shape[1]))
    kinds, often = np.unique(columns, axis=0, return_counts=True)
    if len(kinds) * _KIND_COST < len(columns):
        return _summed(kinds, resamples, lambda number: _drawn_kinds(often, number, rng))
    return _summed(columns, resamples, lambda number: _drawn_clusters(len(columns), number, rng))


def _summed(rows: Floats, resamples: int, draw: Callable[[int], Counts]) -> Floats:
    found = np.empty((resamples, rows.shape[1]))
    cells = _CELLS_A_DRAW if rows.shape[1] <= _FEW_COLUMNS else _CELLS_A_PRODUCT
    block = np.empty((max(1, min(resamples, cells // len(rows))), len(rows)))
    step = max(1, _CELLS_A_DRAW // len(rows))
    for start in range(0, resamples, len(block)):
        drawn = block[: min(len(block), resamples - start)]
        for first in range(0, len(drawn), step):
            part = drawn[first : first + step]
            part[:] = draw(len(part))
        found[start : start + len(drawn)] = drawn @ rows
    return found


def _drawn_kinds(often: Counts, number: int, rng: Rng) -> Counts:
    clusters = int(often.sum())
    return rng.multinomial(clusters, often / clusters, size=number)


def _drawn_clusters(clusters: int, number: int, rng: Rng) -> Counts:
    drawn = rng.integers(clusters, size=(number, clusters))
    drawn += clusters * np.arange(number)[:, None]
    often = np.bincount(drawn.ravel(), minlength=number * clusters)
    return often.reshape(number, clusters)


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
