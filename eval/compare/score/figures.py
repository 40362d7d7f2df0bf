"""Figures of two runs and their differences, B minus A, with intervals paired by image or prompt.

Everything is a function of sums over images: of anomalies, of their implausibility, of what was found of a
truth. One set of resamples serves all figures, so that they fit together. `Cost` has what
the runs took for the same images: calls, tokens, money and time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.headline import proven
from uncanny.eval.common.json_fields import JsonFields, json_of
from uncanny.eval.compare.data import ComparedRun, PairedRuns, RunImage
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.intervals import (
    Interval,
    percentile_intervals,
    resampled_sums,
    resampled_t_test,
)

Floats = NDArray[np.float64]
Name = TypeVar("Name", bound=str)
# Of the sums of the set, or of each resample.
Sums = Mapping[str, Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A function of sums, and the columns that it is out of: images without anything of these say nothing.

    `is_share` says that it is in 0–1, so that it has an interval where it is 0 or 1 on all images.
    """

    of: Callable[[Sums], Floats]
    out_of: tuple[str, ...]
    is_share: bool = False


@dataclass(frozen=True, slots=True)
class Paired(JsonFields):
    """A figure of both runs and B minus A, all None where there is nothing to measure on a side.

    Nothing is said to be better or worse unless `differs`. `p_value` is that of `resampled_t_test`, None
    without resamples; `adjusted_p` is corrected by Holm for the figures of the same family (`corrected`). A
    difference that is the same on all images has no interval, and the test alone decides. `b_interval` is
    that of `b` by itself.
    """

    json_keys: ClassVar = "a b difference p_value adjusted_p"

    a: float | None
    b: float | None
    difference: Estimate
    p_value: float | None = None
    adjusted_p: float | None = None
    b_interval: Interval | None = None

    @property
    def differs(self) -> bool:
        """Whether the corrected test finds the difference, and its interval, if any, leaves 0 out."""
        return proven(self.adjusted_p, self.difference.excludes_zero) is True


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
        images = np.count_nonzero(table, axis=0).tolist()
        return Resampled(
            dict(zip(names, table.sum(axis=0), strict=True)), drawn, dict(zip(names, images, strict=True))
        )


@dataclass(frozen=True, slots=True)
class Resampled:
    """Sums of all columns, and those of the resamples; None where no intervals are wanted or possible.

    `images` counts those, or prompts, that have anything of a column.
    """

    totals: Sums
    drawn: Sums | None
    images: Mapping[str, int]

    def estimate(self, figure: Figure) -> Estimate:
        """A figure of one side with its 95 % interval."""
        images = max(self.images[name] for name in figure.out_of) if figure.is_share else None
        return self._estimate(figure, images)

    def paired(self, figure: Callable[[str], Figure]) -> Paired:
        """`figure` makes the one of side `a` and the one of side `b`."""
        a, b = figure("a"), figure("b")
        values = [_evaluated(each, self.totals) for each in (a, b)]
        known = [None if np.isnan(value) else float(value) for value in values]
        gap = Figure(lambda sums: b.of(sums) - a.of(sums), (*a.out_of, *b.out_of))
        difference = self._estimate(gap)
        p_value = None
        if self.drawn is not None and difference.value is not None:
            images = min(self.images[name] for name in gap.out_of)
            p_value = resampled_t_test(difference.value, _evaluated(gap, self.drawn), images)
        return Paired(known[0], known[1], difference, p_value, b_interval=self.estimate(b).interval)

    def _estimate(self, figure: Figure, images: int | None = None) -> Estimate:
        value = _evaluated(figure, self.totals)
        if np.isnan(value):
            return Estimate(None)
        if self.drawn is None:
            return Estimate(float(value))
        drawn = _evaluated(figure, self.drawn)[:, None]
        (interval,) = percentile_intervals(drawn, images=None if images is None else [images])
        return Estimate(float(value), interval)


def corrected(figures: Mapping[Name, Paired]) -> dict[Name, Paired]:
    """The same family of figures with p-values that are corrected by Holm for their number."""
    adjusted = holm([each.p_value for each in figures.values()])
    return {
        name: replace(each, adjusted_p=p) for (name, each), p in zip(figures.items(), adjusted, strict=True)
    }


def _evaluated(figure: Figure, sums: Sums) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        value = np.asarray(figure.of(sums), np.float64)
    return np.where(np.isfinite(value), value, np.nan)


def share(counts: str, out_of: str) -> Callable[[str], Figure]:
    """As `ratio`, of what is in 0–1."""
    return lambda side: replace(ratio(counts, out_of)(side), is_share=True)


def ratio(counts: str, out_of: str) -> Callable[[str], Figure]:
    """One sum over the other; `{}` in their names stands for the side."""

    def of_side(side: str) -> Figure:
        above, below = counts.format(side), out_of.format(side)
        return Figure(lambda sums: np.divide(sums[above], sums[below]), (below,))

    return of_side


def total(column: str) -> Callable[[str], Figure]:
    """A sum as it is; `{}` stands for the side."""
    return lambda side: Figure(lambda sums: sums[column.format(side)], ("images",))


Measured = Literal["calls", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"]
CostName = Literal[Measured, "seconds_an_image"]
MEASURED: tuple[Measured, ...] = get_args(Measured)
COST_NAMES: tuple[CostName, ...] = (*MEASURED, "seconds_an_image")
Both = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Cost:
    """Sums over the images that both runs have a record of, whatever became of them: (A, B).

    A sum is None where any of its records did not measure it; `unmeasured` counts those. `seconds_an_image`
    is the clock time of a whole run by the images it has, None where no `run.json` says.
    """

    sums: Mapping[Measured, Both]
    unmeasured: Mapping[Measured, tuple[int, int]]
    images: int
    seconds_an_image: Both

    def ratio(self, name: CostName) -> float | None:
        """B/A; None where either is not known, or A is 0."""
        a, b = self.seconds_an_image if name == "seconds_an_image" else self.sums[name]
        return b / a if a and b is not None else None

    def to_json(self) -> dict[str, Any]:
        ratios = {name: self.ratio(name) for name in COST_NAMES}
        costs = json_of(self, "**sums seconds_an_image images")
        return {**costs, "ratio": ratios, **json_of(self, "unmeasured")}


def cost_of(paired: PairedRuns) -> Cost:
    sums: dict[Measured, Both] = {}
    unmeasured: dict[Measured, tuple[int, int]] = {}
    for name in MEASURED:
        values = [[_measured(image, name) for image in (pair.a, pair.b)] for pair in paired.pairs]
        sides = list(zip(*values, strict=True))
        missing = [sum(value is None for value in side) for side in sides]
        unmeasured[name] = (missing[0], missing[1])
        a, b = (
            None if lost else sum(value for value in side if value is not None)
            for side, lost in zip(sides, missing, strict=True)
        )
        sums[name] = (a, b)
    return Cost(sums, unmeasured, len(paired.pairs), (_seconds(paired.a), _seconds(paired.b)))


def _measured(image: RunImage, name: Measured) -> float | None:
    if image.usage is None:
        return None
    # A price of nothing asked is nothing, also where no price is known.
    if name == "cost_usd" and image.usage.cost_usd is None and not image.usage.calls:
        return 0.0
    value: float | None = getattr(image.usage, name)
    return value


def _seconds(run: ComparedRun) -> float | None:
    return None if run.seconds is None else run.seconds / len(run.images)
