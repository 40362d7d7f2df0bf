"""Figures of regions: hand-worked cases, other implementations, and what published rows have in common."""

from __future__ import annotations

from typing import Any, get_args

import cv2
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from pycocotools import mask as coco
from sklearn.metrics import balanced_accuracy_score, f1_score, jaccard_score, precision_score, recall_score

from uncanny.eval.common.pixels.crops import Crop, Mask, crop, union
from uncanny.eval.common.pixels.masks import component_crops
from uncanny.eval.common.pixels.shapes import box_crop, polygon_crop
from uncanny.eval.common.published import published
from uncanny.eval.metrics import RegionProtocol
from uncanny.eval.metrics.regions import (
    InstanceCounts,
    agreement,
    artifact_ratio,
    instance_counts,
    judgement,
    merged,
    overlap,
    pixel_counts,
    presence,
    presence_by_chance,
    region_counts,
    value_bins,
)

SIDE = 12
SIZE = (SIDE, SIDE)
MASK = arrays(np.bool_, (SIDE, SIDE))
PAIRS = st.tuples(MASK, MASK)
BOXES = st.lists(
    st.tuples(st.integers(0, 8), st.integers(0, 8), st.integers(1, 5), st.integers(1, 5)).map(
        lambda box: box_crop((box[0], box[1], box[0] + box[2], box[1] + box[3]), SIZE)
    ),
    max_size=4,
)


def figures(predicted: Mask, true: Mask) -> list[float]:
    return [float(each) for each in overlap(*map(np.asarray, pixel_counts(predicted, true)))]


def f(value: float) -> NDArray[np.float64]:
    return np.array([value], dtype=np.float64)


def test_a_square_in_a_square() -> None:
    true = polygon_crop([(1, 1), (3, 1), (3, 3), (1, 3)], (8, 8))
    predicted = box_crop((1, 1, 6, 6), (8, 8))
    counts = region_counts([predicted], [true])
    assert counts == (9, 25, 9)
    iou, precision, recall, f1 = overlap(*map(np.asarray, counts))
    assert (float(iou), float(precision), float(recall)) == (0.36, 0.36, 1)
    assert float(f1) == pytest.approx(0.5294, abs=5e-5)
    assert artifact_ratio([true], (8, 8)) == 9 / 64
    # 9 of 25 predicted pixels lie in the true region: less than half of them.
    assert instance_counts([predicted], [true]) == (0, 1, 0, 1)
    assert instance_counts([predicted], [true], t=0.36) == (1, 1, 1, 1)
    assert instance_counts([predicted], [true], t=0.36, protocol="release") == (0, 1, 0, 1)


def test_masks_of_four_by_six_moved_by_two() -> None:
    first, second = np.zeros((2, 10, 10), dtype=np.bool_)
    first[1:5, 1:7] = True
    second[3:7, 3:9] = True
    assert pixel_counts(first, second) == (8, 24, 24)
    assert figures(first, second)[0] == 0.2


@given(PAIRS)
def test_pixels_as_scikit_learn_counts_them(masks: tuple[Mask, Mask]) -> None:
    predicted, true = masks
    assume(predicted.any() and true.any())
    expected = [
        function(true.ravel(), predicted.ravel(), zero_division=0)
        for function in (jaccard_score, precision_score, recall_score, f1_score)
    ]
    assert figures(predicted, true) == pytest.approx(expected)


@pytest.mark.slow
@given(PAIRS)
def test_pixels_as_torchmetrics_and_pycocotools_count_them(masks: tuple[Mask, Mask]) -> None:
    import torch
    from torchmetrics.classification import BinaryF1Score, BinaryJaccardIndex

    predicted, true = masks
    assume(predicted.any() and true.any())
    iou, _, _, f1 = figures(predicted, true)
    ours, theirs = (torch.from_numpy(each.astype(np.int64)) for each in masks)
    assert iou == pytest.approx(float(BinaryJaccardIndex()(ours, theirs)), abs=1e-6)
    assert f1 == pytest.approx(float(BinaryF1Score()(ours, theirs)), abs=1e-6)
    encoded = [coco.encode(np.asfortranarray(each.astype(np.uint8))) for each in masks]
    assert iou == pytest.approx(float(coco.iou([encoded[0]], [encoded[1]], [0])[0, 0]))


