"""How often audit intervals hold the truth: nominal 95 %, over sets drawn from a known population.

And how often generators that are alike are told apart all the same: wanted are at most 5 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmarks.common import figure, sized
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.audit import Floats, metrics_of_sums
from uncanny.eval.metrics.intervals import ALPHA, percentile_intervals, resampled_sums, resampled_t_test

PROMPTS = 246  # as many as in the published audit
FIGURES = ("mai", "af", "cap")
# Anomalies an image and their implausibility, of two generators; a prompt makes both worse or better.
RATES = (6.3, 6.0)
BETA = (4.2, 1.8)
U_MEAN = BETA[0] / sum(BETA)
PROMPT_SHAPE = 6.0
# Of generators that are alike: images each, anomalies an image, and how many are in an audit.
IMAGES, RATES_ALIKE, GENERATORS = (10, 20, 50, 246), (0.3, 1.0, 6.3), (2, 4, 15)


@dataclass(frozen=True, slots=True)
class Covered:
    """Share of repetitions whose interval held the truth, and the mean width of the intervals."""

    covered: float
    width: float


def population(rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Images, anomalies and implausibility by prompt, for two generators given the same prompts.

    The number of anomalies is Poisson around a rate of the prompt, which is gamma distributed with mean 1
    times the generator's: an overdispersed count. Severities are integers.
    """
    difficulty = rng.gamma(PROMPT_SHAPE, 1 / PROMPT_SHAPE, PROMPTS)
    first, second = (_generator(rng, rate * difficulty) for rate in RATES)
    return first, second


def _generator(rng: np.random.Generator, rates: Floats) -> Floats:
    counts = rng.poisson(rates)
    u = np.round(rng.beta(*BETA, counts.sum()), 2)
    unreal = np.bincount(np.repeat(np.arange(PROMPTS), counts), weights=u, minlength=PROMPTS)
    return np.stack([np.ones(PROMPTS), counts, unreal], axis=1)


def truth() -> dict[str, Floats]:
    """What the figures are in the whole population, and their differences."""
    first, second = (np.array([rate * U_MEAN, rate, rate * rate * U_MEAN]) for rate in RATES)
    return {
        "one generator": first,
        "paired difference": first - second,
        "unpaired difference": first - second,
    }


def coverage(
    *, repetitions: int = sized(1000, 10), resamples: int = sized(2000, 200), seed: int = 0
) -> Mapping[str, Covered]:
    """By kind of interval and figure."""
    right, widths = dict.fromkeys(truth(), np.zeros(3)), dict.fromkeys(truth(), np.zeros(3))
    for repetition in range(repetitions):
        rng = np.random.default_rng([seed, repetition])
        for name, ends in _intervals(*population(rng), rng, resamples).items():
            low, high = ends
            right[name] = right[name] + ((low <= truth()[name]) & (truth()[name] <= high))
            widths[name] = widths[name] + (high - low)
    return {
        f"{name}, {figure}": Covered(
            float(right[name][index] / repetitions), float(widths[name][index] / repetitions)
        )
        for name in right
        for index, figure in enumerate(FIGURES)
    }


def _intervals(first: Floats, second: Floats, rng: np.random.Generator, resamples: int) -> dict[str, Floats]:
    def figures(columns: Floats) -> Callable[[int], Floats]:
        drawn = resampled_sums(columns, rng, resamples=resamples)
        return lambda index: metrics_of_sums(drawn[:, 3 * index : 3 * index + 3])[:, :3]

    together = figures(np.hstack([first, second]))
    other = figures(second)
    return {
        "one generator": _ends(together(0)),
        "paired difference": _ends(together(0) - together(1)),
        "unpaired difference": _ends(together(0) - other(0)),
    }


def _ends(drawn: Floats) -> Floats:
    return np.array([each or (np.nan, np.nan) for each in percentile_intervals(drawn)]).T


@dataclass(frozen=True, slots=True)
class ToldApart:
    """Share of audits in which any two are told apart: by their intervals alone, and as audits do it."""

    by_intervals: float
    by_audits: float


def told_apart(
    images: int, rate: float, generators: int, *, repetitions: int = 400, resamples: int = 1000
) -> ToldApart:
    """Of `generators` that draw from the same population, not paired."""
    alone = both = 0
    for repetition in range(repetitions):
        rng = np.random.default_rng([images, generators, repetition])
        drawn, values = [], []
        for _ in range(generators):
            counts = rng.poisson(rate, images)
            u = np.round(rng.beta(*BETA, counts.sum()), 2)
            unreal = np.bincount(np.repeat(np.arange(images), counts), weights=u, minlength=images)
            columns = np.stack([np.ones(images), counts, unreal], axis=1)
            drawn.append(metrics_of_sums(resampled_sums(columns, rng, resamples=resamples))[:, 2])
            values.append(metrics_of_sums(columns.sum(axis=0))[2])
        pairs = list(combinations(range(generators), 2))
        ends = percentile_intervals(np.stack([drawn[a] - drawn[b] for a, b in pairs], axis=1))
        apart = [each is not None and not each[0] <= 0 <= each[1] for each in ends]
        p_values = holm(
            [
                resampled_t_test(
                    values[a] ** 0.5 - values[b] ** 0.5, np.sqrt(drawn[a]) - np.sqrt(drawn[b]), images
                )
                for a, b in pairs
            ]
        )
        alone += any(apart)
        both += any(far and p is not None and p <= ALPHA for far, p in zip(apart, p_values, strict=True))
    return ToldApart(alone / repetitions, both / repetitions)


def main() -> None:
    for name, found in coverage().items():
        figure(f"{name}, covered", 100 * found.covered, "%", 95, "nominal", wanted=None, higher=True)
        figure(f"{name}, mean width", found.width)
    worst: ToldApart | None = None
    print("  alike and told apart in so many audits: by intervals alone, as audits do it")
    for generators in GENERATORS:
        for rate in RATES_ALIKE:
            often = sized(400 if generators < 15 else 150, 2)
            found_apart = [told_apart(images, rate, generators, repetitions=often) for images in IMAGES]
            cells = (f"{100 * each.by_intervals:>7.1f} {100 * each.by_audits:>5.1f}" for each in found_apart)
            print(f"  {generators:>2} generators, AF {rate:<4}" + "".join(cells))
            worst = max((*found_apart, *filter(None, [worst])), key=lambda each: each.by_audits)
    assert worst is not None
    figure("alike and told apart as audits do it, at most", 100 * worst.by_audits, "%", 5)
    figure("the same by intervals alone", 100 * worst.by_intervals, "%")


if __name__ == "__main__":
    main()
