"""The parameters of `uncanny.mcq.run` and `run_each`."""

from __future__ import annotations

from typing import Annotated

from uncanny.models.parameters import SamplingParameters, Temperature
from uncanny.parameters import Folder, Shown
from uncanny.runs.parameters import AskEachParameters, AskParameters


class McqConfig(SamplingParameters):
    """How questions are asked. Reasoning is left to the provider."""

    temperature: Temperature = 0.0
    control: bool = False
    """Ask Q4 again without the image, with an option F for saying so."""
    blind: bool = False
    """Ask all questions again without the image, to be guessed from the words."""


class McqShared(McqConfig):
    """The parameters of asking questions, of one model or of several."""

    root: Annotated[Folder | None, Shown(default="the item file's folder")] = None
    """Folder from which image paths start."""


class McqParameters(McqShared, AskParameters):
    """The parameters of `run`."""


class McqEachParameters(McqShared, AskEachParameters):
    """The parameters of `run_each`."""
