"""What the quality gates say of a set of edits: the gates by name, their ends, and the result of `gate`."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from pydantic import ValidationError

from uncanny.answers.captions import MOST_WORDS
from uncanny.errors import UsageError
from uncanny.eval.common.tables import Column, Table, TableResult, data_frame
from uncanny.eval.edits.columns import check_suffix, places_of, write_rows
from uncanny.eval.edits.data import EditFiles
from uncanny.eval.edits.result import EditMeasure
from uncanny.parameters import check_parameters
from uncanny.wording import counted, shown

if TYPE_CHECKING:
    from pandas import DataFrame

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
_LISTED = 10
_PERCENTILES = ("clip_low", "clip_high", "directional", "clip_score_low", "text_low", "text_high")


@dataclass(frozen=True, slots=True)
class GateParameters:
    """Where the gates are, by default as in Semi-Truths; percentiles 0–100, lengths in words."""

    brisque: float = 70.0
    clip_low: float = 20.0
    clip_high: float = 80.0
    directional: float = 23.0
    clip_score_low: float = 5.0
    text_low: float = 5.0
    text_high: float = 95.0
    label_words: int = MOST_WORDS["label"]
    caption_words: int = MOST_WORDS["caption"]

    def __post_init__(self) -> None:
        """Raises UsageError for what has no meaning."""
        for name, most in (
            ("brisque", 10**9),
            *((name, 100) for name in _PERCENTILES),
            *((name, 10**6) for name in ("label_words", "caption_words")),
        ):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise UsageError(f"{name} must be from 0 to {most:,}, not {shown(value)}")
        for low, high in (("clip_low", "clip_high"), ("text_low", "text_high")):
            if getattr(self, low) > getattr(self, high):
                raise UsageError(f"{low} is above {high}", remedy="Swap them.")


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
class GatedEdits(TableResult):
    """All edits of a set with their gates, in the order given.

    `limits` are the ends of the gates that are numbers. `applied` are the gates that were measured of at
    least one edit, and `pair`; the others count for none.
    """

    edits: tuple[GatedEdit, ...]
    limits: Mapping[Gate, Limits]
    applied: tuple[Gate, ...]
    parameters: GateParameters
    described: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.edits)

    def __iter__(self) -> Iterator[GatedEdit]:
        return iter(self.edits)

    def __getitem__(self, edit: str) -> GatedEdit:
        """The edit of this id."""
        return next(each for each in self.edits if each.id == edit)

    def records(self, folder: Path | None = None) -> Iterator[dict[str, Any]]:
        """A record an edit; paths from `folder` on, absolute without one."""
        return (edit.to_json(folder) for edit in self.edits)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for record in self.records() for key in record))

    def to_pandas(self) -> DataFrame:
        """A row an edit. Raises UsageError where pandas is not installed (the extra `frames`)."""
        return data_frame(self.columns, self.records())

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
            "unmeasured": {gate: dict(why) for gate, why in self._reasons().items()},
            "parameters": asdict(self.parameters),
            "models": dict(self.described),
        }

    def _reasons(self) -> Mapping[Gate, Counter[str]]:
        reasons: dict[Gate, Counter[str]] = {}
        for each in self.edits:
            for gate, why in each.unmeasured.items():
                reasons.setdefault(gate, Counter())[why] += 1
        return reasons

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
            why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common(2))
            left_out = "" if gate in self.applied else "Not applied, "
            yield f"{left_out}{gate}: {why}."
        failed = [each for each in self.edits if each.failed]
        for each in failed[:_LISTED]:
            yield f"{each.id}: {', '.join(each.failed)}"
        if len(failed) > _LISTED:
            yield f"and {len(failed) - _LISTED:,} more that failed."

    def write(self, path: str | os.PathLike[str]) -> Path:
        """Write a line or row an edit, as `MeasuredEdits.write` does, and return the path."""
        check_parameters(path=path)
        target = Path(path)
        check_suffix(target)
        write_rows(list(self.records(target.parent)), target)
        return target
