"""Predictions as the release has them, one line an image, read as answers and written from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncanny.errors import UsageError
from uncanny.eval.mcq.items import QUESTIONS, Answer, AnswerForm, Item, Question
from uncanny.eval.mcq.letters import read_choice
from uncanny.eval.mcq.problems import ItemsError, Problem, of_validation
from uncanny.records.jsonl import write_atomically


class _Line(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)

    row_id: str = Field(min_length=1)
    q1: str | None = None
    q2: str | None = None
    q3: str | None = None
    q4: str | None = None
    raw: Any = None


def load_predictions(path: Path, *, model: str) -> tuple[Answer, ...]:
    """The answers of one model, image by image in order of first appearance.

    Of several lines about one image the last stands: runs that were taken up again append. A question that
    is null or absent has no answer, unless the line keeps the model's words for it under `raw`. Raises
    ItemsError with every invalid line, UsageError for a file that cannot be read.
    """
    lines: dict[str, _Line] = {}
    problems: list[Problem] = []
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if line.strip():
                    try:
                        read = _Line.model_validate_json(line)
                        lines[read.row_id] = read
                    except ValidationError as error:
                        problems += of_validation(error, item=None, line=number)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct these lines; nothing was read.")
    return tuple(answer for line in lines.values() for answer in _answers(line, model))


def write_predictions(answers: Iterable[Answer], path: Path, *, items: Sequence[Item] = ()) -> None:
    """Write one model's answers, one line an image, in the items' order or else the answers'.

    What stands there is what an answer says by the exact rule, null where it says nothing or there is none.
    `items` tell in which form answers were asked for; without them it is the letter. Questions that an item
    is not asked are left out, and so is the control without the image. Raises UsageError where the answers
    are of several models.
    """
    forms: dict[str, AnswerForm] = {item.id: item.answer_form for item in items}
    said: dict[str, dict[str, str | None]] = {item.id: dict.fromkeys(item.asked()) for item in items}
    models: set[str] = set()
    for answer in answers:
        models.add(answer.model)
        question = next((known for known in QUESTIONS if known == answer.question), None)
        if question is not None:
            choice = read_choice(answer.raw, question, forms.get(answer.id, "letter")).choice
            line = said.setdefault(answer.id, {})
            line[question] = choice or line.get(question)
    if len(models) > 1:
        raise UsageError(
            f"predictions of {len(models)} models: {', '.join(sorted(models))}",
            remedy="Write a file for each; its lines do not say whose they are.",
        )
    write_atomically(path, (_dump(row_id, line) for row_id, line in said.items()))


def _dump(row_id: str, line: dict[str, str | None]) -> bytes:
    ordered = {question: line[question] for question in QUESTIONS if question in line}
    return orjson.dumps({"row_id": row_id, **ordered}) + b"\n"


def _answers(line: _Line, model: str) -> Iterable[Answer]:
    for question in QUESTIONS:
        said: str | None = getattr(line, question)
        if said is None:
            said = _words(line.raw, question)
        if said is not None:
            yield Answer(id=line.row_id, question=question, raw=said, model=model)


def _words(raw: Any, question: Question) -> str | None:
    """What the model said where that could not be read; a failed call has no words."""
    held = raw.get(question) if isinstance(raw, dict) else None
    if not isinstance(held, dict) or "error" in held:
        return None
    words = held.get("text")
    return words if isinstance(words, str) else None
