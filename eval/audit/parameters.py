"""The parameters of `audit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from uncanny.agents.config import AnnotateConfig
from uncanny.eval.common.parameters import (
    CalibrationParameters,
    ConfidenceParameters,
    IntervalParameters,
    PositiveShare,
    Root,
)
from uncanny.eval.common.similarity import SimilarityName
from uncanny.parameters import HERE, Parameters, Place, Shown, Text
from uncanny.runs.parameters import PixelParameters, RunParameters, TableParameters

if TYPE_CHECKING:
    from uncanny.eval.common.inputs.sources import AnnotationSource
    from uncanny.eval.common.similarity.base import Similarity
else:  # commands show their options without them
    AnnotationSource = Similarity = Any

# Worst images kept per generator.
MOST_WORST = 12

Named = Mapping[str, AnnotationSource]
# By generator its earlier releases: one, or several, the oldest first.
Releases = Mapping[str, AnnotationSource | Sequence[str | PathLike[str]]]


class AuditParameters(
    CalibrationParameters,
    ConfidenceParameters,
    IntervalParameters,
    RunParameters,
    PixelParameters,
    TableParameters,
    AnnotateConfig,
):
    """The parameters of `audit`. Those of annotating hold for generators that are images."""

    out: Annotated[Place | None, Shown(on=HERE.on, short="-o")] = None
    """Folder for the page, and for a run of each generator that is images."""
    model: Annotated[Text | None, Shown(short="-m", metavar="PROVIDER/NAME", place="model", first=True)] = (
        None
    )
    """Model that annotates the folders of images."""
    against: Annotated[Named | None, Shown(metavar="NAME=RUN_OR_FILE", place="file")] = None
    """The same generators as a second assessor sees them; shows how far the ranks agree."""
    before: Annotated[Releases | None, Shown(metavar="NAME=RUN_OR_FILE", place="file")] = None
    """Earlier releases of generators, on the same prompts; shows what changed. Several of one, the oldest
    first, or a folder of runs, show the trend."""
    own: Annotated[str | Sequence[str], Shown(metavar="NAME")] = ()
    """Generators to mark as your own."""
    pair_by: Annotated[
        str | None,
        Shown(metavar="stem|COLUMN|image", default="pairs and edits of an original, where columns say so"),
    ] = None
    """What images of one prompt share, so that they are resampled together: their file name, or a column of a
    table or metadata file; `image` resamples them one by one."""
    allow_mixed: bool = False
    """Compare annotations that were made with different settings, and corrected figures with those of the
    model."""
    uncorrected: bool = False
    """Show only the model's figures and ignore judged samples."""
    group_names_by: SimilarityName | Similarity = "chrf"
    """Similarity that groups the names of anomalies. chrF is lexical; bertscore needs weights."""
    group_threshold: Annotated[
        PositiveShare | None, Shown(default="0.6 for chrf, 0.9 for bertscore, 0.8 for your own")
    ] = None
    """Group names of anomalies that are at least this similar."""
    published: bool = False
    """Show the published generators beside yours."""
    worst: Annotated[int, Field(ge=0, le=10_000)] = MOST_WORST
    """Number of worst images kept per generator."""
    root: Root = None

    @property
    def own_names(self) -> tuple[str, ...]:
        """The names of `own`, one or several."""
        return (self.own,) if isinstance(self.own, str) else tuple(self.own)


class AuditPageParameters(Parameters):
    """How the audit's page is written."""

    title: Annotated[Text | None, Shown(metavar="TEXT", default="Generator audit")] = None
    """Title of the page."""
