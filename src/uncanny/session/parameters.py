"""The parameters of sessions and of the functions for a single image."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from uncanny.agents.config import AnnotateConfig, DetectProtocol
from uncanny.annotation.parameters import OwnParameters
from uncanny.parameters import Parameters, Text
from uncanny.runs.parameters import ConnectParameters, Model, PixelParameters


class ImageCallParameters(Parameters):
    """The parameters of `Annotator.annotate`."""

    name: Text | None = None
    """What the record calls the image: by default the path as it was written, or else `image`."""
    deadline_s: Annotated[float | None, Field(gt=0)] = None
    """Give the image up after this many seconds, waiting included; None for no limit."""


class DetectCallParameters(ImageCallParameters):
    """The parameters of `Annotator.detect`."""

    protocol: DetectProtocol = "conversation"
    """How the model is asked, as for `uncanny.detect`."""


class AnnotatorParameters(ConnectParameters, PixelParameters, OwnParameters, AnnotateConfig):
    """The parameters of a session, see `uncanny.Annotator`."""


class AnnotateImageParameters(ImageCallParameters, AnnotatorParameters):
    """The parameters of `annotate_image`."""

    model: Model


class DetectImageParameters(DetectCallParameters, AnnotatorParameters):
    """The parameters of `detect_image`."""

    model: Model
