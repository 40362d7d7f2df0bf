"""Anomalies matched one to one: by text or by box, the most pairs first, whichever side is first."""

from __future__ import annotations

from itertools import combinations, permutations
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.common.anomalies.read import ScoredAnomaly
from uncanny.eval.common.similarity.base import mutual, open_measure
from uncanny.eval.compare.score.match import Match, MatchSettings, fields_of, iou, match_anomalies
from uncanny.schema import Box, Kind

SETTINGS = MatchSettings(similarity=0.4)
CHRF = open_measure("chrf")

BOXES: st.SearchStrategy[Box] = st.sampled_from(
    [(0, 0, 10, 10), (0, 0, 10, 8), (5, 5, 15, 15), (90, 90, 99, 99)]
)
ANOMALIES = st.lists(
    st.builds(
        ScoredAnomaly,
        st.just("x"),
        st.sampled_from(["six fingers", "six fingers on a hand", "a cup hangs", "the cup hangs in air", ""]),
        st.sampled_from(["hands have five", "a hand has five fingers", "cups fall", ""]),
        st.integers(0, 100),
        st.none() | BOXES,
        st.sampled_from(["anatomy", "count", None]),
    ),
    max_size=5,
)


def matched(
    ours: list[ScoredAnomaly], theirs: list[ScoredAnomaly], *, boxes: bool = True
) -> tuple[Match, ...]:
    (cells,) = mutual(CHRF, [fields_of(ours, theirs)], SETTINGS.balance, SETTINGS.similarity)
    return match_anomalies(ours, theirs, cells, SETTINGS, with_boxes=boxes)


def boxed(box: Box | None, kind: Kind | None, text: str = "") -> ScoredAnomaly:
    return ScoredAnomaly("x", text, text, 20, box, kind)


@given(ANOMALIES, ANOMALIES)
def test_each_anomaly_is_in_one_pair_at_most_and_sides_can_be_changed(
    ours: list[ScoredAnomaly], theirs: list[ScoredAnomaly]
) -> None:
    forth, back = matched(ours, theirs), matched(theirs, ours)
    assert len({match.a for match in forth}) == len({match.b for match in forth}) == len(forth)
    assert all(match.a < len(ours) and match.b < len(theirs) for match in forth)
    assert len(forth) == len(back)
    assert sum(map(value, forth)) == pytest.approx(sum(map(value, back)))


@given(ANOMALIES, st.randoms(use_true_random=False))
def test_a_record_is_all_in_common_with_itself_in_any_order(
    anomalies: list[ScoredAnomaly], random: Random
) -> None:
    said = [each for each in anomalies if each.phenomenon and each.reasoning]
    again = list(said)
    random.shuffle(again)
    assert len(matched(said, again)) == len(said)


@given(ANOMALIES, ANOMALIES)
def test_no_other_pairing_has_more_pairs_or_higher_scores(
    ours: list[ScoredAnomaly], theirs: list[ScoredAnomaly]
) -> None:
    ours, theirs = ours[:4], theirs[:4]
    chosen = matched(ours, theirs)
    allowed = {
        (a, b): value(match)
        for a, first in enumerate(ours)
        for b, second in enumerate(theirs)
        for match in matched([first], [second])
    }
    best = (0, 0.0)
    for size in range(min(len(ours), len(theirs)) + 1):
        for rows in combinations(range(len(ours)), size):
            for columns in permutations(range(len(theirs)), size):
                pairs = list(zip(rows, columns, strict=True))
                if all(pair in allowed for pair in pairs):
                    best = max(best, (size, sum(allowed[pair] for pair in pairs)))
    assert len(chosen) == best[0]
    assert sum(map(value, chosen)) == pytest.approx(best[1])


def value(match: Match) -> float:
    by_box = match.iou if match.rule != "text" and match.iou is not None else 0.0
    return max(match.similarity or 0.0, by_box)


def test_the_rule_is_kept() -> None:
    text = "The right hand of the woman has six fingers."
    same, near, far = (0, 0, 10, 10), (0, 0, 10, 8), (50, 50, 60, 60)
    (both,) = matched([boxed(same, "count", text)], [boxed(near, "count", text)])
    assert (both.rule, both.similarity, both.iou) == ("both", 1.0, 0.8)
    (by_box,) = matched([boxed(same, "count", text)], [boxed(near, "count", "Chain without links.")])
    assert (by_box.rule, by_box.similarity, by_box.iou) == ("box", None, 0.8)
    (by_text,) = matched([boxed(same, "count", text)], [boxed(far, "count", text)])
    assert (by_text.rule, by_text.similarity, by_text.iou) == ("text", 1.0, 0.0)
    (without,) = matched([boxed(None, None, text)], [boxed(far, "count", text)])
    assert (without.rule, without.iou) == ("text", None)


def test_boxes_count_for_the_same_kind_in_the_same_picture_alone() -> None:
    ours, theirs = [boxed((0, 0, 10, 10), "count")], [boxed((0, 0, 10, 10), "anatomy")]
    assert not matched(ours, theirs)
    assert not matched([boxed((0, 0, 10, 10), None)], [boxed((0, 0, 10, 10), None)])
    assert matched(ours, ours)
    assert not matched(ours, ours, boxes=False)


def test_one_more_pair_is_worth_more_than_a_closer_one() -> None:
    """The first of each side are equal, but then the second ones would have nobody."""
    cells = np.array([[1.0, 0.45], [0.45, 0.0]])
    said = [boxed(None, None, "x")] * 2
    matches = match_anomalies(said, said, cells, SETTINGS, with_boxes=True)
    assert [(match.a, match.b) for match in matches] == [(0, 1), (1, 0)]


def test_overlap_of_boxes_by_hand() -> None:
    assert iou((0, 0, 10, 10), (5, 0, 15, 10)) == pytest.approx(50 / 150)
    assert iou((0, 0, 10, 10), (10, 0, 20, 10)) == 0
    assert iou((0, 0, 4, 4), (0, 0, 4, 4)) == 1
