"""The area under the ROC curve of images and pixels, beside scikit-learn and by counting pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from uncanny.eval.metrics.auc import (
    auc,
    average_precision,
    coarse,
    pixel_auc,
    pixel_auc_interval,
    pixel_counts,
)

scored = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30)


@given(scored)
def test_as_scikit_learn_ties_included(images: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in images], dtype=np.float64)
    positive = np.array([each for _, each in images])
    result = auc(scores, positive)
    if positive.all() or not positive.any():
        assert result.value is None
        assert result.interval is None
        return
    assert result.value == pytest.approx(roc_auc_score(positive, scores))
    assert result.value is not None
    assert result.interval is not None
    low, high = result.interval
    assert 0 <= low <= result.value <= high <= 1
    assert low < high
    assert result.placements.mean() == pytest.approx(result.value)


def test_placements_are_each_positives_share_of_negatives_below() -> None:
    result = auc(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]))
    assert result.placements.tolist() == [1.0, 0.75]
    assert result.value == 0.875


def test_delong_by_hand() -> None:
    """Var(placements)/m + Var(shares above)/n on the logit's scale."""
    above, below = np.array([3.0, 4, 6, 7]), np.array([1.0, 2, 5])
    scores, positive = np.concatenate([above, below]), np.array([True] * 4 + [False] * 3)
    v10 = np.array([2 / 3, 2 / 3, 1, 1])
    v01 = np.array([1, 1, 0.5])
    spread = np.sqrt(v10.var(ddof=1) / 4 + v01.var(ddof=1) / 3)
    value = v10.mean()
    ends = np.log(value / (1 - value)) + np.array([-1, 1]) * 1.959963984540054 * spread / (
        value * (1 - value)
    )
    assert auc(scores, positive).interval == pytest.approx(tuple(1 / (1 + np.exp(-ends))))


def test_an_interval_of_a_perfect_detector_has_a_width() -> None:
    few = auc(np.array([1.0, 1, 0, 0]), np.array([True, True, False, False])).interval
    many = auc(np.repeat([1.0, 0.0], 500), np.repeat([True, False], 500)).interval
    assert few is not None
    assert many is not None
    assert few[0] < many[0] < 1 == many[1]
    wrong = auc(np.repeat([0.0, 1.0], 500), np.repeat([True, False], 500)).interval
    assert wrong == pytest.approx((1 - many[1], 1 - many[0]))


def test_intervals_cover() -> None:
    """95 % of intervals hold the true AUC of two normal distributions a standard deviation apart: 0.7602."""
    rng = np.random.default_rng(0)
    covered = 0
    positive = np.repeat([True, False], [30, 40])
    for _ in range(400):
        interval = auc(np.concatenate([rng.normal(1, 1, 30), rng.normal(0, 1, 40)]), positive).interval
        assert interval is not None
        covered += interval[0] <= 0.76024993890652 <= interval[1]
    assert 0.92 <= covered / 400 <= 0.98


def test_scores_that_are_none() -> None:
    with pytest.raises(ValueError, match="not a number"):
        auc(np.array([np.nan, 1.0]), np.array([True, False]))
    with pytest.raises(ValueError, match="shape"):
        auc(np.array([1.0]), np.array([True, False]))


@given(st.integers(0, 2**32 - 1), st.sampled_from([255, 65_535]))
def test_pixels_as_scikit_learn(seed: int, top: int) -> None:
    rng = np.random.default_rng(seed)
    masks = rng.random((3, 12, 9)) < 0.4
    maps = np.rint(np.clip(rng.normal(0.4 + 0.2 * masks, 0.2), 0, 1) * top) / top
    counts = np.stack([pixel_counts(*each) for each in zip(maps, masks, strict=True)])
    assert pixel_auc(counts.sum(axis=0)) == pytest.approx(roc_auc_score(masks.ravel(), maps.ravel()))


