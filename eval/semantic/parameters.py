"""The parameters of `uncanny.semantic.score`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from uncanny.eval.common.parameters import (
    Balance,
    ConfidenceParameters,
    MeasureParameters,
    PositiveShare,
    ScoreParameters,
)
from uncanny.eval.common.similarity import SimilarityName
from uncanny.eval.metrics import BALANCE, THRESHOLDS
from uncanny.parameters import CALLBACK, PYTHON, Shown, callback

if TYPE_CHECKING:
    from uncanny.eval.common.anomalies.image import MatchedImage
    from uncanny.eval.common.anomalies.load import Anomalies
    from uncanny.eval.common.similarity.base import Similarity
else:  # commands show their options without them
    Anomalies = MatchedImage = Similarity = Any

OnStart = Callable[[int], None]
OnImage = Callable[[str, MatchedImage], None]


def _distinct(values: Sequence[float]) -> tuple[float, ...]:
    if len(set(values)) < len(values):
        raise ValueError("must not name a number twice")
    return tuple(values)


class SemanticParameters(ConfidenceParameters, MeasureParameters, ScoreParameters):
    """The parameters of `score`."""

    truth: Annotated[Anomalies, Shown(place="source", metavar="TRUTH", first=True)]
    """The ground truth: a run, a file, or `scenes` for the bundled set."""
    similarity: SimilarityName | Similarity = "bertscore"
    """How texts are compared. chrf needs no weights, and no published score compares with it."""
    thresholds: Annotated[
        Sequence[PositiveShare], Field(min_length=1, max_length=20), AfterValidator(_distinct)
    ] = THRESHOLDS
    """Similarities from which a match counts."""
    balance: Balance = BALANCE
    on_start: Annotated[Callable[[int], None] | None, CALLBACK, PYTHON] = None
    """Gets the number of images to be scored, over all predictions, once everything is read."""
    on_image: Annotated[OnImage | None, callback(2), PYTHON] = None
    """Gets the name of the predictions and each image with its matches, when it is scored."""
