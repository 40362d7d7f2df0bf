"""The parameters of `detect`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from uncanny.agents.config import DetectConfig
from uncanny.detectors.parameters import DetectorParameters
from uncanny.parameters import Shown
from uncanny.records.annotation_table import RecordFormat
from uncanny.runs.parameters import ImageParameters

if TYPE_CHECKING:
    from uncanny.eval.detect.data import Truth
else:  # commands show their options without them
    Truth = Any


class DetectParameters(ImageParameters, DetectConfig, DetectorParameters):
    """The parameters of `detect`."""

    truth: Annotated[
        Truth | None,
        Shown(metavar="FILE", place="source", first=True, default="by folders called real, generated, …"),
    ] = None
    """Ground truth to score against: a file with one line per image, or `scenes`."""
    format: RecordFormat = "jsonl"
    """Format of the records. parquet also writes a table, annotations.parquet, when the run ends."""
