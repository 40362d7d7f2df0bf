"""Tests of what could be chance: McNemar's test of two models, agreement of two rankings, position bias.

Krippendorff's α says how far people who judge the same things agree, beyond what chance gives them. How two
answers hang together in a table of counts is in `association.py`.

Sources: Q. McNemar, *Note on the sampling error of the difference between correlated proportions or
percentages*, Psychometrika 12, 1947, here in its exact form; C. Spearman, 1904, and M. Kendall, 1945 (tau-b);
C. J. Clopper and E. S. Pearson, *The use of confidence or fiducial limits*, Biometrika 26, 1934; R. A.
Fisher, *The Design of Experiments*, 1935, chapter III (sign flips).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncanny.eval.metrics.intervals import LEVEL, Codes, clustered_interval, sums_by_group

# The exact test of groups keeps a number for each sum that signs can give. Beyond so many its normal limit is
# as good.
MOST_SUMS: Final = 20_000


def mcnemar_exact(first_only: ArrayLike, second_only: ArrayLike) -> NDArray[np.float64]:
    """Two-sided exact p-values from the counts of items that only the first, or only the second, gets right.

    Under the null hypothesis either count is binomial with p = 1/2; the p-value is twice the smaller tail, at
    most 1, and 1 where the two never differ. Works elementwise on arrays of the same shape.
    """
    from scipy.special import bdtr  # type: ignore[import-untyped]  # slow to import, and only comparisons need it

    first, second = np.asarray(first_only), np.asarray(second_only)
    tail = bdtr(np.minimum(first, second).astype(np.float64), first + second, 0.5)
    return np.minimum(1.0, 2.0 * np.asarray(tail, dtype=np.float64))


def group_sign_test(differences: ArrayLike) -> float | None:
    """The exact two-sided p-value of a sum so far from 0 where the sign of each group is a fair coin's.

    `differences` are whole numbers, an entry a group: how many images only the first gets right, less those
    that only the second does. Where all that differ do so by as many images, as with one image a group, it is
    McNemar's exact test. None of no groups, 1 where nothing differs.
    """
    values = np.asarray(differences, dtype=np.int64)
    if not len(values):
        return None
    steps = np.abs(values[values != 0])
    if not len(steps):
        return 1.0
    if steps.min() == steps.max():
        return float(mcnemar_exact(int((values > 0).sum()), int((values < 0).sum())))
    total, seen = int(steps.sum()), abs(int(values.sum()))
    if total > MOST_SUMS:
        # Corrected for being whole numbers, as the exact one is.
        spread = float(np.sqrt((steps.astype(np.float64) ** 2).sum()))
        return min(1.0, 2 * NormalDist().cdf(-max(0.0, seen - 1) / spread))
    # The chance of each sum of the steps with a plus: half of all, moved by a step, one step after the other.
    chances = np.zeros(total + 1)
    chances[0] = 1.0
    reach = 0
    for step in steps.tolist():
        moved = chances[: reach + 1] / 2
        chances[: reach + 1] = moved
        chances[step : step + reach + 1] += moved
        reach += step
    sums = np.abs(2 * np.arange(total + 1) - total)
    return min(1.0, float(chances[sums >= seen].sum()))


class RankAgreement(NamedTuple):
    """Spearman's rho and Kendall's tau-b, −1 to 1; None for fewer than two things, or all equal in a list."""

    spearman: float | None
    kendall: float | None


def rank_agreement(first: Sequence[float], second: Sequence[float]) -> RankAgreement:
    """Of two lists in the same order of things. Raises ValueError where their lengths differ."""
    from scipy.stats import kendalltau, spearmanr  # type: ignore[import-untyped]  # slow to import

    if len(first) != len(second):
        raise ValueError(f"{len(first)} scores against {len(second)}")
    if min(len(set(first)), len(set(second))) < 2:
        return RankAgreement(None, None)
    return RankAgreement(
        _measured(spearmanr(first, second).statistic), _measured(kendalltau(first, second).statistic)
    )


def _measured(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Choices over all second checks with a verdict, both orders counted.

    `first_share` is "first" among "first" and "second", 0–1, with its exact (Clopper–Pearson) 95 % interval;
    `p_value` is that of the exact two-sided binomial test of one half. Of pairs in groups the interval is
    Wilson's of the effective number of checks, and the test that of `group_sign_test`. "both" says nothing
    about places and is in neither. All three are None where neither place was ever chosen.
    """

    first: int
    second: int
    both: int
    first_share: float | None
    interval: tuple[float, float] | None
    p_value: float | None

    @property
    def checks(self) -> int:
        return self.first + self.second + self.both

    def share(self, choice: Literal["first", "second", "both"]) -> float | None:
        """Of all checks, "both" included; None where there are none."""
        return getattr(self, choice) / self.checks if self.checks else None


def position_bias(choices: Iterable[str], groups: Codes | None = None) -> PositionBias:
    """Choices are `first`, `second` or `both`. The two orders of one pair count as two checks.

    Each image is shown once in each place, so a judge that goes by the images alone chooses both places
    equally often. `groups` has an entry a choice: which of them are of pairs that belong together. None
    where each pair is by itself. Raises ValueError for any other choice.
    """
    chosen = list(choices)
    counted = Counter(chosen)
    first, second, both = (counted.pop(name, 0) for name in ("first", "second", "both"))
    if counted:
        raise ValueError(f"no choices: {', '.join(map(repr, counted))}")
    if not first + second:
        return PositionBias(first, second, both, None, None, None)
    interval: tuple[float, float] | None
    p_value: float | None
    if groups is None:
        from scipy.stats import binomtest  # slow to import

        test = binomtest(first, first + second, 0.5)
        low, high = test.proportion_ci(LEVEL, method="exact")
        interval, p_value = (float(low), float(high)), float(test.pvalue)
    else:
        firsts, seconds = (
            sums_by_group([choice == place for choice in chosen], groups) for place in ("first", "second")
        )
        interval, p_value = clustered_interval(firsts, firsts + seconds), group_sign_test(firsts - seconds)
    return PositionBias(first, second, both, first / (first + second), interval, p_value)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Krippendorff's α of nominal judgements, and what it rests on.

    `alpha` is 1 where all agree, 0 where they agree as often as chance would have it, below 0 where less
    often; None where nothing was judged twice, and where only one value occurs at all, so that agreement
    cannot be told from chance. `units` were judged by two or more, with `judgements` in all.
    """

    alpha: float | None
    units: int
    judgements: int


def krippendorff_alpha(units: Iterable[Mapping[str, int] | Iterable[str]]) -> Agreement:
    """α for nominal data, with any number of judgements a unit: those with fewer than two say nothing.

    A unit is its values, one a judgement, or their counts. Krippendorff, Computing Krippendorff's
    Alpha-Reliability (2011), section C: α = 1 − (n − 1) Σ o_ck / Σ n_c·n_k over values c ≠ k.
    """
    totals: Counter[str] = Counter()
    observed = 0.0
    judged_twice = 0
    for unit in units:
        counts = Counter(unit)
        size = counts.total()
        if size < 2:
            continue
        judged_twice += 1
        totals.update(counts)
        observed += (size * size - sum(number * number for number in counts.values())) / (size - 1)
    n = totals.total()
    expected = n * n - sum(number * number for number in totals.values())
    return Agreement(1 - (n - 1) * observed / expected if expected else None, judged_twice, n)
