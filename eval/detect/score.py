"""The scores of a detection run against the truth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.metrics.detection import JUDGED, SOURCES, Accuracy, accuracy
from uncanny.schema import Detection


@dataclass(frozen=True, slots=True)
class DetectScore:
    """`scored` is over images with an answer and a known source.

    `without_answer` counts those whose call failed or that could not be read, `without_truth` those with an
    answer whose source is not known, `missing` images of the run that have no record yet, None where it is
    not known. None of them is in any score.
    """

    scored: Accuracy
    truth: SourceTruth
    without_answer: int
    without_truth: int
    missing: int | None = None


def score(records: Iterable[Detection], truth: SourceTruth, images: int | None = None) -> DetectScore:
    """A verdict counts although the second turn failed; without a verdict nothing was measured.

    `images` are those of the run, with or without a record.
    """
    pairs = []
    recorded = 0
    without_answer = without_truth = 0
    for record in records:
        recorded += 1
        source = truth.sources.get(record.image)
        if source is None:
            without_truth += 1
        elif record.verdict is None:
            without_answer += 1
        else:
            pairs.append((source, record.source))
    return DetectScore(
        accuracy(pairs), truth, without_answer, without_truth, None if images is None else images - recorded
    )


def score_json(result: DetectScore) -> dict[str, Any]:
    """Shares in 0–1, None where there is nothing to take a share of."""
    scored = result.scored
    return {
        "truth": result.truth.origin,
        "images": scored.images,
        "accuracy": scored.accuracy,
        "ci": {"accuracy": scored.interval()},
        "classes": {
            source: {
                "precision": scored.precision(source),
                "recall": scored.recall(source),
                "f1": scored.f1(source),
            }
            for source in SOURCES
        },
        "confusion": {true: {judged: scored.counts[true, judged] for judged in JUDGED} for true in SOURCES},
        "unparseable": scored.unparseable,
        "without_answer": result.without_answer,
        **({} if result.missing is None else {"missing": result.missing}),
        "without_truth": result.without_truth,
        "truth_not_in_run": result.truth.unused,
    }
