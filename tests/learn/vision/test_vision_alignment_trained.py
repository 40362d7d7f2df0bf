"""Does alignment draw attention to artifacts? Five seeds on planted ones, in pairs with β = 0.

The benchmark `learn_detector` has the whole of it: more images, every mask of the ablation, the command.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import ttest_rel  # type: ignore[import-untyped]

from benchmarks.learning.learn_detector import small_transformer
from benchmarks.learning.planted import plant
from uncanny.learn.vision.aligned import AlignedDetector, AlignmentSettings, new_detector, view_of
from uncanny.learn.vision.data import read_splits
from uncanny.learn.vision.losses import artifact_map, patch_iou

SEEDS, STEPS, BATCH, SIDE, IMAGES = 5, 150, 16, 64, 160
# So that few steps are enough.
BETA = 5.0
Images = tuple[Any, Any, Any]


def planted(folder: Path, images: int, seed: int) -> Images:
    """Pixels, whether they are generated, and their artifacts."""
    read = read_splits(plant(folder, images, seed, SIDE), None, 0.0, 0).train
    shown = [each.pixels() for each in read]
    return (
        torch.stack([view_of(SIDE).tensor(image)[0] for image, _ in shown]),
        torch.tensor([float(each.generated) for each in read]),
        torch.stack([torch.from_numpy((classes > 0).astype(np.float32)) for _, classes in shown]),
    )


def trained_iou(base: Path, seed: int, weight: float, train: Images, test: Images) -> float:
    """IoU of attention and artifacts on held-out images, after training with this β."""
    torch.manual_seed(seed)
    model = new_detector(base, SIDE, AlignmentSettings(weight, 0.2, "rollout"), None).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    order = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        some = torch.randint(IMAGES, (BATCH,), generator=order)
        loss = model(*(each[some] for each in train), torch.ones(BATCH))["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return held_out_iou(model, *test)


def held_out_iou(model: AlignedDetector, pixels: Any, generated: Any, artifacts: Any) -> float:
    """Pooled over generated images."""
    model.eval()
    found = model.attention(*model.look(pixels), train=False).detach()
    pairs = zip(found[generated > 0], artifact_map(artifacts, model.patch)[generated > 0], strict=True)
    common, together = np.sum([patch_iou(each.numpy(), true.numpy(), 0.5) for each, true in pairs], axis=0)
    return float(common / together)


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute of computing, on a machine that may be busy
def test_alignment_draws_attention_to_artifacts(tmp_path: Path) -> None:
    without, aligned = [], []
    for seed in range(SEEDS):
        base = small_transformer(tmp_path / f"base-{seed}", seed, SIDE)
        train = planted(tmp_path / f"train-{seed}", IMAGES, 2 * seed)
        test = planted(tmp_path / f"test-{seed}", IMAGES // 4, 2 * seed + 1)
        without.append(trained_iou(base, seed, 0.0, train, test))
        aligned.append(trained_iou(base, seed, BETA, train, test))
    assert np.mean(aligned) > np.mean(without) + 0.1
    assert ttest_rel(aligned, without, alternative="greater").pvalue < 0.05