def test_fewer_levels_are_near() -> None:
    rng = np.random.default_rng(1)
    masks = rng.random((40, 32, 32)) < 0.3
    maps = np.clip(rng.normal(0.4 + 0.2 * masks, 0.2), 0, 1)
    counts = [pixel_counts(*each) for each in zip(maps, masks, strict=True)]
    whole = pixel_auc(np.sum(counts, axis=0))
    assert whole == pytest.approx(roc_auc_score(masks.ravel(), maps.ravel()), abs=1e-6)
    rough = np.stack([coarse(each) for each in counts]).astype(np.int32)
    assert pixel_auc(rough.sum(axis=0, dtype=np.int64)) == pytest.approx(whole, abs=2e-3)
    interval = pixel_auc_interval(rough, resamples=500)
    assert interval is not None
    assert interval[0] < float(whole or 0) < interval[1]
    assert interval == pixel_auc_interval(rough, resamples=500)
    assert pixel_auc_interval(rough[:0]) is None
    assert pixel_auc_interval(rough, resamples=0) is None


def test_all_pixels_on_one_side() -> None:
    counts = pixel_counts(np.full((2, 2), 0.5), np.ones((2, 2), dtype=np.bool_))
    assert pixel_auc(counts) is None
    with pytest.raises(ValueError, match="shape"):
        pixel_counts(np.zeros((2, 2)), np.zeros((2, 3), dtype=np.bool_))


@given(scored)
def test_average_precision_as_scikit_learn_ties_included(images: list[tuple[int, bool]]) -> None:
    scores = np.array([score for score, _ in images], dtype=np.float64)
    positive = np.array([each for _, each in images])
    result = average_precision(scores, positive, resamples=20)
    if positive.all() or not positive.any():
        assert result.value is None
        assert result.interval is None
        return
    assert result.value == pytest.approx(average_precision_score(positive, scores))
    precision, recall, thresholds = precision_recall_curve(positive, scores)
    # From the lowest threshold up, with a last point of no images.
    assert result.curve.precision[::-1] == pytest.approx(precision[:-1])
    assert result.curve.recall[::-1] == pytest.approx(recall[:-1])
    assert result.curve.thresholds[::-1] == pytest.approx(thresholds)
    assert result.guessing == pytest.approx(positive.mean())


def test_average_precision_by_hand() -> None:
    """Hits at ranks 1 and 3 of four images: half the recall at precision 1, half at 2/3."""
    scores, positive = np.array([0.9, 0.8, 0.7, 0.1]), np.array([True, False, True, False])
    assert average_precision(scores, positive).value == pytest.approx((1 + 2 / 3) / 2)
    alike = average_precision(np.full(4, 0.5), positive)
    assert alike.value == alike.guessing == 0.5


def test_average_precision_of_resamples_is_that_of_repeated_images() -> None:
    generator = np.random.default_rng(0)
    scores, positive = generator.integers(0, 5, 12).astype(np.float64), generator.random(12) < 0.5
    groups = np.repeat(np.arange(6), 2)
    found = average_precision(scores, positive, groups=groups, resamples=200, seed=3).interval
    drawn = []
    for chosen in np.random.default_rng(3).integers(6, size=(200, 6)):
        rows = np.concatenate([np.flatnonzero(groups == group) for group in chosen])
        if positive[rows].any():
            drawn.append(average_precision_score(positive[rows], scores[rows]))
    assert found == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])))


def test_a_perfect_average_precision_has_an_interval_of_the_rarer_class() -> None:
    positive = np.array([True] * 3 + [False] * 50)
    few = average_precision(positive.astype(np.float64), positive).interval
    many = average_precision(np.repeat([1.0, 0.0], 50), np.repeat([True, False], 50)).interval
    assert few is not None
    assert many is not None
    assert few[0] < 0.5 < many[0] < many[1] == 1


def test_average_precision_depends_on_how_many_are_real() -> None:
    """Unlike the area under the ROC curve: twice the real images, at the same scores, halve it at worst."""
    scores, positive = np.array([0.9, 0.6, 0.8, 0.1]), np.array([True, True, False, False])
    twice = np.concatenate([scores, scores[2:]]), np.concatenate([positive, positive[2:]])
    assert auc(scores, positive).value == auc(*twice).value
    assert average_precision(scores, positive).value == pytest.approx((1 + 2 / 3) / 2)
    assert average_precision(*twice).value == pytest.approx((1 + 2 / 4) / 2)
