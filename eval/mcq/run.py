"""`uncanny mcq run` without a terminal: every question of a set asked once, each in a call of its own.

One item through its graph, to one record for each question.

What an MCQ run would ask and roughly cost, without opening a model."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.agents.artifact_answerer import ROLES, Asked, Given, own_texts
from uncanny.client.calls import CallScope, dump_calls
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, input_words, notes_of, text_tokens
from uncanny.errors import ENDS_RUN, StorageError, UncannyError
from uncanny.eval.annotate.run import sent_image
from uncanny.eval.mcq.data.items import (
    Answer,
    AskedQuestion,
    Item,
    asked_digest,
    carries_texts,
    content_digest,
    prompt_id,
    question_text,
    system_text,
)
from uncanny.eval.mcq.data.load import image_path, overlay_path
from uncanny.eval.mcq.data.overlay import draw_overlay
from uncanny.graphs.mcq import ItemContext, ItemState, item_graph
from uncanny.images import PixelPolicy, RecordedFile, changed_files, prepare, stored_size
from uncanny.models.base import Sampling, SentImage, Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import PromptSet
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions, SamplingConfig
from uncanny.runs.engine import Engine
from uncanny.runs.manifest import recorded_prompts
from uncanny.runs.progress import Progress
from uncanny.runs.run import RunEnd, prompts_of, run_task

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
class McqJob:
    """Which items to ask, how, and into which folder. `items_file` is where image paths start from."""

    folder: RunFolder
    items: Sequence[Item]
    items_file: Path
    models: ModelOptions
    config: McqConfig = field(default_factory=McqConfig)
    policy: PixelPolicy = field(default_factory=PixelPolicy)
    options: RunOptions = field(default_factory=RunOptions)
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class PendingItem:
    """An item and those of its questions that have no answer yet."""

    item: Item
    questions: tuple[AskedQuestion, ...]


def run_mcq(job: McqJob, on_start: Callable[[Progress], None] = lambda _: None) -> RunEnd:
    """Ask what has not been answered yet. Raises what `run_task` raises."""
    return run_task(job.folder, job.models, job.options, McqTask(job), on_start)


def answer_key(answer: Answer) -> str:
    return f"{answer.id}/{answer.question}"


def questions_of(item: Item, config: McqConfig) -> tuple[AskedQuestion, ...]:
    control: tuple[AskedQuestion, ...] = ("q4_no_image",) if config.control and item.q4 is not None else ()
    return (*item.asked(), *control)


def seen_file(item: Item, question: AskedQuestion, items_file: Path, root: Path | None) -> Path:
    """The file a question is asked about: for Q3 the stored overlay where there is one."""
    overlay = overlay_path(item, items_file, root) if question == "q3" else None
    return overlay or image_path(item, items_file, root)


@dataclass(slots=True)
class McqTask:
    """The `Task` of asking MCQ items."""

    job: McqJob
    prompts: PromptSet = field(default_factory=own_texts)
    _answered: set[str] = field(default_factory=set)

    @property
    def agents(self) -> Mapping[str, str]:
        return ROLES

    @property
    def sampling(self) -> Sampling:
        return self.job.config.sampling

    @property
    def at_once(self) -> int:
        # An item's first question goes alone, the others follow together: two calls at a time on average, and
        # as much again, or slots stand empty while pictures are read.
        return min(MOST_ITEMS_AT_ONCE, -(-self.job.options.concurrency * 3 // QUESTIONS_AN_ITEM) + 2)

    @property
    def usual_calls(self) -> int:
        return QUESTIONS_AN_ITEM

    def protocol(self) -> dict[str, Any]:
        job = self.job
        own = sum(carries_texts(item) for item in job.items)
        return {
            "task": "mcq",
            "model": str(job.models.model),
            "roles": {role: str(model) for role, model in sorted(job.models.roles.items())},
            "plan": asdict(job.config),
            "prompts": {
                **recorded_prompts(self.prompts),
                "whose": "ours" if not own else "the set's" if own == len(job.items) else "both",
            },
            "pixels": {"policy": asdict(job.policy)},
            "root": None if job.root is None else str(job.root.absolute()),
            # From the run folder, so that both can be moved together.
            "items": os.path.relpath(job.items_file, job.folder.path),
        }

    def records(self) -> RecordFile[Answer]:
        return RecordFile(self.job.folder.path / "answers.jsonl", Answer, answer_key)

    def load_pending(self, records: RecordFile[Answer], progress: Progress) -> Sequence[PendingItem]:
        job = self.job
        items = job.items[: job.options.limit]
        asked = {
            f"{item.id}/{question}": (item, question)
            for item in items
            for question in questions_of(item, job.config)
        }
        standing: dict[str, str] = {}
        read: dict[str, RecordedFile] = {}
        for answer in records.load():
            key = answer_key(answer)
            self._answered.add(answer.id)
            standing.pop(key, None)
            read.pop(key, None)
            same = key in asked and asked_digest(*asked[key], self.prompts) == (answer.model_extra or {}).get(
                "asked"
            )
            if same and not (answer.outcome == "error" and job.options.retry_failed):
                standing[key] = _STATUS[answer.outcome]
                if answer.sha256 is not None:
                    file = seen_file(*asked[key], job.items_file, job.root)
                    read[key] = RecordedFile(file, answer.sha256, answer.file_stamp)
        changed = changed_files(set(read.values()))
        for key, each in read.items():
            if each in changed:
                del standing[key]
        progress.unit, progress.kinds = "questions", ("ok", "refused", "failed")
        progress.total = len(asked)
        progress.statuses.update(standing.values())
        progress.resumed = progress.done
        pending = (
            PendingItem(
                item, tuple(q for q in questions_of(item, job.config) if f"{item.id}/{q}" not in standing)
            )
            for item in items
        )
        return [each for each in pending if each.questions]

    def recorded(self, records: RecordFile[Answer]) -> Callable[[str], bool]:  # noqa: ARG002
        return self._answered.__contains__

    def open(
        self, engine: Engine, records: RecordFile[Answer], calls: CallFile, progress: Progress
    ) -> Callable[[PendingItem], Awaitable[None]]:

        return ItemAsker(self.job, engine, records, calls, progress, self.prompts).work


_STATUS = {"answered": "ok", "refused": "refused", "error": "failed"}


log = logging.getLogger("uncanny")


@dataclass(slots=True)
class Pictures:
    """What questions of an item are asked with, and the files it came from.

    `failed` has the questions whose picture cannot be read, `changes` the kinds of changes made to pixels.
    """

    images: dict[AskedQuestion, SentImage | None] = field(default_factory=lambda: {"q4_no_image": None})
    files: dict[AskedQuestion, RecordedFile] = field(default_factory=dict)
    failed: list[Given] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class ItemAsker:
    """`work` takes one item's open questions to their records."""

    job: McqJob
    engine: Engine
    records: RecordFile[Answer]
    calls: CallFile
    progress: Progress
    prompts: PromptSet

    async def work(self, pending: PendingItem) -> None:
        """Raises what `ENDS_RUN` names only; whatever else happens is in the records."""
        item, pictures = pending.item, Pictures()
        try:
            with self.engine.model_client.scope(item.id) as scope:
                given = await self._ask(item, pending.questions, pictures, scope)
        except ENDS_RUN:
            raise
        except UncannyError as error:
            given = _failed(pending.questions, str(error))
        except Exception as defect:  # a defect of ours must cost one item, not the run
            log.exception("asking %s failed", item.id)
            given = _failed(pending.questions, f"defect: {type(defect).__name__}: {defect}")
        self._write(item, given, pictures, scope)

    async def _ask(
        self, item: Item, questions: tuple[AskedQuestion, ...], pictures: Pictures, scope: CallScope
    ) -> list[Given]:
        ours = self.prompts
        # One trip to a thread for both pictures: the first items are asked about sooner.
        await asyncio.to_thread(self._open, item, questions, pictures)
        self.progress.pixel_changes.update(pictures.changes)
        images = pictures.images
        asked = [
            Asked(
                q, system_text(item, ours), question_text(item, q, ours), prompt_id(item, q, ours), images[q]
            )
            for q in questions
            if q in images
        ]
        context = ItemContext(asked, self.engine.model_client, scope, self.job.config.sampling)
        state: ItemState = await item_graph().ainvoke({"item": item.id}, context=context)
        order = {question: number for number, question in enumerate(questions)}
        return sorted([*pictures.failed, *state.get("answers", ())], key=lambda one: order[one.question])

    def _open(self, item: Item, questions: tuple[AskedQuestion, ...], pictures: Pictures) -> None:
        """Read what is asked about; a picture that cannot be read costs its own questions only. Blocking."""
        for seeing, place in ((("q1", "q2", "q4"), self._original), (("q3",), self._overlay)):
            wanted = [question for question in questions if question in seeing]
            if not wanted:
                continue
            try:
                path, drawn_from = place(item)
                found = prepare(path, self.job.policy, self.engine.limits)
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
        return image_path(item, self.job.items_file, self.job.root), None

    def _overlay(self, item: Item) -> tuple[Path, RecordedFile | None]:
        job = self.job
        stored = overlay_path(item, job.items_file, job.root)
        if stored is not None:
            return stored, None
        folder = job.folder.path / "overlays"
        try:
            return draw_overlay(item, job.items_file, job.root, folder)
        except OSError as error:
            raise StorageError(
                f"{error.filename or folder} cannot be written: {error.strerror or error}",
                remedy="Free some disk space and run the same command again.",
            ) from error

    def _write(self, item: Item, given: list[Given], pictures: Pictures, scope: CallScope) -> None:
        if scope.calls:
            self.calls.append(dump_calls(scope.calls))
        for one in given:
            question: AskedQuestion = one.question  # type: ignore[assignment]
            file = pictures.files.get(question)
            record = Answer(
                id=item.id,
                question=question,
                raw=one.raw,
                model=str(self.job.models.model),
                outcome=one.outcome,
                error=one.error,
                sha256=None if file is None else file.sha256,
                file_stamp=None if file is None else file.stamp,
                asked=asked_digest(item, question, self.prompts),  # type: ignore[call-arg]
                content=content_digest(item, question),
            )
            self.records.append(record)
            self.progress.statuses[{"answered": "ok", "error": "failed"}.get(one.outcome, one.outcome)] += 1


