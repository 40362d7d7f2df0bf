"""Whether what is counted in a table hangs together: χ² or an exact test, Cramér's V, Holm's correction.

Shares of groups are compared with it (is a detector blinder to small edits than to large ones?), and
people's answers with what they said of themselves in a questionnaire. Sources: H. Cramér, *Mathematical
Methods of Statistics*, 1946, chapter 21; W. G. Cochran, *Some methods for strengthening the common χ²
tests*, Biometrics 10, 1954 (expected counts); G. H. Freeman and J. H. Halton, Biometrika 38, 1951 (exact
tests of larger tables); S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian
Journal of Statistics 6, 1979.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncanny.eval.metrics import LEAST_ANSWERS
from uncanny.eval.metrics.intervals import Floats

TestName = Literal["chi2", "exact"]

# Below it the χ² distribution no longer holds well enough (Cochran).
LEAST_EXPECTED: Final = 5.0
# Tables whose logarithms of chances differ by no more are equally likely.
_ROUNDING: Final = 1e-7
# Tables drawn for the exact test of one that is larger than 2 × 2.
DRAWN_TABLES: Final = 9_999


class Association(NamedTuple):
    """How far the rows of a table differ in their columns.

    `chi2` with `df` degrees of freedom is Pearson's, without Yates's correction. `p_value` is by its
    distribution (`test` is `chi2`), or by Fisher's exact test where a count below 5 is expected. `cramers_v`
    is in 0–1, 0 for rows that are all alike. `n` is the sum of the table. All but `n` and `df` are None where
    there are fewer than two rows or columns that hold anything: nothing can differ there.
    """

    n: int
    df: int
    chi2: float | None
    p_value: float | None
    cramers_v: float | None
    test: TestName | None


def association(table: ArrayLike, *, seed: int = 0) -> Association:
    """Of a table of counts, shape (rows, columns); rows and columns without a count are left out.

    A table larger than 2 × 2 in which a count below 5 is expected is tested by `DRAWN_TABLES` random tables
    of the same margins, the same ones for the same `seed`: its p-value is then no smaller than 1 in 10,000.
    Raises ValueError for counts below 0 and for another shape.
    """
    counts = np.asarray(table, dtype=np.int64)
    if counts.ndim != 2 or (counts < 0).any():
        raise ValueError("a table has rows and columns of counts from 0")
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    n = int(counts.sum())
    if min(counts.shape) < 2:
        return Association(n, 0, None, None, None, None)
    df = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    cramers_v = math.sqrt(chi2 / (n * (min(counts.shape) - 1)))
    if expected.min() >= LEAST_EXPECTED:
        from scipy.special import chdtrc  # type: ignore[import-untyped]  # slow to import

        return Association(n, df, chi2, float(chdtrc(df, chi2)), cramers_v, "chi2")
    return Association(n, df, chi2, _exact(counts, seed), cramers_v, "exact")


def _exact(counts: NDArray[np.int64], seed: int) -> float:
    from scipy.stats import fisher_exact, random_table  # type: ignore[import-untyped]  # slow to import

    if counts.shape == (2, 2):
        return float(fisher_exact(counts).pvalue)
    # Not `fisher_exact` with `MonteCarloMethod`: for tables of few counts it returns arrays instead of
    # numbers, and for those of very many counts it raises ValueError (SciPy 1.17).
    tables = random_table(counts.sum(axis=1), counts.sum(axis=0))
    drawn = tables.rvs(DRAWN_TABLES, random_state=np.random.default_rng(seed))
    no_more_likely = tables.logpmf(drawn) <= tables.logpmf(counts) + _ROUNDING
    return float((np.count_nonzero(no_more_likely) + 1) / (DRAWN_TABLES + 1))


def against_the_rest(hits: NDArray[np.int64], sizes: NDArray[np.int64]) -> Floats:
    """For each group the p-value of its share of hits against that of all other groups together.

    χ² where every expected count is at least `LEAST_EXPECTED`, else Fisher's exact test, two-sided: all
    tables that are no more likely than this one. NaN for a group without members, and where nothing else is.
    Many groups at once: `scipy.stats.fisher_exact` takes milliseconds for each.
    """
    from scipy.special import chdtrc  # slow to import

    all_hits, n = int(hits.sum()), int(sizes.sum())
    p_values = np.full(len(sizes), np.nan)
    split = (sizes > 0) & (sizes < n)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows = np.stack([sizes, n - sizes], axis=1).astype(np.float64)
        columns = np.array([all_hits, n - all_hits], dtype=np.float64)
        expected = rows[:, :, None] * columns / max(n, 1)
        apart = (hits - expected[:, 0, 0]) ** 2
        chi2 = apart * (1 / expected).sum(axis=(1, 2))
    large = split & (expected.min(axis=(1, 2)) >= LEAST_EXPECTED)
    p_values[large] = chdtrc(1, chi2[large])
    for place in np.flatnonzero(split & ~large).tolist():
        p_values[place] = _fisher(int(hits[place]), int(sizes[place]), all_hits, n)
    return p_values


def _fisher(hits: int, size: int, all_hits: int, n: int) -> float:
    """The two-sided test of `hits` in a sample of `size` out of `n` that hold `all_hits`."""
    from scipy.special import gammaln

    low, high = max(0, size - (n - all_hits)), min(size, all_hits)
    inside = np.arange(low, high + 1, dtype=np.float64)
    logs = -(
        gammaln(inside + 1)
        + gammaln(all_hits - inside + 1)
        + gammaln(size - inside + 1)
        + gammaln(n - all_hits - size + inside + 1)
    )
    chances = np.exp(logs - logs.max())
    # Tables that are as likely differ by rounding alone.
    no_more_likely = chances <= chances[hits - low] * (1 + _ROUNDING)
    return min(1.0, float(chances[no_more_likely].sum() / chances.sum()))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """The same p-values, in the same places, corrected for being several; None stays None and is no test."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        corrected[place] = highest
    return corrected


