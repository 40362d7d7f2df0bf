"""From one image after another to the scores of a prediction file: means, counts, examples, differences.

Memory grows by some numbers an image. Means are over images; their intervals are a percentile bootstrap over
images, that of accuracy Wilson's; differences of two files are paired, image by image.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import heappush, heappushpop
from itertools import combinations, tee
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.anomalies.image import ImagePair, MatchedImage
from uncanny.eval.common.anomalies.read import ScoredImage
from uncanny.eval.common.estimates import Estimate, share_of
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.detection import SOURCES, conditioned, counted, recognised
from uncanny.eval.metrics.intervals import (
    Bools,
    Codes,
    Floats,
    Mean,
    mean_intervals,
    mean_tests,
)
from uncanny.eval.metrics.paired import cohens_d
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, Match, ProtocolName, View, f1, unmatched
from uncanny.eval.semantic.score.result import (
    BINS,
    Accuracy,
    Difference,
    Example,
    Examples,
    ImageColumns,
    Metric,
    Micro,
    Missed,
    ProtocolScore,
    Spread,
    ThresholdScore,
)
from uncanny.schema import Source

EXAMPLES = 12
T = TypeVar("T")
# Which mean of a prediction file.
Key = tuple[ProtocolName, Metric, View]


class ImageTotals:
    """What is kept of one prediction file while its images come in, each at most once, in any order.

    Columns of scores for means and intervals, sums by threshold, bins of similarities, and texts of examples.
    """

    def __init__(self, images: Sequence[ScoredImage], thresholds: Sequence[float]) -> None:
        count, self.thresholds = len(images), tuple(thresholds)

        def scores() -> dict[ProtocolName, dict[View, Floats]]:
            return {protocol: {view: np.zeros(count) for view in VIEWS} for protocol in PROTOCOLS}

        self.columns = ImageColumns(
            images=tuple(image.image for image in images),
            predicted=[None] * count,
            scored={protocol: np.zeros(count, np.bool_) for protocol in PROTOCOLS},
            semap=scores(),
            semf1=scores(),
            n_pred=np.zeros(count, np.int64),
            n_true=np.zeros(count, np.int64),
            true_source=np.array([image.source or "" for image in images], dtype="<U9"),
            predicted_source=np.zeros(count, dtype="<U9"),
            judged=np.zeros(count, np.bool_),
        )
        shape = (len(PROTOCOLS), len(thresholds), len(VIEWS))
        self.sums, self.tp = np.zeros((2, *shape)), np.zeros(shape, dtype=np.int64)
        self._matched, self._every = (np.zeros((len(VIEWS), BINS), dtype=np.int64) for _ in range(2))
        self._best: _Top[tuple[Example, ImagePair]] = _Top(EXAMPLES)
        self._worst: _Top[tuple[Example, ImagePair]] = _Top(EXAMPLES)
        self._missed: _Top[tuple[Missed, ImagePair]] = _Top(EXAMPLES)

    def add(self, image: MatchedImage) -> None:
        """Take in one image. Without a prediction it counts in `paper` alone."""
        columns, place, predicted = self.columns, image.pair.place, image.pair.predicted
        columns.n_pred[place], columns.n_true[place] = image.pair.shape
        if predicted is not None:
            columns.predicted[place] = predicted.image
            self.judge(place, predicted.source)
            for column, view in enumerate(VIEWS):
                matched = np.array([match.similarity for match in image.scores["release"][view].matches])
                self._matched[column] += _bins(matched)
                self._every[column] += _bins(image.similarity[view].ravel())
            self._add_to_examples(image)
        for number, protocol in enumerate(PROTOCOLS):
            if predicted is None and protocol != "paper":
                continue
            columns.scored[protocol][place] = True
            for column, view in enumerate(VIEWS):
                score = image.scores[protocol][view]
                columns.semap[protocol][view][place] = score.semap
                columns.semf1[protocol][view][place] = score.semf1
                for row, outcome in enumerate(score.at):
                    self.sums[:, number, row, column] += (outcome.semap, outcome.semf1)
                    self.tp[number, row, column] += outcome.tp

    def judge(self, place: int, source: Source | None) -> None:
        """Note what the image was taken for, which alone makes it no part of a protocol."""
        self.columns.predicted_source[place], self.columns.judged[place] = source or "", True

    def _add_to_examples(self, image: MatchedImage) -> None:
        matches, true = image.scores["release"]["full"].matches, image.pair.true
        for match in matches:
            self._best.push(match.similarity, partial(_example, image, match))
            self._worst.push(-match.similarity, partial(_example, image, match))
        cells = image.similarity["full"]
        for index in unmatched(matches, len(true.anomalies), "true"):
            closest = float(cells[:, index].max()) if len(cells) else None
            self._missed.push(-(closest or 0.0), partial(_missed, image.pair, index, closest))

    def spread(self) -> Spread:
        def by_view(table: NDArray[np.int64]) -> dict[View, tuple[int, ...]]:
            return {view: tuple(row) for view, row in zip(VIEWS, table.tolist(), strict=True)}

        return Spread(by_view(self._matched), by_view(self._every))

    def examples(self) -> Examples:
        best, worst, missed = self._best.items(), self._worst.items(), self._missed.items()
        return Examples(
            tuple(example for example, _ in best),
            tuple(example for example, _ in worst),
            tuple(example for example, _ in missed),
            self._best.seen,
            self._missed.seen,
            {pair.true.image: pair for _, pair in (*best, *worst, *missed)},
        )


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


def _missed(pair: ImagePair, index: int, closest: float | None) -> tuple[Missed, ImagePair]:
    return Missed(pair.true.image, pair.true.anomalies[index], closest), pair


def _example(image: MatchedImage, match: Match) -> tuple[Example, ImagePair]:
    assert image.pair.predicted is not None
    example = Example(
        image.pair.true.image,
        image.pair.predicted.anomalies[match.predicted],
        image.pair.true.anomalies[match.true],
        {view: float(cells[match.predicted, match.true]) for view, cells in image.similarity.items()},
    )
    return example, image.pair


def means_of(columns: ImageColumns, *, detection: bool) -> dict[Key, Mean]:
    """Every mean of a prediction file by protocol, metric and view; `detection` adds cSemAP and cSemF1."""
    means: dict[Key, Mean] = {}
    tables: tuple[tuple[Metric, Metric, Mapping[ProtocolName, Mapping[View, NDArray[np.float64]]]], ...] = (
        ("semap", "csemap", columns.semap),
        ("semf1", "csemf1", columns.semf1),
    )
    for protocol in PROTOCOLS:
        scored = columns.scored[protocol]
        in_detection = scored & counted(columns.true_source, protocol)
        for metric, with_detection, values in tables:
            for view in VIEWS:
                column = values[protocol][view]
                means[protocol, metric, view] = Mean(column, scored)
                if detection:
                    gated = conditioned(column, columns.true_source, columns.predicted_source)
                    means[protocol, with_detection, view] = Mean(gated, in_detection)
    return means


def accuracy_mean(columns: ImageColumns) -> Mean:
    """Over the images that were judged and whose true source is known."""
    right = recognised(columns.true_source, columns.predicted_source)
    return Mean(right.astype(np.float64), _with_verdict(columns))


def _with_verdict(columns: ImageColumns) -> Bools:
    """The images that accuracy is a mean over."""
    rows: Bools = columns.judged & (columns.true_source != "")
    return rows


def estimates(
    means: Sequence[Mean], *, groups: Codes | None = None, resamples: int, seed: int
) -> list[Estimate]:
    """The means, of scores in 0–1, with their intervals, in their order; `groups` are resampled together."""
    intervals = mean_intervals(means, groups=groups, resamples=resamples, seed=seed, shares=True)
    return [Estimate(mean.value, interval) for mean, interval in zip(means, intervals, strict=True)]


def differences(
    models: Mapping[str, Mapping[Key, Mean]], *, groups: Codes | None = None, resamples: int, seed: int
) -> Iterator[Difference]:
    """Every two files, every mean that both have, over the images that count for both; paired bootstrap."""
    pairs, for_tests = tee(
        (first, second, key, Mean(ours.values - theirs.values, ours.counted & theirs.counted))
        for first, second in combinations(models, 2)
        for key, ours in models[first].items()
        if (theirs := models[second].get(key)) is not None
    )
    tests = mean_tests((mean for *_, mean in for_tests), groups=groups, resamples=resamples, seed=seed)
    compared = [
        Difference(
            first,
            second,
            *key,
            int(mean.counted.sum()),
            Estimate(mean.value, test.interval),
            test.p_value,
            None,
            cohens_d(mean.values[mean.counted]),
        )
        for (first, second, key, mean), test in zip(pairs, tests, strict=True)
    ]
    families: dict[Key, list[int]] = {}
    for place, each in enumerate(compared):
        families.setdefault((each.protocol, each.metric, each.view), []).append(place)
    adjusted: dict[int, float | None] = {}
    for places in families.values():
        adjusted |= zip(places, holm([compared[place].p_value for place in places]), strict=True)
    return (replace(each, adjusted_p=adjusted[place]) for place, each in enumerate(compared))


def protocol_score(
    protocol: ProtocolName,
    means: Mapping[Key, Mean],
    scores: Mapping[Key, Estimate],
    totals: ImageTotals,
) -> ProtocolScore:
    """One protocol with its breakdown per threshold; without detection cSemAP and cSemF1 are None."""

    def by_view(metric: Metric) -> dict[View, Estimate]:
        return {view: scores[protocol, metric, view] for view in VIEWS}

    in_detection = means.get((protocol, "csemap", "full"))
    return ProtocolScore(
        int(totals.columns.scored[protocol].sum()),
        by_view("semap"),
        by_view("semf1"),
        by_view("csemap") if in_detection else None,
        by_view("csemf1") if in_detection else None,
        int(in_detection.counted.sum()) if in_detection else 0,
        tuple(_threshold_score(protocol, row, totals) for row in range(len(totals.thresholds))),
    )


def accuracy_score(columns: ImageColumns, estimate: Estimate, groups: Codes | None = None) -> Accuracy:
    """How often the source is right; an answer that is not clear is wrong.

    `groups` says which images belong together.
    """
    rows = _with_verdict(columns)
    true, predicted = columns.true_source[rows], columns.predicted_source[rows]
    answers: dict[Source, dict[str, int]] = {}
    for source in SOURCES:
        of_source = predicted[true == source]
        answers[source] = {word: int((of_source == word).sum()) for word in SOURCES}
        answers[source]["unclear"] = int((of_source == "").sum())
    share = share_of(true == predicted, None if groups is None else groups[rows])
    if estimate.interval is not None:  # a plain share, unlike the other means
        estimate = replace(estimate, interval=share.interval)
    return Accuracy(estimate, share.out_of, int((true == predicted).sum()), answers)


def _threshold_score(protocol: ProtocolName, row: int, totals: ImageTotals) -> ThresholdScore:
    columns, number = totals.columns, PROTOCOLS.index(protocol)
    scored = columns.scored[protocol]
    images = int(scored.sum())
    n_pred, n_true = (int(column[scored].sum()) for column in (columns.n_pred, columns.n_true))
    semap, semf1 = (
        {view: total / images if images else None for view, total in zip(VIEWS, sums.tolist(), strict=True)}
        for sums in totals.sums[:, number, row]
    )
    tp = dict(zip(VIEWS, totals.tp[number, row].tolist(), strict=True))
    micro = {
        view: Micro(
            count / n_pred if n_pred else None,
            count / n_true if n_true else None,
            f1(count, n_pred, n_true) if n_pred or n_true else None,
        )
        for view, count in tp.items()
    }
    return ThresholdScore(totals.thresholds[row], semap, semf1, tp, n_pred, n_true, micro)
