"""What a measure of text similarity is: `Similarity`, to be had by name or brought along.

One file a measure; `MEASURES` names them, and each is imported only to be used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity import SimilarityName
from uncanny.eval.metrics.semap import full_similarity
from uncanny.wording import shown

Matrix = NDArray[np.float64]

# White space, controls, marks of direction and format, and letters and signs that show nothing.
_BLANK = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]*"
)


def is_blank(text: str) -> bool:
    """Whether nothing of a text can be seen: such a text is similar to nothing, itself included."""
    return _BLANK.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class TextPairs:
    """All predicted texts of one image and field against all true ones; either side may be empty."""

    predicted: Sequence[str]
    true: Sequence[str]


@dataclass(frozen=True, slots=True)
class FieldPairs:
    """Both fields of one image's anomalies, one side against the other: as many texts in each field."""

    phenomenon: TextPairs
    reasoning: TextPairs


# Of phenomena and of reasonings.
FieldMatrices = tuple[Matrix, Matrix]


@runtime_checkable
class Similarity(Protocol):
    """A measure of how close two texts are in meaning, from 0 to 1, higher is closer."""

    @property
    def described(self) -> dict[str, Any]:
        """What scores depend on: measure, backbone, layer, versions. It goes into reports and signatures."""
        ...

    @property
    def compares_with_published(self) -> bool:
        """Whether scores can stand beside the published ones: the same backbone and layer."""
        ...

    def matrices(self, texts: Iterable[TextPairs]) -> Iterator[Matrix]:
        """One matrix for each entry of `texts`, in order: (predicted, true), each cell in 0–1.

        A text that `is_blank` is 0 to everything. Reads ahead of what it has given back by a bounded number
        of entries, so that memory does not grow with the set.
        """
        ...


# name: the module that has `open_measure(parameters: MeasureParameters) -> Similarity`
MEASURES: dict[SimilarityName, str] = {
    "bertscore": "uncanny.eval.common.similarity.bertscore",
    "chrf": "uncanny.eval.common.similarity.chrf",
}


def open_measure(
    similarity: SimilarityName | Similarity, parameters: MeasureParameters | None = None
) -> Similarity:
    """The measure of this name, or the given one, which takes no parameters.

    Raises UsageError for an unknown name, for parameters that the measure does not have, and where its
    library or its weights are not there.
    """
    chosen = MeasureParameters() if parameters is None else parameters
    if not isinstance(similarity, str):
        parts = ("described", "compares_with_published", "matrices")
        missing = [name for name in parts if not hasattr(similarity, name)]
        if missing:
            raise UsageError(
                f"{shown(similarity)} is not a similarity: it has no {' and no '.join(missing)}",
                remedy=f"Choose one of {', '.join(MEASURES)}, or give an uncanny.semantic.Similarity.",
            )
        if chosen != MeasureParameters():
            raise UsageError(
                "your own similarity does not take a backbone, layers or device",
                remedy="Set them where you create it.",
            )
        return similarity
    if similarity not in MEASURES:
        raise UsageError(
            f"there is no similarity {similarity!r}", remedy=f"Choose one of {', '.join(MEASURES)}."
        )
    measure: Similarity = import_module(MEASURES[similarity]).open_measure(chosen)
    return measure


def mutual(
    measure: Similarity, fields: Iterable[FieldPairs], balance: float, at_least: float
) -> Iterator[Matrix]:
    """How similar anomalies are where neither side is the truth: a matrix for each entry, in order.

    A cell is the similarity of the phenomena times `balance` and that of the reasonings times the rest, each
    the mean of both directions, so that changing the sides transposes the matrix. What is below `at_least`
    is 0: nobody asks how far below it is.
    """
    own = getattr(measure, "mutual", None)
    if own is not None:
        yield from own(fields, balance, at_least)
        return
    for forth, back in both_directions(measure, fields):
        mixed = (full_similarity(*forth, balance) + full_similarity(*back, balance).T) / 2
        mixed[mixed < at_least] = 0.0
        yield mixed


def both_directions(
    measure: Similarity, fields: Iterable[FieldPairs]
) -> Iterator[tuple[FieldMatrices, FieldMatrices]]:
    """The first side against the second and the second against the first, for each entry, in order."""

    def directions() -> Iterator[TextPairs]:
        for each in fields:
            for pair in (each.phenomenon, each.reasoning):
                yield pair
                yield TextPairs(pair.true, pair.predicted)

    matrices = measure.matrices(directions())
    for forth in matrices:
        back, reasoning, reasoning_back = next(matrices), next(matrices), next(matrices)
        yield (forth, reasoning), (back, reasoning_back)