@given(st.lists(PAIRS, min_size=1, max_size=4))
def test_the_identity_of_published_rows_holds_for_sums_over_images(pairs: list[tuple[Mask, Mask]]) -> None:
    sums = np.sum([pixel_counts(*pair) for pair in pairs], axis=0)
    iou, precision, recall, f1 = (float(each) for each in overlap(*sums))
    assume(not np.isnan(iou))
    assert iou == pytest.approx(f1 / (2 - f1))
    if precision > 0 and recall > 0:
        assert f1 == pytest.approx(2 * precision * recall / (precision + recall))


def test_and_not_for_means_over_images() -> None:
    generator = np.random.default_rng(0)
    pairs = [tuple(generator.random((2, 64, 64)) < generator.random((2, 1, 1))) for _ in range(20)]
    each = np.array([figures(*pair) for pair in pairs])
    iou, f1 = each[:, 0].mean(), each[:, 3].mean()
    assert abs(iou - f1 / (2 - f1)) > 0.01


def test_published_pixel_rows_are_sums() -> None:
    tables = published("artifact_scores")
    rows = [
        *tables["authenticity_and_category_agnostic"],
        *tables["masks_vs_interpretation"],
        *tables["interpretations"],
    ]
    checked = 0
    for row in rows:
        if row["iou"] is None:
            continue
        p, r, f1, iou = (row[key] / 100 for key in ("pix_p", "pix_r", "pix_f1", "iou"))
        # As far as figures of one decimal tell.
        assert f1 == pytest.approx(2 * p * r / (p + r), abs=0.0015)
        assert iou == pytest.approx(f1 / (2 - f1), abs=0.001)
        checked += 1
    assert checked == 18


def test_published_judgements_follow_from_counts() -> None:
    """F1 is of P and R in the rows of ready-made detectors; those of models that the authors trained are off
    by up to half a point, as means over several trainings are."""
    tables = published("artifact_scores")
    trained = ("AJ-only", "Transfer (linear probing)", "Transfer (full fine-tuning)", "Multi-task")
    for row in tables["authenticity_and_category_agnostic"]:
        if row["p"] is not None:
            tolerance = 0.006 if row["model"] in trained else 0.001
            generated, real = 10_000.0, 10_000.0
            called = generated * row["r"] / 100
            wrong = called * (100 / row["p"] - 1)
            scores = judgement(f(generated), f(called), f(real), f(real - wrong))
            assert float(scores.precision[0]) == pytest.approx(row["p"] / 100)
            assert float(scores.recall[0]) == pytest.approx(row["r"] / 100)
            assert float(scores.f1[0]) == pytest.approx(row["f1"] / 100, abs=tolerance)
            if row["model"] not in trained:  # judged on as many real images as generated ones
                assert float(scores.balanced_accuracy[0]) == pytest.approx(row["acc"] / 100, abs=0.001)
    for row in tables["mllm_detectors"]:
        scores = judgement(f(1000), f(10 * row["fake_acc"]), f(1000), f(10 * row["real_acc"]))
        assert float(scores.balanced_accuracy[0]) == pytest.approx(row["avg_acc"] / 100, abs=0.0006)


def test_chance_is_that_of_a_coin() -> None:
    """Half of the images of each kind are called to have it: 1 of 2 that have, 3 of 6 that have not."""
    true, said = [1, 1, 0, 0, 0, 0, 0, 0], [1, 0, 1, 1, 1, 0, 0, 0]
    assert presence_by_chance(2, 8) == pytest.approx(f1_score(true, said)) == pytest.approx(1 / 3)
    assert presence_by_chance(3, 3) == pytest.approx(2 / 3)
    assert presence_by_chance(2, 8, chance=1) == pytest.approx(f1_score(true, [1] * 8))
    assert presence_by_chance(0, 8) is None
    assert presence_by_chance(0, 0) is None


