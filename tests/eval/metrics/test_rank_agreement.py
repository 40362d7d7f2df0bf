"""Rank agreement by hand, and where there is none to measure."""

from __future__ import annotations

import pytest

from uncanny.eval.metrics.significance import rank_agreement


def test_by_hand() -> None:
    assert rank_agreement([1, 2, 3], [10, 20, 30]) == pytest.approx((1, 1))
    assert rank_agreement([1, 2, 3], [3, 2, 1]) == pytest.approx((-1, -1))
    # One of three pairs is in another order: tau = (2 − 1)/3; d² = 1 + 1: rho = 1 − 6·2/(3·8).
    assert rank_agreement([1, 2, 3], [2, 1, 3]) == pytest.approx((0.5, 1 / 3))


def test_ties_share_their_rank() -> None:
    # Ranks 1.5, 1.5, 3 and 1, 2, 3; tau-b = 2 / sqrt(2 · 3).
    assert rank_agreement([4, 4, 9], [1, 2, 3]) == pytest.approx((0.8660254, 2 / 6**0.5))


def test_nothing_to_rank() -> None:
    assert rank_agreement([], []) == (None, None)
    assert rank_agreement([1], [2]) == (None, None)
    assert rank_agreement([1, 2], [5, 5]) == (None, None)


def test_lists_of_different_length_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 scores against 1"):
        rank_agreement([1, 2], [1])
