"""The parameters of the functions of `uncanny.artifacts`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from uncanny.agents.config import ArtifactsConfig
from uncanny.detectors.parameters import DetectorParameters
from uncanny.eval.common.parameters import (
    HeatMapThreshold,
    IntervalParameters,
    PositiveShare,
    Root,
    ScoreParameters,
    Share,
)
from uncanny.eval.metrics import HEAT_MAP_THRESHOLD, PAR, TOLERANCE, RegionProtocol
from uncanny.parameters import PYTHON, Parameters, Shown, Text, callback
from uncanny.runs.parameters import ImageParameters

if TYPE_CHECKING:
    from uncanny.eval.artifacts.data.load import Artifacts
else:  # commands show their options without them
    Artifacts = Any


class ArtifactsParameters(ImageParameters, ArtifactsConfig, DetectorParameters):
    """The parameters of `run`."""

    heat_map_threshold: HeatMapThreshold = HEAT_MAP_THRESHOLD


class LoadParameters(Parameters):
    """The parameters of `load`."""

    root: Root = None
    heat_maps: bool = False
    """Read mask files of predictions as heat maps of a detector."""
    heat_map_threshold: HeatMapThreshold = HEAT_MAP_THRESHOLD


class RegionSettings(IntervalParameters):
    """How regions are compared."""

    protocol: RegionProtocol = "paper"
    """Match instances as in the paper, or as the authors' released scorer does."""
    t: PositiveShare = TOLERANCE
    """Share of a predicted region that must lie in a true one."""
    min_confidence: Annotated[Share | None, Shown(default="all")] = None
    """Leave out true regions whose annotators were less confident; regions without a confidence are kept."""
    weight_confidence: bool = False
    """Weight true regions by their annotators' confidence; without one the weight is 1."""
    bins: Annotated[Text, Field(min_length=1), Shown(metavar="COLUMN")] = PAR
    """Bin accuracy on generated images by this: `par`, the share of an image that is artifact, or a key
    of the records that holds numbers, such as `niqe`, in the truth or else the predictions."""
    n_bins: Annotated[int, Field(ge=1, le=100)] = 5
    """Number of bins, with about as many images each. For `par`, images without artifacts have their own."""
    real_images: bool = False
    """Include real images in figures about regions; every region predicted there is wrong."""
    gated: bool = False
    """Count predicted regions only in images that the prediction calls generated, as in the paper's task. An
    image without a verdict or a score is not gated."""
    score_threshold: Share = 0.5
    """Score from which an image without a verdict counts as generated."""


class ArtifactScoreParameters(RegionSettings, LoadParameters, ScoreParameters):
    """The parameters of `score`."""

    truth: Annotated[Artifacts, Shown(place="source", metavar="TRUTH", first=True)]
    """The ground truth: any form that PRED takes, or `scenes` for the bundled set."""
    on_image: Annotated[Callable[[int, int], None] | None, callback(2), PYTHON] = None
    """Gets the number of images that are done, and of all, after each image."""
