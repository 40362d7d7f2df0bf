"""From the text of an answer to a list of validated items, or to one error that a model can act upon.

`read_list` finds the items, `read_items` validates them; their numbers are read in `scores`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Generic, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from uncanny.answers.boxes import given_box
from uncanny.answers.forms import MAX_ITEMS, MAX_NAMES, ItemField, ListForm, label_key
from uncanny.answers.json_text import check_length, excerpt, json_values, opening, without_thinking
from uncanny.answers.labelled_text import has_labels, labelled_items, says_nothing
from uncanny.answers.scores import read_confidence, read_severity
from uncanny.errors import AnswerError, writable

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

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
    exact = _exact(text, form) if form.plain else None
    if exact is not None:
        return exact
    with short_errors():
        return read_items(_raw_items(_readable(text), form), form)


@dataclass(frozen=True, slots=True)
class FirstItems(Generic[R]):
    """The first `MAX_ITEMS` items of an answer, and how many more it has."""

    items: tuple[R, ...]
    left_out: int = 0


def read_first(text: str, form: ListForm[T]) -> FirstItems[T]:
    """As `read_list`, but for a list longer than `MAX_ITEMS`: of that it is the beginning.

    What comes after is not even validated.
    """
    check_length(text)
    exact = _exact(text, form) if form.plain else None
    if exact is not None:
        return FirstItems(exact)
    with short_errors():
        raw = iter(_raw_items(_readable(text), form))
        items = read_items(islice(raw, MAX_ITEMS), form)
        return FirstItems(items, sum(1 for _ in raw))


@dataclass(frozen=True, slots=True)
class InvalidItem:
    """An item, counted from 1, that did not validate: as it came, and why."""

    number: int
    raw: object
    message: str

    @property
    def problem(self) -> str:
        """For the model, with the item it is about."""
        return f"item {self.number}: {self.message}"


def read_each(text: str, form: ListForm[T]) -> FirstItems[T | InvalidItem]:
    """As `read_first`, with the items that do not validate among the others, in the answer's order.

    Raises `AnswerError` where the answer as a whole is none.
    """
    check_length(text)
    items: list[T | InvalidItem] = []
    with short_errors():
        raw_items = iter(_raw_items(_readable(text), form))
        for number, raw in enumerate(islice(raw_items, MAX_ITEMS), start=1):
            try:
                items.append(_item(raw, form))
            except AnswerError as error:
                items.append(InvalidItem(number, raw, error.message))
        return FirstItems(tuple(items), sum(1 for _ in raw_items))


def values_of(raw: object, form: ListForm[Any], name: str) -> object:
    """What an item that did not validate has for one field; None where it has nothing."""
    return _by_field(raw, form).get(name) if isinstance(raw, Mapping) else None


@contextmanager
def short_errors() -> Iterator[None]:
    """Cuts what an `AnswerError` says to what can be sent back to a model."""
    try:
        yield
    except AnswerError as error:
        if len(error.message) <= MAX_MESSAGE:
            raise
        raise AnswerError(error.message[: MAX_MESSAGE - 1] + "…") from None


def _readable(text: str) -> str:
    return _decoded(without_thinking(text.encode("utf-8", "replace").decode()))


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
    """What is inside a JSON string, or `{"answer": "…"}`, as some servers and models wrap it; else `text`."""
    text = trim(text)
    if not text.startswith(('"{', '{"')):
        return text
    try:
        inner = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    if isinstance(inner, dict):
        inner = inner.get("answer") if len(inner) == 1 else None
    return trim(inner) if isinstance(inner, str) else text


def _raw_items(text: str, form: ListForm[Any]) -> Iterable[object]:
    if not text:
        raise AnswerError(f'the answer is empty; expected a JSON object with the key "{form.key}"')
    if says_nothing(text, form):
        return []
    first = opening(text)
    try:
        items = _from_json(text, form)
    except AnswerError:
        # Labelled text may quote a piece of code; JSON that comes first may not be given up for it.
        if first is None or not has_labels(text[:first], form):
            raise
        items = None
    return _from_labels(text, form) if items is None else items


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


MAX_PROBLEMS = 3

_BLANK = " \t\r\n\x00\x0b\x0c\x85\xa0\u2028\u2029\u3000\u200b\u2060\ufeff"
_BETWEEN_NAMES = (re.compile(r"[;；\n]"), re.compile(r"[,，、]"))
_AROUND_NAME = _BLANK + "[]\"'*`•-"
_MESSAGES = {
    "string_too_short": "is empty",
    "string_too_long": "is longer than {max_length} characters",
    "too_long": "has more than {max_length} entries",
    "too_short": "must name at least one",
    "string_type": "must be a string",
    "string_unicode": "contains characters that are not valid Unicode",
    "tuple_type": "must be a list of strings",
}


def trim(text: str) -> str:
    """`text` without white space, NULs and zero-width characters at both ends."""
    return text.strip(_BLANK).strip()


def read_items(raw_items: Iterable[object], form: ListForm[T]) -> tuple[T, ...]:
    """Validate all of `raw_items`, of which there may be `MAX_ITEMS`; exact duplicates count once.

    One wrong item makes the whole answer wrong, since leaving it out would lose a finding silently. Raises
    `AnswerError` that names the first `MAX_PROBLEMS` problems by item, from 1, and field.
    """
    items: dict[T, None] = {}
    problems: list[str] = []
    for number, raw in enumerate(raw_items, start=1):
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
    if not isinstance(raw, dict):  # as JSON and labelled text have them
        raise AnswerError(
            "is not an object with the fields " + ", ".join(each.asked_as for each in form.fields)
        )
    by_field = _by_field(raw, form)
    values: dict[str, Any] = {}
    missing = [each.asked_as for each in form.fields if each.required and by_field.get(each.name) is None]
    if missing:
        raise AnswerError(f"{missing[0]} is missing" if len(missing) == 1 else _all(missing) + " are missing")
    for each in form.fields:
        if by_field.get(each.name) is not None:
            values[each.name] = _value(by_field[each.name], each)
    try:
        return form.item.validate_python(values, extra="ignore")
    except ValidationError as error:
        raise AnswerError(_validation_message(error)) from None


def _by_field(raw: Mapping[Any, object], form: ListForm[T]) -> dict[str, object]:
    """The values under the fields' own names; a field's own name goes before its other labels."""
    values: dict[str, object] = {
        each.name: raw[each.name] for each in form.fields if each.name in raw and each.kind != "box"
    }
    for key, value in raw.items():
        field = form.by_label.get(key) or form.by_label.get(label_key(str(key)))
        if field is None:
            continue
        if field.kind == "box":  # the key it stands under says in which order its numbers are
            box = given_box(value, label_key(str(key)).replace(" ", "_"))
            if values.get(field.name) is None:
                values[field.name] = box
        else:
            values.setdefault(field.name, value)
    return values


def _value(value: object, field: ItemField) -> object:
    match field.kind:
        case "text":
            pass
        case "severity":
            return read_severity(value, field.asked_as)
        case "confidence":
            return read_confidence(value)
        case "names":
            return _names(value, field)
        case "ids":
            return _names(_as_text(value), field)
        case "number":
            return _number(value, field)
        case "numbers":
            return read_numbers(value, field.asked_as)
        case "choice":
            return _choice(value, field)
        case "box":
            return value
    if not isinstance(value, str):
        raise AnswerError(f"{field.name} must be a string")
    text = _whole(trim(value), field)
    if field.required and not text:
        raise AnswerError(f"{field.name} is empty")
    return text


def _whole(text: str, field: ItemField) -> str:
    """The text. Raises AnswerError for half a character, a lone surrogate, which no file takes."""
    if writable(text) != text:
        raise AnswerError(f"{field.name} has half a character (a lone surrogate)")
    return text


def _names(value: object, field: ItemField) -> tuple[str, ...]:
    if isinstance(value, str):
        between = next((each for each in _BETWEEN_NAMES if each.search(trim(value))), None)
        parts = [part.strip(_AROUND_NAME) for part in (between.split(value) if between else [value])]
    elif isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        parts = [trim(each) for each in value]
    else:
        raise AnswerError(f"{field.name} must be a list of strings")
    names = tuple(dict.fromkeys(_whole(part, field) for part in parts if part))
    if len(names) > MAX_NAMES:
        raise AnswerError(f"{field.name} names more than {MAX_NAMES}")
    return names


def _as_text(value: object) -> object:
    """Whole numbers as text, in a list as well; anything else as it is."""
    if isinstance(value, list | tuple):
        return [_as_text(each) if not isinstance(each, list | tuple) else each for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < _BEYOND:
        return str(int(value))
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _BEYOND:
        return str(value)
    return value


# `3`, `#3`, `No. 3`, `finding 3`, `id: 3`, and with its name: `3. cup`, `3 (cup)`, `3 - cup`; not `3-5`,
# `3 cups` or `3-legged`.
_COUNTED = re.compile(
    r"(?:[a-z]{1,12}[.:=]?\s?)?#?\s?(\d{1,6})(?:\.|(?:\s?[.:)(]\s?|\s[\u2013-]\s)[^\d\s]\D{0,200})?",
    re.IGNORECASE,
)
_BEYOND = 1e9
_BETWEEN_NUMBERS = re.compile(r"[\s,;，、]+|\band\b|&|\+")
_AROUND_NUMBERS = _BLANK + "[](){}\"'*`"
_MOST_NUMBERS = 10_000


def read_numbers(value: object, name: str = "ids") -> tuple[int, ...]:
    """The whole numbers in `value`, each once, in their order: a list of them, one alone, or text.

    Raises `AnswerError` for anything else, and for none.
    """
    parts: Iterable[object]
    if isinstance(value, str):
        text = value.strip(_AROUND_NUMBERS)[:_MOST_NUMBERS]
        parts = (
            [text] if _COUNTED.fullmatch(text) else [each for each in _BETWEEN_NUMBERS.split(text) if each]
        )
    else:
        parts = value if isinstance(value, list | tuple) else (value,)
    numbers: dict[int, None] = {}
    for part in parts:
        if isinstance(part, str) and (match := _COUNTED.fullmatch(part.strip(_AROUND_NUMBERS))):
            numbers[int(match[1])] = None
        elif isinstance(part, float) and part.is_integer() and abs(part) < _BEYOND:
            numbers[int(part)] = None
        elif isinstance(part, int) and not isinstance(part, bool) and abs(part) < _BEYOND:
            numbers[part] = None
        else:
            raise AnswerError(f"{name} must be a list of whole numbers")
    if not numbers:
        raise AnswerError(f"{name} is empty")
    return tuple(numbers)


def _number(value: object, field: ItemField) -> int:
    try:
        (number,) = read_numbers(value, field.asked_as)
    except (AnswerError, ValueError):  # of more than one
        raise AnswerError(f"{field.asked_as} must be one whole number") from None
    return number


def _choice(value: object, field: ItemField) -> str | None:
    word = trim(value).strip("*_`\"'.").casefold() if isinstance(value, str) else ""
    if word in field.choices:
        return field.choices[word]
    if not field.required:
        return None
    raise AnswerError(f"{field.asked_as} must be {_all([*field.offered], 'or')}")


def _all(names: list[str], last: str = "and") -> str:
    return ", ".join(names[:-1]) + f" {last} " + names[-1]


def _validation_message(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["type"] == "value_error":  # of a form's own check, which says it in full
        return str(first["ctx"]["error"])[:150]
    field = str(first["loc"][0]) if first["loc"] else "it"
    reason = _MESSAGES.get(first["type"], first["msg"]).format(**first.get("ctx", {}))
    return f"{field} {reason}"[:150]
