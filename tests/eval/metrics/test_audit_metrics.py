"""AF, MAI, CAP and u_mean by hand, and what holds of them for any annotations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.metrics.audit import (
    AuditMetrics,
    Ints,
    audit_metrics,
    implausibility,
    metrics_of_sums,
    sums_by_cluster,
)

Images = list[list[int]]
SEVERITIES = st.lists(st.integers(0, 100), max_size=6)
IMAGES = st.lists(SEVERITIES, min_size=1, max_size=12)


def columns(images: Images) -> tuple[Ints, Ints]:
    counts = np.array([len(severities) for severities in images], dtype=np.int64)
    return counts, np.array([sum(severities) for severities in images], dtype=np.int64)


def figures(images: Images) -> AuditMetrics:
    return audit_metrics(*columns(images))


def test_by_hand() -> None:
    # 0.8 + 0.5, nothing, 1.0: three anomalies with 2.3 in all, on three images.
    metrics = figures([[20, 50], [], [0]])
    assert metrics.af == 1.0
    assert metrics.mai == pytest.approx(2.3 / 3)
    assert metrics.cap == pytest.approx(2.3 / 3)
    assert metrics.u_mean == pytest.approx(2.3 / 3)
    metrics = figures([[20, 50], [30, 30, 40, 100]])
    assert metrics == pytest.approx((3.3 / 2, 3.0, 3.3 / 2 * 3, 3.3 / 6))


def test_nothing_is_measured_without_images_and_no_anomaly_has_no_mean() -> None:
    assert figures([]) == (None, None, None, None)
    assert figures([[], []]) == (0.0, 0.0, 0.0, None)


def test_a_realistic_anomaly_counts_but_adds_no_implausibility() -> None:
    assert figures([[100]]) == (0.0, 1.0, 0.0, 0.0)
    assert (implausibility(100), implausibility(0), implausibility(35)) == (0.0, 1.0, 0.65)


@given(IMAGES)
def test_relations_between_the_figures(images: Images) -> None:
    mai, af, cap, u_mean = figures(images)
    assert mai is not None
    assert af is not None
    assert cap == mai * af
    assert 0 <= mai <= af
    assert (u_mean is None) == (af == 0)
    if u_mean is not None:
        assert 0 <= u_mean <= 1
        assert u_mean * af == pytest.approx(mai)
    plain = [implausibility(severity) for severities in images for severity in severities]
    assert mai == pytest.approx(sum(plain) / len(images))


@given(IMAGES, st.randoms(use_true_random=False))
def test_order_makes_no_difference_at_all(images: Images, random: st.DrawFn) -> None:
    shuffled = [list(severities) for severities in images]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert figures(shuffled) == figures(images)


@given(IMAGES, st.integers(1, 3))
def test_copies_of_the_set_change_nothing(images: Images, times: int) -> None:
    assert figures(images * times) == pytest.approx(figures(images))


@given(IMAGES)
def test_a_flawless_image_more_is_never_worse(images: Images) -> None:
    before, after = figures(images), figures([*images, []])
    for worse, better in zip(before[:3], after[:3], strict=True):
        assert worse is not None
        assert better is not None
        assert better < worse or worse == 0


@given(IMAGES, st.integers(0, 100))
def test_an_anomaly_more_is_never_better(images: Images, severity: int) -> None:
    before, after = figures(images), figures([[*images[0], severity], *images[1:]])
    for better, worse in zip(before[:3], after[:3], strict=True):
        assert worse is not None
        assert better is not None
        assert worse >= better


@given(IMAGES, st.data())
def test_sums_over_clusters_are_those_of_the_images(images: Images, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 5))
    drawn = [data.draw(st.integers(0, size - 1)) for _ in images]
    sums = sums_by_cluster(np.array(drawn), *columns(images), size)
    assert sums.shape == (size, 3)
    whole = metrics_of_sums(sums.sum(axis=0))
    expected = [np.nan if value is None else value for value in figures(images)]
    assert whole == pytest.approx(expected, nan_ok=True)


def test_nothing_drawn_is_nan_not_zero() -> None:
    assert np.isnan(metrics_of_sums(np.zeros(3))).all()
    assert metrics_of_sums(np.array([2.0, 0.0, 0.0])) == pytest.approx([0, 0, 0, np.nan], nan_ok=True)
