"""Having a model say which images and prompts are fit: the public functions, the run they return, its task.

Sources: X-AIGD, appendix A.2 (real images that are no photographs, or were blurred for privacy), AnomReason,
section 4.3 (prompts that call for photographs).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.agents.common.context import AgentContext
from uncanny.agents.photo_filter import ROLES, STEPS, ask_filter
from uncanny.answers.verdicts import YesNo
from uncanny.client.calls import usage
from uncanny.errors import ImageError, StepFailedError
from uncanny.eval.common.described import (
    STATUSES,
    DescribedImage,
    TextSource,
    TextTask,
    WriteOutcome,
    WritingForecast,
    Written,
    failure,
    forecast_of,
    nothing_to_ask,
    task_parts,
    texts_of_run,
)
from uncanny.eval.common.frames import Cells
from uncanny.eval.common.run_result import Records, RunResult
from uncanny.eval.curate.parameters import FilterConfig, FilterParameters, FilterQuestion
from uncanny.images.prepared import PreparedImage, prepare, stored_size
from uncanny.models.base import sent_image
from uncanny.models.tokens import image_tokens, text_tokens
from uncanny.parameters import takes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.runs.forecast import UsageCounter, pending_inputs, prompt_tokens
from uncanny.runs.image_task import other_models
from uncanny.runs.inputs import mean_size
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import StepError

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.runs.engine import Engine

FILTERED: Final = "filtered.jsonl"
# Which verdict lets an image or a prompt in.
_PASSES: Final[Mapping[FilterQuestion, YesNo]] = {"photo": "yes", "blurred": "no", "prompt": "yes"}
# Sizes are taken from so many pictures.
_MOST_OPENED: Final = 200


class Filtered(Written):
    """One line of `filtered.jsonl`: what a model said of an image or a prompt.

    `passed` is whether it is fit: a photograph, nothing blurred, a prompt for a photograph; None without a
    verdict. `answer` has the model's reason.
    """

    question: FilterQuestion
    caption: str | None
    passed: bool | None = None
    answer: str | None = None


class FilterRun(RunResult[Filtered]):
    """A run of `uncanny.curate.filter`: a record, and a row, for each image or prompt."""

    task = "filter"
    record_file = FILTERED
    record_type = Filtered
    record_key = ("id",)
    statuses = STATUSES
    columns: ClassVar[Cells] = {
        **dict.fromkeys(("id", "original", "caption", "question"), "text"),
        "passed": "flag",
        **dict.fromkeys(("answer", "outcome", "model"), "text"),
    }

    @property
    def filtered(self) -> Records[Filtered]:
        """In order of ids when the run is finished."""
        return self.records

    def passed(self) -> list[str]:
        """The ids of what is fit."""
        return [record.id for record in self.records if record.passed]


def filter_task(parameters: FilterParameters, texts: TextSource, *, copy: bool = True) -> FilterTask:
    """The task over these images or prompts; `copy` False leaves bundled pictures where they are.

    Raises UsageError. Blocking.
    """
    task = FilterTask(**task_parts("curate", texts, parameters), config=parameters.part(FilterConfig))
    sees = STEPS[task.config.question].sees_image
    if not any(image.original if sees else image.caption for image in task.texts.images):
        raise nothing_to_ask(task.texts, "an image (`original`)" if sees else "a prompt (`caption`)")
    task.texts = texts_of_run(task.texts, task.folder.path, copy=copy)
    return task


@takes(FilterParameters, "out")
async def filter_async(texts: TextSource, parameters: FilterParameters) -> FilterRun:
    """Ask a model which images or prompts are fit for a set of photographs, one call each.

    `texts` are a JSON Lines file with a `DescribedImage` a line, the word `scenes` for the bundled set, or
    records. About an image, `original` is shown with its `caption`, if it has one; as a prompt, the `caption`
    alone is asked about. The same call resumes a run that was interrupted.

    Returns the run, even if it ended early or some images failed: see its `summary` and the records'
    `outcome`. Raises UsageError for invalid parameters, and ModelUnusableError if the model cannot be called
    at all.

    `filter_async` is the same for programs with an event loop.

    >>> run = uncanny.curate.filter("scenes", model="demo", out=out)
    >>> len(run.filtered), run.passed()
    (16, [])
    >>> asyncio.run(uncanny.curate.filter_async("scenes", model="demo", out=out)).summary.state
    'finished'

    Source: X-AIGD, appendix A.2; AnomReason, section 4.3.
    """
    task = await asyncio.to_thread(filter_task, parameters, texts)
    return FilterRun(task.folder.path, await run_with(task, parameters))


filter = blocking(filter_async)


@takes(FilterParameters)
def filter_forecast(texts: TextSource, parameters: FilterParameters) -> WritingForecast:
    """Forecast the calls, tokens and cost of `filter` with the same parameters; see `annotate_forecast`.

    >>> uncanny.curate.filter_forecast("scenes", model="openai/gpt-4o").calls_usual
    16
    """
    task = filter_task(parameters, texts, copy=False)
    step = STEPS[task.config.question]
    pending = pending_inputs(task)
    asked = task.models.roles.get("filter", task.models.model)
    files = [task.file(item) if step.sees_image else None for item in pending]
    sizes = {
        file: stored_size(file)
        for file in sorted({file for file in files if file is not None})[:_MOST_OPENED]
    }
    image = image_tokens(str(asked), *mean_size([size for size in sizes.values() if size is not None]))
    counter, lacking = UsageCounter(asked), 0
    for item, file in zip(pending, files, strict=True):
        if task.lacking(item) is not None or (file is not None and sizes.get(file, (1, 1)) is None):
            lacking += 1
            continue
        text = prompt_tokens(task.prompts, "system", step.prompt) + text_tokens(item.image.caption or "")
        counter.add(text, *([] if file is None else [image]), output=step.answer.fixed)
    kind = _ImagesForecast if step.sees_image else WritingForecast
    return forecast_of(task, len(pending), lacking, counter, kind)


class _ImagesForecast(WritingForecast):
    """Of questions about images."""

    unit = "images"


@dataclass(frozen=True, slots=True)
class AskedImage:
    """One image, or one prompt."""

    image: DescribedImage

    @property
    def key(self) -> str:
        return self.image.id


@dataclass(kw_only=True)
class FilterTask(TextTask[AskedImage, Filtered]):
    """The task of filtering."""

    name = "filter"
    record_file = FILTERED
    record_type = Filtered
    roles = ROLES
    calls_per_input = 1

    config: FilterConfig = field(default_factory=FilterConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("curate"))

    @property
    def unit(self) -> str:  # type: ignore[override]  # another class has one for all questions
        return "images" if STEPS[self.config.question].sees_image else "texts"

    def key(self, record: Filtered) -> str:
        return record.id

    def asked(self) -> Sequence[AskedImage]:
        return [AskedImage(image) for image in self.texts.images]

    def about(self, item: AskedImage) -> Sequence[object]:
        return (item.image.caption,)

    def lacking(self, item: AskedImage) -> str | None:
        """Why nothing can be asked about an input."""
        if STEPS[self.config.question].sees_image:
            return None if item.image.original else "it has no image (`original`)"
        return None if item.image.caption else "it has no caption"

    async def process(self, item: AskedImage, engine: Engine, calls: list[CallRecord]) -> Sequence[Filtered]:
        lacking = self.lacking(item)
        if lacking is not None:
            why = StepError(agent="input", step=0, kind="unusable", message=lacking)
            return (self.record(item, "unusable", errors=(why,)),)
        image: PreparedImage | None = None
        file = self.file(item) if STEPS[self.config.question].sees_image else None
        if file is not None:
            try:
                image = await asyncio.to_thread(prepare, file, self.policy, engine.limits)
            except ImageError as error:
                why = StepError(agent="image", step=0, kind=error.kind, message=str(error))
                return (self.record(item, "unusable", errors=(why,)),)
        with asking(engine, item.key, calls) as scope:
            sent = None if image is None else sent_image(image)
            context = AgentContext(engine.model_client, scope, self.config, self.prompts)
            try:
                said = await ask_filter(self.config.question, item.image.caption, sent, context)
                passed = said.verdict == _PASSES[self.config.question]
                fields: dict[str, Any] = {"outcome": "ok", "passed": passed, "answer": said.answer}
            except StepFailedError as failed:
                fields = failure(failed)
        more = other_models(calls, str(self.models.model))
        return (self.record(item, image=image, usage=usage(calls), **fields, **more),)

    def record(
        self, item: AskedImage, outcome: WriteOutcome, *, image: PreparedImage | None = None, **more: Any
    ) -> Filtered:
        return Filtered(
            **self.common(item, image),
            outcome=outcome,
            question=self.config.question,
            caption=item.image.caption,
            **more,
        )
