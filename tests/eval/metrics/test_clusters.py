"""Resampled sums against SciPy's bootstrap, against plain drawing, and against what theory says."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from benchmarks.audit_coverage import coverage
from uncanny.eval.metrics.audit import Floats, metrics_of_sums
from uncanny.eval.metrics.intervals import percentile_intervals, resampled_sums

# The ends of two percentile intervals differ by chance; 4 % of the width is about four times its spread.
OF_WIDTH = 0.04


def made_sums(clusters: int, seed: int = 0, images: int = 1) -> Floats:
    """As an annotation set gives them: images, anomalies, implausibility."""
    rng = np.random.default_rng(seed)
    counts = rng.negative_binomial(4, 0.4, clusters)
    unreal = np.array([rng.integers(0, 101, count).sum() / 100 for count in counts])
    return np.stack([np.full(clusters, float(images)), counts, unreal], axis=1)


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def close(interval: tuple[float, float] | None, low: float, high: float) -> None:
    assert interval is not None
    assert interval == pytest.approx((low, high), abs=OF_WIDTH * (high - low))


@pytest.mark.parametrize("clusters", [30, 246])
def test_intervals_are_those_of_scipy(clusters: int) -> None:
    sums = made_sums(clusters)
    intervals = percentile_intervals(metrics_of_sums(resampled_sums(sums, rng())))
    settings = {"n_resamples": 10_000, "method": "percentile", "vectorized": True, "rng": rng()}
    for column, index in ((2, 0), (1, 1)):
        ends = stats.bootstrap((sums[:, column],), np.mean, **settings).confidence_interval
        close(intervals[index], ends.low, ends.high)

    def cap(counts: Floats, unreal: Floats, axis: int = -1) -> Floats:
        product: Floats = counts.mean(axis=axis) * unreal.mean(axis=axis)
        return product

    ends = stats.bootstrap((sums[:, 1], sums[:, 2]), cap, paired=True, **settings).confidence_interval
    close(intervals[2], ends.low, ends.high)

    def u_mean(counts: Floats, unreal: Floats, axis: int = -1) -> Floats:
        ratio: Floats = unreal.sum(axis=axis) / counts.sum(axis=axis)
        return ratio

    ends = stats.bootstrap((sums[:, 1], sums[:, 2]), u_mean, paired=True, **settings).confidence_interval
    close(intervals[3], ends.low, ends.high)


def test_drawing_kinds_is_drawing_clusters() -> None:
    kinds = np.array([[1.0, 0.0], [1.0, 3.0], [1.0, 9.0]])
    many = np.repeat(kinds, [200, 100, 20], axis=0)
    by_kind = resampled_sums(many, rng(), resamples=20_000)
    noise = np.random.default_rng(2).random((320, 1))  # makes each row its own kind
    one_by_one = resampled_sums(np.hstack([many, noise]), rng(), resamples=20_000)[:, :2]
    assert (by_kind[:, 0] == 320).all()
    assert (one_by_one[:, 0] == 320).all()
    assert by_kind.mean(axis=0) == pytest.approx(one_by_one.mean(axis=0), rel=0.005)
    assert by_kind[:, 1].std() == pytest.approx(one_by_one[:, 1].std(), rel=0.03)


def test_what_belongs_together_is_drawn_together() -> None:
    sums = made_sums(50)
    twice = resampled_sums(np.hstack([sums, sums]), rng(), resamples=300)
    assert (twice[:, :3] == twice[:, 3:]).all()


def test_copies_of_images_in_clusters_do_not_make_an_interval_narrower() -> None:
    sums = made_sums(60)
    alone = percentile_intervals(metrics_of_sums(resampled_sums(sums, rng())))
    fourfold = percentile_intervals(metrics_of_sums(resampled_sums(4 * sums, rng())))
    assert np.array(alone) == pytest.approx(np.array(fourfold))
    apart = percentile_intervals(metrics_of_sums(resampled_sums(np.repeat(sums, 4, axis=0), rng())))
    wide, narrow = np.ptp(np.array(alone), axis=1), np.ptp(np.array(apart), axis=1)
    assert narrow == pytest.approx(wide / 2, rel=0.1)


def test_same_seed_same_sums_however_many_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sums = made_sums(40)
    whole = resampled_sums(sums, rng(), resamples=100)
    monkeypatch.setattr("uncanny.eval.metrics.intervals._CELLS_A_DRAW", 100)
    monkeypatch.setattr("uncanny.eval.metrics.intervals._CELLS_A_PRODUCT", 300)
    assert resampled_sums(sums, rng(), resamples=100) == pytest.approx(whole)


def test_nothing_to_draw_from() -> None:
    assert (resampled_sums(np.empty((0, 3)), rng(), resamples=5) == np.zeros((5, 3))).all()
    assert resampled_sums(made_sums(5), rng(), resamples=0).shape == (0, 3)


@pytest.mark.slow
def test_coverage_is_near_nominal() -> None:
    # 150 repetitions: the share itself has a standard error of 1.8 points.
    intervals = coverage(repetitions=150, resamples=1000)
    for figure in ("mai", "af", "cap"):
        paired, unpaired = (
            intervals[f"paired difference, {figure}"],
            intervals[f"unpaired difference, {figure}"],
        )
        assert 0.88 <= intervals[f"one generator, {figure}"].covered <= 0.99
        assert 0.88 <= paired.covered <= 0.99
        # Prompts that are hard for both widen an interval that does not know of them.
        assert paired.width < 0.9 * unpaired.width
