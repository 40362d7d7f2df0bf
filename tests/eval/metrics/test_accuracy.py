"""Accuracy, precision and recall, worked out by hand and against scikit-like definitions written anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.metrics.detection import SOURCES, accuracy
from uncanny.schema import Source

Pair = tuple[Source, Source | None]
SEEN: Pair = ("generated", "generated")
MISSED: Pair = ("generated", "real")
UNCLEAR: Pair = ("generated", None)
CLEARED: Pair = ("real", "real")
ACCUSED: Pair = ("real", "generated")
_JUDGED: st.SearchStrategy[Source | None] = st.sampled_from(["generated", "real", None])
_PAIRS = st.lists(st.tuples(st.sampled_from(SOURCES), _JUDGED), max_size=60)


def test_by_hand() -> None:
    pairs = [*[SEEN] * 6, *[MISSED] * 2, *[UNCLEAR] * 2, *[CLEARED] * 3, ACCUSED]
    counts = accuracy(pairs)
    assert (counts.images, counts.right, counts.unparseable) == (14, 9, 2)
    assert counts.accuracy == 9 / 14
    assert counts.precision("generated") == 6 / 7
    assert counts.recall("generated") == 6 / 10
    assert counts.precision("real") == 3 / 5
    assert counts.recall("real") == 3 / 4
    assert counts.f1("generated") == 2 * 6 / (10 + 7)


def test_shares_of_nothing_are_none() -> None:
    counts = accuracy([])
    assert (counts.images, counts.accuracy, counts.interval()) == (0, None, None)
    assert [counts.precision(source) for source in SOURCES] == [None, None]
    unclear = accuracy([UNCLEAR])
    assert (unclear.accuracy, unclear.recall("generated"), unclear.precision("generated")) == (0.0, 0.0, None)
    assert (unclear.recall("real"), unclear.f1("real"), unclear.f1("generated")) == (None, None, 0.0)


def test_the_interval_holds_the_accuracy_and_has_a_width() -> None:
    counts = accuracy([SEEN] * 30 + [UNCLEAR] * 10)
    interval = counts.interval()
    assert interval is not None
    assert interval[0] < 0.75 < interval[1]
    low, high = accuracy([CLEARED] * 5).interval() or (0, 0)
    assert 0.5 < low < 0.6
    assert high == 1


@given(_PAIRS)
def test_what_is_unparseable_is_wrong_and_no_prediction(pairs: list[Pair]) -> None:
    counts = accuracy(pairs)
    right = sum(true == judged for true, judged in pairs)
    if pairs:
        assert counts.accuracy == pytest.approx(right / len(pairs))
    for source in SOURCES:
        hits = sum(true == judged == source for true, judged in pairs)
        predicted = sum(judged == source for _, judged in pairs)
        true = sum(each == source for each, _ in pairs)
        assert counts.precision(source) == (pytest.approx(hits / predicted) if predicted else None)
        assert counts.recall(source) == (pytest.approx(hits / true) if true else None)
        precision, recall = counts.precision(source), counts.recall(source)
        if precision and recall:
            assert counts.f1(source) == pytest.approx(2 * precision * recall / (precision + recall))
