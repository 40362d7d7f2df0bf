"""From the text of an answer to validated items."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from uncanny.answers.listform import ListForm
from uncanny.errors import AnswerError

T = TypeVar("T", bound=BaseModel)


def read_list(text: str, form: ListForm[T]) -> tuple[T, ...]:
    """The items `text` gives, in its order, exact duplicates once; empty where it says that there are none.

    Raises `AnswerError`.
    """
    items = _exact(text, form)
    if items is None:
        raise AnswerError(f'expected a JSON object with the key "{form.key}" that holds a list')
    return items


def _exact(text: str, form: ListForm[T]) -> tuple[T, ...] | None:
    try:
        if '"answer"' in text[:32]:
            items = getattr(form.wrapped.validate_json(text, extra="ignore").answer, form.key)
        else:
            items = getattr(form.answer.validate_json(text, extra="ignore"), form.key)
    except (ValidationError, UnicodeError):
        return None
    return tuple(dict.fromkeys(items)) if len(items) > 1 else tuple(items)
