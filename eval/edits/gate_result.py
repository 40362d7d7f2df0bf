"""What the quality gates say of a set of edits: the gates by name, their ends, and the result of `gate`."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

from pydantic import ValidationError

from uncanny.eval.common.tables.table import Column, Table
from uncanny.eval.edits.columns import (
    EditsResult,
    counted_reasons,
    failures,
    places_of,
    reason_words,
)
from uncanny.eval.edits.data import EditFiles
from uncanny.eval.edits.parameters import GateConfig
from uncanny.eval.edits.result import EditMeasure
from uncanny.wording import counted

Gate = Literal[
    "pair",
    "all_black",
    "brisque",
    "clip_similarity",
    "directional_similarity",
    "clip_score",
    "text_empty",
    "text_length",
    "special_characters",
    "text_similarity",
]
GATES: Final[tuple[Gate, ...]] = get_args(Gate)
# Gates that are a number within limits, by the column that has it.
MEASURED: Final[tuple[Gate, ...]] = (
    "brisque",
    "clip_similarity",
    "directional_similarity",
    "clip_score",
    "text_similarity",
)
# "Below 70" and "above the 23rd percentile" leave the end itself out, "between" has it in.
OPEN: Final = frozenset[Gate]({"brisque", "directional_similarity"})


class Limits(NamedTuple):
    """What passes a gate: from `low` to `high`, None for no end. With `open` the ends themselves fail."""

    low: float | None = None
    high: float | None = None
    open: bool = False

    def passes(self, value: float) -> bool:
        if self.open:
            return (self.low is None or value > self.low) and (self.high is None or value < self.high)
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class GatedEdit:
    """One edit and its gates, by name; a gate that was not measured is in `unmeasured` with the reason.

    `passed` is False where a gate failed, True where none did and all that were applied could be measured,
    else None.
    """

    files: EditFiles
    values: Mapping[Gate, float]
    failed: tuple[Gate, ...]
    unmeasured: Mapping[Gate, str]
    passed: bool | None

    @property
    def id(self) -> str:
        return self.files.id

    def to_json(self, folder: Path | None = None) -> dict[str, Any]:
        """The edit's record with all it held, then what the gates say."""
        record = self.files.pair.model_dump(mode="json", exclude_none=True)
        if "post_edit_ratio" in (self.files.pair.model_extra or {}):
            # A measured edit: its columns first and all of them, in the contract's order.
            with contextlib.suppress(ValidationError):  # somebody else's column of that name
                record = EditMeasure.model_validate(record).model_dump(mode="json")
        return {
            **record,
            **places_of(self.files, folder),
            **{name: self.values.get(name) for name in MEASURED},
            "passed": self.passed,
            "failed_gates": list(self.failed),
            "unmeasured_gates": dict(self.unmeasured),
        }


HEADS = ("gate", "from", "to", "passed", "failed", "not measured")


@dataclass(frozen=True, slots=True, repr=False)
class GatedEdits(EditsResult[GatedEdit]):
    """All edits of a set with their gates, in the order given.

    `limits` are the ends of the gates that are numbers. `applied` are the gates that were measured of at
    least one edit, and `pair`; the others count for none.
    """

    edits: tuple[GatedEdit, ...]
    limits: Mapping[Gate, Limits]
    applied: tuple[Gate, ...]
    parameters: GateConfig
    described: Mapping[str, Any] = field(default_factory=dict)

    def records(self, folder: Path | None = None) -> Iterator[dict[str, Any]]:
        return (edit.to_json(folder) for edit in self.edits)

    @property
    def counts(self) -> Mapping[Gate, tuple[int, int, int]]:
        """How many edits passed each gate, failed it, and were not measured."""
        counts: dict[Gate, tuple[int, int, int]] = {}
        for gate in GATES:
            failed = sum(gate in each.failed for each in self.edits)
            unmeasured = sum(gate in each.unmeasured for each in self.edits)
            counts[gate] = len(self.edits) - failed - unmeasured, failed, unmeasured
        return counts

    def to_json(self) -> dict[str, Any]:
        """What `uncanny edits gate --json` writes: counts, without a line an edit."""
        passed = Counter(each.passed for each in self.edits)
        return {
            "edits": len(self.edits),
            "passed": passed[True],
            "failed": passed[False],
            "undecided": passed[None],
            "gates": {
                gate: dict(zip(("passed", "failed", "unmeasured"), counts, strict=True))
                for gate, counts in self.counts.items()
            },
            "applied": list(self.applied),
            "limits": {gate: [limits.low, limits.high] for gate, limits in self.limits.items()},
            "unmeasured": self._reasons(),
            "parameters": self.parameters.model_dump(),
            "models": dict(self.described),
        }

    def _reasons(self) -> dict[Gate, dict[str, int]]:
        return counted_reasons(each.unmeasured for each in self.edits)

    def tables(self) -> tuple[Table, ...]:
        rows = []
        for gate, counts in self.counts.items():
            limits = self.limits.get(gate, Limits())
            rows.append((gate, limits.low, limits.high, *counts))
        ends = (Column(head, digits=4, significant=True) for head in HEADS[1:3])
        return (Table((HEADS[0], *ends, *HEADS[3:]), tuple(rows), notes=tuple(self._notes())),)

    def _notes(self) -> Iterator[str]:
        passed = Counter(each.passed for each in self.edits)
        words = f"{passed[True]:,} of {counted(len(self.edits), 'edit')} passed, {passed[False]:,} failed"
        yield words + (f", {passed[None]:,} could not be decided." if passed[None] else ".")
        for gate, reasons in self._reasons().items():
            left_out = "" if gate in self.applied else "Not applied, "
            yield f"{left_out}{gate}: {reason_words(reasons)}."
        yield from failures([f"{each.id}: {', '.join(each.failed)}" for each in self.edits if each.failed])
