"""Which edits are fit for use: the quality gates of Semi-Truths, section 3.2 and appendix B.

Percentile gates are over the edits given that are not all black; their ends are part of the result, and can
be given in place of the set's own. A gate that could not be measured is neither passed nor failed, and is
counted; of a pair that cannot be read, or whose sizes differ, nothing is decided, whatever its words are.

BRISQUE comes from a column of the records, or from OpenCV's contributed module with its model files in a
folder: other packages fetch theirs, or unpickle it. How well a caption fits its image before the edit is
CLIPScore (Hessel et al., 2021, section 3), without the words "A photo depicts" ahead of the caption:
Semi-Truths does not say that it has them.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

import numpy as np
from pydantic import ValidationError

from uncanny.answers.writings import CaptionGate, TextKind, failed_caption_gates
from uncanny.errors import ImageError, UncannyError, UsageError
from uncanny.eval.common.tables.table import Column, Table
from uncanny.eval.edits.columns import (
    EditsResult,
    check_suffix,
    counted_reasons,
    failures,
    places_of,
    reason_words,
)
from uncanny.eval.edits.data import EditFiles, EditSet, EditSource, check_sizes, load, read_side
from uncanny.eval.edits.parameters import GateConfig, GateParameters, LoadParameters
from uncanny.eval.edits.result import EditMeasure
from uncanny.eval.metrics.edits import Pixels, percentile_cutoffs
from uncanny.files import read_json
from uncanny.parameters import takes
from uncanny.runs.display import counting_to
from uncanny.wording import counted, shown

if TYPE_CHECKING:
    from uncanny.eval.common.similarity.clip import Clip, Embedding
    from uncanny.eval.edits.perceptual import Brisque

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


_TEXT_GATES: Final[Mapping[CaptionGate, Gate]] = {
    "empty": "text_empty",
    "length": "text_length",
    "special_characters": "special_characters",
}
_WHY: Final[Mapping[Gate, str]] = {
    **dict.fromkeys(MEASURED, "no CLIP model is given and the records have no such column"),
    "brisque": "no model of BRISQUE is given and the records have no column brisque",
}
# CLIPScore is the cosine, from 0 on, times this.
_CLIP_SCORE: Final = 2.5


@takes(GateParameters, optional=True)
def gate(pairs: EditSource | None, parameters: GateParameters) -> GatedEdits:
    """Find the edits of a set that pass the quality gates, as `uncanny edits gate` does.

    `pairs` are as in `load`, best the file of a measured set, whose columns are kept. A number under
    `brisque`, `clip_similarity`, `directional_similarity`, `clip_score` or `text_similarity` in a record is
    taken as it is. The first is else measured with the model in the folder `brisque_model`, the others with
    the CLIP model in the folder `clip`.

    Raises what `load` raises, and UsageError for invalid parameters and a missing model.

    >>> edits = uncanny.edits.gate("scenes")
    >>> edits["d02"].failed
    ('text_length',)
    """
    target = None if parameters.out is None else Path(parameters.out)
    if target is not None:
        check_suffix(target)
    given = _given_limits(parameters.limits)
    edits = load(pairs, **parameters.part(LoadParameters).given)
    models = _Models.of(parameters)
    looked = list(_looked_at(edits, models, parameters))
    ends = {**_limits_of(looked, parameters), **given}
    result = GatedEdits(
        _decided(edits, looked, ends),
        ends,
        _applied(looked),
        parameters.part(GateConfig),
        models.described,
    )
    if target is not None:
        result.write(target)
    return result


def _given_limits(limits: object) -> dict[Gate, Limits]:
    """Raises UsageError."""
    if limits is None:
        return {}
    if isinstance(limits, str | os.PathLike):
        limits = read_json(Path(limits), remedy="Pass the JSON of a gated set.")
    content = limits.get("limits", limits) if isinstance(limits, Mapping) else limits
    try:
        assert isinstance(content, Mapping)
        given: dict[Gate, Limits] = {}
        for name, (low, high) in content.items():
            gate_name = next(each for each in MEASURED if each == name)
            given[gate_name] = Limits(_end(low), _end(high), open=gate_name in OPEN)
    except (AssertionError, TypeError, ValueError, OverflowError, StopIteration) as error:
        raise UsageError(
            f"Invalid limits: {shown(limits)}",
            remedy='Give {"clip_similarity": [0.6, 0.9]}; gates are ' + ", ".join(MEASURED) + ".",
        ) from error
    return given


def _end(value: Any) -> float | None:
    """Raises ValueError for what is no number that something can be held against."""
    end = None if value is None else float(value)
    if end is not None and math.isnan(end):
        raise ValueError("not a number")
    return end


@dataclass(frozen=True, slots=True)
class _Models:
    """What measures that records may lack; None for what was not named."""

    clip: Clip | None = None
    brisque: Brisque | None = None

    @classmethod
    def of(cls, parameters: GateParameters) -> _Models:
        """Raises UsageError."""
        clip = brisque = None
        if parameters.clip is not None:
            from uncanny.eval.common.similarity.clip import Clip

            clip = Clip(Path(parameters.clip), parameters.device)
        if parameters.brisque_model is not None:
            from uncanny.eval.edits.perceptual import Brisque

            brisque = Brisque(Path(parameters.brisque_model))
        return cls(clip, brisque)

    @property
    def described(self) -> dict[str, Any]:
        named = {"clip": self.clip, "brisque": self.brisque}
        return {name: dict(model.described) for name, model in named.items() if model is not None}


@dataclass(slots=True)
class _Looked:
    """What is known of an edit before the set is: numbers, gates that failed, gates that tell nothing."""

    values: dict[Gate, float] = field(default_factory=dict)
    failed: list[Gate] = field(default_factory=list)
    unmeasured: dict[Gate, str] = field(default_factory=dict)


def _looked_at(edits: EditSet, models: _Models, parameters: GateParameters) -> Iterator[_Looked]:
    with (
        counting_to(len(edits), "edits", enabled=parameters.progress) as count,
        ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="gates") as pool,
    ):
        found = pool.map(lambda files: _look_at(files, models, parameters), edits)
        for files, looked in zip(edits, found, strict=True):
            count(files.id)
            if parameters.on_edit is not None:
                parameters.on_edit(files)
            yield looked


def _look_at(files: EditFiles, models: _Models, settings: GateConfig) -> _Looked:
    looked = _Looked()
    columns = files.pair.model_extra or {}
    for name in MEASURED:
        value = _number(columns.get(name))
        if value is not None:
            looked.values[name] = value
    _check_texts(files, settings, looked)
    images = _images(files, looked)
    for name in MEASURED:
        if name not in looked.values:
            looked.unmeasured[name] = _WHY[name]
    if models.clip is not None:
        _compare(files, images, models.clip, looked)
    if models.brisque is not None and "brisque" not in looked.values:
        _measure_brisque(images, models.brisque, looked)
    return looked


def _measure_brisque(images: tuple[Pixels, Pixels] | None, model: Brisque, looked: _Looked) -> None:
    """Of the edited image of a pair that can be compared."""
    if images is None:
        looked.unmeasured["brisque"] = looked.unmeasured["pair"]
        return
    try:
        value = model.score(images[1])
    except Exception as error:
        looked.unmeasured["brisque"] = f"OpenCV failed ({type(error).__name__}: {error})"[:200]
        return
    if math.isfinite(value):
        looked.values["brisque"] = value
        del looked.unmeasured["brisque"]
    else:
        looked.unmeasured["brisque"] = "the image is too small or too even for BRISQUE"


def _images(files: EditFiles, looked: _Looked) -> tuple[Pixels, Pixels] | None:
    """Both images of a pair that can be compared, else None; what is wrong with them goes into `looked`."""
    try:
        edited, _ = read_side(files.edited, "edited")
    except ImageError as error:
        looked.unmeasured |= dict.fromkeys(("pair", "all_black"), error.message)
        return None
    if not edited.any():
        looked.failed.append("all_black")
    try:
        original, _ = read_side(files.original, "original")
        check_sizes(original, edited)
    except ImageError as error:
        looked.unmeasured["pair"] = error.message
        return None
    return original, edited


def _number(value: object) -> float | None:
    """A cell's number; CSV has it as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _check_texts(files: EditFiles, settings: GateConfig, looked: _Looked) -> None:
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