class Questionnaire(NamedTuple):
    """People's answers against one column of a questionnaire.

    `levels` are the column's values with (right answers, answers), in order of their names. `without` counts
    answers of people who left the column empty: they are in no level. `adjusted_p` is corrected for the
    number of columns, by Holm.
    """

    levels: Mapping[str, tuple[int, int]]
    without: int
    association: Association
    adjusted_p: float | None


def questionnaire(
    people: Sequence[str],
    right: Sequence[bool],
    columns: Mapping[str, Mapping[str, str | None]],
    *,
    least_answers: int = LEAST_ANSWERS,
    seed: int = 0,
) -> dict[str, Questionnaire]:
    """Whether people who said different things of themselves are right differently often, by column.

    `people` and `right` have an entry an answer: who gave it, and whether it was right. `columns` have, by
    name, what each person answered; None, or a person that is not there, is no answer. Answers of people with
    fewer than `least_answers` are left out.

    Source: SAGI, supplementary, section 3.3 and table 7, which does not correct for the number of columns.
    The test takes answers for independent, which those of one person are not: p-values are too small where
    people differ for other reasons. V says how strong the association is. Raises ValueError where `people`
    and `right` are of different lengths.
    """
    if len(people) != len(right):
        raise ValueError(f"{len(people)} people against {len(right)} answers")
    answered = Counter(people)
    kept = [(who, ok) for who, ok in zip(people, right, strict=True) if answered[who] >= least_answers]
    tested: dict[str, tuple[dict[str, tuple[int, int]], Association]] = {}
    for column, values in columns.items():
        hits: Counter[str] = Counter()
        answers: Counter[str] = Counter()
        for who, ok in kept:
            level = values.get(who)
            if level is not None:
                answers[level] += 1
                hits[level] += ok
        levels = {level: (hits[level], answers[level]) for level in sorted(answers)}
        table = [[count, total - count] for count, total in levels.values()]
        tested[column] = levels, association(np.array(table, dtype=np.int64).reshape(-1, 2), seed=seed)
    adjusted = holm([each.p_value for _, each in tested.values()])
    return {
        column: Questionnaire(levels, len(kept) - sum(total for _, total in levels.values()), each, p)
        for (column, (levels, each)), p in zip(tested.items(), adjusted, strict=True)
    }
