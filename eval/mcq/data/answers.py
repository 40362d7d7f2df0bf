"""Files of answers: records of a run, and predictions as the release has them, one line an image."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.inputs.problems import parse_records
from uncanny.eval.common.inputs.sources import of_place
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, AnswerForm, Item, Question
from uncanny.eval.mcq.score.parser import read_choice
from uncanny.files import open_file
from uncanny.parameters import check_records, path_of
from uncanny.records.jsonl import write_named
from uncanny.records.run_folder import RunFolder, check_recorded
from uncanny.wording import shown

ANSWERS_FILE = "answers.jsonl"


def read_answers(paths: Iterable[Path]) -> list[Answer]:
    """Answers from record files, prediction files and run folders; a folder may hold runs of several models.

    A prediction file does not say whose it is: its model is called what the file is. Raises what
    `load_answers` and `load_predictions` raise.
    """
    records: list[Path] = []
    predictions: list[Answer] = []
    for path in paths:
        if path.is_dir():
            records += _answer_files(path)
        elif _holds_predictions(path):
            predictions += load_predictions(path, model=path.stem)
        else:
            records.append(path)
    return [*load_answers(records), *predictions]


def _answer_files(folder: Path) -> list[Path]:
    runs = [folder]
    if not (folder / ANSWERS_FILE).is_file():
        # A run of several models has a folder for each.
        runs = sorted(file.parent for file in folder.glob(f"*/{ANSWERS_FILE}")) or runs
    for run in runs:
        RunFolder(run).check_links()
        check_recorded(run, ANSWERS_FILE)
    return [run / ANSWERS_FILE for run in runs]


def _holds_predictions(path: Path) -> bool:
    try:
        with open_file(path) as lines:
            first = orjson.loads(next((line for line in lines if line.strip()), b"{}"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", remedy="Pass answer files.") from None
    except orjson.JSONDecodeError:
        return False
    return isinstance(first, dict) and "row_id" in first


def load_answers(paths: Sequence[Path]) -> tuple[Answer, ...]:
    """All answers of several record files, in order of first appearance; each names its own model.

    An answer that is there twice is taken once. An answer to a question whose call failed elsewhere replaces
    the failure. Raises ItemsError with every invalid line and every answer that contradicts an earlier
    one, UsageError for a file that cannot be read.
    """
    kept: dict[tuple[str, str, str, str | None], tuple[Answer, str]] = {}
    problems: list[Problem] = []
    for path in paths:
        answers, invalid = parse_records(path, Answer, growing=True)
        problems += [of_place(problem, str(path)) for problem in invalid] if len(paths) > 1 else invalid
        for number, answer in answers:
            # Of a question that was changed in between both answers stay: which one counts, the items tell.
            key = (answer.model, answer.id, answer.question, answer.digest("asked"))
            here = f"{path}:{number}"
            before, there = kept.get(key, (None, here))
            if before is None or before.outcome == "error":
                kept[key] = (answer, here)
            elif answer.outcome != "error" and (answer.raw, answer.outcome) != (before.raw, before.outcome):
                message = (
                    f"{answer.model} answered {shown(before.raw)} at {there} and {shown(answer.raw)} at "
                    f"{here}; keep one of them, or give the second run a model name of its own"
                )
                problems.append(Problem(answer.id, answer.question, message, line=number))
    if problems:
        what = str(paths[0]) if len(paths) == 1 else f"{len(paths)} answer files"
        raise ItemsError(what, problems, remedy="Correct these lines; nothing was scored.")
    return tuple(answer for answer, _ in kept.values())


class _Line(BaseModel):
    """One image of the release's predictions."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    row_id: str = Field(min_length=1)
    q1: str | None = None
    q2: str | None = None
    q3: str | None = None
    q4: str | None = None
    raw: Any = None


def load_predictions(path: Path, *, model: str) -> tuple[Answer, ...]:
    """The answers of one model, image by image in order of first appearance.

    Of several lines about one question of an image the last stands: runs that were taken up again append. A
    question that is null has no answer, unless the line keeps the model's words for it under `raw`. Raises
    ItemsError with every invalid line, UsageError for a file that cannot be read.
    """
    numbered, problems = parse_records(path, _Line)
    if problems:
        raise ItemsError(str(path), problems, remedy="Correct these lines; nothing was read.")
    rows: dict[str, dict[Question, str | None]] = {}
    for _, line in numbered:
        rows.setdefault(line.row_id, {}).update(_replies(line))
    return tuple(
        Answer(id=row_id, question=question, raw=raw, model=model)
        for row_id, replies in rows.items()
        for question in QUESTIONS
        if (raw := replies.get(question)) is not None
    )


def write_predictions(
    answers: Iterable[Answer], path: str | os.PathLike[str], *, items: Sequence[Item] = ()
) -> None:
    """Write one model's answers, one line an image, in the items' order or else the answers'.

    What stands there is what an answer says by the exact rule, null where it says nothing or there is none.
    `items` tell in which form answers were asked for; without them it is the letter. Questions that an item
    is not asked are left out, and so is the control without the image. Raises UsageError where the answers
    are of several models.

    >>> items = uncanny.mcq.load("scenes")[:1]
    >>> answers = uncanny.mcq.baseline_answers(items, "always-E/no")
    >>> uncanny.mcq.write_predictions(answers, "predictions.jsonl", items=items)
    """
    target = path_of("path", path)
    check_records(items, Item, what="Items are uncanny.mcq.Item records")
    answers = check_records(answers, Answer, what="Answers are uncanny.mcq.Answer records")
    forms: dict[str, AnswerForm] = {item.id: item.answer_form for item in items}
    rows: dict[str, dict[str, str | None]] = {item.id: dict.fromkeys(item.questions()) for item in items}
    models: set[str] = set()
    for answer in answers:
        models.add(answer.model)
        question = next((known for known in QUESTIONS if known == answer.question), None)
        if question is not None:
            choice = read_choice(answer.raw, question, forms.get(answer.id, "letter")).choice
            row = rows.setdefault(answer.id, {})
            row[question] = choice or row.get(question)
    if len(models) > 1:
        raise UsageError(
            f"predictions of {len(models)} models: {', '.join(sorted(models))}",
            remedy="Write a file for each; its lines do not say whose they are.",
        )
    lines = (
        {"row_id": row_id, **{question: row[question] for question in QUESTIONS if question in row}}
        for row_id, row in rows.items()
    )
    write_named(target, (orjson.dumps(line) + b"\n" for line in lines))


def _replies(line: _Line) -> Iterator[tuple[Question, str | None]]:
    """What the line says of the questions it speaks of."""
    for question in QUESTIONS:
        choice: str | None = getattr(line, question)
        raw = choice if choice is not None else _unread_text(line.raw, question)
        if raw is not None or question in line.model_fields_set:
            yield question, raw


def _unread_text(raw: Any, question: Question) -> str | None:
    """What the model answered where no choice could be read from it; a failed call has no text."""
    entry = raw.get(question) if isinstance(raw, dict) else None
    if not isinstance(entry, dict) or "error" in entry:
        return None
    text = entry.get("text")
    return text if isinstance(text, str) else None
