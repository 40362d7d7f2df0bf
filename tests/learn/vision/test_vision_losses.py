"""Losses, weights and ablation masks of detectors, by hand and against other implementations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.spatial import ConvexHull  # type: ignore[import-untyped]

torch = pytest.importorskip("torch")

from uncanny.learn.vision.losses import (  # noqa: E402
    IGNORED,
    LossWeights,
    alignment_loss,
    artifact_map,
    class_weights,
    patch_iou,
    weighted_cross_entropy,
    weighted_sum,
)
from uncanny.learn.vision.masks import benign_mask, random_mask, saliency_mask  # noqa: E402


def test_the_artifact_map_is_the_share_of_each_patch() -> None:
    artifacts = torch.zeros(1, 5, 6)
    artifacts[0, 0, 0] = artifacts[0, 1, 1] = 1  # two of four
    artifacts[0, 2:4, 4:6] = 1  # all four
    artifacts[0, 4] = 1  # a row that fills no patch
    assert artifact_map(artifacts, 2).tolist() == [[[0.5, 0, 0], [0, 0, 1]]]


def test_the_alignment_loss_by_hand() -> None:
    attention = torch.tensor([[[1.0, 0.5], [0.2, 0.0]]])
    artifacts = torch.tensor([[[0.6, 0.0], [0.0, 0.0]]])
    # (1·0.4² + λ·(0.5² + 0.2² + 0²)) / 4
    for weight in (0.0, 0.4, 1.0):
        expected = (0.16 + weight * 0.29) / 4
        assert alignment_loss(attention, artifacts, weight).item() == pytest.approx(expected)
    assert alignment_loss(artifacts, artifacts, 1.0).item() == 0
    # A real image: nothing is wanted anywhere.
    assert alignment_loss(attention, torch.zeros(1, 2, 2), 1.0).item() == pytest.approx(1.29 / 4)


def test_class_weights_by_hand() -> None:
    # Shares 0.9, 0.09, 0.01 of three classes: 1 / (3 · share).
    assert class_weights([90, 9, 1, 0], 1000) == pytest.approx([1 / 2.7, 1 / 0.27, 1 / 0.03, 0])
    assert class_weights([90, 9, 1, 0], 10) == pytest.approx([1 / 2.7, 1 / 0.27, 10, 0])
    assert class_weights([0, 0], 10) == [0, 0]
    # Their mean over pixels is 1.
    counts = np.array([90, 9, 1])
    assert (counts * class_weights(counts, 1e9)).sum() / counts.sum() == pytest.approx(1)


def test_cross_entropy_equals_that_of_torch() -> None:
    torch.manual_seed(0)
    logits, classes = torch.randn(2, 4, 3, 5), torch.randint(0, 4, (2, 3, 5))
    classes[0, 0] = IGNORED
    weights = torch.tensor([0.1, 1.0, 5.0, 2.0])
    expected = torch.nn.functional.cross_entropy(logits, classes, weight=weights, ignore_index=IGNORED)
    assert weighted_cross_entropy(logits, classes, weights).item() == pytest.approx(expected.item())


def test_cross_entropy_by_hand() -> None:
    """Two pixels of classes 0 and 1: log-softmax is log ¾ and log ½."""
    logits = torch.tensor([[[[float(np.log(3)), 0.0]], [[0.0, 0.0]]]])
    loss = weighted_cross_entropy(logits, torch.tensor([[[0, 1]]]), torch.tensor([1.0, 4.0]))
    assert loss.item() == pytest.approx((np.log(4 / 3) + 4 * np.log(2)) / 5)


def test_a_batch_of_which_nothing_is_known_has_no_loss() -> None:
    logits = torch.randn(1, 3, 2, 2, requires_grad=True)
    loss = weighted_cross_entropy(logits, torch.full((1, 2, 2), IGNORED), torch.ones(3))
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0
    assert logits.grad is not None
    assert logits.grad.abs().sum() == 0


def test_losses_are_added_with_their_weights() -> None:
    losses: Any = {name: torch.tensor(2.0) for name in ("authenticity", "pixels", "auxiliary")}
    assert weighted_sum(losses, LossWeights()).item() == pytest.approx(2 + 2 + 0.4)
    assert weighted_sum({"auxiliary": torch.tensor(3.0)}, LossWeights(1, 1, 0.5)).item() == 1.5


def test_the_iou_of_patches_by_hand() -> None:
    attention = np.array([[1.0, 0.5], [0.4, 0.0]])
    assert patch_iou(attention, np.array([[0.1, 0.0], [0.0, 0.9]]), 0.5) == (1, 3)
    assert patch_iou(attention * 0, np.zeros((2, 2)), 0.5) == (0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_mask_is_convex_and_the_same_for_a_seed(seed: int) -> None:
    mask = random_mask((120, 80), np.random.default_rng(seed))
    assert mask.shape == (80, 120)
    assert (mask == random_mask((120, 80), np.random.default_rng(seed))).all()
    points = np.argwhere(mask)
    # Pixels fill their hull, but for its rim.
    assert len(points) >= 0.9 * ConvexHull(points).volume


def test_a_benign_mask_is_the_largest_region_without_an_artifact() -> None:
    pixels = np.zeros((80, 120, 3), np.uint8)
    pixels[:, :60] = (200, 20, 20)
    pixels[:40, 60:] = (20, 200, 20)
    pixels[40:, 60:] = (20, 20, 200)
    artifacts = np.zeros((80, 120), np.bool_)
    artifacts[10:20, 10:20] = True  # in the red half, the largest
    artifacts[60:70, 80:90] = True  # in the blue quarter
    mask = benign_mask(Image.fromarray(pixels), artifacts)
    expected = np.zeros_like(mask)
    expected[:40, 60:] = True
    assert not (mask & ~expected).any()
    assert mask.sum() / expected.sum() > 0.6
    assert not benign_mask(Image.fromarray(pixels), np.ones((80, 120), np.bool_)).any()


def test_a_saliency_mask_is_of_what_stands_out() -> None:
    rng = np.random.default_rng(0)
    pixels = np.full((128, 128, 3), 120, np.uint8)
    pixels[50:70, 80:100] = rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)
    mask = saliency_mask(Image.fromarray(pixels))
    assert mask[50:70, 80:100].mean() > 0.5
    assert mask[:40].mean() < 0.1
