"""The parameters of `learn.grounder`."""

from __future__ import annotations

from os import PathLike
from typing import Annotated

from pydantic import Field

from uncanny.agents.config import BoxParameters
from uncanny.learn.common.parameters import LanguageParameters
from uncanny.parameters import Shown


class GrounderParameters(LanguageParameters, BoxParameters):
    """The parameters of `learn.grounder`."""

    heading = "Training"
    held_out: Annotated[str | PathLike[str] | None, Shown(metavar="FILE", default="none")] = None
    """Images with artifacts to measure the model on before and after training. They are never trained on."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Dropout of the adapters, 0–1."""
    learning_rate: Annotated[float, Field(gt=0, le=10)] = 1e-5
    """Highest learning rate; it falls to 0 along a straight line. The paper does not say it."""
    group: Annotated[int, Field(ge=2, le=1_000)] = 8
    """Answers per image, which are compared with each other. It must divide batch × accumulate × devices."""
    temperature: Annotated[float, Field(gt=0, le=10)] = 1.0
    """Temperature at which these answers are sampled."""
    kl_weight: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Weight of the distance (KL) from the base model. Above 0, each step asks the base model, too."""
