"""Image after image into figures: columns for means and intervals, counts, and examples worth reading."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from heapq import heappush, heappushpop
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.detection import Source
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, Match, ProtocolName, View, unmatched
from uncanny.eval.semantic.result import Example, Examples, ImageColumns, Missed, Spread
from uncanny.eval.semantic.score_image import ScoredPair
from uncanny.eval.semantic.scored_image import ScoredImage

BINS = 50
EXAMPLES = 12
T = TypeVar("T")


class Gathered:
    """The figures of one prediction file while its images come in, each at most once, in any order.

    Memory grows by some numbers an image; texts are kept of examples alone.
    """

    def __init__(self, images: Sequence[ScoredImage], thresholds: Sequence[float]) -> None:
        count, self.thresholds = len(images), tuple(thresholds)
        self._images = tuple(image.image for image in images)
        self._predicted: list[str | None] = [None] * count
        self._scored = {protocol: np.zeros(count, dtype=np.bool_) for protocol in PROTOCOLS}
        self._semap = {protocol: {view: np.zeros(count) for view in VIEWS} for protocol in PROTOCOLS}
        self._semf1 = {protocol: {view: np.zeros(count) for view in VIEWS} for protocol in PROTOCOLS}
        self._n_pred, self._n_true = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
        self._true_source = np.array([image.source or "" for image in images], dtype="<U9")
        self._predicted_source = np.zeros(count, dtype="<U9")
        self._judged = np.zeros(count, dtype=np.bool_)
        shape = (len(PROTOCOLS), len(thresholds), len(VIEWS))
        self._sums, self._tp = np.zeros((2, *shape)), np.zeros(shape, dtype=np.int64)
        self._matched, self._every = (np.zeros((len(VIEWS), BINS), dtype=np.int64) for _ in range(2))
        self._best: _Top[Example] = _Top(EXAMPLES)
        self._worst: _Top[Example] = _Top(EXAMPLES)
        self._missed: _Top[Missed] = _Top(EXAMPLES)

    def add(self, scored: ScoredPair) -> None:
        """Take in one image. Without a prediction it counts in `paper` alone."""
        place, predicted = scored.pair.place, scored.pair.predicted
        self._n_pred[place], self._n_true[place] = scored.pair.shape
        if predicted is not None:
            self._predicted[place] = predicted.image
            self.judge(place, predicted.source)
            self._spread(scored)
            self._exemplify(scored)
        for at, protocol in enumerate(PROTOCOLS):
            if predicted is not None or protocol == "paper":
                self._scored[protocol][place] = True
                for view in VIEWS:
                    self._count(at, protocol, view, scored)

    def judge(self, place: int, source: Source | None) -> None:
        """Note what the image was taken for, which alone makes it no part of a protocol."""
        self._predicted_source[place], self._judged[place] = source or "", True

    def _count(self, at: int, protocol: ProtocolName, view: View, scored: ScoredPair) -> None:
        found, place, column = scored.scores[protocol][view], scored.pair.place, VIEWS.index(view)
        self._semap[protocol][view][place] = found.semap
        self._semf1[protocol][view][place] = found.semf1
        for row, outcome in enumerate(found.at):
            self._sums[0, at, row, column] += outcome.semap
            self._sums[1, at, row, column] += outcome.semf1
            self._tp[at, row, column] += outcome.tp

    def _spread(self, scored: ScoredPair) -> None:
        for column, view in enumerate(VIEWS):
            matched = np.array([match.similarity for match in scored.scores["release"][view].matches])
            self._matched[column] += _bins(matched)
            self._every[column] += _bins(scored.similarity[view].ravel())

    def _exemplify(self, scored: ScoredPair) -> None:
        matches, true = scored.scores["release"]["full"].matches, scored.pair.true
        for match in matches:
            self._best.push(match.similarity, partial(_example, scored, match))
            self._worst.push(-match.similarity, partial(_example, scored, match))
        cells = scored.similarity["full"]
        for index in unmatched(matches, len(true.anomalies), "true"):
            closest = float(cells[:, index].max()) if len(cells) else None
            self._missed.push(-(closest or 0.0), partial(Missed, true.image, true.anomalies[index], closest))

    def at_threshold(self, protocol: ProtocolName, row: int) -> dict[str, dict[View, float]]:
        """`semap`, `semf1` and `tp` by view: sums over all images that the protocol takes."""
        at = PROTOCOLS.index(protocol)
        tables = {"semap": self._sums[0], "semf1": self._sums[1], "tp": self._tp}
        return {
            name: dict(zip(VIEWS, table[at, row].tolist(), strict=True)) for name, table in tables.items()
        }

    def columns(self) -> ImageColumns:
        return ImageColumns(
            self._images,
            tuple(self._predicted),
            self._scored,
            self._semap,
            self._semf1,
            self._n_pred,
            self._n_true,
            self._true_source,
            self._predicted_source,
            self._judged,
        )

    def spread(self) -> Spread:
        def by_view(table: NDArray[np.int64]) -> dict[View, tuple[int, ...]]:
            return {view: tuple(row) for view, row in zip(VIEWS, table.tolist(), strict=True)}

        return Spread(by_view(self._matched), by_view(self._every))

    def examples(self) -> Examples:
        best, worst, missed = self._best, self._worst, self._missed
        return Examples(best.items(), worst.items(), missed.items(), best.seen, missed.seen)


class _Top(Generic[T]):
    """The items with the highest keys, highest first; of equal ones those that came first. Made when kept."""

    def __init__(self, size: int) -> None:
        self._size, self.seen = size, 0
        self._heap: list[tuple[float, int, T]] = []

    def push(self, key: float, make: Callable[[], T]) -> None:
        self.seen += 1
        if len(self._heap) < self._size:
            heappush(self._heap, (key, -self.seen, make()))
        elif key > self._heap[0][0]:
            heappushpop(self._heap, (key, -self.seen, make()))

    def items(self) -> tuple[T, ...]:
        return tuple(item for _, _, item in sorted(self._heap, key=lambda each: (-each[0], -each[1])))


def _bins(values: NDArray[np.float64]) -> NDArray[np.int64]:
    places = np.minimum((values * BINS).astype(np.int64), BINS - 1)
    return np.bincount(places, minlength=BINS)


def _example(scored: ScoredPair, match: Match) -> Example:
    assert scored.pair.predicted is not None
    return Example(
        scored.pair.true.image,
        scored.pair.predicted.anomalies[match.predicted],
        scored.pair.true.anomalies[match.true],
        {view: float(cells[match.predicted, match.true]) for view, cells in scored.similarity.items()},
    )
