"""χ², exact tests, Cramér's V and Holm's correction, beside scipy and by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, fisher_exact  # type: ignore[import-untyped]
from scipy.stats.contingency import association as scipy_association  # type: ignore[import-untyped]

from uncanny.eval.metrics.association import against_the_rest, association, holm, questionnaire

counts = st.integers(0, 60)


def test_by_hand() -> None:
    # Expected 10 and 10 in both rows: χ² is 4 · 25 / 10.
    result = association([[15, 5], [5, 15]])
    assert result.chi2 == pytest.approx(10)
    assert (result.n, result.df, result.test) == (40, 1, "chi2")
    assert result.cramers_v == pytest.approx(0.5)
    assert result.p_value == pytest.approx(0.00156540225800255)


@given(st.lists(st.tuples(counts, counts), min_size=2, max_size=6))
def test_as_scipy(rows: list[tuple[int, int]]) -> None:
    table = np.array(rows)
    kept = table[table.any(axis=1)][:, table.any(axis=0)]
    result = association(table)
    if min(kept.shape) < 2:
        assert (result.chi2, result.p_value, result.cramers_v, result.test) == (None, None, None, None)
        return
    expected = chi2_contingency(kept, correction=False)
    assert result.chi2 == pytest.approx(expected.statistic)
    assert result.df == expected.dof
    assert result.cramers_v == pytest.approx(scipy_association(kept, "cramer"))
    if expected.expected_freq.min() >= 5:
        assert result.p_value == pytest.approx(expected.pvalue)
    elif kept.shape == (2, 2):
        assert result.p_value == pytest.approx(fisher_exact(kept).pvalue)


def test_an_exact_test_of_a_larger_table_is_repeatable() -> None:
    table = [[3, 1], [0, 4], [1, 3]]
    assert association(table) == association(table)
    assert association(table).test == "exact"


@pytest.mark.parametrize("most", [4, pytest.param(6, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (3, 3), (2, 4), (4, 2)])
def test_every_small_table_has_the_p_value_of_all_tables_with_its_margins(
    shape: tuple[int, int], most: int
) -> None:
    """Random tables stand in for all tables of the same margins, so the p-value is right to about 0.02."""
    tried = 0
    for table in _tables(shape, most):
        result = association(table)
        assert result.p_value == pytest.approx(_by_counting(table), abs=0.025), table.tolist()
        tried += 1
    assert tried


def test_a_rare_level_among_very_many_edits_has_a_p_value() -> None:
    table = np.array([[70_000, 3], [5, 2], [1, 0]])
    assert association(table).p_value == pytest.approx(_by_counting(table), abs=0.005)


def _tables(shape: tuple[int, int], most: int) -> Iterator[NDArray[np.int64]]:
    """All tables of a sum up to `most` in which no row and no column is empty."""
    cells = shape[0] * shape[1]
    for total in range(1, most + 1):
        for bars in combinations(range(total + cells - 1), cells - 1):
            ends = (-1, *bars, total + cells - 1)
            table = (np.diff(ends) - 1).reshape(shape)
            if table.any(axis=0).all() and table.any(axis=1).all():
                yield table


def _by_counting(table: NDArray[np.int64]) -> float:
    """The share of arrangements whose table is no likelier, over all tables of the same margins."""
    ways = _ways(tuple(table.sum(axis=1).tolist()), tuple(table.sum(axis=0).tolist()))
    seen = ways[tuple(map(tuple, table.tolist()))]
    return sum(each for each in ways.values() if each <= seen) / sum(ways.values())


@cache
def _ways(rows: tuple[int, ...], columns: tuple[int, ...]) -> dict[tuple[tuple[int, ...], ...], int]:
    """In how many ways each table of these margins comes about, table by table."""
    if len(rows) == 1:
        return {(columns,): 1}
    ways: dict[tuple[tuple[int, ...], ...], int] = {}
    for row in product(*(range(min(rows[0], column) + 1) for column in columns)):
        if sum(row) == rows[0]:
            left = tuple(column - taken for column, taken in zip(columns, row, strict=True))
            chosen = math.prod(map(math.comb, columns, row))
            ways |= {(row, *rest): chosen * number for rest, number in _ways(rows[1:], left).items()}
    return ways


def test_nothing_can_differ_in_one_row() -> None:
    assert association([[3, 4]]).p_value is None
    assert association(np.zeros((0, 2), dtype=int)).n == 0
    with pytest.raises(ValueError, match="counts from 0"):
        association([[1, -1], [2, 2]])


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=6))
def test_each_group_against_the_rest(groups: list[tuple[int, int]]) -> None:
    hits, misses = np.array(groups).T
    p_values = against_the_rest(hits, hits + misses)
    for place, p in enumerate(p_values):
        table = np.array(
            [[hits[place], misses[place]], [hits.sum() - hits[place], misses.sum() - misses[place]]]
        )
        if not table.any(axis=1).all():
            assert np.isnan(p)
            continue
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        if expected.min() >= 5:
            assert p == pytest.approx(chi2_contingency(table, correction=False).pvalue)
        else:
            assert p == pytest.approx(fisher_exact(table).pvalue)


def test_holm() -> None:
    # 4 · 0.005, 3 · 0.01, then 0.04 · 1 would be below 2 · 0.03: never below the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, None, 0.9]) == [1.0, None, 1.0]
    assert holm([]) == []


def test_a_questionnaire_leaves_out_people_with_few_answers() -> None:
    people = ["a"] * 20 + ["b"] * 20 + ["c"] * 5 + ["d"] * 20
    right = [True] * 15 + [False] * 5 + [True] * 5 + [False] * 15 + [True] * 5 + [True] * 20
    columns: dict[str, dict[str, str | None]] = {
        "sees well": {"a": "yes", "b": "no", "c": "no", "d": None},
        "age": {"a": "18–24", "b": "18–24", "c": "65+", "d": "25–34"},
    }
    results = questionnaire(people, right, columns)
    seen = results["sees well"]
    assert dict(seen.levels) == {"no": (5, 20), "yes": (15, 20)}
    assert seen.without == 20
    assert seen.association.cramers_v == pytest.approx(0.5)
    assert seen.association.p_value is not None
    assert dict(results["age"].levels) == {"18–24": (20, 40), "25–34": (20, 20)}
    assert seen.adjusted_p == pytest.approx(holm([each.association.p_value for each in results.values()])[0])
    assert questionnaire(people, right, columns, least_answers=21)["age"].association.n == 0
    with pytest.raises(ValueError, match="65 people against 1 answers"):
        questionnaire(people, [True], columns)
