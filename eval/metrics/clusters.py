"""Bootstrap over clusters: what belongs together is drawn together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.bootstrap import RESAMPLES

Floats = NDArray[np.float64]
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
