"""MCQ items asked of people: who answered what, what comes next, and the run folder that is scored.

A person is asked what a model is: each question with the same words and the same picture, Q3 with the same
drawn boxes. Answers are lines of `answers.jsonl` as a model's are, of the model `human/NAME`, so that
`uncanny mcq score` takes the folder as that of a run. All methods may be called from several threads at once.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Final, get_args

from uncanny.errors import ImageError, ReviewConflictError, StorageError, UsageError
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
from uncanny.records.shared_log import SharedLog, file_state
from uncanny.service.people.folder import begin
from uncanny.service.people.order import apart
from uncanny.service.pictures import Picture

TASK: Final = "mcq_people"
RATER: Final = "human/"
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
    those without a line of their own in `bare`. `place` counts from 1, of `of` questions.
    """

    key: str
    question: Question
    system: str
    lines: tuple[Line, ...]
    choices: tuple[str, ...]
    bare: tuple[str, ...]
    place: int
    of: int
    boxed: bool


class PeopleAnswers:
    """A run folder in which people answer the questions of a set.

    `questions` are those asked, all by default. With `shuffle` each person has an order of items of their
    own, in which the images of a pair do not follow each other; else it is the file's, as for a model.
    """

    def __init__(
        self, items: ItemSet, run: Path, *, questions: Sequence[Question] = (), shuffle: bool = False
    ) -> None:
        """Makes the folder, or goes on with one. Raises UsageError, RunMismatchError, RecordError."""
        self.items, self.folder, self.shuffle = items, run, shuffle
        # Stands in addresses of pictures, which browsers keep: files may change while nothing is served.
        self.tag = f"{time.time_ns():x}"
        wanted = tuple(question for question in QUESTIONS if not questions or question in questions)
        self._asked: list[tuple[Item, Question]] = [
            (item, question) for item in items for question in item.questions() if question in wanted
        ]
        if not self._asked:
            raise UsageError("None of the items is asked these questions", remedy="Choose others.")
        check_apart(run, map(items.image_path, items))
        self._items = {_key(item): item for item in items}
        self._log = SharedLog(
            run / ANSWERS_FILE, Answer, lock=".answers.lock", what="answers", exclude_none=False
        )
        self._lock = RLock()
        self._answers: dict[str, dict[tuple[str, Question], Answer]] = {}
        self._orders: dict[str, list[tuple[Item, Question]]] = {}
        # By person the place in their order before which nothing is taken back any more.
        self._left: dict[str, int] = {}
        self._files: dict[tuple[str, bool], RecordedFile | str] = {}
        # Pictures with boxes that are only looked at; those of answers are kept in the run folder.
        self._shown = TemporaryDirectory(prefix="uncanny-people-")
        self._drawn = Path(self._shown.name)
        # Failures that the file has already.
        self._failures: set[tuple[str, str, Question, str | None]] = set()
        self._state: tuple[int, int, int] | None = None
        self._begin()
        self._catch_up()

    def current(self, person: str) -> QuestionView | None:
        """The question that this person has to answer now; None where all are answered.

        One whose picture cannot be read is passed over; `answer` records it. This writes nothing.
        """
        with self._lock:
            self._catch_up()
            at = self._at(person)
            return None if at is None else self._view(person, at)

    def following(self, person: str) -> tuple[str, bool] | None:
        """The picture after the current one: its item's key, and whether boxes are drawn on it."""
        with self._lock:
            order, answers = self._order(person), self._answers.get(person, {})
            unanswered = [each for each in order if (each[0].id, each[1]) not in answers]
            if len(unanswered) < 2:
                return None
            item, question = unanswered[1]
            return _key(item), question == "q3"

    def progress(self, person: str) -> tuple[int, int]:
        """How many questions this person has answered, and of how many."""
        with self._lock:
            self._catch_up()
            answers = self._answers.get(person, {})
            return sum((item.id, question) in answers for item, question in self._asked), len(self._asked)

    def answer(self, person: str, key: str, question: str, choice: str, seconds: float | None) -> None:
        """Keep an answer, and record the questions around it that were passed over, as failed calls are.

        Raises ReviewConflictError where this is not the question that is asked now.
        """
        with self._lock, self._log.locked():
            self._catch_up()
            at = self._at(person)
            if at is None or (_key(self._order(person)[at][0]), self._order(person)[at][1]) != (
                key,
                question,
            ):
                raise ReviewConflictError(
                    "This question is answered already", remedy="This is the one that is asked now."
                )
            item, asked = self._order(person)[at]
            if choice not in _choices(asked):
                raise UsageError(f"{asked.upper()} cannot be answered with that")
            raw = f'{{"answer": "{choice}"}}' if item.answer_form == "json" else choice
            if asked == "q3" and item.overlay is None:
                self._draw(item, self.folder / OVERLAYS)
            self._append(person, asked, self._line(person, item, asked, raw=raw, seconds=seconds))
            self._left[person] = self._number(person, item)
            self._record_failures(person)

    def undo(self, person: str) -> None:
        """Take the last answer back. Raises ReviewConflictError where its item has been left."""
        with self._lock, self._log.locked():
            self._catch_up()
            answers = self._answers.get(person, {})
            last = next((each for each in reversed(answers.values()) if each.outcome != "error"), None)
            if last is None:
                raise ReviewConflictError("There is nothing of yours to take back")
            item = self._items[_key_of(last.id)]
            if self._number(person, item) < self._left.get(person, 0):
                raise ReviewConflictError("That picture has been left: its answers stand")
            self._log.remove(
                lambda each: each.model == last.model and (each.id, each.question) == (last.id, last.question)
            )
            self._catch_up()

    def picture(self, key: str, *, boxed: bool) -> Picture | None:
        """The file that a question is asked about; None for no such item, and where it cannot be read."""
        with self._lock:
            item = self._items.get(key)
            file = None if item is None else self._file(item, boxed=boxed)
            if item is None or isinstance(file, str) or file is None:
                return None
            return Picture(self._place(item, file, boxed=boxed), None)

    def people(self) -> Mapping[str, int]:
        """How many answers each person has given."""
        with self._lock:
            self._catch_up()
            return {person: len(answers) for person, answers in self._answers.items()}

    # Within

    def _begin(self) -> None:
        root = None if self.items.root is None else os.path.abspath(self.items.root)  # noqa: PTH100
        items = os.path.relpath(self.items.file, self.folder)
        begin(self.folder, {"task": TASK, "items": items, "root": root}, ANSWERS_FILE)
        check_no_links(self.folder / OVERLAYS)

    def _catch_up(self) -> None:
        """Read the file anew where others have written to it."""
        state = file_state(self._log.path)
        if state == self._state:
            return
        known = {item.id: item for item in self.items}
        by_person: dict[str, dict[tuple[str, Question], Answer]] = {}
        for answer in self._log.read():
            item = known.get(answer.id)
            if not answer.model.startswith(RATER) or item is None or answer.question not in QUESTIONS:
                continue
            person = answer.model.removeprefix(RATER)
            of_person = by_person.setdefault(person, {})
            if answer.outcome == "error":
                self._failures.add((answer.model, answer.id, answer.question, answer.error))
                continue  # is asked again
            if changed_since(answer, item):
                continue  # and so is this
            # In order of the latest words: undo begins with these.
            of_person.pop((answer.id, answer.question), None)
            of_person[answer.id, answer.question] = answer
        failed = {
            person: {at: each for at, each in answers.items() if each.outcome == "error"}
            for person, answers in self._answers.items()
        }
        for person, answers in failed.items():
            by_person.setdefault(person, {}).update(answers)
        self._answers, self._state = by_person, state
        for person, answers in by_person.items():
            answered = [each for each in answers.values() if each.outcome != "error"]
            if answered and person not in self._left:
                self._left[person] = self._number(person, self._items[_key_of(answered[-1].id)])

    def _order(self, person: str) -> list[tuple[Item, Question]]:
        """The questions in this person's order; those of one item together."""
        if not self.shuffle:
            return self._asked
        if person not in self._orders:
            ids = list(dict.fromkeys(item.id for item, _ in self._asked))
            by_id = {item.id: item for item in self.items}
            pairs = [by_id[each].pair_id or f"\0{each}" for each in ids]
            ranks = {ids[place]: rank for rank, place in enumerate(apart(pairs, person))}
            self._orders[person] = sorted(self._asked, key=lambda asked: ranks[asked[0].id])
        return self._orders[person]

    def _number(self, person: str, item: Item) -> int:
        return next((n for n, (each, _) in enumerate(self._order(person)) if each.id == item.id), 0)

    def _at(self, person: str) -> int | None:
        answers = self._answers.get(person, {})
        for place, (item, question) in enumerate(self._order(person)):
            if (item.id, question) in answers:
                continue
            file = self._file(item, boxed=question == "q3")
            if not isinstance(file, str):
                return place
            answers = self._answers.setdefault(person, {})
            answers[item.id, question] = self._line(person, item, question, error=file)
        return None

    def _record_failures(self, person: str) -> None:
        """Write what this person was not shown, up to the question that is asked now, unless it is there."""
        self._at(person)
        for (_, question), each in self._answers[person].items():
            failure = (each.model, each.id, question, each.error)
            if each.outcome == "error" and failure not in self._failures:
                self._failures.add(failure)
                self._append(person, question, each)

    def _view(self, person: str, at: int) -> QuestionView:
        item, question = self._order(person)[at]
        choices = _choices(question)
        lines = tuple(_lines(question_text(item, question), choices))
        named = {line.choice for line in lines}
        bare = tuple(choice for choice in choices if choice not in named)
        done, of = self.progress(person)
        return QuestionView(
            _key(item),
            question,
            system_text(item),
            lines,
            choices,
            bare,
            done + 1,
            of,
            question == "q3",
        )

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

    def _place(self, item: Item, file: RecordedFile, *, boxed: bool) -> Path:
        if boxed and item.overlay is None:
            return self._draw(item, self._drawn)[0]
        return file.path

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
                "seconds": None if seconds is None else round(seconds, 2),
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
            }
        )

    def _append(self, person: str, question: Question, answer: Answer) -> None:
        with self._log.locked():
            self._log.append([answer])
            self._answers.setdefault(person, {})[answer.id, question] = answer
            self._state = file_state(self._log.path)


def _key_of(item_id: str) -> str:
    return sha256(item_id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _key(item: Item) -> str:
    return _key_of(item.id)


def _choices(question: Question) -> tuple[str, ...]:
    return ("yes", "no") if question == "q1" else LETTERS


def _lines(text: str, choices: Sequence[str]) -> list[Line]:
    """The lines of a question. Those that name the options, once each, can be chosen; others are text."""
    lines = text.strip().split("\n")
    found = [match[1] if (match := _OPTION_LINE.match(line)) else None for line in lines]
    letters = [letter for letter in found if letter is not None]
    options = choices == LETTERS and sorted(letters) == sorted(set(letters)) and len(letters) > 1
    return [Line(line, letter if options else None) for line, letter in zip(lines, found, strict=True)]
