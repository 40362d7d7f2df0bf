"""Score columns: what they count out of, and what belongs together adds up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.metrics.intervals import ratio
from uncanny.eval.metrics.mcq import (
    PATTERNS,
    disagreement_ratios,
    hierarchy_ratios,
    pattern_counts,
    type_ratios,
)

MARKS = st.lists(st.tuples(*[st.sampled_from([-1, 0, 1])] * 4), min_size=1, max_size=40)


def arrays(marks: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    table = np.array(marks)
    return np.ones(len(table), dtype=np.bool_), table == 1, table >= 0


@given(MARKS)
def test_hierarchy_collapses_the_patterns(marks: list[tuple[int, ...]]) -> None:
    patterns, stages = pattern_counts(*arrays(marks)), hierarchy_ratios(*arrays(marks))
    counts = {name: int(ratios.counts.sum()) for name, ratios in stages.items()}
    assert list(patterns) == list(PATTERNS)
    assert sum(counts.values()) == sum(patterns.values())
    assert counts["full_success"] == patterns["1111"]
    assert counts["q1_miss"] == sum(n for name, n in patterns.items() if name[0] == "0")
    assert counts["evidence_failure"] == sum(n for name, n in patterns.items() if name[0] + name[3] == "10")


@given(MARKS)
def test_disagreement_is_asymmetric(marks: list[tuple[int, ...]]) -> None:
    ratios = disagreement_ratios(*arrays(marks))["q4_vs_q3"]
    both = [(q3, q4) for _, _, q3, q4 in marks if q3 >= 0 and q4 >= 0]
    difference = sum(q4 - q3 for q3, q4 in both)
    assert int(ratios["q4_only"].counts.sum()) - int(ratios["q3_only"].counts.sum()) == difference
    assert int(ratios["q4_only"].out_of.sum()) == len(both)


def test_types_come_most_frequent_first() -> None:
    rows, right, answered = arrays([(1, 1, 1, 1), (1, 1, 1, 0), (1, 1, 1, 1)])
    ratios = type_ratios(rows, np.array(["count", "anatomy", "anatomy"]), right, answered)
    assert [(name, share.value) for name, share in ratios.items()] == [("anatomy", 0.5), ("count", 1.0)]


def test_value_of_nothing_is_none() -> None:
    nobody = np.zeros(3, dtype=np.bool_)
    assert ratio(nobody, nobody).value is None
    assert ratio(nobody, ~nobody).value == pytest.approx(0.0)