def test_the_published_guesser_tosses_a_coin() -> None:
    """Table 9, row Random: each F1 gives a share of images, which table 7 has to have enough instances for.

    Guessing with the frequency itself gives F1 = frequency, and more images than instances in two categories.
    """
    tables = published("artifact_scores")
    random = next(row for row in tables["vlm_presence_f1"] if row["model"] == "Random")
    images = 3_035  # annotated, section 3.2
    impossible = []
    for category in tables["category_levels"]:
        f1 = random[category] / 100
        instances = sum(row[category] for row in tables["instances_per_generator"])
        true = round(images * f1 / 2 / (1 - f1))
        assert 100 * (presence_by_chance(true, images) or 0) == pytest.approx(random[category], abs=0.05)
        assert true < instances
        if images * f1 > instances:
            impossible.append(category)
    assert impossible == ["commonsense", "physics"]


def test_published_alignment_rows_are_possible_judgements() -> None:
    """Tables 4 and 14: accuracy and F1 give the recall of both classes, and these give the two again.

    Of equally many images a class, which the paper says of X-AIGD alone and Chameleon does not have.
    """
    tables = published("artifact_scores")
    for row in (*tables["alignment"], *tables["alignment_masks"]):
        for dataset in ("X-AIGD", "Synthbuster", "CommFor"):
            accuracy, f1 = (row[dataset][name] / 100 for name in ("acc", "f1"))
            recall = f1 * (1 - accuracy) / (1 - f1)
            specificity = 2 * accuracy - recall
            assert 0 < recall < 1
            assert 0 < specificity < 1
            n = 10_000.0
            scores = judgement(f(n), f(n * recall), f(n), f(n * specificity))
            assert float(scores.balanced_accuracy[0]) == pytest.approx(accuracy)
            assert float(scores.f1[0]) == pytest.approx(f1)


@pytest.mark.parametrize("table", ["alignment", "alignment_masks"])
def test_artifact_alignment_has_the_best_f1_published(table: str) -> None:
    rows = published("artifact_scores")[table]
    for dataset in ("X-AIGD", "Synthbuster", "Chameleon", "CommFor"):
        assert max(rows, key=lambda row: row[dataset]["f1"])["mask"] == "Artifact"


def test_published_instances_add_up() -> None:
    rows = published("artifact_scores")["instances_per_generator"]
    levels = published("artifact_scores")["category_levels"]
    for row in rows:
        assert sum(row[category] for category in levels) == row["total"]
    assert sum(row["total"] for row in rows) == 18_202


@given(BOXES, BOXES)
def test_regions_that_overlap_count_each_pixel_once(predicted: list[Crop], true: list[Crop]) -> None:
    whole = [union(each).on(SIZE) for each in (predicted, true)]
    assert region_counts(predicted, true) == pixel_counts(*whole)
    assert region_counts(predicted, true, [1.0] * len(true)) == pixel_counts(*whole)


@given(BOXES, BOXES, st.lists(st.sampled_from([0, 0.5, 1]), min_size=4, max_size=4))
def test_weighed_pixels_are_those_of_a_map_of_weights(
    predicted: list[Crop], true: list[Crop], weights: list[float]
) -> None:
    weighed = np.ones((SIDE, SIDE))
    weighed[union(true).on(SIZE)] = 0
    for region, weight in zip(true, weights, strict=False):
        weighed = np.where(region.on(SIZE), np.maximum(weighed, weight), weighed)
    ours, theirs = (union(each).on(SIZE) for each in (predicted, true))
    expected = (weighed[ours & theirs].sum(), weighed[ours].sum(), weighed[theirs].sum())
    assert region_counts(predicted, true, weights[: len(true)]) == pytest.approx(expected)


