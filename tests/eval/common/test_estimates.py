"""Figures with their intervals: what a difference says, and how intervals and p-values read."""

from __future__ import annotations

import math

import pytest

from uncanny.eval.common.estimates import (
    Estimate,
    Share,
    interval_words,
    p_words,
    wilson_share,
)


def test_an_interval_says_whether_a_difference_is_one() -> None:
    intervals = ((0.01, 0.2), (-0.1, 0.2), (0.0, 0.2), None)
    assert [Estimate(0.1, interval).excludes_zero for interval in intervals] == [True, False, False, None]


def test_a_difference_from_the_other_side() -> None:
    assert -Estimate(0.5, (-0.1, 0.7)) == Estimate(-0.5, (-0.7, 0.1))
    assert -Estimate(None) == Estimate(None)
    assert math.copysign(1, (-Estimate(0.0)).value or 0.0) == 1


def test_intervals_read_as_percent() -> None:
    assert interval_words(Share(0.5, 5, 10, (0.237, 0.763))) == "23.7–76.3"
    assert interval_words(Share(None, 0, 0)) is None


def test_p_values_are_never_0() -> None:
    assert [p_words(p) for p in (None, 0.0, 0.0432)] == ["nothing in common", "p < 0.0001", "p = 0.043"]


def test_a_share_has_wilsons_interval_and_of_nothing_no_value() -> None:
    from scipy.stats import binomtest  # type: ignore[import-untyped]

    share = wilson_share(1, 4)
    assert (share.value, share.counts, share.out_of) == (0.25, 1, 4)
    ends = binomtest(1, 4).proportion_ci(method="wilson")
    assert share.interval == pytest.approx((ends.low, ends.high))
    assert wilson_share(1, 4, interval=False).interval is None
    assert wilson_share(0, 0) == Share(None, 0, 0)
