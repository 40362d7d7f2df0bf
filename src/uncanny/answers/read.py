"""From the text of an answer to validated items."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from uncanny.answers.excerpt import excerpt
from uncanny.answers.items import read_items, trim
from uncanny.answers.jsontext import check_length, json_values, opening, without_thinking
from uncanny.answers.listform import ListForm, label_key
from uncanny.answers.nothing import says_nothing
from uncanny.answers.textform import has_labels, labelled_items
from uncanny.errors import AnswerError

T = TypeVar("T", bound=BaseModel)

MAX_MESSAGE = 600
_MISSING = object()


def read_list(text: str, form: ListForm[T]) -> tuple[T, ...]:
    """The items `text` gives, in its order, exact duplicates once; empty where it says that there are none.

    Takes the JSON object that was asked for, also as `{"answer": …}`, in code fences or in prose, a bare
    list of items, and items as labelled text (`@1. Name: … Severity Score: 20`). Of several JSON objects with
    the asked key, the last counts: what comes before is a draft. JSON goes before labelled text.

    All or nothing: an answer that is cut off, has an invalid item, or is not clearly an answer raises
    `AnswerError`, and nothing else is ever raised. Its message is at most 600 characters and names item and
    field, so that it can be sent back to the model.
    """
    check_length(text)
    exact = _exact(text, form)
    if exact is not None:
        return exact
    try:
        whole = text.encode("utf-8", "replace").decode()
        return read_items(_found(_decoded(without_thinking(whole)), form), form)
    except AnswerError as error:
        if len(error.message) <= MAX_MESSAGE:
            raise
        raise AnswerError(error.message[: MAX_MESSAGE - 1] + "…") from None


def _exact(text: str, form: ListForm[T]) -> tuple[T, ...] | None:
    """The usual case, a valid JSON answer and nothing else, in one pass."""
    if text.count(f'"{form.key}"') > 1:
        return None  # the key may be there twice, of which this parser would drop one in silence
    try:
        if '"answer"' in text[:32]:
            items = getattr(form.wrapped.validate_json(text, extra="ignore").answer, form.key)
        else:
            items = getattr(form.answer.validate_json(text, extra="ignore"), form.key)
    except (ValidationError, UnicodeError):
        return None
    return tuple(dict.fromkeys(items)) if len(items) > 1 else tuple(items)


def _decoded(text: str) -> str:
    """The JSON inside a JSON string, which is what some servers send; else `text` itself."""
    text = trim(text)
    if not text.startswith('"{'):
        return text
    try:
        inner = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return str(inner)


def _found(text: str, form: ListForm[Any]) -> Iterable[object]:
    if not text:
        raise AnswerError(f'the answer is empty; expected a JSON object with the key "{form.key}"')
    if says_nothing(text, form):
        return []
    first = opening(text)
    try:
        found = _from_json(text, form)
    except AnswerError:
        # Labelled text may quote a piece of code; JSON that comes first may not be given up for it.
        if first is None or not has_labels(text[:first], form):
            raise
        found = None
    if found is None:
        return _from_labels(text, form)
    return found


def _from_labels(text: str, form: ListForm[Any]) -> Iterable[object]:
    items = labelled_items(text, form)
    first = next(items, None)
    if first is None:
        raise AnswerError(
            f'expected a JSON object with the key "{form.key}" that holds a list; '
            f"the answer starts with {excerpt(text)}"
        )
    return chain((first,), items)


def _from_json(text: str, form: ListForm[Any]) -> list[Any] | None:
    """The list in the last JSON value that has one; None where `text` has no JSON.

    A bare list must not be empty: `[]` in prose may mean anything.
    """
    keyed: list[Any] | None = None
    bare: list[Any] | None = None
    seen = False
    for value, start, end in json_values(text):
        seen = seen or bool(value) or end - start == len(text)
        if isinstance(value, dict) and (inner := _under_key(value, "answer")) is not _MISSING:
            value = inner
        if isinstance(value, dict) and (under := _under_key(value, form.key)) is not _MISSING:
            keyed = _list(under, form)
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            bare = value
    if keyed is None and bare is None and seen:
        raise AnswerError(f'the JSON has no list under the key "{form.key}"')
    return bare if keyed is None else keyed


def _under_key(value: dict[Any, Any], key: str) -> Any:
    if key in value:
        return value[key]
    return next((each for name, each in value.items() if label_key(str(name)) == key), _MISSING)


def _list(value: object, form: ListForm[Any]) -> list[Any]:
    if not isinstance(value, list):
        raise AnswerError(f'"{form.key}" must hold a list')
    return value
