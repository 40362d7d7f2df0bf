"""MCQ items asked of people: who answered what, what comes next, and the run folder that is scored.

A person is asked what a model is: each question with the same words and the same picture, Q3 with the same
drawn boxes. Answers are lines of `answers.jsonl` as a model's are, of the model `human/NAME`, so that
`uncanny mcq score` takes the folder as that of a run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final, Generic, TypeVar, get_args

from pydantic import BaseModel

from uncanny.errors import ImageError, StorageError, UsageError
from uncanny.eval.mcq.data.answers import ANSWERS_FILE
from uncanny.eval.mcq.data.checks import check_images
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, Item, ItemSet, Letter, Question
from uncanny.eval.mcq.data.overlay import OVERLAYS, draw_overlay
from uncanny.eval.mcq.data.texts import (
    changed_since,
    content_digest,
    question_digest,
    question_text,
    system_text,
    texts_id,
)
from uncanny.images.encode import PixelPolicy
from uncanny.images.file_bytes import RecordedFile, read_stamped
from uncanny.records.run_folder import check_apart, check_no_links
from uncanny.records.shared_log import SharedLog
from uncanny.service.people.session import PeopleSession, apart, now, rounded
from uncanny.service.pictures import Picture

RATER: Final = "human/"
T = TypeVar("T")
L = TypeVar("L", bound=BaseModel)
V = TypeVar("V")
LETTERS: Final[tuple[Letter, ...]] = get_args(Letter)
_OPTION_LINE = re.compile(r"\s*\W{0,2}([A-E])\b\W{1,3}\S")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a question as a model has it; `choice` is the answer it stands for, None for no option."""

    text: str
    choice: str | None


@dataclass(frozen=True, slots=True)
class QuestionView:
    """One question to a person, in the words that a model is asked with.

    `key` names the item in addresses, without telling what it is called. `choices` are what can be answered,
    those without a line of their own in `bare`. `place` counts from 1. `next` is the picture after this one:
    its item's key, and whether boxes are drawn on it.
    """

    key: str
    question: Question
    system: str
    lines: tuple[Line, ...]
    choices: tuple[str, ...]
    bare: tuple[str, ...]
    place: int
    boxed: bool
    next: tuple[str, bool] | None


Asked = tuple[Item, Question]


class ItemsSession(PeopleSession[T, L, V], Generic[T, L, V]):
    """A run folder in which people say something of the items of a set, about their pictures."""

    task: ClassVar[str]
    record_file: ClassVar[str]
    model: ClassVar[type[Any]]

    def __init__(self, items: ItemSet, run: Path) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self.items = items
        check_apart(run, map(items.image_path, items))
        self._by_id = {item.id: item for item in items}
        self._items = {item_key(item): item for item in items}
        self._files: dict[tuple[str, bool], RecordedFile | str] = {}
        # Pictures with boxes that are only looked at; those of answers are kept in the run folder.
        self._shown = TemporaryDirectory(prefix="uncanny-people-")
        self._drawn = Path(self._shown.name)
        what = Path(self.record_file).stem
        log: SharedLog[Any] = SharedLog(
            run / self.record_file, self.model, lock=f".{what}.lock", what=what, exclude_none=False
        )
        root = None if items.root is None else os.path.abspath(items.root)  # noqa: PTH100
        super().__init__(
            run, log, {"task": self.task, "items": os.path.relpath(items.file, run), "root": root}
        )

    def picture(self, key: str, *, boxed: bool) -> Picture | None:
        """The file that a question is asked about; None for no such item, and where it cannot be read."""
        with self._lock:
            item = self._items.get(key)
            file = None if item is None else self._file(item, boxed=boxed)
            if item is None or isinstance(file, str) or file is None:
                return None
            drawn = boxed and item.overlay is None
            return Picture(self._draw(item, self._drawn)[0] if drawn else file.path, None)

    # Within

    def _file(self, item: Item, *, boxed: bool) -> RecordedFile | str:
        """What was read for a question, or why it cannot be. Only boxes are drawn into the run folder."""
        at = (item.id, boxed)
        if at not in self._files:
            self._files[at] = self._read(item, boxed=boxed)
        return self._files[at]

    def _read(self, item: Item, *, boxed: bool) -> RecordedFile | str:
        field = "overlay" if boxed and item.overlay is not None else "image"
        faults = [problem for problem in check_images(item, self.items)[1] if problem.field == field]
        if faults:
            return f"image: {faults[0].message}"
        try:
            if boxed and item.overlay is None:
                return self._draw(item, self._drawn)[1]
            path = self.items.overlay_path(item) if boxed else None
            path = path or self.items.image_path(item)
            file = read_stamped(path, PixelPolicy().max_file_bytes)
        except (ImageError, UsageError) as error:
            return f"image: {error}"
        return RecordedFile(path, sha256(file.data).hexdigest(), file.stamp)

    def _draw(self, item: Item, folder: Path) -> tuple[Path, RecordedFile]:
        """The item's picture for Q3, in `folder`. Raises ImageError, StorageError."""
        try:
            return draw_overlay(item, self.items, folder)
        except OSError as error:
            raise StorageError(
                f"{error.filename or self.folder} cannot be written: {error.strerror or error}",
                remedy="Free some disk space.",
            ) from error


