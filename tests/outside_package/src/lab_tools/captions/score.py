"""How many captions fit, and how often the model agrees with people.

Both are shares of captions with Wilson's 95 % interval. Failed and unreadable captions are counted, and in no
share: nothing is known of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lab_tools.captions.data import Caption
from lab_tools.captions.run import CaptionRun
from uncanny import Share
from uncanny.extend import Table, TableResult, interval_words, percent, wilson_interval


@dataclass(frozen=True, slots=True)
class CaptionScore(TableResult):
    """`fits`: captions that the model says describe their image, of those it answered about. `accuracy`:
    answers that agree with people's label, of those with a label. `n` captions have a record, `unanswered` of
    them without an answer; `missing` have none."""

    model: str | None
    n: int
    unanswered: int
    missing: int
    fits: Share
    accuracy: Share

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def tables(self) -> tuple[Table, ...]:
        rows = tuple(
            (
                name,
                percent(share.value),
                interval_words(share) or "",
                f"{share.counts:,}",
                f"{share.out_of:,}",
            )
            for name, share in (("captions that fit", self.fits), ("agreement with people", self.accuracy))
        )
        notes = [
            f"{number:,} captions {words}; in no share."
            for number, words in ((self.unanswered, "without an answer"), (self.missing, "not checked yet"))
            if number
        ]
        return (Table(("", "%", "95 %", "count", "of"), rows, title=self.model, notes=tuple(notes)),)


def score(captions: Sequence[Caption], run: CaptionRun) -> CaptionScore:
    """The scores of a run over `captions`, matched by id; of no answers the shares are None."""
    records = {record.id: record for record in run.records}
    checks = [records[caption.id] for caption in captions if caption.id in records]
    answers = {check.id: check.fits for check in checks if check.fits is not None}
    labels = {caption.id: caption.fits for caption in captions if caption.fits is not None}
    return CaptionScore(
        model=run.summary.model,
        n=len(checks),
        unanswered=len(checks) - len(answers),
        missing=len(captions) - len(checks),
        fits=_share(list(answers.values())),
        accuracy=_share([fits == labels[name] for name, fits in answers.items() if name in labels]),
    )


def _share(hits: Sequence[bool]) -> Share:
    n = len(hits)
    return Share(sum(hits) / n if n else None, sum(hits), n, wilson_interval(sum(hits), n))
