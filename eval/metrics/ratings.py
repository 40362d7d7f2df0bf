"""Ratings of people: how reliable they are (intraclass correlation), and how they follow a measured value.

Sources: P. E. Shrout and J. L. Fleiss, *Intraclass correlations: uses in assessing rater reliability*,
Psychological Bulletin 86, 1979, ICC(2,1) and ICC(2,k); K. O. McGraw and S. P. Wong, *Forming inferences about
some intraclass correlation coefficients*, Psychological Methods 1, 1996, ICC(A,1) and ICC(A,k), table 7.
K. Pearson, 1895; C. Spearman, 1904, with mean ranks for ties; M. Kendall, 1945 (tau-b).

A resample of a correlation draws images, or groups of them, so it is a weight for each image. All three
coefficients follow from how much weight each value has at each rating, so that thousands of resamples need no
sorting.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics import RESAMPLES
from uncanny.eval.metrics.intervals import ALPHA, Codes, Floats, percentile_intervals

_CELLS_AT_ONCE: Final = 1 << 20


class Reliability(NamedTuple):
    """ICC(2,1), of a `single` rating, and ICC(2,k), of the `average` of all raters, each with its interval.

    Both are at most 1; values below 0 say that raters agree less than by chance.
    """

    single: Estimate
    average: Estimate


def icc(ratings: ArrayLike) -> Reliability:
    """ICC(2,1) and ICC(2,k) of `ratings`: two-way random effects, absolute agreement.

    `ratings` has a row for each rated thing and a column for each rater, without gaps; any unit. Intervals
    are 95 %, from the F distribution with Satterthwaite's degrees of freedom. Both figures are None for fewer
    than two things or raters, and if all ratings are equal, so that nothing tells things apart. A figure
    whose estimated total variance is not above 0, as in tables of a few things, is None, too. Without
    residual variance, and where the formula gives no interval around the figure, there is none. Raises
    ValueError for an array that is not two-dimensional or has a gap.
    """
    table = np.asarray(ratings, dtype=np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError("ratings must be a table without gaps")
    n, k = table.shape
    if n < 2 or k < 2 or (table == table[0, 0]).all():
        return Reliability(Estimate(None), Estimate(None))
    mean, of_things, of_raters = table.mean(), table.mean(axis=1), table.mean(axis=0)
    between = float(k * ((of_things - mean) ** 2).sum() / (n - 1))
    raters = float(n * ((of_raters - mean) ** 2).sum() / (k - 1))
    residuals = table - of_things[:, None] - of_raters + mean
    error = float((residuals**2).sum() / ((n - 1) * (k - 1)))
    totals = between + (k - 1) * error + k * (raters - error) / n, between + (raters - error) / n
    single, average = ((between - error) / total if total > 0 else None for total in totals)
    if single is None:
        return Reliability(Estimate(None), Estimate(average))
    ends = _single_interval(single, between, raters, error, n, k)
    # The Spearman-Brown formula, which also leads from ICC(2,1) to ICC(2,k), has a pole.
    of_all = None
    if ends is not None and ends[0] > -1 / (k - 1):
        of_all = tuple(k * end / (1 + (k - 1) * end) for end in ends)
    return Reliability(Estimate(single, _around(single, ends)), Estimate(average, _around(average, of_all)))


def _around(value: float | None, ends: tuple[float, ...] | None) -> tuple[float, float] | None:
    """The interval, where it is one around the figure."""
    if value is None or ends is None or not np.isfinite(ends).all() or not ends[0] <= value <= ends[1]:
        return None
    return ends[0], ends[1]


def _single_interval(
    single: float, between: float, raters: float, error: float, n: int, k: int
) -> tuple[float, float] | None:
    """McGraw and Wong, table 7, case 2: from the mean squares of n things and k raters."""
    from scipy.special import fdtri  # type: ignore[import-untyped]  # slow to import, and few scores need it

    if error <= 1e-12 * (between + raters) or single >= 1:
        return None
    a = k * single / (n * (1 - single))
    b = 1 + k * single * (n - 1) / (n * (1 - single))
    spread = (a * raters + b * error) ** 2
    if not spread:
        return None
    freedom = spread / ((a * raters) ** 2 / (k - 1) + (b * error) ** 2 / ((n - 1) * (k - 1)))
    rest = k * raters + (k * n - k - n) * error
    lower, upper = fdtri(n - 1, freedom, 1 - ALPHA / 2), fdtri(freedom, n - 1, 1 - ALPHA / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.divide(n * (between - lower * error), lower * rest + n * between)
        high = np.divide(n * (upper * between - error), rest + n * upper * between)
    return float(low), float(high)


class Correlations(NamedTuple):
    """Three coefficients, −1 to 1, over `n` images; None below two images, or if one side never varies."""

    n: int
    pearson: Estimate
    kendall: Estimate
    spearman: Estimate


def correlations(
    ratings: ArrayLike,
    values: ArrayLike,
    groups: Codes | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Correlations:
    """Of `ratings`, few different numbers, with `values`, in any unit; an entry each an image, none missing.

    `groups` has an entry an image: the number, from 0, of the group that it is drawn with; None draws each
    image by itself. Intervals are 95 % percentile intervals of `resamples`, None with 0 of these. A resample
    in which one side does not vary is left out. Raises ValueError if the lengths differ.
    """
    rated, measured = np.asarray(ratings, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if rated.shape != measured.shape or rated.ndim != 1:
        raise ValueError(f"{rated.shape} ratings against {measured.shape} values")
    n = len(rated)
    if n < 2:
        return Correlations(n, *(Estimate(None),) * 3)
    table = _Table(rated, measured)
    here = table.coefficients(np.ones((1, n)))[0]
    drawn = np.empty((resamples, 3))
    codes = np.arange(n) if groups is None else groups
    n_groups = int(codes.max()) + 1
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, resamples, step):
        number = min(step, resamples - start)
        often = rng.multinomial(n_groups, np.full(n_groups, 1 / n_groups), size=number)
        drawn[start : start + number] = table.coefficients(often[:, codes].astype(np.float64))
    ends = percentile_intervals(drawn) if n_groups > 1 else [None] * 3
    estimates = (
        Estimate(None) if np.isnan(value) else Estimate(float(value), interval)
        for value, interval in zip(here, ends, strict=True)
    )
    return Correlations(n, *estimates)


class _Table:
    """Images in the order of their values, and which rating each has."""

    def __init__(self, ratings: Floats, values: Floats) -> None:
        self._order = np.argsort(values, kind="stable")
        self._values, self._starts = np.unique(values[self._order], return_index=True)
        self._ratings = np.unique(ratings)
        self._has = [ratings[self._order] == rating for rating in self._ratings]

    def coefficients(self, weights: Floats) -> Floats:
        """Pearson, Kendall and Spearman of each row of `weights`, an entry an image; NaN if undefined."""
        ordered = weights[:, self._order]
        cells = np.stack([np.add.reduceat(ordered * has, self._starts, axis=1) for has in self._has])
        at_value, at_rating = cells.sum(axis=0), cells.sum(axis=2).T
        with np.errstate(invalid="ignore", divide="ignore"):
            pearson = _pearson(
                cells, np.broadcast_to(self._ratings, at_rating.shape), self._values[None, :] + 0 * at_value
            )
            spearman = _pearson(cells, _ranks(at_rating), _ranks(at_value))
            return np.stack([pearson, _tau_b(cells, at_value, at_rating), spearman], axis=1)


def _ranks(weights: Floats) -> Floats:
    """The mean rank of each column's ties, row by row."""
    return np.cumsum(weights, axis=1) - weights / 2 + 0.5


