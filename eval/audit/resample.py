"""Intervals of an audit: figures of generators and their differences, from resampled sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uncanny.eval.audit.tally import Tally
from uncanny.eval.metrics.audit import COLUMNS, Floats, figures_of_sums, sums_by_cluster
from uncanny.eval.metrics.bootstrap import LEVEL, percentile_intervals
from uncanny.eval.metrics.clusters import resampled_sums

# With fewer prompts in common, a difference over them alone rests on too little.
FEWEST_SHARED = 10

Interval = tuple[float, float]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Compared:
    """A pair's difference in MAI, AF and CAP, with intervals; `shared` prompts or None where not paired."""

    shared: int | None
    values: tuple[float, ...]
    intervals: tuple[Interval | None, ...]


class Resampled:
    """All resamples of all generators, and of the pairs that were asked for.

    Where nothing is paired, each generator's images are resampled by themselves, in a way that depends on
    `seed` and its name alone. Otherwise prompts are resampled, each with its images in all generators.
    """

    def __init__(
        self, tallies: Mapping[str, Tally], pairs: Sequence[Pair], *, paired: bool, resamples: int, seed: int
    ) -> None:
        self._sums = _by_prompt(tallies) if paired else _by_image(tallies)
        self._shared = {pair: self._in_both(pair) for pair in pairs} if paired else {}
        self._drawn: dict[str | tuple[Pair, str], Floats] = {}
        if paired:
            self._draw_together(resamples, seed)
        else:
            for name, sums in self._sums.items():
                rng = np.random.default_rng([seed, *name.encode()])
                self._drawn[name] = figures_of_sums(resampled_sums(sums, rng, resamples=resamples))

    def intervals(self, name: str) -> tuple[Interval | None, ...]:
        """Of MAI, AF, CAP and u_mean; None where fewer than two images or prompts could be drawn from."""
        if np.count_nonzero(self._sums[name][:, 0]) < 2:
            return (None,) * 4
        return tuple(percentile_intervals(self._drawn[name], level=LEVEL))

    def compare(self, pair: Pair) -> Compared:
        """The first minus the second of a pair that was named at the beginning; both have images."""
        shared = self._shared.get(pair)
        sums = [self._sums[name] if shared is None else self._sums[name][shared] for name in pair]
        values = np.subtract(*(figures_of_sums(each.sum(axis=0)) for each in sums))
        intervals: tuple[Interval | None, ...] = (None,) * COLUMNS
        if all(np.count_nonzero(each[:, 0]) > 1 for each in sums):
            first, second = (self._drawn.get((pair, name), self._drawn[name]) for name in pair)
            intervals = tuple(percentile_intervals((first - second)[:, :COLUMNS], level=LEVEL))
        number = None if shared is None else int(np.count_nonzero(shared))
        return Compared(number, tuple(float(value) for value in values[:COLUMNS]), intervals)

    def _in_both(self, pair: Pair) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        first, second = (self._sums[name][:, 0] > 0 for name in pair)
        shared = first & second
        alike = bool(shared.any()) and bool((first == second).all())
        return shared if alike or np.count_nonzero(shared) >= FEWEST_SHARED else None

    def _draw_together(self, resamples: int, seed: int) -> None:
        """One draw of prompts for everything, so that differences see the same prompts on both sides."""
        columns: dict[str | tuple[Pair, str], Floats] = dict(self._sums.items())
        for pair, shared in self._shared.items():
            for name in pair:
                if shared is not None and (self._sums[name][~shared, 0] > 0).any():
                    columns[pair, name] = self._sums[name] * shared[:, None]
        rng = np.random.default_rng(seed)
        drawn = resampled_sums(np.concatenate(list(columns.values()), axis=1), rng, resamples=resamples)
        for index, key in enumerate(columns):
            self._drawn[key] = figures_of_sums(drawn[:, index * COLUMNS : (index + 1) * COLUMNS])


def _by_image(tallies: Mapping[str, Tally]) -> dict[str, Floats]:
    return {
        name: _sums(tally, np.arange(len(tally.counts)), len(tally.counts)) for name, tally in tallies.items()
    }


def _by_prompt(tallies: Mapping[str, Tally]) -> dict[str, Floats]:
    keys = sorted({key for tally in tallies.values() for key in tally.keys})
    number = {key: index for index, key in enumerate(keys)}
    return {
        name: _sums(tally, np.array([number[key] for key in tally.keys], dtype=np.int64), len(keys))
        for name, tally in tallies.items()
    }


def _sums(tally: Tally, clusters: np.ndarray[tuple[int], np.dtype[np.int64]], size: int) -> Floats:
    counts, severities = (np.asarray(each, dtype=np.int64) for each in (tally.counts, tally.severity_sums))
    return sums_by_cluster(clusters, counts, severities, size)
