"""Does alignment draw attention to artifacts? Planted ones, several seeds, every mask of the ablation.

Small transformers learn from nothing to tell planted images from real ones. Beside the artifact there is a
fingerprint, so that attention to the artifact is not needed. Figures are on held-out images. Each seed has
images and weights of its own, so that two masks are compared in pairs.

`--device cuda` trains on a GPU. Time and memory of a step are measured at the sizes of the paper's models.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_rel  # type: ignore[import-untyped]

from benchmarks.common import figure, sized
from benchmarks.learning.planted import plant

SEEDS = sized(5, 2)
IMAGES = sized(240, 24)
STEPS = sized(250, 2)
SIDE = 64
# λ: the heavier patches without an artifact, the fewer patches are looked at.
BENIGN = 0.2
IOU, ACCURACY = "IoU of attention and artifacts", "balanced accuracy"
NONE = "none (β = 0)"
# Of the loss without alignment, and with each mask: β and what attention is drawn to.
MASKS: Mapping[str, tuple[float, str]] = {
    NONE: (0.0, "artifact"),
    "random": (1.0, "random"),
    "benign": (1.0, "benign"),
    "saliency": (1.0, "saliency"),
    "artifact": (1.0, "artifact"),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--attention", default="rollout")
    parser.add_argument("--steps-only", action="store_true")
    parser.add_argument("--seeds", type=int, nargs="*", default=range(SEEDS))
    parser.add_argument("--masks", nargs="*", default=list(MASKS), choices=list(MASKS))
    given, _ = parser.parse_known_args()
    import torch

    torch.set_num_threads(1 if given.device == "cpu" else 4)
    if not given.steps_only:
        report(compare_masks(given.device, given.attention, given.seeds, given.masks))
        return
    for name, (seconds, memory) in steps_of(given.device).items():
        figure(f"{name}: a step", seconds, "s")
        figure(f"{name}: memory", memory, "GB")


def compare_masks(
    device: str,
    attention: str,
    seeds: Sequence[int],
    masks: Sequence[str],
    *,
    images: int = IMAGES,
    steps: int = STEPS,
) -> dict[str, dict[str, list[float]]]:
    """IoU and balanced accuracy by mask, an entry a seed."""
    from uncanny.learn import detector

    measured: dict[str, dict[str, list[float]]] = {name: {IOU: [], ACCURACY: []} for name in masks}
    with tempfile.TemporaryDirectory() as folder:
        for seed in seeds:
            here = Path(folder) / str(seed)
            train = plant(here / "train", images, 2 * seed, SIDE)
            test = plant(here / "test", images // 4, 2 * seed + 1, SIDE)
            base = small_transformer(here / "base", seed)
            for name in masks:
                weight, mask = MASKS[name]
                options: Any = {"attention": attention, "align_to": mask}
                run = detector(
                    train,
                    base=base,
                    out=here / name,
                    held_out=test,
                    seed=seed,
                    device=device,
                    alignment_weight=weight,
                    learning_rate=2e-3,
                    batch=16,
                    benign_weights=(BENIGN,),
                    max_steps=steps,
                    epochs=10_000.0,
                    side=SIDE,
                    checkpoint_every=10**6,
                    precision="float32",
                    **options,
                )
                for what in (IOU, ACCURACY):
                    measured[name][what].append(run.results["figures"][what]["after"])
                latest = [f"{measured[name][what][-1]:.3f}" for what in (IOU, ACCURACY)]
                print(f"seed {seed}, {name}: {' '.join(latest)}", file=sys.stderr, flush=True)
    return measured


def report(measured: Mapping[str, Mapping[str, Sequence[float]]]) -> None:
    """Means over seeds, and the paired t-test of each mask against β = 0."""
    if NONE not in measured:
        return
    nothing = np.array(measured[NONE][IOU])
    for name, each in measured.items():
        iou = np.array(each[IOU])
        figure(f"{name}: IoU", float(iou.mean()), "", float(nothing.mean()), "β = 0", wanted=None)
        figure(f"{name}: balanced accuracy", float(np.mean(each[ACCURACY])))
        if name != NONE and len(iou) > 1:
            print(f"{name}: each seed {np.round(iou, 3).tolist()}, difference to β = 0")
            figure(f"{name}: p, paired t-test", float(ttest_rel(iou, nothing).pvalue))


def small_transformer(folder: Path, seed: int) -> Path:
    """Weights at random, as a folder."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.Dinov2Config(
        hidden_size=48,
        num_hidden_layers=3,
        num_attention_heads=3,
        mlp_ratio=2,
        image_size=SIDE,
        patch_size=8,
    )
    transformers.Dinov2Model(config).save_pretrained(folder)
    return folder


def steps_of(device: str) -> dict[str, tuple[float, float]]:
    """Seconds and gigabytes of a training step: DINOv2 of the paper's size, and Swin-B with UPerNet."""
    import torch
    import transformers

    from uncanny.detectors.multitask import Multitask
    from uncanny.detectors.views import View
    from uncanny.learn.vision.aligned import AlignedDetector, AlignmentSettings
    from uncanny.learn.vision.losses import LossWeights
    from uncanny.learn.vision.multitask_loss import MultitaskLoss

    small = sized(0, 1)
    side, images = (28, 2) if small else (224, 8 if device != "cpu" else 2)
    vit: dict[str, Any] = {"image_size": side, "patch_size": 14, "attn_implementation": "eager"}
    if small:
        vit |= {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.Dinov2Config(**vit)
    found = {}
    for attention in ("rollout", "gradient_rollout"):
        settings: Any = AlignmentSettings(0.1, 0.4, attention)
        model = AlignedDetector(transformers.Dinov2Model(config), side, settings).to(device)
        ones = torch.ones(images, device=device)
        batch = (
            torch.rand(images, 3, side, side, device=device),
            ones,
            torch.zeros(images, side, side, device=device),
            ones,
        )
        found[f"ViT-B, {side} px, batch {images}, {attention}"] = timed(model, batch, device)
    swin: dict[str, Any] = {"embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32]}
    if small:
        swin = {"embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 2, 2], "window_size": 4}
    side, images = (64, 2) if small else (512, 16 if device != "cpu" else 2)
    multitask = Multitask.new(
        transformers.SwinConfig(**swin), View(shortest=side), channels=16 if small else 512
    )
    module = MultitaskLoss(multitask, multitask.aspects, torch.ones(8), LossWeights()).to(device).train()
    pictures = (
        torch.rand(images, 3, side, side, device=device),
        torch.ones(images, device=device),
        torch.zeros(images, side, side, dtype=torch.long, device=device),
    )
    found[f"Swin-B and UPerNet, {side} px, batch {images}"] = timed(module, pictures, device)
    return found


def timed(module: Any, batch: Sequence[Any], device: str, times: int = sized(3, 1)) -> tuple[float, float]:
    """Median seconds of a step with AdamW, and the peak of memory in gigabytes (of a process, on a CPU)."""
    import torch

    optimizer = torch.optim.AdamW([each for each in module.parameters() if each.requires_grad], lr=1e-6)
    if device != "cpu":
        torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(times + 1):
        began = time.perf_counter()
        optimizer.zero_grad()
        module(*batch)["loss"].backward()
        optimizer.step()
        if device != "cpu":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    peak = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if device == "cpu"
        else torch.cuda.max_memory_allocated()
    )
    return float(np.median(seconds[1:])), peak / 1e9


if __name__ == "__main__":
    main()
