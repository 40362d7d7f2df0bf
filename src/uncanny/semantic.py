"""`uncanny.semantic`: do predicted anomalies match the true ones, by the meaning of their texts.

scores = uncanny.semantic.score("runs/a", truth="truth.jsonl")
print(scores)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncanny.eval.semantic.data.load import load
    from uncanny.eval.semantic.data.records import AnomalySet, ScoredAnomaly, ScoredImage
    from uncanny.eval.semantic.score.image import MatchedImage
    from uncanny.eval.semantic.score.result import Difference, ImageScore, PredictionScore, SemanticScore
    from uncanny.eval.semantic.score.score import score
    from uncanny.eval.semantic.similarity.base import Similarity, TextPairs

_HOMES = {
    "AnomalySet": "data.records",
    "Difference": "score.result",
    "ImageScore": "score.result",
    "MatchedImage": "score.image",
    "PredictionScore": "score.result",
    "ScoredAnomaly": "data.records",
    "ScoredImage": "data.records",
    "SemanticScore": "score.result",
    "Similarity": "similarity.base",
    "TextPairs": "similarity.base",
    "load": "data.load",
    "score": "score.score",
}
__all__ = [
    "AnomalySet",
    "Difference",
    "ImageScore",
    "MatchedImage",
    "PredictionScore",
    "ScoredAnomaly",
    "ScoredImage",
    "SemanticScore",
    "Similarity",
    "TextPairs",
    "load",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"uncanny.eval.semantic.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
