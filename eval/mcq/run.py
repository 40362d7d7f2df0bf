"""`uncanny mcq run` without a terminal: every question of a set asked once, each in a call of its own.

One item through its graph, to one record for each question.

What an MCQ run would ask and roughly cost, without opening a model."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from uncanny.agents.artifact_answerer import ROLES, QuestionPrompt, RawAnswer
from uncanny.client.calls import CallRecord, CallScope
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.errors import ENDS_RUN, StorageError, UncannyError
from uncanny.eval.mcq.data.items import Answer, AskedQuestion, Item, ItemSet
from uncanny.eval.mcq.data.overlay import draw_overlay
from uncanny.eval.mcq.data.texts import (
    carries_texts,
    content_digest,
    prompt_id,
    question_digest,
    question_text,
    system_text,
)
from uncanny.graphs.mcq import ItemContext, ItemState, item_graph
from uncanny.images import RecordedFile, changed_files, prepare, stored_size
from uncanny.models.base import Sampling, SentImage, Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.record_file import RecordFile
from uncanny.records.run_manifest import RunSettings
from uncanny.runs.config import SamplingConfig
from uncanny.runs.engine import Engine
from uncanny.runs.image_task import sent_image
from uncanny.runs.progress import Progress
from uncanny.runs.run import prompts_of
from uncanny.runs.task import Task, asking
from uncanny.schema import StepError

if TYPE_CHECKING:
    from uncanny.runs.engine import Engine


MOST_ITEMS_AT_ONCE = 64
QUESTIONS_AN_ITEM = 4


@dataclass(frozen=True, slots=True)
class McqConfig(SamplingConfig):
    """How questions are asked.

    Zero-shot at `temperature` 0 where the model takes one; what was sent stands in `run.json`. Reasoning is
    left to the provider. `control` asks every Q4 again without the image.
    """

    temperature: float | None = 0.0
    top_p: float | None = None
    max_output_tokens: int = 2_000
    control: bool = False


@dataclass(frozen=True, slots=True)
class PendingItem:
    """An item and those of its questions that have no answer yet."""

    item: Item
    questions: tuple[AskedQuestion, ...]


def answer_key(answer: Answer) -> str:
    return f"{answer.id}/{answer.question}"


def questions_of(item: Item, config: McqConfig) -> tuple[AskedQuestion, ...]:
    control: tuple[AskedQuestion, ...] = ("q4_no_image",) if config.control and item.q4 is not None else ()
    return (*item.questions(), *control)


def seen_file(item: Item, question: AskedQuestion, items: ItemSet) -> Path:
    """The file a question is asked about: for Q3 the stored overlay where there is one."""
    overlay = items.overlay_path(item) if question == "q3" else None
    return overlay or items.image_path(item)


@dataclass(kw_only=True)
class McqTask(Task[PendingItem, Answer]):
    """The task of asking MCQ items; `root` is theirs."""

    name = "mcq"
    unit = "questions"
    statuses = ("ok", "refused", "failed")
    record_file = "answers.jsonl"
    record_type = Answer
    roles = ROLES
    calls_per_input = QUESTIONS_AN_ITEM

    items: ItemSet
    config: McqConfig = field(default_factory=McqConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("mcq"))
    _answered: set[str] = field(init=False, repr=False, default_factory=set)
    _progress: Progress = field(init=False, repr=False, default_factory=Progress)

    def __post_init__(self) -> None:
        self.root = self.items.root

    @property
    def sampling(self) -> Sampling:
        return self.config.sampling

    @property
    def inputs_at_once(self) -> int:
        # An item's first question goes alone, the others follow together: two calls at a time on average, and
        # as much again, or slots stand empty while pictures are read.
        return min(MOST_ITEMS_AT_ONCE, -(-self.options.concurrency * 3 // QUESTIONS_AN_ITEM) + 2)

    def config_json(self) -> dict[str, Any]:
        return asdict(self.config)

    def settings(self) -> RunSettings:
        settings = super().settings()
        own = sum(carries_texts(item) for item in self.items)
        whose = "ours" if not own else "the set's" if own == len(self.items) else "both"
        return settings.model_copy(
            update={
                "prompts": settings.prompts.model_copy(update={"whose": whose}),
                # From the run folder, so that both can be moved together.
                "items": os.path.relpath(self.items.file, self.folder.path),
            }
        )

    def key(self, record: Answer) -> str:
        return answer_key(record)

    def note(self, progress: Progress, record: Answer) -> None:
        progress.statuses[_STATUS[record.outcome]] += 1

    def load_pending(self, records: RecordFile[Answer], progress: Progress) -> Sequence[PendingItem]:
        self._progress = progress
        items = self.items[: self.options.limit]
        asked = {
            f"{item.id}/{question}": (item, question)
            for item in items
            for question in questions_of(item, self.config)
        }
        standing: dict[str, str] = {}
        read: dict[str, RecordedFile] = {}
        for answer in records.load():
            key = answer_key(answer)
            self._answered.add(answer.id)
            standing.pop(key, None)
            read.pop(key, None)
            same = key in asked and question_digest(*asked[key], self.prompts) == answer.digest("asked")
            if same and not (answer.outcome == "error" and self.options.retry_failed):
                standing[key] = _STATUS[answer.outcome]
                if answer.sha256 is not None:
                    file = seen_file(*asked[key], items)
                    read[key] = RecordedFile(file, answer.sha256, answer.file_stamp)
        changed = changed_files(set(read.values()))
        for key, each in read.items():
            if each in changed:
                del standing[key]
        progress.total = len(asked)
        progress.statuses.update(standing.values())
        progress.resumed = progress.done
        pending = (
            PendingItem(
                item, tuple(q for q in questions_of(item, self.config) if f"{item.id}/{q}" not in standing)
            )
            for item in items
        )
        return [each for each in pending if each.questions]

    def recorded(self, records: RecordFile[Answer]) -> Callable[[str], bool]:  # noqa: ARG002
        return self._answered.__contains__

    async def process(self, item: PendingItem, engine: Engine, calls: list[CallRecord]) -> Sequence[Answer]:
        pictures = Pictures()
        try:
            with asking(engine, item.item.id, calls) as scope:
                given = await self._ask(item, pictures, engine, scope)
        except ENDS_RUN:
            raise
        except UncannyError as error:
            given = _failed(item.questions, str(error))
        return [self._answer(item.item, each, pictures) for each in given]

    def failed(self, item: PendingItem, error: StepError) -> Sequence[Answer]:
        given = _failed(item.questions, f"defect: {error.message}")
        return [self._answer(item.item, each, Pictures()) for each in given]

    async def _ask(
        self, pending: PendingItem, pictures: Pictures, engine: Engine, scope: CallScope
    ) -> list[RawAnswer]:
        item, questions, ours = pending.item, pending.questions, self.prompts
        # One trip to a thread for both pictures: the first items are asked about sooner.
        await asyncio.to_thread(self._open, pending, pictures, engine)
        self._progress.pixel_changes.update(pictures.changes)
        images = pictures.images
        asked = [
            QuestionPrompt(
                q, system_text(item, ours), question_text(item, q, ours), prompt_id(item, q, ours), images[q]
            )
            for q in questions
            if q in images
        ]
        context = ItemContext(engine.model_client, scope, self.config, ours, asked)
        state = cast("ItemState", await item_graph().ainvoke({"item": item.id}, context=context))
        order = {question: number for number, question in enumerate(questions)}
        return sorted([*pictures.failed, *state.get("answers", ())], key=lambda one: order[one.question])

    def _open(self, pending: PendingItem, pictures: Pictures, engine: Engine) -> None:
        """Read what is asked about; a picture that cannot be read costs its own questions only. Blocking."""
        for seeing, place in ((("q1", "q2", "q4"), self._original), (("q3",), self._overlay)):
            wanted = [question for question in pending.questions if question in seeing]
            if not wanted:
                continue
            try:
                path, drawn_from = place(pending.item)
                found = prepare(path, self.policy, engine.limits)
            except ENDS_RUN:
                raise
            except UncannyError as error:
                pictures.failed += _failed(wanted, f"image: {error}")
                continue
            pictures.images |= dict.fromkeys(wanted, sent_image(found))
            read = drawn_from or RecordedFile(path, found.source_sha256, found.stamp)
            pictures.files |= dict.fromkeys(wanted, read)
            pictures.changes += [change.partition(":")[0] for change in found.changes]

    def _original(self, item: Item) -> tuple[Path, None]:
        return self.items.image_path(item), None

    def _overlay(self, item: Item) -> tuple[Path, RecordedFile | None]:
        stored = self.items.overlay_path(item)
        if stored is not None:
            return stored, None
        folder = self.folder.path / "overlays"
        try:
            return draw_overlay(item, self.items, folder)
        except OSError as error:
            raise StorageError(
                f"{error.filename or folder} cannot be written: {error.strerror or error}",
                remedy="Free some disk space and run the same command again.",
            ) from error

    def _answer(self, item: Item, given: RawAnswer, pictures: Pictures) -> Answer:
        question: AskedQuestion = given.question  # type: ignore[assignment]
        file = pictures.files.get(question)
        return Answer(
            id=item.id,
            question=question,
            raw=given.raw,
            model=str(self.models.model),
            outcome=given.outcome,
            error=given.error,
            sha256=None if file is None else file.sha256,
            file_stamp=None if file is None else file.stamp,
            asked=question_digest(item, question, self.prompts),  # type: ignore[call-arg]
            content=content_digest(item, question),
        )


_STATUS = {"answered": "ok", "refused": "refused", "error": "failed"}


@dataclass(slots=True)
class Pictures:
    """What questions of an item are asked with, and the files it came from.

    `failed` has the questions whose picture cannot be read, `changes` the kinds of changes made to pixels.
    """

    images: dict[AskedQuestion, SentImage | None] = field(default_factory=lambda: {"q4_no_image": None})
    files: dict[AskedQuestion, RecordedFile] = field(default_factory=dict)
    failed: list[RawAnswer] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


def _failed(questions: Sequence[AskedQuestion], why: str) -> list[RawAnswer]:
    return [RawAnswer(question, None, "error", why) for question in questions]


# A letter, or a letter in a short JSON object; reasoning models use far more.
ANSWER_TOKENS = 10


def forecast_mcq(task: McqTask) -> dict[str, Any]:
    """Questions left, tokens and cost; None where those of the model are not known (see `InputEstimate`).

    The prefix cache is left out: how much of an image's four questions it covers depends on the provider.
    Reasoning is not counted. Raises UsageError.
    """
    prices = PriceTable.load(task.models.prices)
    model = str(task.models.model)
    task.prompts = prompts_of(task.folder, prompt_set("mcq"))
    pending = _pending(task)
    sizes: dict[str, int | None] = {}
    tokens = InputEstimate()
    questions = 0
    for item, asked in pending:
        for question in asked:
            questions += 1
            _add(tokens, task, item, question, model, sizes)
    total = tokens.total
    output = questions * ANSWER_TOKENS
    cost = None if total is None else prices.cost(model, Tokens(total, output, 0, 0))
    return {
        "items": len(task.items[: task.options.limit]),
        "calls": questions,
        **tokens.as_json(),
        "output_tokens": output,
        "cost_usd": cost,
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(task.models.all_models(), task.models.base_urls),
    }


def forecast_mcq_text(found: dict[str, Any]) -> str:
    tokens = input_words(found, "{:,}".format)
    cost = "not priced" if found["cost_usd"] is None else f"${found['cost_usd']:.2f}"
    return "\n".join(
        [
            f"Items    {found['items']:,}, {found['calls']:,} questions to ask, a call each",
            f"Tokens   about {tokens}, {found['output_tokens']:,} out without reasoning",
            f"Cost     {cost} without the prefix cache",
            *notes_of(found),
            "Nothing was asked. These are estimates; --limit 5 gives real figures.",
        ]
    )


def _pending(task: McqTask) -> Iterable[tuple[Item, tuple[AskedQuestion, ...]]]:
    task.folder.check_links()
    return [(each.item, each.questions) for each in task.load_pending(task.records(), Progress())]


def _add(
    tokens: InputEstimate,
    task: McqTask,
    item: Item,
    question: AskedQuestion,
    model: str,
    sizes: dict[str, int | None],
) -> None:
    ours = task.prompts
    text = text_tokens(system_text(item, ours)) + text_tokens(question_text(item, question, ours))
    if question == "q4_no_image":
        tokens.add(model, text)
        return
    if item.image not in sizes:
        size = stored_size(task.items.image_path(item))
        sizes[item.image] = 0 if size is None else image_tokens(model, *size)
    tokens.add(model, text, sizes[item.image])
