"""How far people who judge the same things agree, beyond what chance gives them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass


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
