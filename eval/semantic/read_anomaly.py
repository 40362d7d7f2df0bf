"""Anomalies as other tools write them: objects with the fields under many names, or a model's plain text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict

from uncanny.answers import ANOMALIES, ListForm, make_form, read_list, read_severity
from uncanny.answers.forms import Kind, label_key
from uncanny.errors import AnswerError
from uncanny.eval.mcq.problems import shown
from uncanny.eval.semantic.scored_image import ScoredAnomaly

_TEXTS = ("name", "phenomenon", "reasoning")
# Released files keep the mark of the answer in the name: `@1. Name: Floating book`.
_MARK = re.compile(r"^@\d{1,4}[.:)]?\s*(?:name\s*:)?\s*", re.IGNORECASE)


def known_severity(value: object) -> int | None:
    """The severity that words say, None where they say none."""
    try:
        return read_severity(value)
    except AnswerError:
        return None


def is_unicode(text: str) -> bool:
    """False where half a surrogate pair is in it, which no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class _TextAnomaly(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    phenomenon: str
    reasoning: str
    severity: Annotated[int | None, BeforeValidator(known_severity)] = None


def _form(kind: Kind) -> ListForm[_TextAnomaly]:
    fields = tuple(
        replace(each, kind=kind, required=False) if each.name == "severity" else each
        for each in ANOMALIES.fields
        if each.name != "objects"
    )
    return make_form("anomalies", _TextAnomaly, fields, nouns=ANOMALIES.nouns, title="name")


# A score is read without its severity where that says nothing: it only ranks.
_FORMS = (_form("severity"), _form("text"))


@dataclass(slots=True)
class Allowances:
    """What was read although it is not as it should be."""

    blank_texts: int = 0
    unread_severities: int = 0
    unread_answers: list[str] = field(default_factory=list)


class FieldError(Exception):
    """A value that cannot be read; `field` is its path within the record."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field, self.message = field, message


def read_objects(items: list[Any], where: str, allowed: Allowances) -> Iterator[ScoredAnomaly | FieldError]:
    """Every item as an anomaly or as what is wrong with it; `where` is the path of the list."""
    for number, item in enumerate(items):
        path = f"{where}.{number}" if where else str(number)
        try:
            yield _object(item, path, allowed)
        except FieldError as error:
            yield error


def read_text(text: str, allowed: Allowances) -> tuple[ScoredAnomaly, ...]:
    """The anomalies of a model's answer. Raises AnswerError where it is no list of anomalies."""
    try:
        found = read_list(text, _FORMS[0])
    except AnswerError:
        found = read_list(text, _FORMS[1])
        allowed.unread_severities += sum(item.severity is None for item in found)
    return tuple(_counted(ScoredAnomaly(**item.model_dump()), allowed) for item in found)


def _object(item: object, path: str, allowed: Allowances) -> ScoredAnomaly:
    if not isinstance(item, Mapping):
        raise FieldError(path, f"must be an object with phenomenon and reasoning, not {shown(item)}")
    values: dict[str, Any] = {}
    for key, value in item.items():
        known = ANOMALIES.by_label.get(label_key(str(key)))
        if known is not None and (known.name not in values or key == known.name):
            values[known.name] = value
    if "phenomenon" not in values and "reasoning" not in values:
        raise FieldError(
            path, f"has neither phenomenon nor reasoning, only {shown(', '.join(map(str, item)))}"
        )
    texts = {name: _text(values.get(name), f"{path}.{name}") for name in _TEXTS}
    texts["name"] = _MARK.sub("", texts["name"])
    severity = _severity(values.get("severity"), f"{path}.severity", allowed)
    return _counted(ScoredAnomaly(**texts, severity=severity), allowed)


def _text(value: object, path: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise FieldError(path, f"must be a string, not {shown(value)}")
    if not is_unicode(value):
        raise FieldError(path, "holds characters that are not valid Unicode")
    return value.strip()


def _severity(value: object, path: str, allowed: Allowances) -> int | None:
    if value is None:
        return None
    if isinstance(value, str):
        found = known_severity(value)
        allowed.unread_severities += found is None
        return found
    try:
        return read_severity(value)
    except AnswerError as error:
        raise FieldError(path, error.message) from None


def _counted(anomaly: ScoredAnomaly, allowed: Allowances) -> ScoredAnomaly:
    allowed.blank_texts += (not anomaly.phenomenon.strip()) + (not anomaly.reasoning.strip())
    return anomaly
