"""What an answer that is a list of items looks like: said once for JSON, labelled text and schemas."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, TypeAdapter, create_model

T = TypeVar("T", bound=BaseModel)

# Some ten times what the longest answers list. A longer list repeats itself, or is meant to do harm.
MAX_ITEMS = 500
MAX_NAMES = 100

Kind = Literal["text", "names", "severity"]


@dataclass(frozen=True, slots=True)
class ItemField:
    """One field of an item.

    `kind` is what it holds: a string, a list of names, or a severity. `labels` are other words models use for
    it, as JSON keys or as labels in text; the field's own name always counts and needs no entry. Labels are
    compared by their letters and digits alone, in any case.
    """

    name: str
    kind: Kind = "text"
    labels: tuple[str, ...] = ()
    required: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class ListForm(Generic[T]):
    """A JSON object with one key that holds a list of `MAX_ITEMS` items at most; made by `make_form`.

    `fields` are in the order in which models are to write them. `title` names the field that an unlabelled
    heading gives (`1. Extra finger`), None where a heading says nothing certain. `nouns` are the words for
    the items in answers such as "no anomalies found". `item` validates one item, `answer` and `wrapped` a
    whole JSON answer, bare or as `{"answer": …}`; they are built once, since that costs milliseconds.
    """

    key: str
    model: type[T]
    fields: tuple[ItemField, ...]
    nouns: tuple[str, ...]
    title: str | None
    item: TypeAdapter[T] = field(repr=False)
    answer: TypeAdapter[Any] = field(repr=False)
    wrapped: TypeAdapter[Any] = field(repr=False)
    by_label: dict[str, ItemField] = field(repr=False)


def make_form(
    key: str,
    model: type[T],
    fields: tuple[ItemField, ...],
    *,
    nouns: tuple[str, ...] = (),
    title: str | None = None,
    check: Callable[[T], T] | None = None,
) -> ListForm[T]:
    """Build a form. `check` tightens what `model` alone lets pass; it raises ValueError.

    Two fields must not share a label: ValueError.
    """
    checked: Any = Annotated[model, AfterValidator(check)] if check else model
    items: Any = Annotated[tuple[checked, ...], Field(max_length=MAX_ITEMS)]
    answer = create_model(f"{model.__name__}Answer", **{key: (items, ...)})  # type: ignore[call-overload]
    wrapped = create_model(f"{model.__name__}Wrapped", answer=(answer, ...))
    by_label: dict[str, ItemField] = {}
    for one in fields:
        for label in (one.name, *one.labels):
            if by_label.setdefault(label_key(label), one) is not one:
                raise ValueError(f"label {label!r} of field {one.name!r} belongs to another field too")
    return ListForm(
        key=key,
        model=model,
        fields=fields,
        nouns=nouns or (key,),
        title=title,
        item=TypeAdapter(checked),
        answer=TypeAdapter(answer),
        wrapped=TypeAdapter(wrapped),
        by_label=by_label,
    )


_PARENTHESES = re.compile(r"[(（][^()（）]*[)）]")
_NOT_WORD = re.compile(r"[\W_]+")


def label_key(label: str) -> str:
    """A label reduced to what tells it from others: `Severity Score (0-100)` and `severity_score` are one."""
    return _NOT_WORD.sub(" ", _PARENTHESES.sub(" ", label)).strip().casefold()
