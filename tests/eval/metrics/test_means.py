"""Means over images and their intervals, against plain resampling and by what must hold."""

from __future__ import annotations

import numpy as np
import pytest

from uncanny.eval.metrics import intervals as means
from uncanny.eval.metrics.intervals import Mean, mean_intervals, wilson_interval

RNG = np.random.default_rng(3)
VALUES = RNG.random(200)
ALL = np.ones(200, dtype=np.bool_)
SOME = np.arange(200) % 3 > 0


def test_value_is_over_the_counted_images() -> None:
    assert Mean(VALUES, SOME).value == pytest.approx(VALUES[SOME].mean())
    assert Mean(VALUES, ~ALL).value is None


def test_interval_is_that_of_plain_resampling() -> None:
    (ends,) = mean_intervals([Mean(VALUES, SOME)], resamples=20_000, seed=1)
    assert ends is not None
    rows = RNG.integers(200, size=(20_000, 200))
    plain = (VALUES * SOME)[rows].sum(axis=1) / SOME[rows].sum(axis=1)
    assert ends == pytest.approx(np.quantile(plain, [0.025, 0.975]), abs=0.003)


def test_no_interval_without_images_or_resamples() -> None:
    assert list(mean_intervals([Mean(VALUES, ~ALL)], resamples=50)) == [None]
    assert list(mean_intervals([Mean(VALUES, ALL)], resamples=0)) == [None]
    assert not list(mean_intervals([], resamples=50))


def test_a_constant_difference_has_no_interval() -> None:
    """Paired: image by image the difference is the same, however much the images vary."""
    constant = Mean((VALUES + 0.1) - VALUES, ALL)
    assert list(mean_intervals([constant], resamples=100)) == [None]
    assert list(mean_intervals([constant], resamples=100, shares=True)) == [None]


def test_a_score_of_0_or_1_on_all_images_has_wilsons_interval() -> None:
    scores = [Mean(0 * VALUES, SOME), Mean(0 * VALUES + 1, SOME)]
    n = int(SOME.sum())
    expected = [wilson_interval(0, n), wilson_interval(n, n)]
    assert list(mean_intervals(scores, resamples=100, shares=True)) == expected
    assert list(mean_intervals(scores, resamples=100)) == [None, None]


def test_many_means_are_resampled_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [Mean(VALUES, ALL), Mean(VALUES, SOME), Mean(VALUES**2, ALL), Mean(VALUES, ALL)]
    whole = flat(several)
    monkeypatch.setattr(means, "_MEANS_AT_ONCE", 2)
    assert flat(several) == pytest.approx(whole)


def flat(several: list[Mean]) -> list[float]:
    return [end for ends in mean_intervals(several, resamples=300, seed=4) if ends for end in ends]
