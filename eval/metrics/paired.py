"""Two models on the same items: how far apart they are, how sure that is, and how many items it takes.

What counts is the items that only one of the two gets right, the discordant ones: McNemar's test
(`significance.mcnemar_exact`) asks whether they favour one model. Its p-value says nothing of size; the
difference in shares right with its interval does, and Cohen's g and the odds ratio say how one-sided the
discordant items are.

Sources: R. G. Newcombe, *Improved confidence intervals for the difference between binomial proportions based
on paired data*, Statistics in Medicine 17, 1998, method 10, and, of independent shares, *Interval estimation
for the difference between independent proportions*, same volume, method 10; J. Cohen, *Statistical power
analysis for the behavioral sciences*, 1988, chapters 2 (d_z) and 5 (g); R. J. Connor, *Sample size for
testing differences in proportions for the paired-sample design*, Biometrics 43, 1987, after O. S. Miettinen,
*The matched pairs design in the case of all-or-none responses*, Biometrics 24, 1968 (both for the asymptotic
test).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, sqrt
from statistics import NormalDist
from typing import ClassVar, Final, Literal

import numpy as np

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.intervals import (
    ALPHA,
    LEVEL,
    Bools,
    Codes,
    Floats,
    Interval,
    effective_size,
    sums_by_group,
    wilson_interval,
)
from uncanny.eval.metrics.significance import group_sign_test, mcnemar_exact

# What lies further from the mean than this many standard deviations is left out of an exact power: < 1e-14.
_TAILS: Final = 8.0
# Numbers of items are tried in steps of this part of them.
_STEPS: Final = 1_500
# Where numbers as large or small as one likes are cut, so that nothing overflows.
_TINY: Final = 1e-300
_MOST_ROOT: Final = 1e9
MOST_ITEMS: Final = 10_000_000
# Differences of scores that lie no further apart, beside 1 or the largest of them, are equal.
_SAME: Final = 1e-12
# Shares that differ by no more are the same: 1 − 0.8 is a little less than 0.2.
ROUNDING: Final = 1e-12


def paired_interval(
    both: float, first_only: float, second_only: float, neither: float, *, level: float = LEVEL
) -> Interval | None:
    """Of the share that the first gets right minus that of the second, −1 to 1; None of no items.

    It has width where the two never differ, and stays within −1 and 1. Effective numbers of items need not
    be whole.
    """
    n = both + first_only + second_only + neither
    first, second = both + first_only, both + second_only
    ends, other = wilson_interval(first, n, level=level), wilson_interval(second, n, level=level)
    if ends is None or other is None:
        return None
    # How far the two go together, with Newcombe's correction for continuity.
    cross = both * neither - first_only * second_only
    corrected = max(cross - n / 2, 0.0) if cross > 0 else cross
    margins = first * (n - first) * second * (n - second)
    together = corrected / sqrt(margins) if margins else 0.0
    return _of_difference(first / n, ends, second / n, other, together)


def unpaired_interval(
    first: int, of_first: int, second: int, of_second: int, *, level: float = LEVEL
) -> Interval | None:
    """Of the share `first` / `of_first` minus that of other items, −1 to 1; None where either has no items.

    It has width where both shares are 0 or 1. Newcombe's method for independent shares.
    """
    ends = wilson_interval(first, of_first, level=level)
    other = wilson_interval(second, of_second, level=level)
    if ends is None or other is None:
        return None
    return _of_difference(first / of_first, ends, second / of_second, other, 0.0)


def _of_difference(p: float, ends: Interval, q: float, other: Interval, together: float) -> Interval:
    below, above = p - ends[0], ends[1] - p
    other_below, other_above = q - other[0], other[1] - q
    low = sqrt(max(below**2 - 2 * together * below * other_above + other_above**2, 0.0))
    high = sqrt(max(above**2 - 2 * together * above * other_below + other_below**2, 0.0))
    return (max(p - q - low, -1.0), min(p - q + high, 1.0))


@dataclass(frozen=True, slots=True)
class PairedTest(JsonFields):
    """Two models on the `n` items both answer; no figures where n is 0.

    `difference` is the share that `first` gets right minus that of `second`, −1 to 1, with its paired 95 %
    interval. `p_value` is that of the exact McNemar test, `adjusted_p` the same corrected by Holm for all
    pairs. `odds_ratio` and `cohens_g` are of the items that only one gets right; the one is None where the
    second has none, the other where there are none at all.
    """

    json_keys: ClassVar = "n first_only second_only p_value adjusted_p difference odds_ratio cohens_g"

    first: str
    second: str
    n: int
    first_only: int
    second_only: int
    p_value: float | None
    adjusted_p: float | None
    difference: Estimate
    odds_ratio: float | None
    cohens_g: float | None

    def seen_from(self, name: str) -> PairedTest:
        """The same with `name`, one of the two, as the first."""
        if name == self.first:
            return self
        return replace(
            self,
            first=self.second,
            second=self.first,
            first_only=self.second_only,
            second_only=self.first_only,
            difference=-self.difference,
            odds_ratio=odds_ratio(self.second_only, self.first_only),
            cohens_g=cohens_g(self.second_only, self.first_only),
        )


def paired_tests(
    names: Sequence[str], right: Bools, answered: Bools, groups: Codes | None = None
) -> list[PairedTest]:
    """Every two models on the items that both answer; both arrays have the shape (models, items).

    What is not answered is never right. `groups` says which items belong together: the test then turns the
    signs of whole groups (`significance.group_sign_test`), and the interval has the width of the effective
    number of items; None takes each by itself. Empty for fewer than two models.
    """
    pairs = list(combinations(range(len(names)), 2))
    if not pairs:
        return []
    places, others = np.array(pairs).T
    solved, tried = right.astype(np.float64), answered.astype(np.float64)
    # Entry (i, j): items that i gets right and j answers, but wrongly.
    only = solved @ (tried * (1 - solved)).T
    counts = [
        table[places, others].astype(int).tolist()
        for table in (tried @ tried.T, only, only.T, solved @ solved.T)
    ]
    p_values = [
        float(p) if n else None for n, p in zip(counts[0], mcnemar_exact(counts[1], counts[2]), strict=True)
    ]
    parts = [1.0] * len(pairs)
    if groups is not None:
        for place, (i, j) in enumerate(pairs):
            both_answer = answered[i] & answered[j]
            p_values[place], parts[place] = _of_groups(
                right[i][both_answer], right[j][both_answer], groups[both_answer]
            )
    return [
        PairedTest(
            names[i],
            names[j],
            n,
            first,
            second,
            p_value,
            adjusted,
            Estimate(
                (first - second) / n if n else None,
                paired_interval(*(part * each for each in (both, first, second, n - both - first - second))),
            ),
            odds_ratio(first, second),
            cohens_g(first, second),
        )
        for (i, j), n, first, second, both, p_value, adjusted, part in zip(
            pairs, *counts, p_values, holm(p_values), parts, strict=True
        )
    ]


def _of_groups(first: Bools, second: Bools, groups: Codes) -> tuple[float | None, float]:
    """The p-value of the difference over groups, and which part of the items are as good as independent."""
    difference = first.astype(np.float64) - second
    sums = sums_by_group(difference, groups)
    sizes, squares = (sums_by_group(each, groups) for each in (np.ones(len(groups)), difference**2))
    size = effective_size(sums, sizes, squares)
    return group_sign_test(sums) if len(groups) else None, size / len(groups) if len(groups) else 1.0


ImageClass = Literal["all", "generated", "real"]


def paired_tests_by_class(
    names: Sequence[str],
    right: Bools,
    answered: Bools,
    generated: Bools,
    groups: Codes | None = None,
) -> dict[ImageClass, list[PairedTest]]:
    """`paired_tests` of detectors' verdicts over all images, the generated ones, and the real ones.

    `generated` has an entry an image, and so have `groups`, as `paired_tests` takes them. Each class is a
    family of tests of its own; one without a judged image is left out. Empty for fewer than two detectors.
    """
    classes: dict[ImageClass, Bools] = {
        "all": np.ones(len(generated), dtype=np.bool_),
        "generated": generated,
        "real": ~generated,
    }
    return {
        name: tests
        for name, images in classes.items()
        if answered[:, images].any()
        and (
            tests := paired_tests(
                names, right[:, images], answered[:, images], None if groups is None else groups[images]
            )
        )
    }


def cohens_g(first_only: int, second_only: int) -> float | None:
    """The first model's share of the discordant items minus one half, −0.5 to 0.5; None where there are none.

    By Cohen's words 0.05 is small, 0.15 medium and 0.25 large.
    """
    discordant = first_only + second_only
    return first_only / discordant - 0.5 if discordant else None


def cohens_d(differences: Floats) -> float | None:
    """Cohen's d_z: the mean of paired differences over their own standard deviation, from −∞ to ∞.

    None of fewer than two, and where all are equal but for rounding. Cohen's words small, medium and large
    are not for it: they are for d, whose standard deviation is that of the scores, and which is
    d_z · √(2(1 − r)) where the scores correlate by r (Cohen 1988, section 2.3.5).
    """
    if len(differences) < 2 or np.ptp(differences) <= _SAME * max(1.0, float(np.abs(differences).max())):
        return None
    return float(differences.mean() / differences.std(ddof=1))


def odds_ratio(first_only: int, second_only: int) -> float | None:
    """Items that only the first gets right for each that only the second does; None where that has no end."""
    return first_only / second_only if second_only else None


def mcnemar_power(items: int, difference: float, discordant: float, *, alpha: float = ALPHA) -> float:
    """How likely the exact two-sided McNemar test finds two models apart, 0–1, computed without simulation.

    `difference` is between their shares right, `discordant` the share of items that only one gets right, both
    0–1; `alpha` is the level that the p-value has to reach. Raises ValueError where the two contradict each
    other.
    """
    from scipy.special import bdtr  # type: ignore[import-untyped]  # slow to import
    from scipy.stats import binom  # type: ignore[import-untyped]

    check_apart(difference, discordant)
    spread = _TAILS * sqrt(items * discordant * (1 - discordant)) + _TAILS
    low, high = max(int(items * discordant - spread), 0), min(int(items * discordant + spread), items)
    numbers = np.arange(low, high + 1)
    # The largest count of the rarer kind that is significant among so many discordant items; −1 is none.
    edges = binom.ppf(alpha / 2, numbers, 0.5)
    edges = np.where(bdtr(edges, numbers, 0.5) <= alpha / 2, edges, edges - 1)
    first = min((1 + abs(difference) / discordant) / 2, 1.0)
    kept = np.maximum(edges, 0)
    powers = np.where(edges < 0, 0.0, bdtr(kept, numbers, first) + bdtr(kept, numbers, 1 - first))
    return float(min((binom.pmf(numbers, items, discordant) * powers).sum(), 1.0))


def connor_items(difference: float, discordant: float, *, power: float = 0.8, alpha: float = ALPHA) -> int:
    """Items for the asymptotic test, in closed form: Connor's equation 3.

    The exact test needs some more, see `items_needed`; 0 where chance alone has that power, and never more
    than 10¹⁸. Raises ValueError as `mcnemar_power` does.
    """
    check_apart(difference, discordant)
    normal = NormalDist()
    alone, other = -normal.inv_cdf(max(alpha / 2, _TINY)), normal.inv_cdf(max(power, _TINY))
    spread = sqrt(max(discordant - difference**2, 0.0))
    # Below 0 for a power that no item at all has already.
    root = max(alone * sqrt(discordant) + other * spread, 0.0) / abs(difference)
    return ceil(min(root, _MOST_ROOT) ** 2)


def items_needed(
    difference: float, discordant: float, *, power: float = 0.8, alpha: float = ALPHA
) -> int | None:
    """Items from which on the exact test has this power, 0–1; the others are as in `mcnemar_power`.

    The power of an exact test goes up and down by a little from one number of items to the next: from this
    number on it stays where it is to be, of large numbers to within 0.1 %. None for more than `MOST_ITEMS`.
    Raises ValueError as `mcnemar_power` does.
    """
    enough = connor_items(difference, discordant, power=power, alpha=alpha)
    if enough > MOST_ITEMS:
        return None
    # The exact test asks for about two items over the difference more.
    step = max(1, enough // _STEPS)
    items = enough + ceil(min(4 / abs(difference), MOST_ITEMS)) + 10
    is_low = items > 2 * enough + _STEPS  # a power so low that the equation says next to nothing
    if is_low:
        items = enough + 10
    while mcnemar_power(items, difference, discordant, alpha=alpha) < power:
        if items > 2 * MOST_ITEMS:
            return None
        items += step + items // 8
    if is_low:
        step = max(step, items // _STEPS)
    while items > step and mcnemar_power(items - step, difference, discordant, alpha=alpha) >= power:
        items -= step
    return items


def smallest_difference(
    items: int, discordant: float | None, *, accuracy: float = 0.5, power: float = 0.8, alpha: float = ALPHA
) -> float | None:
    """The smallest difference in shares right, 0–1, that so many items show with this power, to 0.0001.

    `discordant` is as in `mcnemar_power`; where it is None, that of models which err independently, the worse
    of which is right on the share `accuracy`. None where even the largest difference is not found.
    """
    most = 1 - accuracy if discordant is None else discordant
    low, high = 0, int(10_000 * (most + ROUNDING))

    def is_shown(step: int) -> bool:
        difference = step / 10_000
        share = independent_discordance(accuracy, difference) if discordant is None else discordant
        return mcnemar_power(items, difference, share, alpha=alpha) >= power

    if high < 1 or not is_shown(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high / 10_000


def independent_discordance(accuracy: float, difference: float) -> float:
    """The share of items that only one of two models gets right which err independently, 0–1.

    The worse one is right on the share `accuracy`, the better one on `difference` more. Models that find the
    same items hard agree more, so that fewer items tell them apart.
    """
    better = min(accuracy + difference, 1.0)
    # No less than the difference itself, which rounding would have where the better one is always right.
    return max(better * (1 - accuracy) + accuracy * (1 - better), abs(difference))


def check_apart(difference: float, discordant: float) -> None:
    """Raises ValueError where models cannot differ that much on so few items."""
    if not 0 < abs(difference) <= discordant + ROUNDING <= 1 + 2 * ROUNDING:
        raise ValueError(f"models {difference:g} apart cannot differ on {discordant:g} of the items alone")
