"""`uncanny mcq run` without a terminal: every question of a set asked once, each in a call of its own."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.agents.artifact_answerer import ROLES, own_texts
from uncanny.eval.mcq.items import Answer, AskedQuestion, Item
from uncanny.eval.mcq.load import image_path, overlay_path
from uncanny.eval.mcq.texts import asked_digest, carries_texts
from uncanny.images import PixelPolicy, RecordedFile, changed_files
from uncanny.models.base import Sampling
from uncanny.prompts import PromptSet
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions, SamplingPlan
from uncanny.runs.manifest import recorded_prompts
from uncanny.runs.progress import Progress
from uncanny.runs.run import RunEnd, run_task

if TYPE_CHECKING:
    from uncanny.runs.engine import Engine

MOST_ITEMS_AT_ONCE = 64
QUESTIONS_AN_ITEM = 4


@dataclass(frozen=True, slots=True)
class McqPlan(SamplingPlan):
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
    plan: McqPlan = field(default_factory=McqPlan)
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


def questions_of(item: Item, plan: McqPlan) -> tuple[AskedQuestion, ...]:
    control: tuple[AskedQuestion, ...] = ("q4_no_image",) if plan.control and item.q4 is not None else ()
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
        return self.job.plan.sampling

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
            "plan": asdict(job.plan),
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

    def take_up(self, records: RecordFile[Answer], progress: Progress) -> Sequence[PendingItem]:
        job = self.job
        items = job.items[: job.options.limit]
        asked = {
            f"{item.id}/{question}": (item, question)
            for item in items
            for question in questions_of(item, job.plan)
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
                item, tuple(q for q in questions_of(item, job.plan) if f"{item.id}/{q}" not in standing)
            )
            for item in items
        )
        return [each for each in pending if each.questions]

    def recorded(self, records: RecordFile[Answer]) -> Callable[[str], bool]:  # noqa: ARG002
        return self._answered.__contains__

    def open(
        self, engine: Engine, records: RecordFile[Answer], calls: CallFile, progress: Progress
    ) -> Callable[[PendingItem], Awaitable[None]]:
        from uncanny.eval.mcq.ask import ItemAsker

        return ItemAsker(self.job, engine, records, calls, progress, self.prompts).work


_STATUS = {"answered": "ok", "refused": "refused", "error": "failed"}
