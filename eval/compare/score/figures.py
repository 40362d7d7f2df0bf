"""Figures of two runs and their differences, B minus A, with intervals paired by image or prompt.

Everything is a function of sums over images: of anomalies, of their implausibility, of what was found of a
truth. One set of resamples serves all figures, so that they fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncanny.eval.common.estimates import Estimate, interval_json
from uncanny.eval.metrics.intervals import LEVEL, percentile_intervals, resampled_sums

Floats = NDArray[np.float64]
# Of the sums of the set, or of each resample.
Sums = Mapping[str, Floats]
Figure = Callable[[Sums], Floats]


@dataclass(frozen=True, slots=True)
class Paired:
    """A figure of both runs and B minus A, all None where there is nothing to measure on a side.

    Nothing is said to be better or worse unless `differs`.
    """

    a: float | None
    b: float | None
    difference: Estimate

    @property
    def differs(self) -> bool:
        """Whether the interval of the difference leaves 0 out."""
        return self.difference.excludes_zero is True

    def to_json(self) -> dict[str, object]:
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference.value,
            "ci": interval_json(self.difference),
        }


class ImageColumns:
    """Columns with an entry an image pair, summed over all and over resamples of `clusters`.

    `clusters` numbers, for each pair, what is resampled together: itself, or all images of its prompt.
    """

    def __init__(self, clusters: Sequence[int]) -> None:
        self._clusters = np.asarray(clusters, np.int64)
        self.size = int(self._clusters.max(initial=-1)) + 1
        self._columns: dict[str, Floats] = {"images": np.ones(len(self._clusters))}

    def add(self, name: str, values: ArrayLike) -> None:
        self._columns[name] = np.asarray(values, np.float64)

    def resampled(self, resamples: int, seed: int) -> Resampled:
        names = list(self._columns)
        table = np.zeros((self.size, len(names)))
        for number, name in enumerate(names):
            table[:, number] = np.bincount(self._clusters, weights=self._columns[name], minlength=self.size)
        drawn = None
        if resamples and self.size > 1:
            sums = resampled_sums(table, np.random.default_rng(seed), resamples=resamples)
            drawn = dict(zip(names, sums.T, strict=True))
        return Resampled(dict(zip(names, table.sum(axis=0), strict=True)), drawn)


@dataclass(frozen=True, slots=True)
class Resampled:
    """Sums of all columns, and those of the resamples; None where no intervals are wanted or possible."""

    totals: Sums
    drawn: Sums | None

    def estimate(self, figure: Figure) -> Estimate:
        """The figure with its 95 % interval."""
        value = _evaluated(figure, self.totals)
        if np.isnan(value):
            return Estimate(None)
        if self.drawn is None:
            return Estimate(float(value))
        (interval,) = percentile_intervals(_evaluated(figure, self.drawn)[:, None], level=LEVEL)
        return Estimate(float(value), interval)

    def paired(self, figure: Callable[[str], Figure]) -> Paired:
        """`figure` makes the one of side `a` and the one of side `b`."""
        a, b = figure("a"), figure("b")
        values = [_evaluated(each, self.totals) for each in (a, b)]
        known = [None if np.isnan(value) else float(value) for value in values]
        return Paired(known[0], known[1], self.estimate(lambda sums: b(sums) - a(sums)))


def _evaluated(figure: Figure, sums: Sums) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.asarray(figure(sums), np.float64)
    return np.where(np.isfinite(value), value, np.nan)


def ratio(counts: str, out_of: str) -> Callable[[str], Figure]:
    """One sum over the other; `{}` in their names stands for the side."""

    def of_side(side: str) -> Figure:
        return lambda sums: np.divide(sums[counts.format(side)], sums[out_of.format(side)])

    return of_side


def total(column: str) -> Callable[[str], Figure]:
    """A sum as it is; `{}` stands for the side."""
    return lambda side: lambda sums: sums[column.format(side)]
