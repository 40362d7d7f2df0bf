"""Both protocols by hand: ties, duplicates, empty sides, and where the two disagree."""

from __future__ import annotations

import numpy as np
import pytest

from uncanny.eval.metrics import THRESHOLDS
from uncanny.eval.metrics.detection import conditioned, counted, recognised
from uncanny.eval.metrics.semap import (
    Matrix,
    average_precision,
    confidence_order,
    f1,
    full_similarity,
    match_paper,
    match_release,
    score_paper,
    score_release,
    unmatched,
)


def matrix(*rows: list[float]) -> Matrix:
    return np.array(rows, dtype=np.float64)


def empty(n_pred: int, n_true: int) -> Matrix:
    return np.zeros((n_pred, n_true))


def test_release_takes_the_highest_cell_of_all_first() -> None:
    # Prediction 0 would rather have truth 0, but prediction 1 is closer to it.
    matches = match_release(matrix([0.85, 0.70], [0.95, 0.80]))
    assert matches == ((1, 0, 0.95), (0, 1, 0.70))


def test_release_ties_go_to_the_smaller_prediction_then_truth() -> None:
    assert [match[:2] for match in match_release(matrix([0.8, 0.8], [0.8, 0.8]))] == [(0, 0), (1, 1)]
    assert [match[:2] for match in match_release(matrix([0.5, 0.8], [0.8, 0.5]))] == [(0, 1), (1, 0)]


def test_release_never_matches_at_zero() -> None:
    assert match_release(matrix([0.0, 0.9], [0.0, 0.0])) == ((0, 1, 0.9),)


def test_release_matching_knows_no_threshold() -> None:
    """The pair below the threshold holds its truth, which the paper would give to the next prediction."""
    similarity = matrix([0.92, 0.91], [0.91, 0.10])
    view_score = score_release(similarity, [0.9])
    assert [match[:2] for match in view_score.matches] == [(0, 0), (1, 1)]
    assert (view_score.at[0].tp, view_score.semap, view_score.semf1) == (1, 0.5, 0.5)


def test_a_threshold_is_reached_by_its_own_value() -> None:
    assert [outcome.tp for outcome in score_release(matrix([0.8]), THRESHOLDS).at] == [1, 1, 0]
    assert [outcome.tp for outcome in score_paper(matrix([0.8]), THRESHOLDS, [0]).at] == [1, 1, 0]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0)])
def test_release_gives_nothing_for_an_empty_side(shape: tuple[int, int]) -> None:
    view_score = score_release(empty(*shape), THRESHOLDS)
    assert (view_score.semap, view_score.semf1, view_score.matches) == (0, 0, ())


@pytest.mark.parametrize(("shape", "score"), [((0, 0), 1), ((0, 3), 0), ((3, 0), 0)])
def test_paper_rewards_silence_where_nothing_is_wrong(shape: tuple[int, int], score: float) -> None:
    view_score = score_paper(empty(*shape), THRESHOLDS, range(shape[0]))
    assert (view_score.semap, view_score.semf1, view_score.matches) == (score, score, ())


def test_duplicates_cost_precision_in_both() -> None:
    twice = matrix([0.9, 0.1], [0.9, 0.1])
    release, paper = score_release(twice, [0.7]), score_paper(twice, [0.7], [0, 1])
    assert (release.semap, release.semf1) == (1 / 2, 1 / 2)
    # Rank 1 finds one of two truths at precision 1, rank 2 finds nothing.
    assert (paper.semap, paper.semf1) == (1 / 2, 1 / 2)
    assert unmatched(paper.matches, 2, "predicted") == (1,)
    assert unmatched(paper.matches, 2, "true") == (1,)


def test_paper_matches_anew_at_each_threshold() -> None:
    similarity = matrix([0.75, 0.95], [0.85, 0.90])
    view_score = score_paper(similarity, [0.7, 0.8, 0.9], [0, 1])
    assert [[match[:2] for match in outcome.hits] for outcome in view_score.at] == [
        [(0, 1), (1, 0)],
        [(0, 1), (1, 0)],
        [(0, 1)],
    ]
    assert [match.similarity for match in view_score.matches] == [0.95, 0.85]


def test_paper_lets_the_confident_choose_first() -> None:
    similarity = matrix([0.80, 0.75], [0.90, 0.10])
    assert [match[:2] for match in match_paper(similarity, 0.7, [0, 1])] == [(0, 0)]
    assert [match[:2] for match in match_paper(similarity, 0.7, [1, 0])] == [(1, 0), (0, 1)]


def test_paper_ties_go_to_the_higher_full_similarity_then_to_the_smaller_truth() -> None:
    tied = matrix([0.8, 0.8, 0.8])
    assert match_paper(tied, 0.7, [0], full=matrix([0.5, 0.6, 0.6]))[0].true == 1
    assert match_paper(tied, 0.7, [0])[0].true == 0


def test_average_precision_by_hand() -> None:
    # Hits at ranks 2 and 3 of three truths: (1/2 + 2/3) / 3.
    assert average_precision([False, True, True], 3) == pytest.approx(7 / 18)
    assert average_precision([True, True, False], 2) == 1
    assert average_precision([False, False], 2) == 0


def test_confidence_is_what_severity_leaves_of_100() -> None:
    assert confidence_order([50, 10, 10, 0]) == (3, 1, 2, 0)
    assert confidence_order([50, None, 10]) == (0, 1, 2)
    assert confidence_order([]) == ()


def test_f1_and_full() -> None:
    assert (f1(0, 0, 0), f1(0, 3, 3), f1(3, 3, 3), f1(1, 2, 4)) == (0, 0, 1, 1 / 3)
    assert full_similarity(matrix([0.8]), matrix([0.4]), 0.25)[0, 0] == pytest.approx(0.5)


def test_the_score_counts_where_the_source_is_right() -> None:
    true = np.array(["generated", "generated", "generated", "real", "real", ""])
    predicted = np.array(["generated", "real", "", "real", "generated", "generated"])
    scores = np.full(6, 0.5)
    assert recognised(true, predicted).tolist() == [True, False, False, True, False, False]
    assert conditioned(scores, true, predicted).tolist() == [0.5, 0, 0, 0.5, 0, 0]
    assert counted(true, "release").tolist() == [True, True, True, False, False, False]
    assert counted(true, "paper").tolist() == [True] * 5 + [False]
