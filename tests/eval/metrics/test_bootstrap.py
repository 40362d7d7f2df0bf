"""Bootstrap intervals against plain resampling and against what theory says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_1samp  # type: ignore[import-untyped]

from uncanny.eval.metrics.intervals import (
    Ratio,
    percentile_intervals,
    ratio,
    replicates,
    resampled_sums,
    resampled_t_test,
    sign_flip_test,
    wilson_interval,
)


def column(*bits: int) -> np.ndarray:
    return np.array(bits, dtype=np.int16)


def test_drawing_kinds_is_drawing_images() -> None:
    rng = np.random.default_rng(7)
    split = rng.random(60) < 0.6
    right = split & (rng.random(60) < 0.3)
    rows = rng.integers(60, size=(40_000, 60))
    plain = right[rows].sum(axis=1) / split[rows].sum(axis=1)
    drawn = replicates([ratio(right, split)], resamples=40_000, seed=1)[:, 0]
    assert drawn.mean() == pytest.approx(plain.mean(), abs=0.002)
    assert drawn.std() == pytest.approx(plain.std(), rel=0.03)
    for tail in (0.025, 0.5, 0.975):
        assert np.quantile(drawn, tail) == pytest.approx(np.quantile(plain, tail), abs=0.01)


def test_width_is_that_of_a_share() -> None:
    right = np.arange(950) < 285
    (ends,) = percentile_intervals(replicates([ratio(right, np.ones(950, dtype=np.bool_))]))
    assert ends is not None
    assert (ends[1] - ends[0]) / 2 == pytest.approx(1.96 * np.sqrt(0.3 * 0.7 / 950), rel=0.05)


def test_ratios_share_their_resamples() -> None:
    right, everybody = np.arange(50) < 20, np.ones(50, dtype=np.bool_)
    drawn = replicates([ratio(right, everybody), ratio(~right, everybody)], resamples=500, seed=0)
    assert np.allclose(drawn.sum(axis=1), 1)


def test_seed_decides() -> None:
    share = [ratio(np.arange(40) < 11, np.ones(40, dtype=np.bool_))]
    assert np.array_equal(replicates(share, seed=5), replicates(share, seed=5))
    assert not np.array_equal(replicates(share, seed=5), replicates(share, seed=6))


def test_nothing_to_count_out_of_has_no_interval() -> None:
    assert percentile_intervals(replicates([Ratio(column(0, 0), column(0, 0))], resamples=10)) == [None]
    assert percentile_intervals(replicates([Ratio(column(), column())], resamples=10)) == [None]
    assert percentile_intervals(replicates([], resamples=10)) == []
    # One image of two: some resamples miss it, and those are left out.
    of_one = replicates([Ratio(column(1, 0), column(1, 0))], resamples=100)
    assert np.isnan(of_one).any()
    assert percentile_intervals(of_one, images=[1]) == [wilson_interval(1, 1)]


def test_many_kinds_are_drawn_in_parts() -> None:
    everybody = np.ones(3_000, dtype=np.bool_)
    labels = [ratio((np.arange(3_000) >> bit & 1).astype(np.bool_), everybody) for bit in range(12)]
    drawn = replicates(labels, resamples=1_000)
    assert drawn.shape == (1_000, 12)
    assert np.isfinite(drawn).all()
    assert drawn.mean(axis=0) == pytest.approx([label.value for label in labels], abs=0.01)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=30))
def test_intervals_lie_in_the_unit_range_and_in_order(rows: list[tuple[bool, bool]]) -> None:
    right, counted = (np.array(list(part), dtype=np.bool_) for part in zip(*rows, strict=True))
    share = ratio(right & counted, counted)
    images = [int(counted.sum())]
    (ends,) = percentile_intervals(replicates([share], resamples=200), images=images)
    assert (ends is None) == (share.value is None)
    if ends is not None:
        assert 0 <= ends[0] < ends[1] <= 1


def test_percentiles_leave_out_what_is_not_a_number() -> None:
    values = np.array([[np.nan, 1.0], [0.0, 2.0], [1.0, 3.0]])
    assert percentile_intervals(values, level=1.0) == [(0.0, 1.0), (1.0, 3.0)]


def test_the_test_of_resamples_is_students_of_a_mean() -> None:
    values = np.random.default_rng(3).normal(0.4, 1, 12)
    drawn = resampled_sums(values[:, None], np.random.default_rng(0), resamples=100_000)[:, 0] / len(values)
    p_value = resampled_t_test(float(values.mean()), drawn, len(values))
    assert p_value == pytest.approx(float(ttest_1samp(values, 0).pvalue), rel=0.02)
    # Nothing varies: as twelve signs that are all one, and no difference.
    assert resampled_t_test(1.0, np.ones(100), 12) == sign_flip_test(np.ones(12)) == 2 * 0.5**12
    assert resampled_t_test(0.0, np.zeros(100), 12) == 1
    assert resampled_t_test(1.0, drawn, 1) is None
    assert resampled_t_test(0.0, drawn, 12) == 1
    assert resampled_t_test(1.0, np.full(5, np.nan), 12) is None


def test_an_interval_without_a_width_is_none() -> None:
    drawn = np.array([[0.0, 2.0, 0.0, 0.5, 1.0, np.nan], [0.0, 2.0 + 1e-16, 0.1, 0.5, 1.0, np.nan]])
    low, high = 0.1 * 0.025, 0.1 * 0.975
    assert percentile_intervals(drawn) == [None, None, pytest.approx((low, high)), None, None, None]
    # Shares: Wilson's of 7 images at 0, and of 5 at 1.
    shares = percentile_intervals(drawn, images=[7, 3, 3, 3, 5, 3])
    widths = [wilson_interval(0, 7), None, pytest.approx((low, high)), None, wilson_interval(5, 5), None]
    assert shares == widths
