"""The pairs that are left, how many candidates were rejected at each step, and why."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.common.tables.table import RowsResult, Table
from uncanny.eval.mcq.data.items import ItemSet
from uncanny.eval.pairs.data import STEP_NAMES, STEPS, MadePairs, Step
from uncanny.eval.pairs.outcome import Outcome
from uncanny.parameters import path_of
from uncanny.wording import counted

if TYPE_CHECKING:
    from uncanny.eval.common.pages.pictures import PicturesMode

DRAFTS: Final = "drafts_sha256"
PAGE: Final = "pairs.html"
COLUMNS: Final = ("id", "image", "verdict", "step", "why", "finding", "kind", "label", "model", "seed")
KEYS: Final = ("originals", "candidates", "kept", "rejected")
# Reasons of a step that the table shows; the JSON has all.
_MOST_REASONS: Final = 3


@dataclass(frozen=True, slots=True, repr=False)
class PairsResult(JsonFields, RowsResult):
    """What became of all candidates: `candidates` = `kept` + `open` + the sum of `rejected`.

    `originals` counts images, copies left out, and `without_region` those in which nothing was found to edit.
    `kept_originals` are those with a kept pair, and `undrafted` the ids of kept pairs without drafts: fewer
    than three places in them are apart from the fault, and an option there could be true. `pairs` and `items`
    are the files that were written.
    """

    json_keys: ClassVar = (
        "originals without_region failed kept_originals candidates kept judged "
        "rejected open reasons undrafted pairs items"
    )
    columns: ClassVar = COLUMNS

    made: MadePairs = field(repr=False)
    outcomes: tuple[Outcome, ...] = field(repr=False)
    drafts: ItemSet = field(repr=False)
    pairs: Path
    items: Path

    @property
    def originals(self) -> int:
        return len(self.made.originals)

    @property
    def without_region(self) -> int:
        return sum(each.no_region is not None for each in self.made.originals)

    @property
    def failed(self) -> int:
        """Images without a candidate because a call failed, or the file could not be read."""
        return sum(not each.candidates and each.no_region is None for each in self.made.originals)

    @property
    def candidates(self) -> int:
        return len(self.outcomes)

    @property
    def kept(self) -> int:
        return sum(each.verdict == "kept" for each in self.outcomes)

    @property
    def judged(self) -> int:
        """How many of those kept people decided on."""
        return sum(each.judged for each in self.outcomes if each.verdict == "kept")

    @property
    def kept_originals(self) -> int:
        return len({each.pair.original.image for each in self.outcomes if each.verdict == "kept"})

    @property
    def rejected(self) -> Mapping[Step, int]:
        """How many were rejected at each step, in the order of steps."""
        counts = Counter(each.rejected.step for each in self.outcomes if each.rejected is not None)
        return {step: counts[step] for step in STEPS}

    @property
    def open(self) -> Mapping[str, int]:
        """How many wait, by what they wait for."""
        return dict(Counter(each.open for each in self.outcomes if each.open is not None))

    @property
    def reasons(self) -> Mapping[Step, Mapping[str, int]]:
        """Of each step at which any were rejected, how many for which reason, the most frequent first."""
        by_step: dict[Step, Counter[str]] = {}
        for each in self.outcomes:
            if each.rejected is not None:
                by_step.setdefault(each.rejected.step, Counter())[each.rejected.why] += 1
        return {step: dict(by_step[step].most_common()) for step in STEPS if step in by_step}

    @property
    def undrafted(self) -> list[str]:
        drafted = {item.pair_id for item in self.drafts}
        return [each.pair.id for each in kept_of(self.outcomes) if each.pair.id not in drafted]

    def rows(self) -> Iterator[dict[str, object]]:
        """One a candidate."""
        for each in self.outcomes:
            rejected, finding, candidate = each.rejected, each.finding, each.pair.candidate
            values = (
                *(candidate.id, each.pair.original.image, each.verdict),
                *(
                    None if rejected is None else rejected.step,
                    each.open if rejected is None else rejected.why,
                ),
                None if finding is None else finding.phenomenon,
                None if finding is None else finding.kind,
                None if each.screened is None else each.screened.label,
                *(candidate.model, candidate.seed),
            )
            yield dict(zip(COLUMNS, values, strict=True))

    def tables(self) -> tuple[Table, ...]:
        """How many candidates were rejected at each step, how many were left after it, and why."""
        left = self.candidates
        rows: list[tuple[str, int | str, int, str]] = [("Candidates", "", left, "")]
        for step, number in self.rejected.items():
            left -= number
            rows.append((STEP_NAMES[step], number, left, _words(self.reasons.get(step, {}))))
        for why, number in self.open.items():
            left -= number
            rows.append((f"Waiting: {why}", number, left, ""))
        rows.append(("Kept", "", self.kept, ""))
        return (
            Table(
                ("step", "rejected", "left", "why"), tuple(rows), "Candidates by step", tuple(self._notes())
            ),
        )

    def _notes(self) -> Iterator[str]:
        kept = f"{counted(self.kept, 'pair')} kept, {self.judged:,} of them by people"
        yield f"{kept}, from {self.kept_originals:,} of {counted(self.originals, 'original')}."
        if self.without_region:
            yield f"Nothing was found to edit in {counted(self.without_region, 'original')}."
        if self.failed:
            yield f"{counted(self.failed, 'original')} failed; make the pairs again to retry."

        if self.undrafted:
            ids = ", ".join(self.undrafted[:_MOST_REASONS])
            more = ", …" if len(self.undrafted) > _MOST_REASONS else ""
            why = "fewer than three places in the image are apart from the fault"
            yield f"No questions about {counted(len(self.undrafted), 'kept pair')}, as {why}: {ids}{more}."

    def report(self, out: str | os.PathLike[str], *, pictures: PicturesMode = "link") -> Path:
        """Write the page to `out` and return its path: the table, and a wall of all candidates."""
        from uncanny.eval.pairs.report import write_pairs_page

        return write_pairs_page(self, path_of("out", out), pictures=pictures)


def _words(reasons: Mapping[str, int]) -> str:
    listed = [f"{why} ({number:,})" for why, number in list(reasons.items())[:_MOST_REASONS]]
    more = len(reasons) - len(listed)
    return "; ".join([*listed, *([f"{counted(more, 'other reason')}"] if more else [])])


def kept_of(outcomes: Sequence[Outcome]) -> Iterator[Outcome]:
    """Those that are kept."""
    return (each for each in outcomes if each.verdict == "kept")


def pair_record(outcome: Outcome, out: Path, drafts: bytes) -> dict[str, Any]:
    """The line of a kept pair in `pairs.jsonl`: an edit as `uncanny edits` reads it, with its provenance.

    Paths of its files start from `out`; `drafts` are its lines of `items.jsonl`, if any.
    """
    pair, finding = outcome.pair, outcome.finding
    candidate = pair.candidate
    assert finding is not None
    unrated = None if finding.severity_rated else {"severity", "severity_rated"}
    return {
        "id": pair.id,
        **pair.files_from(out),
        "label": candidate.region.name,
        "caption": pair.original.caption,
        "method": "inpainting",
        "model": candidate.model,
        "finding": finding.model_dump(mode="json", exclude_none=True, exclude=unrated),
        "judged": outcome.judged,
        "source": pair.original.image,
        "source_sha256": pair.original.sha256,
        "candidate": candidate.model_dump(mode="json"),
        DRAFTS: sha256(drafts).hexdigest() if drafts else None,
    }
