"""Correlations of ratings with a value: against SciPy, and a bootstrap with a loop."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr  # type: ignore[import-untyped]

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.ratings import correlations


def test_by_hand() -> None:
    """Ranks 1.5, 1.5, 3, 4 against 1, 2, 3.5, 3.5; of six pairs, four agree and two are tied."""
    found = correlations([1, 1, 2, 3], [0.1, 0.2, 0.9, 0.9], resamples=0)
    assert found.n == 4
    assert found.kendall.value == pytest.approx(4 / 5)
    assert found.spearman.value == pytest.approx(4 / 4.5)
    assert found.pearson.interval is None


@pytest.mark.parametrize("seed", range(8))
def test_the_same_as_scipy_with_ties(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 60))
    ratings = np.append(rng.integers(1, 4, n - 2), [1, 3])
    values = np.round(ratings * rng.normal() + rng.normal(0, 2, n), 1 if seed % 2 else 6)
    found = correlations(ratings, values, resamples=0)
    for figure, function in (
        (found.pearson, pearsonr),
        (found.kendall, kendalltau),
        (found.spearman, spearmanr),
    ):
        assert figure.value == pytest.approx(float(function(ratings, values)[0]))


@pytest.mark.slow
def test_intervals_are_those_of_a_bootstrap_of_groups() -> None:
    rng = np.random.default_rng(1)
    groups = np.repeat(np.arange(40), 3)
    ratings = rng.integers(1, 4, 120)
    values = ratings * 0.4 + rng.normal(0, 1, 40)[groups] + rng.normal(0, 0.3, 120)
    found = correlations(ratings, values, groups, resamples=4_000)
    by_hand = []
    for _ in range(1_000):
        drawn = np.concatenate([np.flatnonzero(groups == each) for each in rng.integers(0, 40, 40)])
        some = (ratings[drawn], values[drawn])
        by_hand.append([pearsonr(*some)[0], kendalltau(*some)[0], spearmanr(*some)[0]])
    ends = np.quantile(by_hand, [0.025, 0.975], axis=0).T
    for figure, wanted in zip((found.pearson, found.kendall, found.spearman), ends, strict=True):
        assert figure.interval == pytest.approx(tuple(wanted), abs=0.03)


def test_what_cannot_be_told() -> None:
    nothing = (Estimate(None),) * 3
    for ratings, values in (([], []), ([1], [2.0]), ([1, 1], [1.0, 2.0]), ([1, 2], [3.0, 3.0])):
        assert correlations(ratings, values, resamples=10)[1:] == nothing
    # All of one original: resamples are all the same.
    assert correlations([1, 2, 3], [1, 3, 2], np.zeros(3, dtype=np.int64)).pearson == Estimate(0.5)
    with pytest.raises(ValueError, match="against"):
        correlations([1], [1, 2])
