"""Anomaly files and a measure whose similarities are given, so that scores can be told by hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from uncanny import semantic
from uncanny.eval.common.anomalies.read import AnomalySet, ScoredAnomaly, ScoredImage
from uncanny.eval.common.similarity.base import Matrix, TextPairs
from uncanny.eval.semantic.score.result import SemanticScore
from uncanny.schema import Source


class GivenSimilarity:
    """Looks up each image's matrix under the number that its texts begin with: `3/p0` and `3/t1`.

    Phenomena and reasonings are told apart by a further letter: `3r/p0`. `read` counts entries read.
    """

    compares_with_published = False

    def __init__(self, matrices: Mapping[str, Matrix], name: str = "given") -> None:
        self._matrices, self._name = matrices, name
        self.read = 0

    @property
    def described(self) -> dict[str, Any]:
        return {"measure": self._name}

    def matrices(self, texts: Iterable[TextPairs]) -> Iterator[Matrix]:
        for pairs in texts:
            self.read += 1
            cells = np.zeros((len(pairs.predicted), len(pairs.true)))
            for row, predicted in enumerate(pairs.predicted):
                for column, true in enumerate(pairs.true):
                    if predicted and true:
                        (key, ours), (_, theirs) = predicted.split("/"), true.split("/")
                        cells[row, column] = self._matrices[key][int(ours[1:]), int(theirs[1:])]
            yield cells


def anomalies(key: str, side: str, count: int, severities: Iterable[int] = ()) -> tuple[ScoredAnomaly, ...]:
    """`count` anomalies of image `key`, on the side `p` or `t`."""
    known: list[int | None] = [*severities] or [None] * count
    return tuple(
        ScoredAnomaly(f"{side}{n}", f"{key}/{side}{n}", f"{key}r/{side}{n}", known[n]) for n in range(count)
    )


def image(
    name: str, anomalies: tuple[ScoredAnomaly, ...] = (), source: Source | None = None, **more: Any
) -> ScoredImage:
    return ScoredImage(name, anomalies, source, has_source=more.pop("has_source", source is not None), **more)


def anomaly_set(name: str, *images: ScoredImage, **more: Any) -> AnomalySet:
    return AnomalySet(name, images, **more)


def both(matrices: Mapping[str, Matrix]) -> GivenSimilarity:
    """The same matrix for phenomena and reasonings."""
    return GivenSimilarity({**matrices, **{f"{key}r": cells for key, cells in matrices.items()}})


def score(
    truth: AnomalySet,
    measure: GivenSimilarity,
    options: Mapping[str, Any] = MappingProxyType({}),
    **sets: AnomalySet,
) -> SemanticScore:
    """Without intervals, unless `options` say otherwise."""
    return semantic.score(sets, truth=truth, similarity=measure, **{"resamples": 0, **options})
