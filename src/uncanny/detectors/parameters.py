"""The parameters of a detector that is asked in the place of a model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from uncanny.parameters import HERE, Parameters, Shown, Text

HeatMap = Literal["none", "auto", "rollout", "gradient_rollout", "relevance", "gradcam", "smooth_gradcam"]
"""How a heat map is made. `auto` is relevance where the detector is a vision transformer, else Grad-CAM."""
Device = Annotated[
    Text | None,
    Field(description="Device to compute on: cpu, cuda, cuda:1 or mps."),
    Shown(default="the fastest one"),
]


class DetectorParameters(Parameters):
    """How a detector looks at images."""

    heading = "Detectors"
    maps: Annotated[HeatMap, HERE] = "auto"
    """How a detector's heat maps are made: auto is relevance for vision transformers, else gradcam."""
    sliding: Annotated[bool, HERE] = False
    """Make heat maps window by window over the whole image, for detectors that see only a patch of it."""
    generated_label: Annotated[Text | None, Shown(on=HERE.on, metavar="LABEL", default="by its words")] = None
    """The detector's label that means generated, by name or number."""
    batch_size: Annotated[int, Field(ge=1, le=4_096), HERE] = 16
    """Number of images that a detector looks at together."""
    device: Annotated[Device, Shown(on=HERE.on, default="the fastest one")] = None
