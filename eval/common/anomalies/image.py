"""One image: its predicted anomalies against its true ones, under both protocols and in all three views.

Similarities of phenomena and of reasonings come from a measure, `full` is their mixture (appendix B.1), and
each of the three matrices is matched and scored by the functions of `metrics.semap`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from uncanny.eval.common.anomalies.read import ScoredImage
from uncanny.eval.common.similarity.base import Similarity, TextPairs
from uncanny.eval.metrics.semap import (
    Matrix,
    ProtocolName,
    View,
    ViewScore,
    confidence_order,
    full_similarity,
    score_paper,
    score_release,
)

Views = Mapping[View, Matrix]


@dataclass(frozen=True, slots=True)
class ImagePair:
    """An image of the truth, at `place`, and its prediction, None where there is none."""

    place: int
    true: ScoredImage
    predicted: ScoredImage | None

    @property
    def shape(self) -> tuple[int, int]:
        """How many anomalies are predicted and true."""
        return len(self.predicted.anomalies) if self.predicted else 0, len(self.true.anomalies)


@dataclass(frozen=True, slots=True)
class MatchedImage:
    """An image with its similarities, shape (predicted, true), and its scores by protocol and view."""

    pair: ImagePair
    similarity: Views
    scores: Mapping[ProtocolName, Mapping[View, ViewScore]]

    def to_json(self, name: str) -> dict[str, Any]:
        """One line of `semantic --per-image`: the image in the predictions `name`, with every match.

        A match is `[predicted, true, similarity]`, indices from 0. `release` has all that are locked, `paper`
        those at each threshold. Without a prediction `release` is None.
        """
        pair = self.pair
        row: dict[str, Any] = {
            "predictions": name,
            "image": pair.true.image,
            "predicted": pair.predicted.image if pair.predicted else None,
            "n_pred": pair.shape[0],
            "n_true": pair.shape[1],
            "true_source": pair.true.source,
            "predicted_source": pair.predicted.source if pair.predicted else None,
            "release": None,
        }
        for protocol, views in self.scores.items():
            if protocol == "release" and pair.predicted is None:
                continue
            row[protocol] = {
                view: {
                    "semap": score.semap,
                    "semf1": score.semf1,
                    "tp": [outcome.tp for outcome in score.at],
                    "matches": [list(match) for match in score.matches]
                    if protocol == "release"
                    else [[list(match) for match in outcome.hits] for outcome in score.at],
                }
                for view, score in views.items()
            }
        return row


def similarities(
    pairs: Iterable[ImagePair], measure: Similarity, balance: float
) -> Iterator[tuple[ImagePair, Views]]:
    """The matrices of each image, in order, while `measure` reads ahead. Empty sides are not sent to it."""
    waiting: deque[ImagePair] = deque()

    def texts() -> Iterator[TextPairs]:
        for pair in pairs:
            waiting.append(pair)
            if pair.predicted is not None and all(pair.shape):
                predicted, true = pair.predicted.anomalies, pair.true.anomalies
                yield TextPairs([each.phenomenon for each in predicted], [each.phenomenon for each in true])
                yield TextPairs([each.reasoning for each in predicted], [each.reasoning for each in true])

    matrices = measure.matrices(texts())
    for phenomenon in matrices:
        reasoning = next(matrices)
        while not all(waiting[0].shape):
            yield _without_texts(waiting.popleft())
        yield (
            waiting.popleft(),
            {"phe": phenomenon, "rea": reasoning, "full": full_similarity(phenomenon, reasoning, balance)},
        )
    while waiting:
        yield _without_texts(waiting.popleft())


def _without_texts(pair: ImagePair) -> tuple[ImagePair, Views]:
    empty = np.zeros(pair.shape)
    return pair, {"phe": empty, "rea": empty, "full": empty}


def score_image(pair: ImagePair, similarity: Views, thresholds: Sequence[float]) -> MatchedImage:
    """Both protocols on one image, whether or not the image takes part in them."""
    predicted = pair.predicted.anomalies if pair.predicted else ()
    order = confidence_order([anomaly.severity for anomaly in predicted])
    full = similarity["full"]
    return MatchedImage(
        pair,
        similarity,
        {
            "release": {view: score_release(matrix, thresholds) for view, matrix in similarity.items()},
            "paper": {
                view: score_paper(matrix, thresholds, order, full) for view, matrix in similarity.items()
            },
        },
    )
