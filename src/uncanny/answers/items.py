"""Validating the items of an answer, with messages that a model can act upon."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from uncanny.answers.listform import MAX_ITEMS, MAX_NAMES, ItemField, ListForm, label_key
from uncanny.answers.severity import read_severity
from uncanny.errors import AnswerError

T = TypeVar("T", bound=BaseModel)

MAX_PROBLEMS = 3

_BLANK = " \t\r\n\x00\x0b\x0c\x85\xa0\u2028\u2029\u3000\u200b\u2060\ufeff"
_BETWEEN_NAMES = (re.compile(r"[;；\n]"), re.compile(r"[,，、]"))
_AROUND_NAME = _BLANK + "[]\"'*`•-"
_SAY = {
    "string_too_short": "is empty",
    "string_too_long": "is longer than {max_length} characters",
    "too_long": "has more than {max_length} entries",
    "too_short": "must name at least one",
    "string_type": "must be a string",
    "string_unicode": "holds characters that are not valid Unicode",
    "tuple_type": "must be a list of strings",
}


def trim(text: str) -> str:
    """`text` without white space, NULs and zero-width characters at both ends."""
    return text.strip(_BLANK).strip()


def read_items(found: Iterable[object], form: ListForm[T]) -> tuple[T, ...]:
    """Validate all of `found`, of which there may be `MAX_ITEMS`; exact duplicates count once.

    One wrong item makes the whole answer wrong, since leaving it out would lose a finding silently. Raises
    `AnswerError` that names the first `MAX_PROBLEMS` problems by item, from 1, and field.
    """
    items: dict[T, None] = {}
    problems: list[str] = []
    for number, raw in enumerate(found, start=1):
        if number > MAX_ITEMS:
            problems.insert(0, f"there are more than {MAX_ITEMS} items; list each once, {MAX_ITEMS} at most")
            break
        try:
            items[_item(raw, form)] = None
        except AnswerError as error:
            problems.append(f"item {number}: {error.message}")
            if len(problems) == MAX_PROBLEMS:
                break
    if problems:
        raise AnswerError("; ".join(problems))
    return tuple(items)


def _item(raw: object, form: ListForm[T]) -> T:
    if not isinstance(raw, Mapping):
        raise AnswerError("is not an object with the fields " + ", ".join(each.name for each in form.fields))
    given = _by_field(raw, form)
    values: dict[str, Any] = {}
    missing = [each.name for each in form.fields if each.required and given.get(each.name) is None]
    if missing:
        raise AnswerError(f"{missing[0]} is missing" if len(missing) == 1 else _all(missing) + " are missing")
    for each in form.fields:
        if given.get(each.name) is not None:
            values[each.name] = _value(given[each.name], each)
    try:
        return form.item.validate_python(values, extra="ignore")
    except ValidationError as error:
        raise AnswerError(_said(error)) from None


def _by_field(raw: Mapping[Any, object], form: ListForm[T]) -> dict[str, object]:
    """The values under the fields' own names; a field's own name goes before its other labels."""
    given: dict[str, object] = {each.name: raw[each.name] for each in form.fields if each.name in raw}
    for key, value in raw.items():
        field = form.by_label.get(label_key(str(key)))
        if field is not None:
            given.setdefault(field.name, value)
    return given


def _value(value: object, field: ItemField) -> object:
    if field.kind == "severity":
        return read_severity(value)
    if field.kind == "names":
        return _names(value, field)
    if not isinstance(value, str):
        raise AnswerError(f"{field.name} must be a string")
    text = trim(value)
    if field.required and not text:
        raise AnswerError(f"{field.name} is empty")
    return text


def _names(value: object, field: ItemField) -> tuple[str, ...]:
    if isinstance(value, str):
        between = next((each for each in _BETWEEN_NAMES if each.search(trim(value))), None)
        parts = [part.strip(_AROUND_NAME) for part in (between.split(value) if between else [value])]
    elif isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        parts = [trim(each) for each in value]
    else:
        raise AnswerError(f"{field.name} must be a list of strings")
    names = tuple(dict.fromkeys(part for part in parts if part))
    if len(names) > MAX_NAMES:
        raise AnswerError(f"{field.name} names more than {MAX_NAMES}")
    return names


def _all(names: list[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1]


def _said(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    field = str(first["loc"][0]) if first["loc"] else "it"
    reason = _SAY.get(first["type"], first["msg"]).format(**first.get("ctx", {}))
    return f"{field} {reason}"[:150]
