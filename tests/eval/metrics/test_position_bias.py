"""Position bias on constructed answers."""

from __future__ import annotations

from itertools import repeat
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.metrics.intervals import clustered_interval, group_codes, wilson_interval
from uncanny.eval.metrics.significance import position_bias


def choices(first: int, second: int, both: int = 0) -> list[str]:
    return [*repeat("first", first), *repeat("second", second), *repeat("both", both)]


def by_hand(first: int, second: int) -> float:
    """Two-sided at one half: everything at least as far from the middle."""
    checks = first + second
    away = abs(first - second)
    ways = sum(comb(checks, k) for k in range(checks + 1) if abs(2 * k - checks) >= away)
    return float(ways / 2**checks)


@pytest.mark.parametrize(
    ("first", "second", "p_value"),
    [(1, 0, 1.0), (5, 5, 1.0), (6, 0, 0.03125), (0, 6, 0.03125), (9, 1, 22 / 1024), (8, 2, 112 / 1024)],
)
def test_the_exact_test(first: int, second: int, p_value: float) -> None:
    assert position_bias(choices(first, second)).p_value == pytest.approx(p_value)


def test_both_counts_in_the_shares_and_not_in_the_test() -> None:
    bias = position_bias(choices(6, 0, 4))
    assert (bias.first, bias.second, bias.both, bias.checks) == (6, 0, 4, 10)
    assert bias.p_value == pytest.approx(0.03125)
    assert (bias.share("first"), bias.share("second"), bias.share("both")) == (0.6, 0.0, 0.4)
    assert bias.first_share == 1.0
    assert bias.interval is not None
    assert bias.interval == pytest.approx((0.025 ** (1 / 6), 1.0))


@pytest.mark.parametrize("both", [0, 3])
def test_without_a_place_chosen_nothing_is_measured(both: int) -> None:
    bias = position_bias(choices(0, 0, both))
    assert (bias.first_share, bias.interval, bias.p_value) == (None, None, None)
    assert bias.share("both") == (1.0 if both else None)


def test_a_judge_that_goes_by_the_images_has_no_bias_and_one_that_goes_by_places_has() -> None:
    # The original is always chosen: first in one order, second in the other.
    assert position_bias(["first", "second"] * 50).p_value == 1.0
    biased = position_bias(["first", "first"] * 50)
    assert biased.p_value is not None
    assert biased.p_value < 1e-20


def test_pairs_that_belong_together_are_taken_as_a_whole() -> None:
    """Twenty edits of each of two originals, always the first place: two signs."""
    everywhere = ["first"] * 80
    together = position_bias(everywhere, group_codes(number // 40 for number in range(80)))
    assert (together.first, together.first_share, together.p_value) == (80, 1.0, 0.5)
    assert together.interval == wilson_interval(2, 2)
    # "both" says nothing, in a group as well.
    mixed = position_bias(["first", "both", "second", "first"], group_codes("aabb"))
    assert (mixed.first_share, mixed.p_value) == (2 / 3, 1.0)
    assert mixed.interval == clustered_interval([1, 1], [1, 2])


def test_other_words_are_an_error() -> None:
    with pytest.raises(ValueError, match="'third'"):
        position_bias(["first", "third"])


@given(st.integers(0, 40), st.integers(0, 40))
def test_agrees_with_counting_and_does_not_know_left_from_right(first: int, second: int) -> None:
    bias, turned = position_bias(choices(first, second)), position_bias(choices(second, first))
    assert bias.p_value == turned.p_value
    if first + second:
        assert bias.p_value == pytest.approx(by_hand(first, second))
        assert bias.interval is not None
        assert bias.first_share is not None
        assert 0 <= bias.interval[0] <= bias.first_share <= bias.interval[1] <= 1