def naive_instances(
    predicted: list[Crop], true: list[Crop], t: float, protocol: str
) -> tuple[int, int, int, int]:
    """As the paper's A.5 and the issue's summary of the released scorer read, on whole masks."""
    ours = [each.on(SIZE) for each in predicted]
    theirs = [each.on(SIZE) for each in true]
    if protocol == "release":
        whole = union(true).on(SIZE).astype(np.uint8)
        number, labels = cv2.connectedComponents(cv2.dilate(whole, np.ones((5, 5), np.uint8)), connectivity=8)
        theirs = [(labels == label) & (whole > 0) for label in range(1, number)]
    right, found = set(), set()
    for i, p in enumerate(ours):
        for j, r in enumerate(theirs):
            share = (p & r).sum() / p.sum()
            if share >= t if protocol == "paper" else share > t:
                right.add(i)
                found.add(j)
    if protocol == "paper":
        return len(right), len(ours), len(found), len(theirs)
    return len(found), len(found) + len(ours) - len(right), len(found), len(theirs)


@given(BOXES, BOXES, st.sampled_from([0.1, 0.25, 0.5, 0.75, 1.0]), st.sampled_from(["paper", "release"]))
def test_instances_as_they_are_defined(
    predicted: list[Crop], true: list[Crop], t: float, protocol: Any
) -> None:
    expected = naive_instances(predicted, true, t, protocol)
    assert instance_counts(predicted, true, t=t, protocol=protocol) == expected
    weights = [1.0] * len(true)
    assert instance_counts(predicted, true, t=t, protocol=protocol, weights=weights) == expected


def test_a_prediction_in_two_regions_and_a_region_with_two_predictions() -> None:
    true = [box_crop((0, 0, 4, 4), SIZE), box_crop((2, 0, 8, 4), SIZE)]
    predicted = [box_crop((2, 0, 4, 4), SIZE), box_crop((5, 0, 7, 2), SIZE), box_crop((9, 9, 12, 12), SIZE)]
    # The first lies in both, the second in the second, the third in none.
    assert instance_counts(predicted, true) == InstanceCounts(2, 3, 2, 2)
    precision, recall, f1 = agreement(f(2), f(3), f(2), f(2))
    assert [float(precision[0]), float(recall[0])] == pytest.approx([2 / 3, 1])
    assert float(f1[0]) == pytest.approx(0.8)
    # Joined to one by the authors' scorer, of which both predictions are then one find.
    assert instance_counts(predicted, true, protocol="release") == InstanceCounts(1, 2, 1, 1)


def test_a_region_across_two_true_ones_is_in_neither() -> None:
    true = [box_crop((0, 0, 4, 4), SIZE), box_crop((8, 0, 12, 4), SIZE)]
    assert instance_counts([box_crop((0, 0, 12, 4), SIZE)], true) == (0, 1, 0, 2)


def test_what_annotators_are_not_sure_of_weighs_less() -> None:
    true = [box_crop((0, 0, 4, 4), SIZE), box_crop((6, 0, 10, 4), SIZE)]
    predicted = [box_crop((1, 1, 3, 3), SIZE), box_crop((0, 8, 2, 10), SIZE)]
    assert instance_counts(predicted, true, weights=[0.5, 1.0]) == (0.5, 1.5, 0.5, 1.5)
    assert instance_counts(predicted, true, weights=[0.0, 1.0]) == (0, 1, 0, 1)
    joined = [box_crop((0, 0, 4, 4), SIZE), box_crop((5, 0, 9, 4), SIZE)]
    assert instance_counts(predicted[:1], joined, weights=[0.5, 1.0], protocol="release") == (1, 1, 1, 1)


