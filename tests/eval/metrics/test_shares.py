"""Wilson intervals beside scipy's, and which figures get them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest  # type: ignore[import-untyped]

from benchmarks.scores.coverage import SHARES, bootstrap, of_share, wilson
from uncanny.eval.metrics.intervals import (
    Ratio,
    is_plain,
    percentile_intervals,
    replicates,
    share_intervals,
    wilson_interval,
)


def of(counts: list[int], out_of: list[int]) -> Ratio:
    return Ratio(np.array(counts, dtype=np.int16), np.array(out_of, dtype=np.int16))


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_that_of_scipy(share: tuple[int, int]) -> None:
    count, out_of = share
    for level in (0.95, 0.8):
        ours = wilson_interval(count, out_of, level=level)
        theirs = binomtest(count, out_of).proportion_ci(level, method="wilson")
        assert ours == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-12)


def test_all_and_none_have_a_width() -> None:
    assert wilson_interval(0, 0) is None
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson_interval(10, 10) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert wilson_interval(1, 1) == pytest.approx((0.2065, 1.0), abs=1e-4)


def test_intervals_of_shares_hold_what_they_promise_where_a_bootstrap_does_not() -> None:
    assert all(0.92 < of_share(n, share, wilson) < 0.97 for n in (20, 100, 475) for share in SHARES)
    assert of_share(20, 0.02, bootstrap) < 0.35
    assert 0.93 < of_share(20, 0.5, bootstrap) < 0.97


def test_plain_shares_get_wilson_and_others_a_bootstrap() -> None:
    plain = of([1, 1, 0, 0], [1, 1, 1, 0])
    f1 = of([2, 2, 0, 0], [2, 2, 1, 0])
    several_answers = of([3, 1, 0, 0], [3, 2, 3, 0])
    nothing = of([0, 0, 0, 0], [0, 0, 0, 0])
    assert [is_plain(each) for each in (plain, f1, several_answers, nothing)] == [True, False, False, True]
    intervals = share_intervals([f1, plain, nothing, several_answers], resamples=100, seed=1)
    drawn = percentile_intervals(replicates([f1, several_answers], resamples=100, seed=1))
    assert intervals == [drawn[0], wilson_interval(2, 3), None, drawn[1]]
    assert share_intervals([f1, plain], resamples=0) == [None, None]


def test_what_is_alike_on_every_image_has_a_width_too() -> None:
    perfect, none = of([2, 2, 4, 0], [2, 2, 4, 0]), of([0, 0, 0, 0], [2, 3, 1, 0])
    mixed = of([2, 0, 4, 0], [2, 2, 4, 0])
    high, low, other = share_intervals([perfect, none, mixed], resamples=200)
    assert high == wilson_interval(3, 3)
    assert low == wilson_interval(0, 3)
    assert other is not None
    assert other[0] < other[1]
