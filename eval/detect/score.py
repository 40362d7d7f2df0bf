"""The scores of a detection run against the truth, and of several models beside one another.

Accuracy with Wilson's interval, precision and recall of each class (AnomReason, section 4.2). An answer that
says neither clearly is wrong, and a prediction of no class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from uncanny.eval.common.estimates import Share, interval_json
from uncanny.eval.common.paired_table import paired_table
from uncanny.eval.common.tables import MISSING, Cell, Column, RowsResult, Table, TableResult
from uncanny.eval.detect.data import SourceTruth
from uncanny.eval.metrics.detection import JUDGED, SOURCES, Accuracy, Judged, accuracy
from uncanny.eval.metrics.intervals import wilson_interval
from uncanny.eval.metrics.paired import PairedTest, paired_tests
from uncanny.schema import Detection, Source

if TYPE_CHECKING:
    from uncanny.eval.detect.run import DetectRun

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
            "ci": {
                "accuracy": None if ends is None else list(ends),
                "classes": {
                    source: {name: interval_json(share) for name, share in self.shares(source).items()}
                    for source in SOURCES
                },
            },
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

    def shares(self, source: Source) -> dict[str, Share]:
        """Precision and recall of one class with their counts and Wilson's intervals."""
        counts = self.scored.counts
        right = counts[source, source]
        totals = {
            "precision": sum(counts[true, source] for true in SOURCES),
            "recall": sum(counts[source, judged] for judged in JUDGED),
        }
        return {name: _share(right, total) for name, total in totals.items()}

    @property
    def accuracy(self) -> Share:
        """Of all images that are scored, with Wilson's interval."""
        return _share(self.scored.right, self.scored.images)

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
                source,
                *(self.scored.counts[source, judged] for judged in JUDGED),
                *self.shares(source).values(),
                self.scored.f1(source),
            )
            for source in SOURCES
        )
        left_out = self.left_out()
        notes = (self._accuracy(), *([f"{left_out}."] if left_out else []))
        shares = (Column(name, unit="%") for name in ("precision", "recall", "f1"))
        return (Table(("", *JUDGED, *shares), rows, notes=notes),)

    def _accuracy(self) -> str:
        ends = self.scored.interval()
        interval = "" if ends is None else f" (95 % interval {_percent(ends[0])} to {_percent(ends[1])})"
        return (
            f"Accuracy {_percent(self.scored.accuracy)}{interval}, {self.scored.right:,} of "
            f"{self.scored.images:,} right, truth by {self.truth.origin}. Columns say what images of a class "
            "were taken for; shares are percent, in brackets 95 % intervals."
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


def _share(count: int, out_of: int) -> Share:
    return Share(count / out_of if out_of else None, count, out_of, wilson_interval(count, out_of))


@dataclass(frozen=True, slots=True, repr=False)
class DetectComparison(TableResult):
    """Several models on the same images: `scores` by model, None where no truth is known.

    `verdicts` counts what images were taken for, with or without a truth. `tests` compare each two models on
    the images that both judged and whose source is known.
    """

    verdicts: Mapping[str, Mapping[Judged, int]]
    scores: Mapping[str, DetectScore | None]
    tests: tuple[PairedTest, ...]

    def ranked(self) -> list[str]:
        """The models by accuracy, best first; those without one last, in their order."""

        def key(name: str) -> float:
            score = self.scores[name]
            value = None if score is None else score.accuracy.value
            return 1.0 if value is None else -value

        return sorted(self.verdicts, key=key)

    def tables(self) -> tuple[Table, ...]:
        """A line a model, best first, with the accuracy where the truth is known; then each two models."""
        known = any(score is not None for score in self.scores.values())
        rows: list[tuple[Cell, ...]] = []
        notes: list[str] = []
        for name in self.ranked():
            score = self.scores[name]
            cells: list[Cell] = [name, *(self.verdicts[name].get(judged, 0) for judged in JUDGED)]
            if known and score is None:
                cells += [None] * (len(SOURCES) + 1)
            elif score is not None:
                cells += [*(score.shares(source)["recall"] for source in SOURCES), score.accuracy]
                notes += [f"{name}: {left}" for left in [score.left_out()] if left]
            rows.append(tuple(cells))
        shares = [Column(f"recall {source}", unit="%", better="higher") for source in SOURCES]
        columns = (*shares, Column("accuracy", unit="%", better="higher")) if known else ()
        notes += ["Percent, in brackets 95 % intervals (Wilson)."] if known else []
        pairs = paired_table(self.tests, self.ranked(), "source", "images")
        main = Table(("model", *JUDGED, *columns), tuple(rows), notes=tuple(notes))
        return (main, *([] if pairs is None else [pairs]))

    def to_json(self) -> dict[str, Any]:
        """`scores`, by model, None without a truth; under `mcnemar` each two of several models."""
        scores = {name: None if score is None else score.to_json() for name, score in self.scores.items()}
        tests = [{"models": [each.first, each.second], **each.to_json()} for each in self.tests]
        return {"scores": scores, "mcnemar": tests}


def compare_runs(runs: Mapping[str, DetectRun]) -> DetectComparison:
    """Runs of several models over the same images, by model."""
    truths = [run.truth for run in runs.values() if run.truth is not None]
    images = {image: place for place, image in enumerate(dict.fromkeys(i for t in truths for i in t.sources))}
    right = np.zeros((len(runs), len(images)), dtype=np.bool_)
    judged = np.zeros_like(right)
    for row, run in enumerate(runs.values()):
        for record in run.detections if run.truth is not None else ():
            source = None if run.truth is None else run.truth.sources.get(record.image)
            if source is not None and record.verdict is not None:
                judged[row, images[record.image]] = True
                right[row, images[record.image]] = record.source == source
    return DetectComparison(
        {name: run.verdicts() for name, run in runs.items()},
        {name: None if run.truth is None else run.score() for name, run in runs.items()},
        tuple(paired_tests(list(runs), right, judged)) if images else (),
    )