def test_regions_that_nearly_touch_are_merged_without_what_is_between() -> None:
    gap = {4: 1, 5: 2}
    for between, number in gap.items():
        regions = [box_crop((0, 0, 2, 2), (20, 20)), box_crop((2 + between, 0, 9, 2), (20, 20))]
        parts = merged(regions)
        assert len(parts) == number
        assert (union(parts).on((20, 20)) == union(regions).on((20, 20))).all()
    assert merged([]) == []


def test_a_box_outside_the_image_is_wrong_and_an_empty_set_is_nothing() -> None:
    outside = box_crop((20, 20, 30, 30), SIZE)
    assert instance_counts([outside], [box_crop((0, 0, 2, 2), SIZE)]) == (0, 1, 0, 1)
    assert instance_counts([], []) == (0, 0, 0, 0)
    for protocol in get_args(RegionProtocol):
        assert instance_counts([outside], [], protocol=protocol) == (0, 1, 0, 0)


def test_figures_of_nothing_are_none() -> None:
    zero, some = f(0), f(5)
    assert all(np.isnan(each[0]) for each in overlap(zero, zero, zero))
    iou, precision, recall, f1 = (float(each[0]) for each in overlap(zero, zero, some))
    assert (iou, recall, f1) == (0, 0, 0)
    assert np.isnan(precision)
    assert all(np.isnan(each[0]) for each in agreement(zero, zero, zero, zero))
    assert float(agreement(zero, zero, zero, some).f1[0]) == 0
    assert float(agreement(zero, some, zero, zero).f1[0]) == 0
    assert np.isnan(presence(zero, zero, zero)[0])
    assert np.isnan(judgement(some, some, zero, zero).balanced_accuracy[0])


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_judgements_as_scikit_learn_has_them(images: list[tuple[bool, bool]]) -> None:
    true, called = (np.array(each) for each in zip(*images, strict=True))
    assume(true.any() and not true.all())
    counts = (true.sum(), (true & called).sum(), (~true).sum(), (~true & ~called).sum())
    scores = judgement(*(f(float(each)) for each in counts))
    assert float(scores.balanced_accuracy[0]) == pytest.approx(balanced_accuracy_score(true, called))
    assert float(scores.recall[0]) == pytest.approx(recall_score(true, called))
    assert float(scores.f1[0]) == pytest.approx(f1_score(true, called))
    if called.any():
        assert float(scores.precision[0]) == pytest.approx(precision_score(true, called))


@given(
    arrays(np.float64, st.integers(1, 40), elements=st.floats(0, 1) | st.just(float("nan"))),
    st.integers(1, 6),
    st.booleans(),
)
def test_every_value_is_in_one_bin(values: NDArray[np.float64], number: int, zero_apart: bool) -> None:
    bins = value_bins(values, number, zero_apart=zero_apart)
    inside = np.sum([each.where for each in bins], axis=0) if bins else np.zeros(len(values))
    assert (inside == ~np.isnan(values)).all()
    assert len(bins) <= number + zero_apart
    for each in bins:
        assert ((values[each.where] >= each.lo) & (values[each.where] <= each.hi)).all()


def test_images_without_artifacts_have_a_bin_of_their_own() -> None:
    values = np.array([0, 0, 0, 0.1, 0.2, 0.3, 0.4, np.nan])
    bins = value_bins(values, 2, zero_apart=True)
    assert [(each.lo, each.hi, int(each.where.sum())) for each in bins] == [
        (0, 0, 3),
        (0.1, pytest.approx(0.25), 2),
        (pytest.approx(0.25), 0.4, 2),
    ]
    assert value_bins(np.array([np.nan]), 3) == []


def test_masks_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="masks of"):
        pixel_counts(np.ones((2, 3), dtype=np.bool_), np.ones((3, 2), dtype=np.bool_))


def test_large_masks_are_counted_in_blocks() -> None:
    generator = np.random.default_rng(1)
    first, second = generator.random((2, 700, 900)) < 0.3
    assert pixel_counts(first, second) == ((first & second).sum(), first.sum(), second.sum())
    assert len(component_crops(crop(np.eye(5, dtype=np.bool_)))) == 1
