"""`uncanny.semantic`: do predicted anomalies match the true ones, by the meaning of their texts.

scores = uncanny.semantic.score("runs/a", truth="truth.jsonl")
print(scores)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.eval.common.anomalies.image import MatchedImage as MatchedImage
    from uncanny.eval.common.anomalies.load import load as load
    from uncanny.eval.common.anomalies.read import AnomalySet as AnomalySet
    from uncanny.eval.common.anomalies.read import ScoredAnomaly as ScoredAnomaly
    from uncanny.eval.common.anomalies.read import ScoredImage as ScoredImage
    from uncanny.eval.common.similarity.base import Similarity as Similarity
    from uncanny.eval.common.similarity.base import TextPairs as TextPairs
    from uncanny.eval.semantic.score.result import Difference as Difference
    from uncanny.eval.semantic.score.result import ImageScore as ImageScore
    from uncanny.eval.semantic.score.result import PredictionScore as PredictionScore
    from uncanny.eval.semantic.score.result import SemanticScore as SemanticScore
    from uncanny.eval.semantic.score.score import score as score

__all__, __getattr__, __dir__ = lazy_names(__name__)
