"""The task of asking questions: which ones are left, what each is asked with, and its record.

Every question is a single-turn call of its own (SalArt-VQA, section 4.1). Q1, Q2 and Q4 are asked about the
image, Q3 about the same image with its boxes drawn; the control asks Q4 again without an image, and blind
questions are all four without one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from uncanny.agents.artifact_answerer import ROLES, ItemContext, QuestionPrompt, RawAnswer, answer_item
from uncanny.errors import ENDS_INPUT, StorageError, UncannyError, UsageError
from uncanny.eval.mcq.data.answers import ANSWERS_FILE
from uncanny.eval.mcq.data.items import ASKS, BLIND, CONTROL, QUESTIONS, Answer, AskedQuestion, Item, ItemSet
from uncanny.eval.mcq.data.overlay import OVERLAYS, draw_overlay
from uncanny.eval.mcq.data.texts import (
    content_digest,
    prompt_id,
    question_digest,
    question_text,
    system_text,
    texts_id,
    whose_texts,
)
from uncanny.eval.mcq.parameters import McqConfig
from uncanny.images.file_bytes import RecordedFile
from uncanny.images.prepared import prepare
from uncanny.models.base import SentImage, sent_image
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import check_apart, check_no_links
from uncanny.records.run_manifest import THE_USERS, RunSettings
from uncanny.runs.image_task import other_models
from uncanny.runs.progress import Progress
from uncanny.runs.task import Task, asking
from uncanny.schema import StepError
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord, CallScope
    from uncanny.runs.engine import Engine

MOST_ITEMS_AT_ONCE = 64
QUESTIONS_AN_ITEM = 4
# What is asked without an image.
UNSEEN: frozenset[AskedQuestion] = frozenset(ASKS) - frozenset(QUESTIONS)
STATUSES = ("ok", "refused", "failed")
# Whose texts are asked, as `run.json` says it.
_WHOSE = {"ours": "ours", "set": "the set's", "mixed": "both"}


@dataclass(frozen=True, slots=True)
class PendingItem:
    """An item and those of its questions that have no answer yet."""

    item: Item
    questions: tuple[AskedQuestion, ...]


# An item and one of its questions.
Asked = tuple[Item, AskedQuestion]


@dataclass(slots=True)
class Pictures:
    """What questions of an item are asked with, and the files it came from.

    `failed` has the questions whose picture cannot be read, `changes` the kinds of changes made to pixels.
    """

    images: dict[AskedQuestion, SentImage | None] = field(default_factory=lambda: dict.fromkeys(UNSEEN))
    files: dict[AskedQuestion, RecordedFile] = field(default_factory=dict)
    failed: list[RawAnswer] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class McqTask(Task[PendingItem, Answer]):
    """The task of asking the questions of items, which bring their `root`."""

    name = "mcq"
    unit = "questions"
    statuses = STATUSES
    answered_statuses = ("ok", "refused")
    asked_again = frozenset({"failed"})
    record_file = ANSWERS_FILE
    record_type = Answer
    roles = ROLES

    items: ItemSet
    config: McqConfig = field(default_factory=McqConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("mcq"))

    def __post_init__(self) -> None:
        self.root = self.items.root
        ours = self.config.control or self.config.blind
        own = all(item.prompts and set(item.questions()) <= item.prompts.keys() for item in self.items)
        if self.prompts.chosen and not ours and own:
            raise UsageError(
                f"The items have their own prompts, so {option('prompts')} has no effect",
                remedy="Remove it, or use items without prompts.",
            )

    @property
    def calls_per_input(self) -> int:
        return QUESTIONS_AN_ITEM * (1 + self.config.blind) + self.config.control

    def calls_expected(self, pending: Sequence[PendingItem]) -> int:
        return sum(1 for _ in self.calls(pending))

    def calls(self, pending: Sequence[PendingItem]) -> Iterator[Asked]:
        """The questions that take a call; what has the same words and no image is answered from the cache."""
        asked: set[tuple[str, str]] = set()
        for item, question in ((each.item, question) for each in pending for question in each.questions):
            if question in UNSEEN and self.options.cache:
                words = system_text(item, self.prompts), question_text(item, question, self.prompts)
                if words in asked:
                    continue
                asked.add(words)
            yield item, question

    @property
    def inputs_at_once(self) -> int:
        # An item's first question goes alone, the others follow together: two calls at a time on average, and
        # as much again, or slots stand empty while pictures are read.
        return min(MOST_ITEMS_AT_ONCE, -(-self.options.concurrency * 3 // QUESTIONS_AN_ITEM) + 2)

    def settings(self) -> RunSettings:
        settings = super().settings()
        whose = _WHOSE[whose_texts(self.items)]
        if self.prompts.own and whose == "ours":
            whose = THE_USERS
        return settings.model_copy(
            update={
                "prompts": settings.prompts.model_copy(update={"whose": whose}),
                # From the run folder, so that both can be moved together.
                "items": os.path.relpath(self.items.file, self.folder.path),
            }
        )

    def key(self, record: Answer) -> str:
        return f"{record.id}/{record.question}"

    def name_of(self, item: PendingItem) -> str:
        return item.item.id

    def for_workers(self) -> McqTask:
        task = super().for_workers()
        task.items = self.items[:0]
        return task

    def load_pending(self, records: RecordFile[Answer], progress: Progress) -> Sequence[PendingItem]:
        check_no_links(self.folder.path / OVERLAYS)
        check_apart(self.folder.path, map(self.items.image_path, self.items))
        items = self.items[: self.options.limit]
        every = {
            f"{item.id}/{question}": (item, question)
            for item in self.items
            for question in self.questions(item)
        }
        asked = {item.id for item in items}
        stock = self.take_stock(
            {key: each for key, each in every.items() if each[0].id in asked},
            records,
            progress,
            held=every if self.items.whole else None,
        )
        pending = (
            PendingItem(item, tuple(q for q in self.questions(item) if f"{item.id}/{q}" in stock.pending))
            for item in items
        )
        return [each for each in pending if each.questions]

    def questions(self, item: Item) -> tuple[AskedQuestion, ...]:
        """The questions asked of an item, those without the image last."""
        asked = item.questions()
        control = [CONTROL] if self.config.control and "q4" in asked else []
        return (*asked, *control, *(BLIND[question] for question in asked if self.config.blind))

    def is_about(self, item: Asked, record: Answer) -> bool:
        return record.digest("asked") == question_digest(item[0], record.question, self.prompts)

    def files_of(self, item: Asked, record: Answer) -> Iterator[RecordedFile]:
        """The file a question is asked about: for Q3 the stored overlay where there is one."""
        of, question = item
        if record.sha256 is not None:
            overlay = self.items.overlay_path(of) if question == "q3" else None
            yield RecordedFile(overlay or self.items.image_path(of), record.sha256, record.file_stamp)

    def recorded(self, records: RecordFile[Answer]) -> Callable[[str], bool]:
        # Calls name the item, and keys the question besides.
        return {key.rpartition("/")[0] for key in records}.__contains__

    async def process(self, item: PendingItem, engine: Engine, calls: list[CallRecord]) -> Sequence[Answer]:
        pictures = Pictures()
        try:
            with asking(engine, item.item.id, calls) as scope:
                answers = await self._ask(item, pictures, engine, scope)
        except ENDS_INPUT:
            raise
        except UncannyError as error:
            answers = _failed(item.questions, str(error))
        return [self._record(item.item, answer, pictures.files, calls) for answer in answers]

    def failed(self, item: PendingItem, error: StepError, calls: Sequence[CallRecord]) -> Sequence[Answer]:
        answers = _failed(item.questions, f"defect: {error.message}")
        return [self._record(item.item, answer, {}, calls) for answer in answers]

    async def _ask(
        self, pending: PendingItem, pictures: Pictures, engine: Engine, scope: CallScope
    ) -> list[RawAnswer]:
        item, questions, ours = pending.item, pending.questions, self.prompts
        # One trip to a thread for both pictures: the first items are asked about sooner.
        await asyncio.to_thread(self._open, pending, pictures, engine)
        engine.on_pixels(pictures.changes)
        images = pictures.images
        prompts = [
            QuestionPrompt(
                q, system_text(item, ours), question_text(item, q, ours), prompt_id(item, q, ours), images[q]
            )
            for q in questions
            if q in images
        ]
        context = ItemContext(engine.model_client, scope, self.config, ours, prompts)
        order = {question: number for number, question in enumerate(questions)}
        answers = [*pictures.failed, *await answer_item(context)]
        return sorted(answers, key=lambda answer: order[cast(AskedQuestion, answer.question)])

    def _open(self, pending: PendingItem, pictures: Pictures, engine: Engine) -> None:
        """Read what is asked about; a picture that cannot be read costs its own questions only. Blocking."""
        for seeing, place in ((("q1", "q2", "q4"), self._original), (("q3",), self._overlay)):
            wanted = [question for question in pending.questions if question in seeing]
            if not wanted:
                continue
            try:
                path, drawn_from = place(pending.item)
                image = prepare(path, self.policy, engine.limits)
            except ENDS_INPUT:
                raise
            except UncannyError as error:
                pictures.failed += _failed(wanted, f"image: {error}")
                continue
            pictures.images |= dict.fromkeys(wanted, sent_image(image))
            file = drawn_from or RecordedFile(path, image.source_sha256, image.stamp)
            pictures.files |= dict.fromkeys(wanted, file)
            pictures.changes += [change.partition(":")[0] for change in image.changes]

    def _original(self, item: Item) -> tuple[Path, None]:
        return self.items.image_path(item), None

    def _overlay(self, item: Item) -> tuple[Path, RecordedFile | None]:
        stored = self.items.overlay_path(item)
        if stored is not None:
            return stored, None
        folder = self.folder.path / OVERLAYS
        try:
            return draw_overlay(item, self.items, folder)
        except OSError as error:
            raise StorageError(
                f"{error.filename or folder} cannot be written: {error.strerror or error}",
                remedy="Free some disk space and run the same again.",
            ) from error

    def _record(
        self,
        item: Item,
        answer: RawAnswer,
        files: Mapping[AskedQuestion, RecordedFile],
        calls: Sequence[CallRecord],
    ) -> Answer:
        question = cast(AskedQuestion, answer.question)
        file = files.get(question)
        model = str(self.models.model)
        return Answer(
            id=item.id,
            question=question,
            raw=answer.raw,
            model=model,
            outcome=answer.outcome,
            error=answer.error,
            sha256=None if file is None else file.sha256,
            file_stamp=None if file is None else file.stamp,
            prompts=texts_id(item, question, self.prompts),  # type: ignore[call-arg]
            asked=question_digest(item, question, self.prompts),
            content=content_digest(item, question),
            **other_models([call for call in calls if call.object == question], model),
        )


def _failed(questions: Sequence[AskedQuestion], why: str) -> list[RawAnswer]:
    return [RawAnswer(question, None, "error", why) for question in questions]
