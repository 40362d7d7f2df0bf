"""Having inpainting prompts written by a model: the public functions, the run they return, and its task.

Source: SAGI, supplementary, section 1.3 (SAOR).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Unpack, cast, get_args

from uncanny.agents.prompt_writer import ROLES
from uncanny.client.calls import usage
from uncanny.errors import UsageError
from uncanny.eval.common.frames import Cells, Row, table_cells
from uncanny.eval.common.run_result import Records, RunResult
from uncanny.eval.edits.run.texts import (
    STATUSES,
    DescribedImage,
    TextSource,
    TextTask,
    WriteOutcome,
    Written,
    failure,
    nothing_to_ask,
    text_run,
    texts_of_run,
    unusable,
)
from uncanny.images import PreparedImage
from uncanny.parameters import called_right, check_parameters
from uncanny.runs.config import AskOptions, SamplingConfig
from uncanny.runs.image_task import other_models
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import Record

if TYPE_CHECKING:
    from uncanny.client.calls import CallRecord
    from uncanny.graphs.edits import PromptsState
    from uncanny.runs.engine import Engine

PROMPTS: Final = "prompts.jsonl"
Mode = Literal["inpaint", "double", "remove"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class PromptsConfig(SamplingConfig):
    """Sampling as in the paper (SAGI, supplementary, section 1.3), where the model takes it.

    `mode`: `inpaint` one object, `double` two one after the other, or choose one to `remove`. An answer that
    40 tokens cut off is asked for again with twice as many; what is kept has 30 words at most.
    """

    temperature: float | None = 1.2
    top_p: float | None = 0.8
    max_output_tokens: int = 40
    mode: Mode = "inpaint"

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        SamplingConfig.__post_init__(self)
        if self.mode not in MODES:
            raise UsageError(f"There is no mode {self.mode!r}", remedy=f"They are called {', '.join(MODES)}.")


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

    mode: Mode
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


class PromptsOptions(AskOptions, total=False):
    """The keyword options of `prompts`: those of every function that asks models, and its own."""

    root: str | os.PathLike[str] | None
    mode: Mode
    temperature: float | None
    top_p: float | None
    max_output_tokens: int


@called_right
async def prompts_async(
    texts: TextSource,
    *,
    model: str,
    out: str | os.PathLike[str],
    root: str | os.PathLike[str] | None = None,
    mode: Mode = "inpaint",
    temperature: float | None = 1.2,
    top_p: float | None = 0.8,
    max_output_tokens: int = 40,
    **options: Unpack[AskOptions],
) -> PromptsRun:
    """Have a model choose an object of each picture, and write what an inpainting model is to put there.

    `texts` are those of `perturb`; each has `objects` and, unless one is to be removed, a `caption`. `mode`:
    `inpaint` one object, `double` a second one after it, or choose one to `remove`. The object has to be one
    of the list, and the prompt has to pass the gates of a caption; else it is asked for again, twice at most.
    The model does not see pictures.

    `out`, `root` and `options` are those of `perturb`. Sampling is that of the paper, sent
    where the model takes it, None leaves the model's own; `max_output_tokens` are doubled when an answer is
    cut off.

    Returns the run, also where it ended early or some texts failed: see its `summary` and the records'
    `outcome`. Raises UsageError for what cannot be done, ModelUnusableError where the model could not be
    asked at all.

    `prompts_async` is the same for programs with an event loop.

    >>> run = uncanny.edits.prompts("scenes", model="demo", out=out, mode="double")
    >>> len(run.prompts), len(run.prompts[0].edits)
    (16, 2)
    >>> again = asyncio.run(uncanny.edits.prompts_async("scenes", model="demo", out=out, mode="double"))
    >>> again.summary.state
    'finished'

    Source: SAGI, supplementary, section 1.3.
    """
    own: PromptsOptions = {
        "root": root,
        "mode": mode,
        "temperature": temperature,
        "top_p": top_p,
        "max_output_tokens": max_output_tokens,
    }
    task = await asyncio.to_thread(prompts_task, texts, model, out, {**own, **options})
    return PromptsRun(Path(out), await run_with(task, options))


prompts = blocking(prompts_async)


def prompts_config(options: PromptsOptions) -> PromptsConfig:
    """The parameters in `options`. Raises UsageError."""
    values = {name: value for name, value in options.items() if name in PromptsConfig.__dataclass_fields__}
    check_parameters(root=options.get("root"), **values)
    return PromptsConfig(**cast("dict[str, Any]", values))


def prompts_task(
    texts: TextSource,
    model: str,
    out: str | os.PathLike[str],
    options: PromptsOptions,
    *,
    copy: bool = True,
) -> PromptsTask:
    """The task of a run; `copy` False leaves bundled pictures where they are. Raises UsageError."""
    config = prompts_config(options)
    task = PromptsTask(
        **text_run(texts, model, out, options.get("root"), options, PromptsOptions), config=config
    )
    if not any(image.objects for image in task.texts.images):
        raise nothing_to_ask(task.texts, "a list of what is in it (`objects`)")
    task.texts = texts_of_run(task.texts, Path(out), copy=copy)
    return task


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

    def config_json(self) -> dict[str, Any]:
        return asdict(self.config)

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
            return (self.record(item, "unusable", errors=(unusable(lacking),)),)
        from uncanny.graphs.edits import (
            WriterContext,
            prompts_graph,
        )  # LangGraph takes half a second to import

        with asking(engine, item.key, calls) as scope:
            context = WriterContext(engine.model_client, scope, self.config, self.prompts)
            given: PromptsState = {
                "caption": item.image.caption or "",
                "objects": item.objects,
                "mode": self.config.mode,
            }
            state = cast("PromptsState", await prompts_graph().ainvoke(given, context=context))
        edits = tuple(
            PlannedEdit(object=edit.object, prompt=edit.prompt)
            for edit in (state.get("first"), state.get("second"))
            if edit is not None
        )
        fields = failure(state["failure"]) if "failure" in state else {"outcome": "ok"}
        more = other_models(calls, str(self.models.model))
        return (self.record(item, edits=edits, usage=usage(calls), **fields, **more),)

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
