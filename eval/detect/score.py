"""The scores of a detection run against the truth.

Accuracy with Wilson's interval, precision and recall of each class (AnomReason, section 4.2). An answer that
says neither clearly is wrong, and a prediction of no class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from uncanny.eval.common.tables import MISSING, RowsResult, Table
from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.metrics.detection import JUDGED, SOURCES, Accuracy, accuracy
from uncanny.schema import Detection

COLUMNS = ("source", *JUDGED, "precision", "recall", "f1")


@dataclass(frozen=True, slots=True, repr=False)
class DetectScore(RowsResult):
    """How well a run tells generated images from real ones.

    `scored` is over images with an answer and a known source: `scored.accuracy`, 0 to 1, higher is better,
    None without any. `without_answer` counts those whose call failed or that could not be read,
    `without_truth` those with an answer whose source is not known, `missing` images of the run that have no
    record yet, None where it is not known. None of them is in any score.
    """

    columns: ClassVar = COLUMNS

    scored: Accuracy
    truth: SourceTruth
    without_answer: int
    without_truth: int
    missing: int | None = None

    def to_json(self) -> dict[str, Any]:
        """`scores` of `uncanny detect --json`; shares in 0–1, None where there is nothing to take one of."""
        scored = self.scored
        ends = scored.interval()
        return {
            "truth": self.truth.origin,
            "images": scored.images,
            "accuracy": scored.accuracy,
            "ci": {"accuracy": None if ends is None else list(ends)},
            "classes": {
                source: {
                    "precision": scored.precision(source),
                    "recall": scored.recall(source),
                    "f1": scored.f1(source),
                }
                for source in SOURCES
            },
            "confusion": {
                true: {judged: scored.counts[true, judged] for judged in JUDGED} for true in SOURCES
            },
            "unparseable": scored.unparseable,
            "without_answer": self.without_answer,
            **({} if self.missing is None else {"missing": self.missing}),
            "without_truth": self.without_truth,
            "truth_not_in_run": self.truth.unused,
        }

    def rows(self) -> Iterator[dict[str, Any]]:
        """One a class: what its images were taken for, and the shares in 0–1, None where of nothing."""
        for source in SOURCES:
            yield {
                "source": source,
                **{judged: self.scored.counts[source, judged] for judged in JUDGED},
                "precision": self.scored.precision(source),
                "recall": self.scored.recall(source),
                "f1": self.scored.f1(source),
            }

    def tables(self) -> tuple[Table, ...]:
        """A line a class, in percent, and the accuracy below."""
        rows = tuple(
            (
                row["source"],
                *(f"{row[judged]:,}" for judged in JUDGED),
                *(_percent(row[name]) for name in ("precision", "recall", "f1")),
            )
            for row in self.rows()
        )
        left_out = self.left_out()
        notes = (self._accuracy(), *([f"{left_out}."] if left_out else []))
        return (Table(("", *JUDGED, "precision", "recall", "f1"), rows, notes=notes),)

    def _accuracy(self) -> str:
        ends = self.scored.interval()
        interval = "" if ends is None else f" (95 % interval {_percent(ends[0])} to {_percent(ends[1])})"
        return (
            f"Accuracy {_percent(self.scored.accuracy)}{interval}, {self.scored.right:,} of "
            f"{self.scored.images:,} right, truth by {self.truth.origin}. Columns say what images of a class "
            "were taken for; shares are percent."
        )

    def left_out(self) -> str:
        """In words: images that are in no score, or wrong without being taken for the other class."""
        counts = (
            (self.scored.unparseable, "unparseable, counted as wrong"),
            (self.missing or 0, "not judged yet, in no score"),
            (self.without_answer, "without an answer, in no score"),
            (self.without_truth, "without a known truth, in no score"),
            (self.truth.unused, "of the truth not in this run"),
        )
        return "; ".join(f"{number:,} {what}" for number, what in counts if number)


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


def _percent(share: float | None) -> str:
    return MISSING if share is None else f"{100 * share:.1f}"
