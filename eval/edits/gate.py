"""Which edits are fit for use: the quality gates of Semi-Truths, section 3.2 and appendix B.

Percentile gates are over the edits given that are not all black; their ends are part of the result, and can
be given in place of the set's own. A gate that could not be measured is neither passed nor failed, and is
counted. What this leaves to the user: BRISQUE comes from a column of the records, since no library that is
kept up computes it without fetching a model, and the captions' fit to their images is not asked.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import numpy as np
from pydantic import ValidationError

from uncanny.answers.captions import MOST_WORDS, CaptionGate, TextKind, failed_caption_gates
from uncanny.errors import ImageError, UncannyError, UsageError
from uncanny.eval.common.tables import MISSING, Table, TableResult, data_frame
from uncanny.eval.edits.columns import check_suffix, places_of, write_rows
from uncanny.eval.edits.data import EditFiles, EditSet, EditSource, load
from uncanny.eval.edits.result import EditMeasure
from uncanny.eval.metrics.edits import percentile_cutoffs
from uncanny.images import read_rgb
from uncanny.parameters import check_callback, check_kind, check_parameters
from uncanny.wording import counted, option, shown

if TYPE_CHECKING:
    from pandas import DataFrame

    from uncanny.eval.edits.perceptual import Clip

Gate = Literal[
    "all_black",
    "brisque",
    "clip_similarity",
    "directional_similarity",
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
    "text_similarity",
)
_TEXT_GATES: Final[Mapping[CaptionGate, Gate]] = {
    "empty": "text_empty",
    "length": "text_length",
    "special_characters": "special_characters",
}
_WHY: Final[Mapping[Gate, str]] = {
    "brisque": "the records have no column brisque",
    "clip_similarity": "no CLIP model is given and the records have no such column",
    "directional_similarity": "no CLIP model is given and the records have no such column",
    "text_similarity": "no CLIP model is given and the records have no such column",
}
_LISTED = 10
OnEdit = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class GateParameters:
    """Where the gates are, by default as in Semi-Truths; percentiles 0–100, lengths in words."""

    brisque: float = 70.0
    clip_low: float = 20.0
    clip_high: float = 80.0
    directional: float = 23.0
    text_low: float = 5.0
    text_high: float = 95.0
    label_words: int = MOST_WORDS["label"]
    caption_words: int = MOST_WORDS["caption"]

    def __post_init__(self) -> None:
        """Raises UsageError for what has no meaning."""
        for name, most in (
            ("brisque", 10**9),
            *((name, 100) for name in ("clip_low", "clip_high", "directional", "text_low", "text_high")),
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


@dataclass(frozen=True, slots=True, repr=False)
class GatedEdits(TableResult):
    """All edits of a set with their gates, in the order given.

    `limits` are the ends of the gates that are numbers. `applied` are the gates that were measured of at
    least one edit; the others count for none.
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
            ends = (MISSING if end is None else f"{end:.4g}" for end in (limits.low, limits.high))
            rows.append((gate, *ends, *(f"{count:,}" for count in counts)))
        return (
            Table(
                ("gate", "from", "to", "passed", "failed", "not measured"),
                tuple(rows),
                notes=tuple(self._notes()),
            ),
        )

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


