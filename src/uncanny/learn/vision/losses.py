"""What detectors are trained by: pure functions of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

# Pixels of which nothing is known: they are in no loss.
IGNORED: Final = 255


def artifact_map(artifacts: Tensor, patch: int) -> Tensor:
    """A_art of X-AIGD: the share of artifact pixels in each patch, (images, h, w), 0–1.

    `artifacts` is (images, height, width), 1 for pixels of any artifact and 0 for others. `patch` is a side
    in pixels; what does not fill a patch at the right and at the bottom is left out.

    Source: X-AIGD, section 6.1.
    """
    from torch.nn.functional import avg_pool2d

    shares: Tensor = avg_pool2d(artifacts[:, None].float(), patch)[:, 0]
    return shares


def alignment_loss(attention: Tensor, artifacts: Tensor, benign_weight: float) -> Tensor:
    """L_align: the mean of W · (A_cls − A_art)² over patches and images, 0 or more, 0 for equal maps.

    Both maps are (images, h, w), 0–1. W is 1 where A_art > 0 and `benign_weight`, λ in 0–1, elsewhere.

    Source: X-AIGD, equation 1.
    """
    import torch

    weights = torch.where(artifacts > 0, 1.0, benign_weight)
    return (weights * (attention - artifacts).square()).mean()


def class_weights(pixels: Sequence[int] | NDArray[np.int64], most: float) -> list[float]:
    """A weight a class, inversely proportional to its share of the pixels, at most `most`.

    Weights are scaled so that their mean over pixels is 1 before the limit: 1 / (classes · share), with the
    classes that have pixels. A class without pixels has 0. Nothing at all gives zeros.

    Source: X-AIGD, appendix B.2, which says "approximately inversely proportional" and names no limit: ours
    keeps a class of a few pixels from ruling the loss.
    """
    counts = np.asarray(pixels, dtype=np.float64)
    there = counts > 0
    weights = np.zeros(len(counts))
    if there.any():
        weights[there] = counts.sum() / (there.sum() * counts[there])
    return [float(each) for each in np.minimum(weights, most)]


def weighted_cross_entropy(logits: Tensor, classes: Tensor, weights: Tensor) -> Tensor:
    """Cross entropy over pixels, each weighted by its true class: Σ w·loss / Σ w; 0 without known pixels.

    `logits` is (images, classes, height, width), `classes` (images, height, width) with `IGNORED` where
    nothing is known, `weights` (classes,).
    """
    from torch.nn.functional import cross_entropy

    losses = cross_entropy(logits, classes, weight=weights, ignore_index=IGNORED, reduction="sum")
    known = classes != IGNORED
    total: Tensor = weights[classes[known]].sum()
    return losses / total.clamp_min(1e-8)


class LossWeights(NamedTuple):
    """The weights of a multitask model's losses. Source: X-AIGD, appendix B.2."""

    authenticity: float = 1.0
    pixels: float = 1.0
    auxiliary: float = 0.2


def weighted_sum(losses: Mapping[str, Tensor], weights: LossWeights) -> Tensor:
    """The sum of those losses that there are, by the names of `LossWeights`, each with its weight."""
    import torch

    parts = [getattr(weights, name) * loss for name, loss in losses.items()]
    return torch.stack(parts).sum()


def patch_iou(
    attention: NDArray[np.float64], artifacts: NDArray[np.float64], threshold: float
) -> tuple[int, int]:
    """Intersection and union, in patches, of attention from `threshold` on and patches with any artifact."""
    looked, true = attention >= threshold, artifacts > 0
    return int((looked & true).sum()), int((looked | true).sum())
