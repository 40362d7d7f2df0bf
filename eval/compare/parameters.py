"""The parameters of `uncanny.compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from uncanny.eval.common.parameters import (
    BackboneParameters,
    Balance,
    ConfidenceParameters,
    IntervalParameters,
    PositiveShare,
    Root,
)
from uncanny.eval.common.similarity import SimilarityName
from uncanny.eval.metrics import BALANCE
from uncanny.parameters import Shown

if TYPE_CHECKING:
    from uncanny.eval.common.anomalies.load import Anomalies
    from uncanny.eval.common.similarity.base import Similarity
else:  # commands show their options without them
    Anomalies = Similarity = Any

By = Literal["image", "prompt"]


class MatchParameters(BackboneParameters):
    """Which anomalies of two runs are the same one."""

    heading = "Matching"
    match_by: SimilarityName | Similarity = "chrf"
    """How two anomalies are compared, to decide whether they are the same one. bertscore needs weights."""
    match_threshold: Annotated[
        PositiveShare | None, Shown(default="0.4 for chrf, 0.8 for bertscore, 0.7 for your own")
    ] = None
    """Similarity from which two anomalies are the same one."""
    iou: PositiveShare = 0.5
    """Overlap of their boxes (IoU) from which two anomalies of a kind are the same one."""
    balance: Balance = BALANCE


class CompareParameters(ConfidenceParameters, MatchParameters, IntervalParameters):
    """The parameters of `compare`."""

    truth: Annotated[Anomalies | None, Shown(place="source", metavar="TRUTH", first=True)] = None
    """The ground truth: a run, a file, or `scenes` for the bundled set. Adds scores against them."""
    by: By = "image"
    """Pair the same image, or images of the same prompt (prompt_id, prompt, or file stem)."""
    root: Root = None
