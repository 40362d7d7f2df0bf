"""Bootstrap over clusters: what belongs together is drawn together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.bootstrap import RESAMPLES

Floats = NDArray[np.float64]
Rng = np.random.Generator

_CELLS_AT_ONCE = 1 << 20
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


def _summed(rows: Floats, resamples: int, draw: Callable[[int], Floats]) -> Floats:
    found = np.empty((resamples, rows.shape[1]))
    step = max(1, _CELLS_AT_ONCE // len(rows))
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        found[start:stop] = draw(stop - start) @ rows
    return found


def _drawn_kinds(often: NDArray[np.int64], number: int, rng: Rng) -> Floats:
    clusters = int(often.sum())
    return rng.multinomial(clusters, often / clusters, size=number).astype(np.float64)


def _drawn_clusters(clusters: int, number: int, rng: Rng) -> Floats:
    drawn = rng.integers(clusters, size=(number, clusters))
    drawn += clusters * np.arange(number)[:, None]
    often = np.bincount(drawn.ravel(), minlength=number * clusters)
    return often.reshape(number, clusters).astype(np.float64)
