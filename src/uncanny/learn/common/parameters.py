"""Parameters that all training shares."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from uncanny.detectors.parameters import Device
from uncanny.eval.common.parameters import Root
from uncanny.parameters import HERE, PYTHON, Parameters, Place, Shown

Precision = Literal["float32", "bfloat16"]


class SessionParameters(Parameters):
    """Parameters that change neither the data nor the model: a run may be resumed with others."""

    heading = "Session"
    out: Annotated[Place, Shown(on=HERE.on, short="-o", metavar="RUN")]
    """Folder of the run. The same call resumes a run that ended early."""
    root: Root = None
    device: Device = None
    checkpoint_every: Annotated[int, Field(ge=1, le=10**9)] = 100
    """Write a checkpoint after this number of optimizer steps. A killed run resumes from the last one."""
    keep_checkpoints: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Number of checkpoints to keep."""
    before_and_after: Annotated[int, Field(ge=0, le=1_000)] = 8
    """Number of held-out images to show on the page, with the answers before and after training."""
    progress: Annotated[bool, PYTHON] = False
    """Show progress on standard error."""


class LearnParameters(SessionParameters):
    """What every training run takes."""

    heading = "Training"
    base: Annotated[Place, Shown(metavar="MODEL", place="weights", first=True)]
    """Model to start from: a folder of weights, or a name in the local cache of the Hugging Face Hub."""
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    """Seed of the order of the data and of new weights."""
    precision: Annotated[Precision | None, Shown(default="bfloat16 on a GPU, float32 on a CPU")] = None
    """Type of the weights while training."""
    max_steps: Annotated[int | None, Field(ge=1, le=10**9), Shown(default="as many as the epochs take")] = (
        None
    )
    """Stop after this number of optimizer steps."""


class AdapterParameters(Parameters):
    """Which weights of a language model are trained: low-rank adapters (LoRA)."""

    heading = "Adapter"
    rank: Annotated[int, Field(ge=1, le=4096)] = 8
    """Rank of the adapters."""
    alpha: Annotated[float, Field(gt=0, le=10**6)] = 16.0
    """Scale of the adapters; their output is multiplied by alpha / rank. The paper does not say it."""
    every_layer: Annotated[int, Field(ge=1, le=1_000)] = 4
    """Train every n-th layer of the language model, from the first one on; 1 trains all."""
    whole_model: bool = False
    """Save the whole model with the adapter merged into it, instead of the adapter."""


class PixelParameters(Parameters):
    """How large pictures are shown to the model."""

    heading = "Pictures"
    min_pixels: Annotated[int, Field(ge=1, le=10**9)] = 50_176
    """Enlarge pictures with fewer pixels."""
    max_pixels: Annotated[int, Field(ge=1, le=10**9)] = 614_656
    """Reduce pictures with more pixels."""


class LanguageParameters(PixelParameters, AdapterParameters, LearnParameters):
    """What the training of a vision-language model takes."""

    heading = "Training"
    batch: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Examples per device and forward pass."""
    accumulate: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Forward passes per optimizer step."""
    epochs: Annotated[float, Field(gt=0, le=10_000)] = 1.0
    """Times to go through the data."""
    recompute: bool = True
    """Compute activations again in the backward pass: far less memory, about a third more time."""
    answer_tokens: Annotated[int, Field(ge=1, le=10**6)] = 1024
    """Maximum number of tokens of an answer that the model writes."""
    max_measured: Annotated[int, Field(ge=0, le=10**6)] = 200
    """Maximum number of held-out images to measure the model on before and after training. They are drawn at
    random with the seed, as many of each kind where there are enough; 0 measures nothing."""