def _failed(questions: Sequence[AskedQuestion], why: str) -> list[Given]:
    return [Given(question, None, "error", why) for question in questions]


# A letter, or a letter in a short JSON object; reasoning models use far more.
ANSWER_TOKENS = 10


def forecast_mcq(job: McqJob) -> dict[str, Any]:
    """Questions left, tokens and cost; None where those of the model are not known (see `InputEstimate`).

    The prefix cache is left out: how much of an image's four questions it covers depends on the provider.
    Reasoning is not counted. Raises UsageError.
    """
    prices = PriceTable.load(job.models.prices)
    model = str(job.models.model)
    task = McqTask(job, prompts_of(job.folder, own_texts()))
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
        "items": len(job.items[: job.options.limit]),
        "calls": questions,
        **tokens.as_json(),
        "output_tokens": output,
        "cost_usd": cost,
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
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
    task.job.folder.check_links()
    return [(each.item, each.questions) for each in task.load_pending(task.records(), Progress())]


def _add(
    tokens: InputEstimate,
    task: McqTask,
    item: Item,
    question: AskedQuestion,
    model: str,
    sizes: dict[str, int | None],
) -> None:
    job, ours = task.job, task.prompts
    text = text_tokens(system_text(item, ours)) + text_tokens(question_text(item, question, ours))
    if question == "q4_no_image":
        tokens.add(model, text)
        return
    if item.image not in sizes:
        size = stored_size(image_path(item, job.items_file, job.root))
        sizes[item.image] = 0 if size is None else image_tokens(model, *size)
    tokens.add(model, text, sizes[item.image])
