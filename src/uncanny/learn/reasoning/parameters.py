"""The parameters of `learn.reasoner`."""

from __future__ import annotations

from os import PathLike
from typing import Annotated

from pydantic import Field

from uncanny.learn.common.parameters import LearnParameters
from uncanny.parameters import Parameters, Shown


class AdapterParameters(Parameters):
    """Which weights of a language model are trained: low-rank adapters (LoRA)."""

    heading = "Adapter"
    rank: Annotated[int, Field(ge=1, le=4096)] = 8
    """Rank of the adapters."""
    alpha: Annotated[float, Field(gt=0, le=10**6)] = 16.0
    """Scale of the adapters; their output is multiplied by alpha / rank. The paper does not say it."""
    every_layer: Annotated[int, Field(ge=1, le=1_000)] = 4
    """Train every n-th layer of the language model, from the first one on; 1 trains all."""
    merge: bool = False
    """Save the whole model with the adapter merged into it, instead of the adapter."""


class PixelParameters(Parameters):
    """How large pictures are shown to the model."""

    heading = "Pictures"
    least_pixels: Annotated[int, Field(ge=1, le=10**9)] = 50_176
    """Enlarge pictures with fewer pixels."""
    most_pixels: Annotated[int, Field(ge=1, le=10**9)] = 614_656
    """Reduce pictures with more pixels."""


class ReasonerParameters(PixelParameters, AdapterParameters, LearnParameters):
    """The parameters of `learn.reasoner`."""

    heading = "Training"
    held_out: Annotated[
        str | PathLike[str] | None, Shown(metavar="FILE", default="test.jsonl beside the training data")
    ] = None
    """Chats to measure the model on before and after training. They are never trained on."""
    dropout: Annotated[float | None, Field(ge=0, lt=1), Shown(default="0.5; 0.9 for chats of two turns")] = (
        None
    )
    """Dropout of the adapters, 0–1."""
    epochs: Annotated[float, Field(gt=0, le=10_000)] = 1.0
    """Times to go through the data."""
    batch: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Chats per device and forward pass."""
    accumulate: Annotated[int, Field(ge=1, le=10_000)] = 8
    """Forward passes per optimizer step."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    """Highest learning rate; it falls to 0 along a cosine. The paper does not say it."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.03
    """Share of the steps in which the learning rate rises, 0–1."""
    most_tokens: Annotated[int | None, Field(ge=1, le=10**7), Shown(default="what the model takes")] = None
    """Number of tokens of a chat, its picture included, above which it is left out and counted. Nothing is
    cut: a cut answer would be learned as a whole one."""
    answer_tokens: Annotated[int, Field(ge=1, le=10**6)] = 1024
    """Maximum number of tokens of an answer before and after training."""
