"""Both protocols against a slow second implementation, and what must hold whatever the matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.metrics.naive_semap import paper_figures, paper_pairs, release_figures, release_pairs
from uncanny.eval.metrics.semap import (
    Match,
    Matrix,
    ViewScore,
    confidence_order,
    match_release,
    score_paper,
    score_release,
)

TAUS = [0.7, 0.8, 0.9]


@st.composite
def matrices(draw: st.DrawFn, *, ties: bool = True) -> Matrix:
    """Matrices of all sizes, empty ones too; with `ties` many cells are equal or lie on a threshold."""
    rows, columns = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    if ties:
        cell = st.sampled_from([0.0, 0.5, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0])
        cells = draw(st.lists(cell, min_size=rows * columns, max_size=rows * columns))
    else:
        cells = draw(
            st.lists(st.floats(0.01, 1), min_size=rows * columns, max_size=rows * columns, unique=True)
        )
    return np.array(cells, dtype=np.float64).reshape(rows, columns)


def severities(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, 100), min_size=count, max_size=count)


def check_one_to_one(matches: tuple[Match, ...], similarity: Matrix) -> None:
    assert len({match.predicted for match in matches}) == len(matches)
    assert len({match.true for match in matches}) == len(matches)
    assert all(match.similarity == similarity[match.predicted, match.true] for match in matches)


def check_monotone(view_score: ViewScore) -> None:
    counts = [outcome.tp for outcome in view_score.at]
    assert counts == sorted(counts, reverse=True)
    assert all(0 <= outcome.semap <= 1 and 0 <= outcome.semf1 <= 1 for outcome in view_score.at)


@given(matrices())
def test_release_is_what_the_definition_says(similarity: Matrix) -> None:
    view_score = score_release(similarity, TAUS)
    assert [match[:2] for match in view_score.matches] == release_pairs(similarity)
    assert (view_score.semap, view_score.semf1) == pytest.approx(release_figures(similarity, TAUS))
    check_one_to_one(view_score.matches, similarity)
    check_monotone(view_score)


@pytest.mark.slow
@given(st.data(), matrices())
def test_paper_is_what_the_definition_says(data: st.DataObject, similarity: Matrix) -> None:
    given_severities = data.draw(severities(len(similarity)))
    full = data.draw(matrices().filter(lambda other: other.shape == similarity.shape) | st.just(similarity))
    confidences = [100 - severity for severity in given_severities]
    view_score = score_paper(similarity, TAUS, confidence_order(given_severities), full)
    for threshold, outcome in zip(TAUS, view_score.at, strict=True):
        pairs = paper_pairs(similarity, threshold, confidences, full)
        assert [match[:2] for match in outcome.hits] == [pair for pair in pairs if pair]
        check_one_to_one(outcome.hits, similarity)
    assert (view_score.semap, view_score.semf1) == pytest.approx(
        paper_figures(similarity, TAUS, confidences, full)
    )
    check_monotone(view_score)


@given(st.data(), matrices(ties=False))
def test_order_does_not_matter_to_release_without_ties(data: st.DataObject, similarity: Matrix) -> None:
    rows = data.draw(st.permutations(range(similarity.shape[0])))
    columns = data.draw(st.permutations(range(similarity.shape[1])))
    moved = similarity[np.ix_(rows, columns)] if similarity.size else similarity
    pairs = {(rows[match.predicted], columns[match.true]) for match in match_release(moved)}
    assert pairs == {match[:2] for match in match_release(similarity)}


@given(st.data(), matrices(ties=False))
def test_order_of_files_does_not_matter_to_paper_where_confidences_differ(
    data: st.DataObject, similarity: Matrix
) -> None:
    count = len(similarity)
    ranks = data.draw(st.lists(st.integers(0, 100), min_size=count, max_size=count, unique=True))
    rows = data.draw(st.permutations(range(count)))
    view_score = score_paper(similarity, TAUS, confidence_order(ranks))
    moved = score_paper(
        similarity[list(rows)] if count else similarity, TAUS, confidence_order([ranks[row] for row in rows])
    )
    assert (view_score.semap, view_score.semf1) == (moved.semap, moved.semf1)
