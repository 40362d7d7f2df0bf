"""The figures of one protocol, and accuracy, from what was gathered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from uncanny.eval.metrics.detection import Source
from uncanny.eval.metrics.means import Mean
from uncanny.eval.metrics.semap import VIEWS, ProtocolName, View, f1
from uncanny.eval.metrics.shares import wilson_interval
from uncanny.eval.semantic.figures import Key, answered
from uncanny.eval.semantic.gather import Gathered
from uncanny.eval.semantic.result import (
    Accuracy,
    Figure,
    ImageColumns,
    Micro,
    ProtocolScore,
    ThresholdScore,
)

SOURCES: tuple[Source, ...] = ("generated", "real")


def protocol_score(
    protocol: ProtocolName, keyed: Mapping[Key, Mean], figures: Mapping[Key, Figure], gathered: Gathered
) -> ProtocolScore:
    """One protocol with its breakdown per threshold; without detection its figures are None."""

    def of(metric: str) -> dict[View, Figure]:
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


def accuracy_score(columns: ImageColumns, figure: Figure) -> Accuracy:
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
