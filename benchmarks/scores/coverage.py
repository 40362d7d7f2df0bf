"""How often 95 % intervals hold the truth: of shares, paired differences, means and F1; few and many images.

Of a share the coverage is a sum over all counts that can come, without simulation. The others are simulated,
seeded: images are drawn from a population whose figures are known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom  # type: ignore[import-untyped]

from benchmarks.common import figure, sized
from uncanny.eval.metrics.intervals import (
    Interval,
    Mean,
    clustered_interval,
    mean_intervals,
    percentile_intervals,
    ratio,
    replicates,
    share_intervals,
    wilson_interval,
)
from uncanny.eval.metrics.paired import paired_interval

SIZES = (20, 100, 475)
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
RESAMPLES, REPETITIONS = sized(2_000, 100), sized(2_000, 40)
# Both right, only the first, only the second, neither: alike, far apart, nearly always right, nearly never.
PAIRS = {
    "60 and 60 %, differ on 20 %": (0.50, 0.10, 0.10, 0.30),
    "70 and 55 %, differ on 35 %": (0.45, 0.25, 0.10, 0.20),
    "98 and 95 %, differ on 5 %": (0.94, 0.04, 0.01, 0.01),
    "4 and 2 %, differ on 4 %": (0.01, 0.03, 0.01, 0.95),
}
# A score of an image like SemF1: so many are 0, so many 1, and the others lie between.
MEANS = {"SemF1-like, mean 0.45": (0.30, 0.20), "mostly 0, mean 0.07": (0.90, 0.04)}
DETECTORS = {"F1, balanced, recall 0.8": (0.5, 0.8, 0.9), "F1, 5 % positive, recall 0.5": (0.05, 0.5, 0.98)}

GROUPS = (10, 50, 200)
# A share, and how alike two images of a group are: a little, much, nearly the same.
GROUPED = tuple((share, likeness) for share in (0.05, 0.2, 0.5) for likeness in (0.1, 0.3, 0.9))

Method = Callable[[int, int], Interval]


def of_share(n: int, share: float, method: Method) -> float:
    """How often the interval of a share holds it, exactly."""
    counts = np.arange(n + 1)
    covered = [low <= share <= high for low, high in (method(int(count), n) for count in counts)]
    return float(binom.pmf(counts, n, share)[covered].sum())


def wilson(count: int, n: int) -> Interval:
    return wilson_interval(count, n) or (0.0, 0.0)


def bootstrap(count: int, n: int) -> Interval:
    right = np.arange(n) < count
    plain = [ratio(right, np.ones(n, dtype=np.bool_))]
    (ends,) = percentile_intervals(replicates(plain, resamples=RESAMPLES))
    return ends or (0.0, 0.0)


def of_pair(n: int, chances: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """How often the interval of a paired difference holds it: Newcombe's, and a bootstrap's over images."""
    rng = np.random.default_rng([seed, n])
    true, covered = chances[1] - chances[2], np.zeros(2)
    for both, first, second, neither in rng.multinomial(n, chances, size=REPETITIONS).tolist():
        values = np.repeat([0.0, 1.0, -1.0, 0.0], [both, first, second, neither])
        (drawn,) = mean_intervals([Mean(values, np.ones(n, dtype=np.bool_))], resamples=RESAMPLES)
        for at, (low, high) in enumerate(
            (paired_interval(both, first, second, neither) or (0, 0), drawn or (0, 0))
        ):
            covered[at] += low <= true <= high
    return float(covered[0] / REPETITIONS), float(covered[1] / REPETITIONS)


def of_mean(n: int, zeros: float, ones: float, *, seed: int = 0) -> float:
    """How often the interval that scores get holds the mean of scores of which many are 0 or 1."""
    rng = np.random.default_rng([seed, n])
    true = ones + (1 - zeros - ones) * 0.5
    covered = 0
    for _ in range(REPETITIONS):
        kind = rng.random(n)
        values: NDArray[np.float64] = np.where(
            kind < zeros, 0.0, np.where(kind < zeros + ones, 1.0, rng.beta(2, 2, n))
        )
        scores = Mean(values, np.ones(n, dtype=np.bool_))
        (ends,) = mean_intervals([scores], resamples=RESAMPLES, shares=True)
        covered += ends is not None and ends[0] <= true <= ends[1]
    return covered / REPETITIONS


def of_f1(n: int, positives: float, recall: float, specificity: float, *, seed: int = 0) -> float:
    """How often the interval that scores get holds F1, of the repetitions in which there is one."""
    rng = np.random.default_rng([seed, n])
    alarms = (1 - positives) * (1 - specificity)
    true = 2 * positives * recall / (2 * positives * recall + alarms + positives * (1 - recall))
    covered = measured = 0
    for _ in range(REPETITIONS):
        positive = rng.random(n) < positives
        yes = rng.random(n) < np.where(positive, recall, 1 - specificity)
        hits = 2 * (positive & yes).astype(np.int16)
        f1 = ratio(hits, hits + (positive & ~yes) + (~positive & yes))
        (ends,) = share_intervals([f1], resamples=RESAMPLES)
        measured += ends is not None
        covered += ends is not None and ends[0] <= true <= ends[1]
    return covered / measured


def of_groups(groups: int, most: int, share: float, likeness: float, *, seed: int = 0) -> tuple[float, float]:
    """How often the interval of a share holds it where images come in groups of 1 to `most`.

    `likeness` is the correlation of two images of a group. With the design effect, and as if all images were
    independent.
    """
    rng = np.random.default_rng([seed, groups, most])
    covered = np.zeros(2)
    for _ in range(REPETITIONS):
        sizes = rng.integers(1, most + 1, groups)
        odds = (1 - likeness) / likeness
        hits = rng.binomial(sizes, rng.beta(share * odds, (1 - share) * odds, groups))
        both = clustered_interval(hits, sizes), wilson_interval(int(hits.sum()), int(sizes.sum()))
        covered += [ends is not None and ends[0] <= share <= ends[1] for ends in both]
    return float(covered[0] / REPETITIONS), float(covered[1] / REPETITIONS)


def main() -> None:
    print("  share       " + "".join(f"   n = {n:<4} Wilson  bootstrap" for n in SIZES))
    lowest: dict[str, list[float]] = {}
    for share in SHARES:
        both = [(of_share(n, share, wilson), of_share(n, share, bootstrap)) for n in SIZES]
        print(f"  {share:<12.2f}" + "".join(f"{100 * a:>15.1f} {100 * b:>10.1f}" for a, b in both))
        _keep(lowest, "share, Wilson", "bootstrap", both)
    print("  paired difference, Newcombe / bootstrap")
    for name, chances in PAIRS.items():
        both = [of_pair(n, chances) for n in SIZES]
        print(f"  {name:<32}" + _cells(both))
        _keep(lowest, "paired difference, Newcombe", "bootstrap", both)
    print("  share of images in groups of 1 to 8, with the design effect / as if independent")
    print("  share, correlation in a group   " + "".join(f"{groups:>9} groups" for groups in GROUPS))
    for share, likeness in GROUPED:
        both = [of_groups(groups, 8, share, likeness) for groups in GROUPS]
        print(f"  {share:<5.2f} {likeness:<26}" + _cells(both))
        _keep(lowest, "share of groups, design effect", "as if independent", both)
    print("  bootstrap, of what is 0 or 1 on every image Wilson's")
    for name, kinds in MEANS.items():
        alone = [(of_mean(n, *kinds),) for n in SIZES]
        print(f"  {name:<32}" + _cells(alone))
        _keep(lowest, f"mean, {name}", "", alone)
    for name, detector in DETECTORS.items():
        alone = [(of_f1(n, *detector),) for n in SIZES]
        print(f"  {name:<32}" + _cells(alone))
        _keep(lowest, name, "", alone)
    for what, (own, *others) in lowest.items():
        name, _, peer = what.partition(" | ")
        beside = 100 * others[0] if others else None
        figure(f"lowest coverage: {name}", 100 * own, "%", beside, peer, wanted=None, higher=True)


def _cells(covered: Sequence[tuple[float, ...]]) -> str:
    return "".join(f"{' / '.join(f'{100 * each:.1f}' for each in cell):>16}" for cell in covered)


def _keep(lowest: dict[str, list[float]], name: str, peer: str, found: Sequence[tuple[float, ...]]) -> None:
    """The lowest of each column, with those kept before."""
    what = f"{name} | {peer}"
    rows = [*found, *([tuple(lowest[what])] if what in lowest else [])]
    lowest[what] = [min(column) for column in zip(*rows, strict=True)]


if __name__ == "__main__":
    main()
