"""The parameters of `learn.reasoner`."""

from __future__ import annotations

from os import PathLike
from typing import Annotated

from pydantic import Field

from uncanny.learn.common.parameters import LanguageParameters
from uncanny.parameters import Shown


class ReasonerParameters(LanguageParameters):
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
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-4
    """Highest learning rate; it falls to 0 along a cosine. The paper does not say it."""
    warmup: Annotated[float, Field(ge=0, lt=1)] = 0.03
    """Share of the steps in which the learning rate rises, 0–1."""
    max_tokens: Annotated[int | None, Field(ge=1, le=10**7), Shown(default="what the model takes")] = None
    """Number of tokens of a chat, its picture included, above which it is left out and counted. Nothing is
    cut: a cut answer would be learned as a whole one."""