def _pearson(cells: Floats, ratings: Floats, values: Floats) -> Floats:
    """`cells` are weights of rating × resample × value; the others resample × rating and × value."""
    at_value, at_rating = cells.sum(axis=0), cells.sum(axis=2).T
    n = at_value.sum(axis=1)
    dx = values - ((at_value * values).sum(axis=1) / n)[:, None]
    dy = ratings - ((at_rating * ratings).sum(axis=1) / n)[:, None]
    both = np.einsum("lru,rl,ru->r", cells, dy, dx)
    spreads = (at_value * dx**2).sum(axis=1) * (at_rating * dy**2).sum(axis=1)
    spreads[((at_value > 0).sum(axis=1) < 2) | ((at_rating > 0).sum(axis=1) < 2)] = np.nan
    return np.asarray(both / np.sqrt(spreads))


def _tau_b(cells: Floats, at_value: Floats, at_rating: Floats) -> Floats:
    below = np.cumsum(cells, axis=2) - cells
    score = np.zeros(cells.shape[1])
    for low, high in combinations(range(len(cells)), 2):
        score += (cells[high] * below[low] - cells[low] * below[high]).sum(axis=1)

    def pairs(weights: Floats) -> Floats:
        return np.asarray((weights * (weights - 1)).sum(axis=1) / 2)

    n = at_value.sum(axis=1, keepdims=True)
    untied = (pairs(n) - pairs(at_value)) * (pairs(n) - pairs(at_rating))
    return np.asarray(score / np.sqrt(np.where(untied > 0, untied, np.nan)))
