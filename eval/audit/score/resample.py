"""Bootstrap intervals of generators' scores and of their differences, all from one set of resampled sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.audit.data.aggregate import Aggregate
from uncanny.eval.common.estimates import Estimate, Interval
from uncanny.eval.metrics.audit import COLUMNS, METRICS, Floats, metrics_of_sums, sums_by_cluster
from uncanny.eval.metrics.intervals import (
    percentile_intervals,
    resampled_sums,
    resampled_t_test,
)

# With fewer images, or prompts, a bootstrap knows too little of how they vary: no interval, and nothing is
# told apart. With fewer prompts in common, a difference over them alone rests on too little.
FEWEST_SHARED = 10

Pair = tuple[str, str]
_CAP = METRICS.index("cap")


@dataclass(frozen=True, slots=True)
class Compared:
    """A pair's difference in MAI, AF and CAP; `shared` prompts, or None where not paired.

    `p_value` is of the test of CAP, by itself: of the difference of its roots, the geometric means of MAI and
    AF, which vary more evenly than the products. None where there is no interval.
    """

    shared: int | None
    estimates: tuple[Estimate, Estimate, Estimate]
    p_value: float | None


class Resamples:
    """All resamples of all generators, and of the `pairs` to be compared.

    Where nothing is paired, each generator's images are resampled by themselves, in a way that depends on
    `seed` and its name alone. Otherwise prompts are resampled, each with its images in all generators, and
    differences are taken over the prompts of both where the pairing was asked for.
    """

    def __init__(
        self,
        aggregates: Mapping[str, Aggregate],
        pairs: Sequence[Pair],
        *,
        paired: bool,
        resamples: int,
        seed: int,
    ) -> None:
        self._sums = _sums(aggregates, paired=paired)
        asked = any(aggregate.pairing.asked for aggregate in aggregates.values())
        self._shared = {pair: self._in_both(pair) for pair in pairs} if paired and asked else {}
        self._resampled: dict[str | tuple[Pair, str], Floats] = {}
        if paired:
            self._resample_together(resamples, seed)
        else:
            for name, sums in self._sums.items():
                rng = np.random.default_rng([seed, *name.encode("utf-8", "surrogatepass")])
                self._resampled[name] = metrics_of_sums(resampled_sums(sums, rng, resamples=resamples))

    def intervals(self, name: str) -> tuple[Interval | None, ...]:
        """Of MAI, AF, CAP and u_mean; None where fewer than `FEWEST_SHARED` images or prompts could be drawn
        from, for u_mean those with anomalies, and where all are alike."""
        sums = self._sums[name]
        if np.count_nonzero(sums[:, 0]) < FEWEST_SHARED:
            return (None,) * 4
        drawn = percentile_intervals(self._resampled[name])
        return (*drawn[:COLUMNS], drawn[COLUMNS] if np.count_nonzero(sums[:, 1]) >= FEWEST_SHARED else None)

    def compare(self, pair: Pair) -> Compared:
        """The first minus the second of one of the `pairs`; both have images."""
        shared = self._shared.get(pair)
        sums = [self._sums[name] if shared is None else self._sums[name][shared] for name in pair]
        figures = [metrics_of_sums(each.sum(axis=0)) for each in sums]
        values = np.subtract(*figures)[:COLUMNS]
        intervals: tuple[Interval | None, ...] = (None,) * COLUMNS
        p_value = None
        clusters = min(int(np.count_nonzero(each[:, 0])) for each in sums)
        if clusters >= FEWEST_SHARED:
            first, second = (self._resampled.get((pair, name), self._resampled[name]) for name in pair)
            intervals = tuple(percentile_intervals((first - second)[:, :COLUMNS]))
            roots = np.sqrt(first[:, _CAP]) - np.sqrt(second[:, _CAP])
            gap = float(np.sqrt(figures[0][_CAP]) - np.sqrt(figures[1][_CAP]))
            p_value = resampled_t_test(gap, roots, clusters)
        mai, af, cap = (Estimate(float(value), ends) for value, ends in zip(values, intervals, strict=True))
        return Compared(None if shared is None else int(np.count_nonzero(shared)), (mai, af, cap), p_value)

    def _in_both(self, pair: Pair) -> NDArray[np.bool_] | None:
        first, second = (self._sums[name][:, 0] > 0 for name in pair)
        shared = first & second
        all_shared = bool(shared.any()) and bool((first == second).all())
        return shared if all_shared or np.count_nonzero(shared) >= FEWEST_SHARED else None

    def _resample_together(self, resamples: int, seed: int) -> None:
        """One draw of prompts for everything, so that differences see the same prompts on both sides."""
        columns: dict[str | tuple[Pair, str], Floats] = dict(self._sums.items())
        for pair, shared in self._shared.items():
            for name in pair:
                if shared is not None and (self._sums[name][~shared, 0] > 0).any():
                    columns[pair, name] = self._sums[name] * shared[:, None]
        rng = np.random.default_rng(seed)
        sums = resampled_sums(np.concatenate(list(columns.values()), axis=1), rng, resamples=resamples)
        for index, key in enumerate(columns):
            self._resampled[key] = metrics_of_sums(sums[:, index * COLUMNS : (index + 1) * COLUMNS])


def _sums(aggregates: Mapping[str, Aggregate], *, paired: bool) -> dict[str, Floats]:
    """A table a generator, with a row a prompt of any of them where they are `paired`, else an image."""
    keys = sorted({key for aggregate in aggregates.values() for key in aggregate.prompt_keys})
    number = {key: index for index, key in enumerate(keys)}
    sums: dict[str, Floats] = {}
    for name, aggregate in aggregates.items():
        clusters = [number[key] for key in aggregate.prompt_keys] if paired else range(aggregate.images)
        rows, counts, severities = (
            np.asarray(column, dtype=np.int64)
            for column in (clusters, aggregate.counts, aggregate.severity_sums)
        )
        sums[name] = sums_by_cluster(rows, counts, severities, len(keys) if paired else aggregate.images)
    return sums
