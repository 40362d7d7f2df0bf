"""The parameters of `learn.detector` and `learn.multitask`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from uncanny.learn.common.parameters import LearnParameters
from uncanny.parameters import Place, Shown
from uncanny.wording import option

Rollout = Literal["gradient_rollout", "rollout"]
Tuning = Literal["full", "lora"]
AlignTo = Literal["artifact", "random", "benign", "saliency"]
Task = Literal["multitask", "authenticity", "pixels", "probe", "transfer"]

Batch = Annotated[int, Field(ge=1, le=10_000)]
Epochs = Annotated[float, Field(gt=0, le=10_000)]
Rate = Annotated[float, Field(gt=0, le=10)]
Weight = Annotated[float, Field(ge=0, le=10**6)]
Share = Annotated[float, Field(ge=0, le=1)]


class VisionParameters(LearnParameters):
    """What the training of a detector takes."""

    heading = "Training"
    held_out: Annotated[Place | None, Shown(metavar="DATA", default="a share of DATA")] = None
    """Images to measure the model on. They are never trained on."""
    held_out_share: Annotated[float, Field(ge=0, lt=1)] = 0.1
    """Share of the groups of images, 0–1, to hold out of DATA where nothing else is named."""
    accumulate: Annotated[int, Field(ge=1, le=10_000)] = 1
    """Forward passes per optimizer step."""
    side: Annotated[
        int | None, Field(ge=16, le=4_096), Shown(default="224 for a detector, else that of MODEL or 512")
    ] = None
    """Side of the square that the model sees, in pixels."""
    balance: bool = True
    """Show as many real images as generated ones."""


class DetectorTraining(VisionParameters):
    """The parameters of `learn.detector`."""

    tuning: Tuning = "full"
    """Train all weights, or low-rank adapters (LoRA), which are merged into the weights at the end."""
    attention: Annotated[Rollout | None, Shown(default="gradient_rollout; rollout for lora")] = None
    """How attention is followed through the layers."""
    alignment_weight: Annotated[Weight | None, Shown(default="0.1; 1 for lora")] = None
    """β, the weight of the alignment loss; 0 trains for authenticity alone."""
    benign_weights: Annotated[
        Sequence[Share], Field(min_length=1), Shown(flag="--benign-weight", metavar="λ")
    ] = (0.4,)
    """λ, the weight of patches without an artifact, 0–1. Of several, the one with the best balanced
    accuracy on validation images is kept, for each repeat by itself."""
    validation_share: Annotated[float, Field(gt=0, lt=1)] = 0.1
    """Share of the groups of training images, 0–1, by which λ and the model are chosen where several are
    trained. They are not trained on then."""
    align_to: AlignTo = "artifact"
    """What attention is drawn to: artifacts, or the masks of the ablations."""
    masks: Annotated[Place | None, Shown(metavar="DIR", default="made by uncanny")] = None
    """Folder of benign or saliency masks, as PNG under the names of the images."""
    epochs: Epochs = 20.0
    """Times to go through the data."""
    batch: Annotated[Batch | None, Shown(default="8; 32 for lora")] = None
    """Images per device and forward pass."""
    learning_rate: Annotated[Rate | None, Shown(default="1e-5; 1e-4 for lora")] = None
    """Learning rate. It falls to 0 along a cosine for lora, and stays the same otherwise."""
    rank: Annotated[int, Field(ge=1, le=4096)] = 8
    """Rank of the adapters."""
    repeats: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Train this number of times, on the same images with other seeds. Figures are means over the repeats;
    the model that is best on validation images is kept."""

    @model_validator(mode="after")
    def _fits(self) -> DetectorTraining:
        if self.masks is not None and self.align_to in ("artifact", "random"):
            raise ValueError(f"{option('masks')} goes with benign or saliency in {option('align_to')}")
        return self


class MultitaskTraining(VisionParameters):
    """The parameters of `learn.multitask`."""

    task: Task = "multitask"
    """What to train: both tasks, authenticity or pixels alone, or authenticity on top of a model that
    was trained for pixels: its classifier alone (probe), or all of it (transfer)."""
    head_channels: Annotated[int, Field(ge=8, le=4_096)] = 512
    """Channels of the segmentation heads."""
    max_weight: Annotated[float, Field(gt=0, le=10**9)] = 100.0
    """Maximum weight of a class of pixels; the weights are inverse to their shares."""
    loss_weights: Annotated[Sequence[Weight], Field(min_length=3, max_length=3)] = (1.0, 1.0, 0.2)
    """Weights of the losses of authenticity, pixels, and the auxiliary head."""
    max_steps: Annotated[int, Field(ge=1, le=10**9)] = 80_000
    """Stop after this number of optimizer steps."""
    batch: Batch = 16
    """Images per device and forward pass."""
    backbone_rate: Rate = 2e-5
    """Learning rate of the backbone."""
    head_rate: Rate = 2e-4
    """Learning rate of the heads."""
