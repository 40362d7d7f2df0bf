"""Image after image into figures: columns for means and intervals, counts, and examples worth reading.

From per-image columns to means with intervals, and to the differences between prediction files.

The figures of one protocol, and accuracy, from what was gathered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappush, heappushpop
from itertools import combinations, tee
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.bootstrap import Bools, Mean, mean_intervals
from uncanny.eval.metrics.detection import conditioned, counted, recognised
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, Match, ProtocolName, View, f1, unmatched
from uncanny.eval.metrics.shares import wilson_interval
from uncanny.eval.semantic.data.images import ScoredImage
from uncanny.eval.semantic.score.result import (
    BINS,
    Accuracy,
    Difference,
    Example,
    Examples,
    ImageColumns,
    Micro,
    Missed,
    ProtocolScore,
    ScoredPair,
    Spread,
    ThresholdScore,
)
from uncanny.schema import Source

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


Key = tuple[ProtocolName, str, View]


def means(columns: ImageColumns, *, detection: bool) -> dict[Key, Mean]:
    """Every mean of a prediction file by protocol, metric and view; `detection` adds cSemAP and cSemF1."""
    found: dict[Key, Mean] = {}
    for protocol in PROTOCOLS:
        scored = columns.scored[protocol]
        in_detection = scored & counted(columns.true_source, protocol)
        for metric, values in (("semap", columns.semap), ("semf1", columns.semf1)):
            for view in VIEWS:
                column = values[protocol][view]
                found[protocol, metric, view] = Mean(column, scored)
                if detection:
                    gated = conditioned(column, columns.true_source, columns.predicted_source)
                    found[protocol, f"c{metric}", view] = Mean(gated, in_detection)
    return found


def accuracy_mean(columns: ImageColumns) -> Mean:
    """Over the images that were judged and whose true source is known."""
    right = recognised(columns.true_source, columns.predicted_source)
    return Mean(right.astype(np.float64), answered(columns))


def answered(columns: ImageColumns) -> Bools:
    """The images that accuracy is a mean over."""
    rows: Bools = columns.judged & (columns.true_source != "")
    return rows


def figures(found: Sequence[Mean], *, resamples: int, seed: int) -> list[Estimate]:
    """The means as figures, in their order."""
    ends = mean_intervals(found, resamples=resamples, seed=seed)
    return [Estimate(mean.value, interval) for mean, interval in zip(found, ends, strict=True)]


def differences(
    models: Mapping[str, Mapping[Key, Mean]], *, resamples: int, seed: int
) -> Iterator[Difference]:
    """Every two files, every figure that both have, over the images that count for both; paired bootstrap."""
    ours, for_ends = tee(_pairs(models))
    ends = mean_intervals((mean for _, _, _, mean in for_ends), resamples=resamples, seed=seed)
    for (first, second, (protocol, metric, view), mean), interval in zip(ours, ends, strict=True):
        images = int(mean.counted.sum())
        yield Difference(first, second, protocol, metric, view, images, Estimate(mean.value, interval))


def _pairs(models: Mapping[str, Mapping[Key, Mean]]) -> Iterable[tuple[str, str, Key, Mean]]:
    for first, second in combinations(models, 2):
        for key, one in models[first].items():
            if key in models[second]:
                other = models[second][key]
                yield first, second, key, Mean(one.values - other.values, one.counted & other.counted)


SOURCES: tuple[Source, ...] = ("generated", "real")


def protocol_score(
    protocol: ProtocolName, keyed: Mapping[Key, Mean], figures: Mapping[Key, Estimate], gathered: Gathered
) -> ProtocolScore:
    """One protocol with its breakdown per threshold; without detection its figures are None."""

    def of(metric: str) -> dict[View, Estimate]:
        return {view: figures[protocol, metric, view] for view in VIEWS}

    in_detection = keyed.get((protocol, "csemap", "full"))
    return ProtocolScore(
        int(gathered.columns().scored[protocol].sum()),
        of("semap"),
        of("semf1"),
        of("csemap") if in_detection else None,
        of("csemf1") if in_detection else None,
        int(in_detection.counted.sum()) if in_detection else 0,
        tuple(_threshold(protocol, row, gathered) for row in range(len(gathered.thresholds))),
    )


def accuracy_score(columns: ImageColumns, figure: Estimate) -> Accuracy:
    """How often the source is right; an answer that is not clear is wrong."""
    rows = answered(columns)
    true, said = columns.true_source[rows], columns.predicted_source[rows]
    answers: dict[Source, dict[str, int]] = {}
    for source in SOURCES:
        given = said[true == source]
        answers[source] = {word: int((given == word).sum()) for word in SOURCES}
        answers[source]["unclear"] = int((given == "").sum())
    images, right = int(rows.sum()), int((true == said).sum())
    if figure.interval is not None:  # a plain share, unlike the other means
        figure = replace(figure, interval=wilson_interval(right, images))
    return Accuracy(figure, images, right, answers)


def _threshold(protocol: ProtocolName, row: int, gathered: Gathered) -> ThresholdScore:
    columns = gathered.columns()
    scored = columns.scored[protocol]
    images = int(scored.sum())
    n_pred, n_true = (int(np.sum(column[scored])) for column in (columns.n_pred, columns.n_true))
    sums = gathered.at_threshold(protocol, row)
    tp = {view: int(count) for view, count in sums["tp"].items()}
    return ThresholdScore(
        gathered.thresholds[row],
        {view: total / images if images else None for view, total in sums["semap"].items()},
        {view: total / images if images else None for view, total in sums["semf1"].items()},
        tp,
        n_pred,
        n_true,
        {view: _micro(count, n_pred, n_true) for view, count in tp.items()},
    )


def _micro(tp: int, n_pred: int, n_true: int) -> Micro:
    return Micro(
        tp / n_pred if n_pred else None,
        tp / n_true if n_true else None,
        f1(tp, n_pred, n_true) if n_pred or n_true else None,
    )
