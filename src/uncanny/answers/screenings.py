"""What a model says of a candidate pair: a label, and in a few words why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

from uncanny.answers.json_text import excerpt, json_values, without_thinking
from uncanny.errors import AnswerError
from uncanny.schema import KINDS, Kind

Label = Literal["artifact", "clean", "unclear"]
LABELS: Final[tuple[Label, ...]] = get_args(Label)
KEYS: Final = ("label", "kind", "where", "evidence", "reason")
MOST_CHARACTERS: Final = 500

_ANSWER: Final[Mapping[str, Any]] = {
    **{name: {"type": "string"} for name in KEYS},
    "label": {"type": "string", "enum": list(LABELS)},
    "kind": {"type": "string", "enum": [*KINDS, "other"]},
}


def screening_schema() -> dict[str, Any]:
    """The JSON schema of an answer."""
    inner = {
        "type": "object",
        "properties": dict(_ANSWER),
        "required": list(KEYS),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"answer": inner},
        "required": ["answer"],
        "additionalProperties": False,
    }


class Screening(NamedTuple):
    """A label with its reason. `kind` is None for a fault of no kind, and without one; texts may be empty,
    but `evidence` and `where` of an artifact, and `reason`, are not."""

    label: Label
    kind: Kind | None
    where: str
    evidence: str
    reason: str


def read_screening(text: str) -> Screening:
    """The last JSON object of an answer. Raises AnswerError, which can be shown to the model."""
    objects = [value for value, _, _ in json_values(without_thinking(text)) if isinstance(value, dict)]
    if not objects:
        raise AnswerError("there is no JSON object in it")
    given = objects[-1].get("answer", objects[-1])
    if not isinstance(given, dict):
        raise AnswerError('"answer" must be an object')
    label = str(given.get("label", "")).strip().lower()
    chosen = next((each for each in LABELS if each == label), None)
    if chosen is None:
        raise AnswerError(f"label {excerpt(label, 30)} is none of {', '.join(LABELS)}")
    kind = str(given.get("kind", "")).strip().lower()
    texts = {name: _text(given, name) for name in ("where", "evidence", "reason")}
    needed = ("where", "evidence", "reason") if chosen == "artifact" else ("reason",)
    for name in needed:
        if not texts[name]:
            raise AnswerError(f"{name} is missing")
    is_fault = chosen != "clean"
    return Screening(chosen, next((each for each in KINDS if is_fault and each == kind), None), **texts)


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise AnswerError(f"{name} must be text")
    text = " ".join((value or "").split())
    if len(text) > MOST_CHARACTERS:
        raise AnswerError(f"{name} has more than {MOST_CHARACTERS} characters")
    return text
