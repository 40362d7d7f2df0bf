"""Item and answer files: read whole, or refused with everything that is wrong with them.

Predictions as the release has them, one line an image, read as answers and written from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from uncanny.errors import UsageError
from uncanny.eval.common.problems import ItemsError, Problem, of_validation, parse_records, shown
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, AnswerForm, Item, Question
from uncanny.eval.mcq.score.answers import read_choice
from uncanny.records.jsonl import write_atomically


def load_items(path: Path, *, root: Path | None = None) -> tuple[Item, ...]:
    """All items of a JSON Lines file, in its order; ids are unique. Images are not looked at.

    Raises ItemsError with every invalid line and repeated id, UsageError for a file that cannot be read or
    holds no items, or a `root` that is no folder.
    """
    if root is not None and not root.is_dir():
        raise UsageError(f"{root} is no folder", remedy="Give the folder that the items' paths start from.")
    items, problems = parse_items(path)
    repeated = list(_repeated_ids(items))
    if problems or repeated:
        found = sorted(problems + repeated, key=lambda problem: problem.line or 0)
        raise ItemsError(str(path), found, remedy="Correct these lines; nothing was started.")
    if not items:
        raise UsageError(f"{path} holds no items", remedy="Give a JSON Lines file with one item a line.")
    return tuple(item for _, item in items)


def parse_items(path: Path) -> tuple[list[tuple[int, Item]], list[Problem]]:
    """The valid lines with their numbers, and what is wrong with the others. Raises UsageError."""
    return parse_records(path, Item)


def image_path(item: Item, items_file: Path, root: Path | None = None) -> Path:
    """Where the item's image is: relative to `root`, or else to the folder of the item file."""
    return (root if root is not None else items_file.parent) / item.image


def overlay_path(item: Item, items_file: Path, root: Path | None = None) -> Path | None:
    """Where the stored Q3 image is; None where the item has none and it is to be drawn."""
    if item.overlay is None:
        return None
    return (root if root is not None else items_file.parent) / item.overlay


def item_files(items: Iterable[Item], items_file: Path, root: Path | None = None) -> Iterator[Path]:
    """All images and stored overlays of a set."""
    for item in items:
        yield image_path(item, items_file, root)
        if (overlay := overlay_path(item, items_file, root)) is not None:
            yield overlay


def load_answers(paths: Sequence[Path]) -> tuple[Answer, ...]:
    """All answers of several files, in order of first appearance; each names its own model.

    An answer that is there twice is taken once. An answer to a question whose call failed elsewhere replaces
    the failure. Raises ItemsError with every invalid line and every answer that contradicts an earlier
    one, UsageError for a file that cannot be read.
    """
    kept: dict[tuple[str, str, str, str], tuple[Answer, str]] = {}
    problems: list[Problem] = []
    for path in paths:
        answers, invalid = parse_records(path, Answer)
        problems += [_in_file(problem, path) for problem in invalid] if len(paths) > 1 else invalid
        for number, answer in answers:
            # Of a question that was changed in between both answers stay: which one counts, the items tell.
            asked = str((answer.model_extra or {}).get("asked"))
            key = (answer.model, answer.id, answer.question, asked)
            here = f"{path}:{number}"
            before = kept.get(key)
            if before is None or before[0].outcome == "error":
                kept[key] = (answer, here)
            elif answer.outcome != "error" and not _same(before[0], answer):
                problems.append(_contradiction(before, answer, here, number))
    if problems:
        what = str(paths[0]) if len(paths) == 1 else f"{len(paths)} answer files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was scored.")
    return tuple(answer for answer, _ in kept.values())


def _same(one: Answer, other: Answer) -> bool:
    return (one.raw, one.outcome) == (other.raw, other.outcome)


def _contradiction(before: tuple[Answer, str], answer: Answer, here: str, number: int) -> Problem:
    message = (
        f"{answer.model} answered {shown(before[0].raw)} at {before[1]} and {shown(answer.raw)} at {here}; "
        "keep one of them, or give the second run a model name of its own"
    )
    return Problem(answer.id, answer.question, message, line=number)


def _in_file(problem: Problem, path: Path) -> Problem:
    return Problem(problem.item, problem.field, f"{path}: {problem.message}", line=problem.line)


def _repeated_ids(items: Sequence[tuple[int, Item]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for number, item in items:
        if item.id in first:
            message = f"the id was used before, at line {first[item.id]}; give every item its own"
            yield Problem(item.id, "id", message, line=number)
        first.setdefault(item.id, number)


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