def gate(
    pairs: EditSource,
    *,
    root: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    clip: str | os.PathLike[str] | None = None,
    device: str | None = None,
    parameters: GateParameters | None = None,
    limits: Mapping[str, Sequence[float | None]] | None = None,
    on_edit: OnEdit | None = None,
) -> GatedEdits:
    """Sort out which edits of a set pass the quality gates; what `uncanny edits gate` does.

    `pairs` and `root` are as in `load`, best the file of a measured set, whose columns are kept. A number
    under `brisque`, `clip_similarity`, `directional_similarity` or `text_similarity` in a record is taken as
    it is; the last three are else measured with the CLIP model in the folder `clip`, on `device`. With `out`
    (`.jsonl`, `.parquet`, `.csv`) the records are written there. `limits` are the ends of another set's
    gates, by name. `on_edit` is called with each edit as it was looked at.

    Raises what `load` raises, and UsageError for parameters without a meaning and a model that is not there.

    >>> edits = uncanny.edits.gate("scenes")
    >>> edits["d02"].failed
    ('text_length',)
    """
    check_parameters(root=root, out=out, device=device)
    check_callback("on_edit", on_edit)
    check_kind("parameters", parameters, GateParameters)
    if clip is not None and not isinstance(clip, str | os.PathLike):
        raise UsageError(f"{option('clip')} must be a path, not {shown(clip)}")
    target = None if out is None else Path(out)
    if target is not None:
        check_suffix(target)
    given = _given_limits(limits)
    settings = parameters or GateParameters()
    edits = load(pairs, root=root)
    model = None
    if clip is not None:
        from uncanny.eval.edits.perceptual import Clip

        model = Clip(Path(clip), device or "cpu")
    looked = list(_looked_at(edits, model, settings, on_edit))
    ends = {**_limits_of(looked, settings), **given}
    result = GatedEdits(
        _decided(edits, looked, ends),
        ends,
        _applied(looked),
        settings,
        {} if model is None else {"clip": dict(model.described)},
    )
    if target is not None:
        result.write(target)
    return result


def _given_limits(limits: object) -> dict[Gate, Limits]:
    """Raises UsageError."""
    if limits is None:
        return {}
    content = limits.get("limits", limits) if isinstance(limits, Mapping) else limits
    try:
        assert isinstance(content, Mapping)
        given: dict[Gate, Limits] = {}
        for name, (low, high) in content.items():
            gate_name = next(each for each in MEASURED if each == name)
            given[gate_name] = Limits(_end(low), _end(high), open=gate_name in _OPEN)
    except (AssertionError, TypeError, ValueError, StopIteration) as error:
        raise UsageError(
            f"These are no limits: {shown(limits)}",
            remedy='Give {"clip_similarity": [0.6, 0.9]}; gates are ' + ", ".join(MEASURED) + ".",
        ) from error
    return given


def _end(value: Any) -> float | None:
    return None if value is None else float(value)


# "Below 70" and "above the 23rd percentile" leave the end itself out, "between" has it in.
_OPEN: Final = frozenset({"brisque", "directional_similarity"})


@dataclass(slots=True)
class _Looked:
    """What is known of an edit before the set is: numbers, gates that failed, gates that tell nothing."""

    values: dict[Gate, float] = field(default_factory=dict)
    failed: list[Gate] = field(default_factory=list)
    unmeasured: dict[Gate, str] = field(default_factory=dict)


def _looked_at(
    edits: EditSet, clip: Clip | None, settings: GateParameters, on_edit: OnEdit | None
) -> Iterator[_Looked]:
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="gates") as pool:
        for files, looked in zip(
            edits, pool.map(lambda files: _look_at(files, clip, settings), edits), strict=True
        ):
            if on_edit is not None:
                on_edit(files)
            yield looked


def _look_at(files: EditFiles, clip: Clip | None, settings: GateParameters) -> _Looked:
    looked = _Looked()
    columns = files.pair.model_extra or {}
    for name in MEASURED:
        value = _number(columns.get(name))
        if value is not None:
            looked.values[name] = value
    _check_texts(files, settings, looked)
    try:
        edited = np.asarray(read_rgb(files.edited)[0])
    except ImageError as error:
        looked.unmeasured["all_black"] = f"edited: {error.message}"
        edited = None
    if edited is not None and not edited.any():
        looked.failed.append("all_black")
    for name in MEASURED:
        if name not in looked.values:
            looked.unmeasured[name] = _WHY[name]
    if clip is not None:
        _compare(files, edited, clip, looked)
    return looked


