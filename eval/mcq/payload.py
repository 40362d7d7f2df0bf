"""The raw annotation payload: what an annotator's tool stores about one image.

Source: SalArt-VQA, appendix D.2. Only A–D are authored; E is added when a question is asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncanny.eval.mcq.flat_row import RowFault, read_type
from uncanny.eval.mcq.items import ARTIFACT_SPLITS, Box, Item, Letter, Option, Split
from uncanny.eval.mcq.problems import ItemsError, Problem, of_validation


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class _Texts(_Part):
    ref: Letter
    options: dict[Option, str]


class _Boxes(_Part):
    ref: Letter
    candidates: dict[Option, Box] = Field(default_factory=dict)


class _Payload(_Part):
    artifact_type: str | None = None
    q1_ref: Literal["yes", "no"] | None = None
    semantic_loc: _Texts | None = None
    box: _Boxes | None = None
    evidence: _Texts | None = None


def from_payload(
    payload: Mapping[str, Any], *, id: str, image: str, split: Split, pair_id: str | None = None
) -> Item:
    """The item of one payload; parts that are absent become questions that are not asked.

    Types are understood as annotators write them, such as `count_anomaly`; references have none. Further
    keys of the payload are kept in the item. Raises ItemsError with every field that cannot be read; what
    `check_items` finds is left to it.
    """
    try:
        read = _Payload.model_validate(payload)
    except ValidationError as error:
        raise ItemsError("annotation payload", of_validation(error, item=id, line=None)) from error
    fields: dict[str, Any] = {**(read.model_extra or {}), "id": id, "image": image, "split": split}
    if pair_id is not None:
        fields["pair_id"] = pair_id
    if split in ARTIFACT_SPLITS and (read.artifact_type or "").strip():
        fields["artifact_type"] = _type(read.artifact_type or "", id)
    fields["q1"] = {"answer": read.q1_ref} if read.q1_ref else None
    fields["q2"] = _choice(read.semantic_loc)
    fields["q3"] = {"boxes": read.box.candidates, "answer": read.box.ref} if read.box else None
    fields["q4"] = _choice(read.evidence)
    try:
        return Item.model_validate(fields)
    except ValidationError as error:
        raise ItemsError("annotation payload", of_validation(error, item=id, line=None)) from error


def to_payload(item: Item) -> dict[str, Any]:
    """The payload of an item; questions that are not asked are null. Prompts and overlays have no place."""
    return {
        "artifact_type": item.artifact_type,
        "q1_ref": item.q1.answer if item.q1 else None,
        "semantic_loc": {"ref": item.q2.answer, "options": dict(item.q2.options)} if item.q2 else None,
        "box": {"ref": item.q3.answer, "candidates": _candidates(item.q3.boxes)} if item.q3 else None,
        "evidence": {"ref": item.q4.answer, "options": dict(item.q4.options)} if item.q4 else None,
    }


def _candidates(boxes: Mapping[Option, Box]) -> dict[str, list[float]]:
    return {letter: list(box) for letter, box in boxes.items()}


def _choice(part: _Texts | None) -> dict[str, Any] | None:
    return None if part is None else {"options": part.options, "answer": part.ref}


def _type(given: str, id: str) -> str:
    try:
        return read_type(given)
    except RowFault as fault:
        raise ItemsError("annotation payload", [Problem(id, fault.column, fault.message)]) from fault