def _compare(files: EditFiles, images: tuple[Pixels, Pixels] | None, clip: Clip, looked: _Looked) -> None:
    """Fills in what the records do not have, by CLIP."""
    wanted = [name for name in MEASURED[1:] if name not in looked.values]
    if not wanted:
        return
    pair, texts = files.pair, files.pair.texts
    try:
        words = None if texts is None else [clip.text(each) for each in texts]
        _fill(looked, "text_similarity", "no words for both sides", words)
        if images is None:
            raise ImageError(looked.unmeasured["pair"], kind="unsupported")
        original, edited = (clip.image(each) for each in images)
        _fill(looked, "clip_similarity", "", [original, edited])
        ways = None if words is None else [original - edited, words[0] - words[1]]
        _fill(looked, "directional_similarity", "no words for both sides", ways)
        caption = None if pair.caption is None else [original, clip.text(pair.caption)]
        _fill(looked, "clip_score", "there is no caption of the original", caption)
    except UncannyError as error:
        looked.unmeasured |= {name: error.message for name in wanted if name not in looked.values}
    except Exception as error:
        why = f"the model failed ({type(error).__name__}: {error})"[:200]
        looked.unmeasured |= {name: why for name in wanted if name not in looked.values}


def _fill(looked: _Looked, name: Gate, why: str, vectors: Sequence[Embedding] | None) -> None:
    """The cosine of two vectors, unless the record had a value; a way between two that are the same leads
    nowhere."""
    if name in looked.values:
        return
    if vectors is None:
        looked.unmeasured[name] = why
        return
    lengths = [float(np.linalg.norm(each)) for each in vectors]
    if min(lengths) < 1e-9:
        looked.unmeasured[name] = "image or words did not change for the model"
        return
    cosine = float(np.dot(*vectors)) / (lengths[0] * lengths[1])
    looked.values[name] = _CLIP_SCORE * max(cosine, 0.0) if name == "clip_score" else cosine
    looked.unmeasured.pop(name, None)


def _limits_of(looked: Sequence[_Looked], settings: GateConfig) -> dict[Gate, Limits]:
    limits: dict[Gate, Limits] = {"brisque": Limits(None, settings.brisque, open=True)}
    ends: tuple[tuple[Gate, float, float | None], ...] = (
        ("clip_similarity", settings.clip_low, settings.clip_high),
        ("directional_similarity", settings.directional, None),
        ("clip_score", settings.clip_score_low, None),
        ("text_similarity", settings.text_low, settings.text_high),
    )
    for name, low, high in ends:
        values = [each.values.get(name) for each in looked if "all_black" not in each.failed]
        cutoffs = percentile_cutoffs(values, low=low, high=100 if high is None else high)
        if cutoffs is not None:
            limits[name] = Limits(cutoffs.low, None if high is None else cutoffs.high, open=name in OPEN)
    return limits


def _applied(looked: Sequence[_Looked]) -> tuple[Gate, ...]:
    """Those measured of at least one edit. That a pair cannot be looked at is never left out."""
    return tuple(
        name for name in GATES if name == "pair" or any(name not in each.unmeasured for each in looked)
    )


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