def _number(value: object) -> float | None:
    """A cell's number; CSV has it as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _check_texts(files: EditFiles, settings: GateParameters, looked: _Looked) -> None:
    pair = files.pair
    texts: tuple[tuple[TextKind, str | None, int], ...] = (
        ("label", pair.edited_label, settings.label_words),
        ("caption", pair.edited_caption, settings.caption_words),
    )
    failed: set[Gate] = set()
    for kind, text, most in texts:
        if text is not None:
            failed |= {_TEXT_GATES[name] for name in failed_caption_gates(text, kind, most_words=most)}
    for name in _TEXT_GATES.values():
        if all(text is None for _, text, _ in texts):
            looked.unmeasured[name] = "there is no edited label or caption"
        elif name in failed:
            looked.failed.append(name)


def _compare(files: EditFiles, edited: Any, clip: Clip, looked: _Looked) -> None:
    """Fills in what the records do not have, by CLIP."""
    wanted = [name for name in MEASURED[1:] if name not in looked.values]
    if not wanted:
        return
    texts = files.pair.texts
    try:
        words = None if texts is None else [clip.text(each) for each in texts]
        if "text_similarity" in wanted:
            _fill(looked, "text_similarity", "no words for both sides", words)
        if edited is None:
            raise ImageError(looked.unmeasured["all_black"], kind="missing")
        images = [clip.image(np.asarray(read_rgb(files.original)[0])), clip.image(edited)]
        if "clip_similarity" in wanted:
            _fill(looked, "clip_similarity", "", images)
        if "directional_similarity" in wanted:
            ways = None if words is None else [images[0] - images[1], words[0] - words[1]]
            _fill(looked, "directional_similarity", "no words for both sides", ways)
    except UncannyError as error:
        for name in wanted:
            if name not in looked.values:
                looked.unmeasured[name] = error.message
    except Exception as error:
        for name in wanted:
            if name not in looked.values:
                looked.unmeasured[name] = f"the model failed ({type(error).__name__}: {error})"[:200]


def _fill(looked: _Looked, name: Gate, why: str, vectors: Sequence[Any] | None) -> None:
    """The cosine of two vectors; a way between two that are the same leads nowhere."""
    if vectors is None:
        looked.unmeasured[name] = why
        return
    lengths = [float(np.linalg.norm(each)) for each in vectors]
    if min(lengths) < 1e-9:
        looked.unmeasured[name] = "image or words did not change for the model"
        return
    looked.values[name] = float(np.dot(*vectors)) / (lengths[0] * lengths[1])
    looked.unmeasured.pop(name, None)


def _limits_of(looked: Sequence[_Looked], settings: GateParameters) -> dict[Gate, Limits]:
    limits: dict[Gate, Limits] = {"brisque": Limits(None, settings.brisque, open=True)}
    ends: tuple[tuple[Gate, float, float | None], ...] = (
        ("clip_similarity", settings.clip_low, settings.clip_high),
        ("directional_similarity", settings.directional, None),
        ("text_similarity", settings.text_low, settings.text_high),
    )
    for name, low, high in ends:
        values = [each.values.get(name) for each in looked if "all_black" not in each.failed]
        cutoffs = percentile_cutoffs(values, low=low, high=100 if high is None else high)
        if cutoffs is not None:
            limits[name] = Limits(cutoffs.low, None if high is None else cutoffs.high, open=name in _OPEN)
    return limits


def _applied(looked: Sequence[_Looked]) -> tuple[Gate, ...]:
    return tuple(name for name in GATES if any(name not in each.unmeasured for each in looked))


def _decided(
    edits: EditSet, looked: Sequence[_Looked], limits: Mapping[Gate, Limits]
) -> tuple[GatedEdit, ...]:
    applied = set(_applied(looked))
    decided = []
    for files, each in zip(edits, looked, strict=True):
        outside = {
            name for name, value in each.values.items() if name in limits and not limits[name].passes(value)
        }
        failed = tuple(name for name in GATES if name in outside or name in each.failed)
        open_ = applied & each.unmeasured.keys()
        passed = False if failed else None if open_ else True
        unmeasured = {name: each.unmeasured[name] for name in GATES if name in each.unmeasured}
        decided.append(GatedEdit(files, each.values, failed, unmeasured, passed))
    return tuple(decided)
