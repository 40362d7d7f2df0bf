"""Recognising the source of an image, generated or real: alone, and as a condition of other scores.

Accuracy with precision and recall of each class, for `detect` and the semantic protocol; and cSemAP and
cSemF1, which count a score where the source is recognised (AnomReason, section 4.2, equations 15 and 16).
Columns have an entry an image. A source is `generated`, `real`, or the empty string: of the truth, where it
does not say; of a prediction, where no clear answer came, which is never right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.intervals import (
    Bools,
    Codes,
    Floats,
    effective_size,
    sums_by_group,
    wilson_interval,
)
from uncanny.eval.metrics.semap import ProtocolName
from uncanny.schema import Source

SOURCES: Final[tuple[Source, ...]] = ("generated", "real")
Judged = Source | Literal["unparseable"]
JUDGED: Final[tuple[Judged, ...]] = (*SOURCES, "unparseable")

Sources = NDArray[np.str_]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Counts of (true source, what was judged), and what follows from them; every share is in 0–1.

    An answer that says neither clearly is `unparseable` and wrong: it is in the denominators of accuracy and
    recall, and no prediction of any class. A share of nothing is None. `size` is how many independent images
    say as much of the accuracy; None where each image is by itself.
    """

    counts: Counter[tuple[Source, Judged]]
    size: float | None = None

    @property
    def images(self) -> int:
        return self.counts.total()

    @property
    def right(self) -> int:
        return sum(self.counts[source, source] for source in SOURCES)

    @property
    def unparseable(self) -> int:
        return sum(self.counts[source, "unparseable"] for source in SOURCES)

    @property
    def accuracy(self) -> float | None:
        return _share(self.right, self.images)

    def precision(self, source: Source) -> float | None:
        """Of the images judged to be `source`, those that are."""
        return _share(self.counts[source, source], sum(self.counts[true, source] for true in SOURCES))

    def recall(self, source: Source) -> float | None:
        """Of the images that are `source`, those judged to be."""
        return _share(self.counts[source, source], sum(self.counts[source, judged] for judged in JUDGED))

    def f1(self, source: Source) -> float | None:
        """2·TP over predicted and true ones together; None where the truth has none of the class."""
        true = sum(self.counts[source, judged] for judged in JUDGED)
        predicted = sum(self.counts[other, source] for other in SOURCES)
        return _share(2 * self.counts[source, source], true + predicted) if true else None

    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the accuracy, Wilson's; None without images."""
        if self.size is None or self.accuracy is None:
            return wilson_interval(self.right, self.images)
        return wilson_interval(self.accuracy * self.size, self.size)


def accuracy(judged: Sequence[tuple[Source, Judged | None]], groups: Codes | None = None) -> Accuracy:
    """Count pairs of the true source and the model's, None where its answer is not clearly one of both.

    `groups` are the images that belong together.
    """
    counts = Counter((true, answer or "unparseable") for true, answer in judged)
    if groups is None or not judged:
        return Accuracy(counts)
    right = sums_by_group([true == answer for true, answer in judged], groups)
    return Accuracy(counts, effective_size(right, sums_by_group(np.ones(len(judged)), groups)))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def recognised(true: Sources, predicted: Sources) -> Bools:
    """Where the predicted source is the true one. Nothing is right where the truth does not say."""
    right: Bools = (true == predicted) & (true != "")
    return right


def counted(true: Sources, protocol: ProtocolName) -> Bools:
    """The images that cSemAP and cSemF1 are means over, as a mask.

    `release`: generated ones, so that an answer other than a clear yes is wrong. `paper`: all whose true
    source is known.
    """
    rows: Bools = true == "generated" if protocol == "release" else true != ""
    return rows


def conditioned(scores: Floats, true: Sources, predicted: Sources) -> Floats:
    """SemAP or SemF1 of each image where its source is recognised, else 0 (equations 15 and 16).

    A real image recognised as such, without anomalies on either side, keeps the 1 that `paper` gives it.
    """
    return np.where(recognised(true, predicted), scores, 0.0)
