"""One image under both protocols, in all three views."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from uncanny.eval.metrics.semap import Matrix, ProtocolName, View, ViewScore, full_similarity
from uncanny.eval.metrics.semap_paper import confidence_order, score_paper
from uncanny.eval.metrics.semap_release import score_release
from uncanny.eval.semantic.scored_image import ScoredImage
from uncanny.eval.semantic.similarity import Similarity, TextPairs

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
class ScoredPair:
    """An image with its similarities and, by protocol and view, its scores."""

    pair: ImagePair
    similarity: Views
    scores: Mapping[ProtocolName, Mapping[View, ViewScore]]


def similarities(
    pairs: Iterable[ImagePair], measure: Similarity, balance: float
) -> Iterator[tuple[ImagePair, Views]]:
    """The matrices of each image, in order, while `measure` reads ahead. Empty sides are not handed to it."""
    waiting: deque[ImagePair] = deque()

    def wanted() -> Iterator[TextPairs]:
        for pair in pairs:
            waiting.append(pair)
            if pair.predicted is not None and all(pair.shape):
                predicted, true = pair.predicted.anomalies, pair.true.anomalies
                yield TextPairs([one.phenomenon for one in predicted], [one.phenomenon for one in true])
                yield TextPairs([one.reasoning for one in predicted], [one.reasoning for one in true])

    matrices = measure.matrices(wanted())
    for phenomenon in matrices:
        reasoning = next(matrices)
        while not all(waiting[0].shape):
            yield _empty(waiting.popleft())
        yield waiting.popleft(), _views(phenomenon, reasoning, balance)
    while waiting:
        yield _empty(waiting.popleft())


def score_image(pair: ImagePair, similarity: Views, thresholds: Sequence[float]) -> ScoredPair:
    """Both protocols on one image, whether or not the image takes part in them."""
    order = confidence_order([one.severity for one in pair.predicted.anomalies] if pair.predicted else [])
    full = similarity["full"]
    return ScoredPair(
        pair,
        similarity,
        {
            "release": {view: score_release(matrix, thresholds) for view, matrix in similarity.items()},
            "paper": {
                view: score_paper(matrix, thresholds, order, full) for view, matrix in similarity.items()
            },
        },
    )


def _views(phenomenon: Matrix, reasoning: Matrix, balance: float) -> Views:
    return {
        "phe": phenomenon,
        "rea": reasoning,
        "full": full_similarity(phenomenon, reasoning, balance),
    }


def _empty(pair: ImagePair) -> tuple[ImagePair, Views]:
    nothing = np.zeros(pair.shape)
    return pair, {"phe": nothing, "rea": nothing, "full": nothing}
