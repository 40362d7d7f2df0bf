"""The parameters of the functions of `uncanny.pairs`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from uncanny.detectors.parameters import Device
from uncanny.eval.common.parameters import AgreeParameters, Force, Share
from uncanny.models.parameters import OutputTokens, SamplingParameters, Temperature
from uncanny.parameters import HERE, Folder, Parameters, Place, Shown, Text
from uncanny.runs.parameters import PixelParameters, RunParameters, TableParameters

if TYPE_CHECKING:
    from uncanny.models.registry import ModelOptions

Regions = Literal["detail", "masks", "objects", "hands", "feet", "faces", "limbs"]
PromptFrom = Literal["caption", "writer", "perturber"]
Guidance = Annotated[float, Field(ge=0, le=100)]
Attempts = Annotated[int, Field(ge=1, le=100)]


class RegionParameters(Parameters):
    """Where images are edited."""

    heading = "Regions"
    regions: Annotated[
        Regions | None, Shown(default="masks if they are given, objects with a model, else detail")
    ] = None
    """Find regions by given masks, objects that a model names, hands, feet, faces or limbs that MediaPipe
    finds, or where there is most detail."""
    masks: Annotated[Place | None, Shown(place="file", default="none")] = None
    """Folder of masks with the names of the images, or a file of COCO instances."""
    landmarks: Annotated[Place | None, Shown(on=HERE.on, metavar="FILE", default="none")] = None
    """MediaPipe's .task file for hands, feet, faces or limbs."""
    sam2: Annotated[Text | None, Shown(on=HERE.on, metavar="MODEL", place="hub", default="none")] = None
    """Folder or name of a SAM 2 model that turns a region into its outline."""
    regions_per_image: Annotated[int, Field(ge=1, le=100)] = 1
    """Maximum number of regions per image."""
    largest_region: Share = 0.5
    """Largest share of an image that a mask may cover, 0–1."""
    dilate: Annotated[int, Field(ge=0, le=1_000)] = 4
    """Widen masks by this many pixels on each side."""


class MakeConfig(SamplingParameters, RegionParameters):
    """What changes the candidates.

    The defaults are those of SalArt-VQA, appendix B.3: up to five seeds an image, guidance from 10 to 20,
    strength from 0.6 to 0.9, 20 steps. Attempts are spread evenly over these, from the first to the last.
    """

    heading = "Candidates"
    attempts: Attempts = 5
    """Number of candidates per region, each with another seed."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """First seed; the next attempt has the next one."""
    guidance_from: Guidance = 10.0
    """Guidance of the first attempt, where the inpainter takes one."""
    guidance_to: Guidance = 20.0
    """Guidance of the last attempt."""
    strength_from: Share = 0.6
    """Strength of the first attempt, 0–1: how far it may leave what was there."""
    strength_to: Share = 0.9
    """Strength of the last attempt, 0–1."""
    steps: Annotated[int, Field(ge=1, le=1_000)] = 20
    """Number of steps of a diffusion model."""
    inpaint_side: Annotated[int, Field(ge=64, le=8_192)] = 1_024
    """Scale larger images down to this many pixels on the longest side for the inpainter. What it paints is
    scaled back; the rest of the image keeps its pixels."""
    prompt_from: PromptFrom = "caption"
    """Paint after the caption of the image, after a prompt that a model writes for the region (writer), or
    after a caption that a model changes (perturber)."""
    caption: Annotated[Text, Field(min_length=1, max_length=2_000)] = "A picture"
    """Caption of images that have none in a column `caption`, `prompt` or `text` of their metadata."""
    device: Device = None
    temperature: Temperature = 0.7
    max_output_tokens: OutputTokens = 8_000


class MakeParameters(RunParameters, PixelParameters, TableParameters, MakeConfig):
    """The parameters of `make`."""

    inpainter: Annotated[Text, Shown(metavar="NAME", place="model", first=True)]
    """Model that paints: demo, diffusers/NAME, or PROVIDER/NAME behind an endpoint for edits of images."""
    model: Annotated[
        Text | None, Shown(short="-m", metavar="PROVIDER/NAME", place="model", default="none")
    ] = None
    """Model that finds objects and writes prompts, where one is needed."""
    root: Annotated[Folder | None, Shown(on=HERE.on, default="the run folder")] = None
    """Name images in records relative to this folder."""

    @property
    def models(self) -> ModelOptions:
        """The models, parsed. Raises UsageError."""
        from uncanny.models.registry import parse_model

        options = self.models_of(self.inpainter if self.model is None else self.model)
        return replace(options, roles={**options.roles, "inpainter": parse_model(self.inpainter)})


class ScreenConfig(SamplingParameters):
    """What changes which candidates are kept for people."""

    heading = "Screening"
    least_change: Share = 0.02
    """Smallest share of a mask, 0–1, whose pixels must have changed."""
    change: Annotated[int, Field(ge=1, le=255)] = 12
    """Difference of a color channel, 1–255, from which a pixel has changed."""
    largest_change: Share = 0.4
    """Largest share of an image, 0–1, that may have changed."""
    flat: Annotated[float, Field(ge=0, le=128)] = 1.0
    """Standard deviation of brightness, in steps of 255, up to which a region is one flat color."""
    clip: Annotated[Place | None, Shown(on=HERE.on, place="weights", default="none")] = None
    """Folder of a CLIP model, for the gates of `uncanny edits gate`."""
    device: Device = None
    temperature: Temperature = 0.0
    max_output_tokens: OutputTokens = 400


class ScreenParameters(RunParameters, PixelParameters, ScreenConfig):
    """The parameters of `screen`."""

    model: Annotated[
        Text | None, Shown(short="-m", metavar="PROVIDER/NAME", place="model", default="none", first=True)
    ] = None
    """Model that sees each candidate before people do."""

    @property
    def models(self) -> ModelOptions:
        """The model, parsed; `noop`, which is never asked, for none. Raises UsageError."""
        return self.models_of("noop" if self.model is None else self.model)


class ItemsParameters(AgreeParameters):
    """The parameters of `items`."""

    screened: Annotated[Place | None, Shown(default="the folder screened in PAIRS", first=True)] = None
    """Run of the screening, with the verdicts of people."""
    out: Annotated[Place | None, Shown(on=HERE.on, short="-o", metavar="DIR", default="PAIRS")] = None
    """Folder to write pairs.jsonl and items.jsonl to."""
    unreviewed: bool = False
    """Also keep candidates that people have not judged, where the model saw an artifact."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Seed of the order of options."""
    force: Force = False
