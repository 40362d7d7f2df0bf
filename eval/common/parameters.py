"""Parameters that several protocols share: how scores are made, how texts are compared, what pages show.

Commands show their help from here, so that nothing is imported here that only scoring needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from uncanny.detectors.parameters import Device
from uncanny.eval.metrics import RESAMPLES
from uncanny.parameters import HERE, Folder, Parameters, Place, Shown, Text
from uncanny.records.reviews import AgreeRule, Rule
from uncanny.runs.parameters import AskParameters

PicturesMode = Literal["link", "embed"]

# Findings that are more likely wrong than right are left out unless asked for.
MIN_CONFIDENCE: Final = 0.5

Share = Annotated[float, Field(ge=0, le=1)]
PositiveShare = Annotated[float, Field(gt=0, le=1)]
Resamples = Annotated[
    int,
    Field(ge=0, le=1_000_000, description="Number of bootstrap resamples for 95 % intervals; 0 for none."),
]
Seed = Annotated[
    int,
    Field(ge=0, le=2**63 - 1, description="Seed of the bootstrap; the same seed gives the same intervals."),
]
GroupBy = Annotated[
    Text | None,
    Field(
        description="Count images that share this column's value as one in intervals and paired tests; "
        "`image` counts each by itself."
    ),
    Shown(on=HERE.on, metavar="COLUMN|image", default="those of a pair or an original together"),
]
Balance = Annotated[
    Share,
    Field(
        description="λ, the weight of the phenomenon in a similarity; the weight of the reasoning is 1 − λ."
    ),
]
Root = Annotated[
    Folder | None,
    Field(description="Folder that image paths are relative to."),
    Shown(default="the file's folder"),
]
Force = Annotated[bool, Field(description="Replace files that this command did not write."), HERE]
HeatMapThreshold = Annotated[
    float,
    Field(
        gt=0, le=1, description="Value, above 0 and up to 1, from which a pixel of a heat map is in its mask."
    ),
]
Published = Annotated[bool, Field(description="Show the published figures beside yours.")]

PersonFile = str | PathLike[str]
if TYPE_CHECKING:
    from uncanny.records.calibration import Calibration

    # A file, several, or each by the name of the person.
    People = PersonFile | Sequence[PersonFile] | Mapping[str, PersonFile]
else:  # what reads them says what is wrong with them
    People = Any


class IntervalParameters(Parameters):
    """How intervals are made."""

    heading = "Intervals"
    resamples: Resamples = RESAMPLES
    seed: Seed = 0


class ScoreParameters(IntervalParameters):
    """How scores are made that have intervals over images."""

    group_by: GroupBy = None
    published: Published = False


class ConfidenceParameters(Parameters):
    """Which findings count."""

    min_confidence: Share = MIN_CONFIDENCE
    """Confidence, 0–1, below which findings are left out. Findings without a confidence count."""


class CalibrationParameters(Parameters):
    """The calibration to apply."""

    calibration: Annotated[Place | None, Shown(on=HERE.on, metavar="FILE", default="none")] = None
    """Calibration file of `uncanny trust`. Adds the probability that people accept it to each finding."""

    def read_calibration(self) -> Calibration | None:
        """The calibration in the file; None where none is given. Raises UsageError, RecordError."""
        if self.calibration is None:
            return None
        from uncanny.records.calibration import Calibration

        return Calibration.read(self.calibration)


class AgreeParameters(Parameters):
    """How the verdicts of several reviewers make a decision."""

    agree: AgreeRule = "majority"
    """Accept what most reviewers accept, or only what all of them accept."""
    least_verdicts: Annotated[int, Field(ge=1, le=1_000)] = 1
    """Minimum number of verdicts for a decision; a finding with fewer counts as not reviewed."""

    @property
    def rule(self) -> Rule:
        """Both, as `review_image` takes them."""
        return Rule(self.agree, self.least_verdicts)


class AllAgreeParameters(AgreeParameters):
    """The same where all of three reviewers have to agree unless told otherwise, as in SalArt-VQA."""

    agree: AgreeRule = "all"
    """Accept what most reviewers accept, or only what all of them accept."""
    least_verdicts: Annotated[int, Field(ge=1, le=1_000)] = 3
    """Minimum number of verdicts for a decision; an item with fewer counts as not reviewed."""


class PairFolders(Parameters):
    """Two folders in place of a file of pairs."""

    original: Place | None = None
    """Folder of original images, in place of a file of pairs."""
    edited: Place | None = None
    """Folder of edited images with the same names, in place of a file of pairs."""


class BackboneParameters(Parameters):
    """The model that BERTScore compares texts with."""

    heading = "Similarity"
    backbone: Annotated[Text | None, Shown(place="hub", default="distilbert-base-uncased")] = None
    """Name or folder of BERTScore's model."""
    num_layers: Annotated[int | None, Field(ge=1, le=1_000), Shown(default="the usual one")] = None
    """Layer of the backbone whose embeddings are compared."""
    device: Device = None
    batch_tokens: Annotated[int | None, Field(ge=1, le=10**9), Shown(default="by device")] = None
    """Maximum number of tokens in one forward pass."""


class MeasureParameters(BackboneParameters):
    """What a measure of similarity is opened with."""

    heading = "Similarity"
    keep_all: bool = False
    """Keep the embeddings of predicted texts on disk too, not only those of true ones."""


class ReportParameters(ConfidenceParameters):
    """Where the page of a run goes, and what it shows."""

    heading = "Page"
    out: Annotated[
        Place | None,
        Shown(on=HERE.on, short="-o", metavar="FILE", default="RUN/report.html; of a file beside it"),
    ] = None
    """File of the page."""
    max_images: Annotated[int, Field(ge=0, le=1_000_000), HERE] = 300
    """Maximum number of images on the page, which says so if there are more."""
    pictures: Annotated[PicturesMode, HERE] = "link"
    """Link full-size pictures from their files, or embed them in the page, to send it on."""


class PageParameters(ReportParameters):
    """Where the page of scores goes, and what it shows."""

    title: Annotated[Text | None, HERE] = None
    """Title of the page."""


class TextParameters(AskParameters):
    """How a run over pictures in words asks a model."""

    root: Annotated[Folder | None, Shown(default="the file's folder")] = None
    """Folder that image paths are relative to, in the file and in records."""
