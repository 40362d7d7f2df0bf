"""What became of each candidate: where it was rejected, what it waits for, or the fault that people see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from uncanny.eval.pairs.data import (
    SCREENED,
    MadePair,
    MadePairs,
    Rejection,
    Screened,
    edited_name,
    first_copies,
    load_screened,
)
from uncanny.records.reviews import ReviewedAnomaly, ReviewedImage, ReviewLog, Rule, review_image
from uncanny.schema import Anomaly


@dataclass(frozen=True, slots=True)
class Outcome:
    """One candidate: it was `rejected`, or is kept for its `finding`, or waits for something (`open`).

    `screened` is its record, None where it was not screened. `judged` says that people decided.
    """

    pair: MadePair
    screened: Screened | None = None
    rejected: Rejection | None = None
    finding: Anomaly | None = None
    open: str | None = None
    judged: bool = False

    @property
    def verdict(self) -> str:
        """In a word: kept, rejected or open."""
        return "rejected" if self.rejected is not None else "open" if self.open is not None else "kept"


def outcomes(
    made: MadePairs, rule: Rule, *, screened: Path | None = None, unreviewed: bool = False
) -> Iterator[Outcome]:
    """The outcome of every candidate, in order. `rule` decides from the verdicts of people.

    `screened` is the folder of the screening. With `unreviewed` a candidate that nobody judged is kept where
    a model labeled it an artifact. Raises UsageError, RecordError.
    """
    run = made.folder / SCREENED if screened is None else screened
    records = load_screened(run)
    reviews = ReviewLog.of_run(run).by_image() if records else None
    copies = first_copies(made)
    for pair in made:
        if pair.candidate.rejected is not None:
            yield Outcome(pair, rejected=pair.candidate.rejected)
        elif pair.id in copies:
            why = f"the same picture as {copies[pair.id]}"
            yield Outcome(pair, rejected=Rejection(step="duplicate", why=why))
        elif (record := records.get(edited_name(pair, run))) is None or _is_of_before(record, pair):
            yield Outcome(pair, open="not screened")
        elif record.rejected is not None:
            yield Outcome(pair, record, rejected=record.rejected)
        elif record.status != "ok":
            yield Outcome(pair, record, open="screening failed")
        else:
            lines = () if reviews is None else reviews.get(record.image, ())
            yield _judged(pair, record, review_image(record, lines, rule), unreviewed=unreviewed)


def _is_of_before(record: Screened, pair: MadePair) -> bool:
    """Whether the picture was another one when it was screened."""
    return record.sha256 is not None and record.sha256 != pair.candidate.sha256


def _judged(pair: MadePair, record: Screened, reviewed: ReviewedImage, *, unreviewed: bool) -> Outcome:
    accepted = [each for each in reviewed.anomalies if _is_accepted(each)]
    if accepted:
        return Outcome(pair, record, finding=accepted[0].anomaly, judged=True)
    first = reviewed.anomalies[0] if reviewed.anomalies else None
    decision = None if first is None else first.decision
    if decision == "reject":
        return Outcome(pair, record, rejected=Rejection(step="people", why="rejected"), judged=True)
    if decision == "unsure":
        return Outcome(pair, record, rejected=Rejection(step="people", why="unsure, or divided"), judged=True)
    if unreviewed and first is not None and record.label == "artifact":
        return Outcome(pair, record, finding=first.anomaly)
    return Outcome(pair, record, open="not judged")


def _is_accepted(finding: ReviewedAnomaly) -> bool:
    """People's own findings count unless somebody rejects them."""
    return finding.decision == "accept" or (finding.original is None and not finding.votes)
