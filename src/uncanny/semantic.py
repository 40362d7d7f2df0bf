"""`uncanny.semantic`: do predicted anomalies match the true ones, by the meaning of their texts.

scores = uncanny.semantic.score("runs/a", truth="truth.jsonl")
print(scores)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.semantic.data.load import load as load
    from uncanny.eval.semantic.data.records import AnomalySet as AnomalySet
    from uncanny.eval.semantic.data.records import ScoredAnomaly as ScoredAnomaly
    from uncanny.eval.semantic.data.records import ScoredImage as ScoredImage
    from uncanny.eval.semantic.score.image import MatchedImage as MatchedImage
    from uncanny.eval.semantic.score.result import Difference as Difference
    from uncanny.eval.semantic.score.result import ImageScore as ImageScore
    from uncanny.eval.semantic.score.result import PredictionScore as PredictionScore
    from uncanny.eval.semantic.score.result import SemanticScore as SemanticScore
    from uncanny.eval.semantic.score.score import score as score
    from uncanny.eval.semantic.similarity.base import Similarity as Similarity
    from uncanny.eval.semantic.similarity.base import TextPairs as TextPairs

# The same names as above, for Python: type checkers read no tables.
__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "uncanny.eval.semantic.data.load": "load",
        "uncanny.eval.semantic.data.records": "AnomalySet ScoredAnomaly ScoredImage",
        "uncanny.eval.semantic.score.image": "MatchedImage",
        "uncanny.eval.semantic.score.result": "Difference ImageScore PredictionScore SemanticScore",
        "uncanny.eval.semantic.score.score": "score",
        "uncanny.eval.semantic.similarity.base": "Similarity TextPairs",
    },
)
