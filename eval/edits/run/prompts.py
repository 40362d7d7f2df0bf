"""Having inpainting prompts written by a model: the public functions, the run they return, and its task.

Source: SAGI, supplementary, section 1.3 (SAOR).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.agents.common.context import AgentContext
from uncanny.agents.prompt_writer import ROLES, write_edits
from uncanny.answers.writings import EditMode, InpaintingPrompt
from uncanny.client.calls import usage
from uncanny.errors import StepFailedError
from uncanny.eval.common.described import (
    STATUSES,
    DescribedImage,
    TextSource,
    TextTask,
    WriteOutcome,
    Written,
    failure,
    nothing_to_ask,
    task_parts,
    texts_of_run,
)
from uncanny.eval.common.frames import Cells, Row, table_cells
from uncanny.eval.common.run_result import Records, RunResult
from uncanny.eval.edits.run.parameters import PromptsConfig, PromptsParameters
from uncanny.images.prepared import PreparedImage
from uncanny.parameters import takes
from uncanny.runs.image_task import other_models
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import Record, StepError

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.runs.engine import Engine

PROMPTS: Final = "prompts.jsonl"


class PlannedEdit(Record):
    """One edit: the `object` as the list of objects has it, and what is to be seen there instead.

    `prompt` is None where the object is to be removed.
    """

    object: str
    prompt: str | None


class WrittenPrompts(Written):
    """One line of `prompts.jsonl`: the edits that were thought out for a picture, in their order.

    Of a `double` edit the first alone is there where no second came.
    """

    mode: EditMode
    caption: str | None
    objects: tuple[str, ...]
    edits: tuple[PlannedEdit, ...] = ()


_PICTURE: Final[Cells] = dict.fromkeys(("id", "mode", "outcome", "model"), "text")
_EDIT: Final[Cells] = dict.fromkeys(("object", "prompt"), "text")


class PromptsRun(RunResult[WrittenPrompts]):
    """A run of `uncanny.edits.prompts`: a record a picture, and a row an edit as a data frame."""

    task = "prompts"
    record_file = PROMPTS
    record_type = WrittenPrompts
    record_key = ("id",)
    statuses = STATUSES
    columns: ClassVar[Cells] = {**_PICTURE, **_EDIT}

    @property
    def prompts(self) -> Records[WrittenPrompts]:
        """One for each picture, in order of their ids when the run is finished."""
        return self.records

    def rows(self) -> Iterator[Row]:
        """One an edit; a picture without any has one row, whose object is None."""
        for record in self.records:
            picture = {name: getattr(record, name) for name in _PICTURE} | table_cells(record)
            for edit in record.edits or (None,):
                yield picture | {name: None if edit is None else getattr(edit, name) for name in _EDIT}


def prompts_task(parameters: PromptsParameters, texts: TextSource, *, copy: bool = True) -> PromptsTask:
    """The task over these texts; `copy` False leaves bundled pictures where they are.

    Raises UsageError. Blocking.
    """
    task = PromptsTask(**task_parts("edits", texts, parameters), config=parameters.part(PromptsConfig))
    if not any(image.objects for image in task.texts.images):
        raise nothing_to_ask(task.texts, "a list of what is in it (`objects`)")
    task.texts = texts_of_run(task.texts, task.folder.path, copy=copy)
    return task


@takes(PromptsParameters, "out")
async def prompts_async(texts: TextSource, parameters: PromptsParameters) -> PromptsRun:
    """Ask a model to choose an object in each image, and to write the prompt for an inpainting model.

    `texts` are those of `perturb`; each has `objects` and, unless one is to be removed, a `caption`. The
    object has to be one of the list, and the prompt has to pass the gates of a caption; else it is asked for
    again, twice at most. The model does not see pictures.

    Returns the run, even if it ended early or some texts failed: see its `summary` and the records'
    `outcome`. Raises UsageError for invalid parameters, and ModelUnusableError if the model cannot be called
    at all.

    `prompts_async` is the same for programs with an event loop.

    >>> run = uncanny.edits.prompts("scenes", model="demo", out=out, mode="double")
    >>> len(run.prompts), len(run.prompts[0].edits)
    (16, 2)
    >>> again = asyncio.run(uncanny.edits.prompts_async("scenes", model="demo", out=out, mode="double"))
    >>> again.summary.state
    'finished'

    Source: SAGI, supplementary, section 1.3.
    """
    task = await asyncio.to_thread(prompts_task, parameters, texts)
    return PromptsRun(task.folder.path, await run_with(task, parameters))


prompts = blocking(prompts_async)


@dataclass(frozen=True, slots=True)
class AskedPrompts:
    """One picture."""

    image: DescribedImage

    @property
    def key(self) -> str:
        return self.image.id

    @property
    def objects(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys(self.image.objects or ()))


@dataclass(kw_only=True)
class PromptsTask(TextTask[AskedPrompts, WrittenPrompts]):
    """The task of writing prompts."""

    name = "prompts"
    record_file = PROMPTS
    record_type = WrittenPrompts
    roles = ROLES

    config: PromptsConfig = field(default_factory=PromptsConfig)

    @property
    def calls_per_input(self) -> int:
        return 2 if self.config.mode == "double" else 1

    def key(self, record: WrittenPrompts) -> str:
        return record.id

    def asked(self) -> Sequence[AskedPrompts]:
        return [AskedPrompts(image) for image in self.texts.images]

    def about(self, item: AskedPrompts) -> Sequence[object]:
        return (item.image.caption, item.objects)

    async def process(
        self, item: AskedPrompts, engine: Engine, calls: list[CallRecord]
    ) -> Sequence[WrittenPrompts]:
        lacking = self.lacking(item)
        if lacking is not None:
            why = StepError(agent="input", step=0, kind="unusable", message=lacking)
            return (self.record(item, "unusable", errors=(why,)),)
        edits: list[InpaintingPrompt] = []
        fields: dict[str, Any] = {"outcome": "ok"}
        with asking(engine, item.key, calls) as scope:
            context = AgentContext(engine.model_client, scope, self.config, self.prompts)
            try:
                await write_edits(self.config.mode, item.image.caption or "", item.objects, context, edits)
            except StepFailedError as failed:
                fields = failure(failed)
        planned = tuple(PlannedEdit(object=each.object, prompt=each.prompt) for each in edits)
        more = other_models(calls, str(self.models.model))
        return (self.record(item, edits=planned, usage=usage(calls), **fields, **more),)

    def lacking(self, item: AskedPrompts) -> str | None:
        """Why nothing can be asked about a picture."""
        needed = 2 if self.config.mode == "double" else 1
        if len(item.objects) < needed:
            return f"it has {len(item.objects)} objects, and {needed} are needed"
        if self.config.mode != "remove" and not item.image.caption:
            return "it has no caption"
        return None

    def record(
        self, item: AskedPrompts, outcome: WriteOutcome, *, image: PreparedImage | None = None, **more: Any
    ) -> WrittenPrompts:
        return WrittenPrompts(
            **self.common(item, image),
            outcome=outcome,
            mode=self.config.mode,
            caption=item.image.caption,
            objects=item.objects,
            **more,
        )