class PeopleAnswers(ItemsSession[Asked, Answer, QuestionView]):
    """A run folder in which people answer the questions of a set.

    `questions` are those asked, all by default. With `shuffle` each person has an order of items of their
    own, in which the images of a pair do not follow each other; else it is the file's, as for a model.
    """

    said_already = "This question is answered already"
    left_already = "That picture has been left: its answers stand"
    task, record_file, model = "mcq_people", ANSWERS_FILE, Answer

    def __init__(
        self, items: ItemSet, run: Path, *, questions: Sequence[Question] = (), shuffle: bool = False
    ) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self.shuffle = shuffle
        wanted = tuple(question for question in QUESTIONS if not questions or question in questions)
        self._asked: list[Asked] = [
            (item, question) for item in items for question in item.questions() if question in wanted
        ]
        if not self._asked:
            raise UsageError("None of the items has these questions", remedy="Choose others.")
        super().__init__(items, run)
        check_no_links(run / OVERLAYS)
        self._catch_up()

    def answer(self, person: str, key: str, question: Question, choice: str, seconds: float | None) -> None:
        """Keep an answer, and record the questions around it that were passed over, as failed calls are.

        Raises ReviewConflictError where this is not the question that is asked now.
        """

        def line(asked: Asked) -> Answer:
            item, _ = asked
            if choice not in choices_of(question):
                raise UsageError(f"{question.upper()} cannot be answered with that")
            raw = f'{{"answer": "{choice}"}}' if item.answer_form == "json" else choice
            if question == "q3" and item.overlay is None:
                self._draw(item, self.folder / OVERLAYS)
            return self._line(person, item, question, raw=raw, seconds=seconds)

        item = self._items.get(key)
        self._say(person, (item and item.id, question), line)

    # Within

    def _key(self, thing: Asked) -> Hashable:
        return thing[0].id, thing[1]

    def _view(self, person: str, thing: Asked, following: Asked | None) -> QuestionView:
        item, question = thing
        choices = choices_of(question)
        lines = tuple(asked_lines(question_text(item, question), choices))
        named = {line.choice for line in lines}
        return QuestionView(
            *(item_key(item), question, system_text(item), lines, choices),
            bare=tuple(choice for choice in choices if choice not in named),
            place=self.progress(person)[0] + 1,
            boxed=question == "q3",
            next=None if following is None else (item_key(following[0]), following[1] == "q3"),
        )

    def _group(self, key: Any) -> Hashable:
        item: str = key[0]
        return item

    def _of(self, line: Answer) -> tuple[str, Hashable] | None:
        item = self._by_id.get(line.id)
        if not line.model.startswith(RATER) or item is None or line.question not in QUESTIONS:
            return None
        if line.outcome != "error" and changed_since(line, item):
            return None  # it is asked again
        return line.model.removeprefix(RATER), (line.id, line.question)

    def _error(self, line: Answer) -> str | None:
        return (line.error or "") if line.outcome == "error" else None

    def _fault(self, thing: Asked) -> str | None:
        file = self._file(thing[0], boxed=thing[1] == "q3")
        return file if isinstance(file, str) else None

    def _failure(self, person: str, thing: Asked, error: str) -> Answer:
        return self._line(person, *thing, error=error)

    def _ordered(self, person: str) -> list[Asked]:
        """The questions in this person's order; those of one item together."""
        if not self.shuffle:
            return self._asked
        ids = list(dict.fromkeys(item.id for item, _ in self._asked))
        pairs = [self._by_id[each].pair_id or f"\0{each}" for each in ids]
        ranks = {ids[place]: rank for rank, place in enumerate(apart(pairs, person))}
        return sorted(self._asked, key=lambda asked: ranks[asked[0].id])

    def _line(
        self,
        person: str,
        item: Item,
        question: Question,
        *,
        raw: str | None = None,
        error: str | None = None,
        seconds: float | None = None,
    ) -> Answer:
        file = None if error else self._file(item, boxed=question == "q3")
        read = file if isinstance(file, RecordedFile) else None
        return Answer.model_validate(
            {
                "id": item.id,
                "question": question,
                "raw": raw,
                "model": f"{RATER}{person}",
                "outcome": "answered" if error is None else "error",
                "error": error,
                "sha256": None if read is None else read.sha256,
                "file_stamp": None if read is None else read.stamp,
                "prompts": texts_id(item, question),
                "asked": question_digest(item, question),
                "content": content_digest(item, question),
                "seconds": rounded(seconds),
                "at": now(),
            }
        )


def item_key(item: Item) -> str:
    return sha256(item.id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def choices_of(question: Question) -> tuple[str, ...]:
    return ("yes", "no") if question == "q1" else LETTERS


def asked_lines(text: str, choices: Sequence[str]) -> list[Line]:
    """The lines of a question. Those that name the options, once each, can be chosen; others are text."""
    lines = text.strip().split("\n")
    found = [match[1] if (match := _OPTION_LINE.match(line)) else None for line in lines]
    letters = [letter for letter in found if letter is not None]
    options = choices == LETTERS and sorted(letters) == sorted(set(letters)) and len(letters) > 1
    return [Line(line, letter if options else None) for line, letter in zip(lines, found, strict=True)]
