"""The losses of a multitask model as a module, and how it is asked while it is trained."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from uncanny.detectors.multitask import Aspect, Multitask
from uncanny.learn.vision.data import UNNAMED
from uncanny.learn.vision.losses import IGNORED, LossWeights, weighted_cross_entropy, weighted_sum
from uncanny.learn.vision.measure import Ask, Size


class MultitaskLoss(nn.Module):
    """`forward` returns the loss of a batch with its parts.

    `trains` are the tasks that are trained, `class_weights` a weight for each class of pixels. While `frozen`
    all but the classifier stays as it is, statistics of normalization too.
    """

    def __init__(
        self, model: Multitask, trains: tuple[Aspect, ...], class_weights: Tensor, weights: LossWeights
    ) -> None:
        super().__init__()
        self.model, self.trains, self.weights, self.frozen = model, trains, weights, False
        self.module = model.module
        self.register_buffer("class_weights", class_weights, persistent=False)
        unused = []
        if "authenticity" not in trains:
            unused.append(model.classifier)
        if "pixels" not in trains:
            unused += [model.segmenter.decode_head, model.segmenter.auxiliary_head]
        for part in unused:  # processes that train together wait for each gradient
            part.requires_grad_(False)

    def train(self, mode: bool = True) -> MultitaskLoss:
        super().train(mode)
        if self.frozen:
            self.model.segmenter.eval()
        return self

    def forward(self, pixels: Tensor, generated: Tensor, classes: Tensor) -> dict[str, Tensor]:
        """`generated` is 1 or 0 an image, `classes` (images, height, width).

        Artifacts without a category are unknown here.
        """
        losses: dict[str, Tensor] = {}
        if self.trains == ("authenticity",):
            logits = self.model.authenticity(pixels)
        else:
            said = self.model(pixels)
            logits = said.authenticity
            known = torch.where(classes == UNNAMED, IGNORED, classes)
            weights: Any = self.class_weights
            losses["pixels"] = weighted_cross_entropy(said.pixels, known, weights)
            losses["auxiliary"] = weighted_cross_entropy(said.auxiliary, known, weights)
        if "authenticity" in self.trains:
            losses["authenticity"] = nn.functional.binary_cross_entropy_with_logits(logits, generated)
        parts = {name: loss.detach() for name, loss in losses.items()}
        return {"loss": weighted_sum(losses, self.weights), **parts}


def asker(model: Multitask) -> Ask:
    """How a model is asked about pixels: logits, and where it sees an artifact, as far as it says them.

    Pixels are classified at the size of the image's file, as the saved model does it.
    """

    @torch.inference_mode()
    def ask(pixels: Tensor, size: Size) -> tuple[Tensor | None, Tensor | None]:
        model.module.eval()
        if model.aspects == ("authenticity",):
            return model.authenticity(pixels), None
        said = model(pixels)
        logits = nn.functional.interpolate(said.pixels, size=size, mode="bilinear")
        found = (logits.argmax(dim=1) > 0).float()
        return (said.authenticity if "authenticity" in model.aspects else None), found

    return ask
