"""Annotating images: the public function, the task of a run, and the record of one image.

`annotate` takes a folder of images to a finished, or resumable, run. It has an `_async` twin for programs
with an event loop of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypedDict, Unpack, cast

from uncanny.agents import ROLES, AnnotateConfig
from uncanny.agents.annotate_context import AnnotateContext, system_text
from uncanny.agents.config import Strictness
from uncanny.agents.own_agent import OwnAgent, check_agents, own_calls
from uncanny.agents.steps import ScheduleName
from uncanny.annotation.usage import Plan, usual_contents
from uncanny.answers.boxes import BoxFormatName
from uncanny.client.calls import usage
from uncanny.errors import StorageError, UsageError
from uncanny.eval.common.frames import FILE, USAGE, Cells, Row, table_cells
from uncanny.eval.common.run_result import ImagesRun, Records
from uncanny.images import PreparedImage
from uncanny.models.base import Sampling
from uncanny.parameters import called_right, check_callback, check_parameters
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.annotation_table import RecordFormat, check_format
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunForecast
from uncanny.runs.config import (
    AskOptions,
    check_options,
)
from uncanny.runs.image_options import ImageOptions, Images, image_run, read_config
from uncanny.runs.image_task import MOST_IMAGES_AT_ONCE, ImageTask, other_models, sent_image
from uncanny.runs.inputs import ImageFile, sample_sizes
from uncanny.runs.progress import Progress
from uncanny.runs.resume import binding_manifest
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import asking
from uncanny.schema import STATUSES, Annotation, StepError, as_count
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.agents.state import Context
    from uncanny.client.calls import CallRecord
    from uncanny.client.prices import PriceTable
    from uncanny.eval.common.pictures import PicturesMode
    from uncanny.graphs.annotate import AnnotateGraph, AnnotateNodes
    from uncanny.graphs.packed import PackedGraph, PackedNodes
    from uncanny.runs.engine import Engine

CALLS_AN_IMAGE_AT_ONCE = 4


_NAMES: Final[Cells] = {"image": "text", "status": "text", "model": "text"}
_FINDING: Final[Cells] = {
    "finding": "whole",
    "name": "text",
    "phenomenon": "text",
    "reasoning": "text",
    "severity": "whole",
    "kind": "text",
    "box": "wholes",
    "objects": "texts",
    "found_by": "texts",
}
_LISTS = ("box", "objects", "found_by")
_IMAGE: Final[Cells] = {
    "anomalies": "whole",
    "objects": "texts",
    "errors": "texts",
    "duplicate_of": "text",
    "schedule": "text",
    "prompts": "text",
    "row": "whole",
    "format": "text",
    "bytes": "whole",
}


class AnnotateRun(ImagesRun[Annotation]):
    """A run of `annotate`: a record an image, and a row an anomaly, or an image, as a data frame."""

    task = "annotate"
    record_file = "annotations.jsonl"
    record_type = Annotation
    record_key = ("image",)
    statuses = STATUSES
    finding_columns: ClassVar[Cells] = {**_NAMES, **_FINDING, **FILE}
    image_columns: ClassVar[Cells] = {**_NAMES, **_IMAGE, **FILE, **USAGE}
    columns = finding_columns

    @property
    def annotations(self) -> Records[Annotation]:
        """One for each image, in order of their names when the run is finished."""
        return self.records

    def report(self, out: str | Path | None = None, *, pictures: PicturesMode = "link") -> Path:
        """Write the page of the run, `report.html` in its folder unless `out` names another file.

        Full-size `pictures` are linked from their files, or embedded in the page.
        """
        from uncanny.annotation.report.page import write_report

        check_parameters(out=out)
        self.check_not_lost()
        return write_report(self.path, out=None if out is None else Path(out), pictures=pictures)

    def to_json(self) -> dict[str, Any]:
        """What the command prints with `--json`."""
        end, summary = self.end, self.summary
        manifest = self.manifest.written() if end is None else end.manifest
        page = RunFolder(self.path).report
        return {
            "run": str(self.path),
            "state": manifest.get("state"),
            "annotations": str(self.path / self.record_file),
            "report": str(page) if page.is_file() else None,
            "totals": manifest.get("totals"),
            "failures": [
                {
                    "image": record.image,
                    "status": record.status,
                    "errors": [error.model_dump() for error in record.errors],
                }
                for record in self.records
                if record.status != "ok"
            ],
            "skipped": dict(self.manifest.skipped_counts),
            "warnings": list(summary.warnings),
            "error": summary.error,
        }

    def finding_rows(self) -> Iterator[Row]:
        for record in self.records:
            image = self.identity(record) | table_cells(record)
            for number, anomaly in enumerate(record.anomalies, 1):
                finding = {name: getattr(anomaly, name) for name in _FINDING if name != "finding"}
                lists = {name: [*value] for name in _LISTS if (value := finding[name]) is not None}
                yield image | finding | lists | {"finding": number}
            if not record.anomalies:
                yield image | dict.fromkeys(_FINDING)

    def image_rows(self) -> Iterator[Row]:
        for record in self.records:
            more, pixels = record.model_extra or {}, record.pixels
            yield {
                **self.identity(record),
                "anomalies": len(record.anomalies) if self.was_examined(record) else None,
                "objects": [each.name for each in record.objects],
                "errors": [each.message for each in record.errors],
                "format": None if pixels is None else pixels.format,
                "bytes": None if pixels is None else pixels.bytes,
                "prompts": record.prompts,
                "schedule": _text(more.get("schedule")),
                "duplicate_of": _text(more.get("duplicate_of")),
                "row": as_count(more.get("row")),
                **{name: getattr(record.usage, name) for name in USAGE},
                **table_cells(record),
            }

    def identity(self, record: Annotation) -> Row:
        """What both kinds of rows say of an image."""
        return {name: getattr(record, name) for name in (*_NAMES, *FILE)}

    def was_examined(self, record: Annotation) -> bool:
        """Whether an image without findings is one in which none was found."""
        return record.status in ("ok", "partial")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


class ScheduleOptions(TypedDict, total=False):
    """How one image is annotated, as keyword options."""

    schedule: ScheduleName | None
    repeats: int | None
    max_objects: int | None
    scene_scans: int | None
    batch_objects: int | None
    strictness: Strictness
    language: str
    box_format: BoxFormatName | None
    formatter_output_tokens: int | None


class AnnotateOptions(ImageOptions, ScheduleOptions, total=False):
    """The parameters of `annotate` that say how images are annotated, for functions that hand them on."""


@called_right
async def annotate_async(
    images: Images,
    *,
    model: str,
    out: str | Path,
    root: str | Path | None = None,
    schedule: ScheduleName | None = None,
    repeats: int | None = None,
    max_objects: int | None = None,
    scene_scans: int | None = None,
    batch_objects: int | None = None,
    strictness: Strictness = "open",
    language: str = "English",
    box_format: BoxFormatName | None = None,
    temperature: float | None = 0.3,
    top_p: float | None = 0.95,
    max_output_tokens: int = 2_000,
    formatter_output_tokens: int | None = None,
    max_side: int | None = None,
    image_format: Literal["keep", "png", "jpeg"] = "keep",
    jpeg_quality: int = 95,
    max_pixels: int = 100_000_000,
    image_column: str | None = None,
    columns: Sequence[str] | None = None,
    format: RecordFormat = "jsonl",
    agents: Sequence[OwnAgent] = (),
    nodes: AnnotateNodes | PackedNodes | None = None,
    graph: AnnotateGraph[Context] | PackedGraph[Context] | None = None,
    on_image: Callable[[Annotation], None] | None = None,
    **options: Unpack[AskOptions],
) -> AnnotateRun:
    """Find what is wrong in images: validated anomalies with name, phenomenon, reasoning and severity.

    `images` are files and folders, also Parquet and Arrow files with pictures in their rows. Results go to
    `out` as they come; the same call goes on where it stopped.
    `schedule` says how the agents are asked: `packed`, several objects a call, is the default; `paper` asks
    about one at a time, as published; `single` is one call for all. A run that stands goes on with its own.
    `repeats` drafts of the object list are merged (1, of `paper` 3), `max_objects` (12) of the objects
    examined, `batch_objects` (6) of them in one call of `packed`, `scene_scans` open looks at the whole image
    added (1, of `paper` none); what a schedule has no use for is refused. With `strictness` "open" what is
    odd and unlikely counts too, "strict" is impossibilities only. `language` is that of the answers.
    `box_format` is how models are asked for boxes; None goes by their names. Sampling is sent where the model
    takes it, None leaves the model's own; `max_output_tokens`, and `formatter_output_tokens` (5,000) of the
    formatter, are doubled when an answer is cut off. `max_side`, `image_format` and `jpeg_quality` change the
    pixels that are sent, images above `max_pixels` are not opened. `image_column` is where Parquet and Arrow
    files have their pictures, if in several columns. With the `format` "parquet" the records are also a
    table, `annotations.parquet`, when a session ends. `root` is where names in records start, the run folder
    by default. `on_image` gets each record when it is on disk.
    `options`: see `AskOptions`.

    Returns the run, also where it ended early or some images failed: see its `summary` and the records'
    `status`. Raises UsageError for what cannot be done, ModelUnusableError where the model could not be
    asked at all.

    `agents` of your own, each an `uncanny.extend.OwnAgent`, are asked beside those of the schedule `packed`.
    `nodes` replace nodes of the schedule by name, `perceive`, `attributes`, `relations`, `integrate`, `scan`
    or `format`: `async def node(state, image)` from what is known to what it adds; `packed` and `paper` have
    the same names and different states. `graph` is a compiled LangGraph over the schedule's state in place of
    the whole. What was added or replaced stands in `run.json`, and such a run resumes with the same only.

    `annotate_async` is the same for programs with an event loop: several may go on at once, each with an
    `out` of its own; one that is cancelled writes down how far it came.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> run.summary.state
    'finished'
    >>> again = asyncio.run(uncanny.annotate_async(images, model="demo", out=out))
    >>> len(again.annotations)
    1

    Source: AnomReason, section 2 and appendix D.
    """
    check_callback("on_image", on_image)
    all_options: AnnotateOptions = {
        **options,
        "schedule": schedule,
        "repeats": repeats,
        "max_objects": max_objects,
        "scene_scans": scene_scans,
        "batch_objects": batch_objects,
        "strictness": strictness,
        "language": language,
        "box_format": box_format,
        "temperature": temperature,
        "top_p": top_p,
        "max_output_tokens": max_output_tokens,
        "formatter_output_tokens": formatter_output_tokens,
        "max_side": max_side,
        "image_format": image_format,
        "jpeg_quality": jpeg_quality,
        "max_pixels": max_pixels,
        "image_column": image_column,
        "columns": columns,
    }
    check_options(all_options, AnnotateOptions, out=out, root=root)
    config = annotate_config(all_options, RunFolder(Path(out)))
    task = AnnotateTask(
        **image_run(config.table.prompts, images, model, out, root, all_options, AnnotateOptions),
        config=config,
        agents=agents,
        nodes=nodes,
        graph=graph,
        format=check_format(format),
    )
    end = await run_with(task, options, on_image)
    return AnnotateRun(out, end)


annotate = blocking(annotate_async)


# None is what the schedule takes by itself, and not what somebody asked for.
_AS_THE_SCHEDULE_HAS_THEM: Final = (
    "schedule",
    "repeats",
    "max_objects",
    "scene_scans",
    "batch_objects",
    "box_format",
    "formatter_output_tokens",
)


def annotate_config(options: Mapping[str, object], folder: RunFolder | None = None) -> AnnotateConfig:
    """The parameters of annotation in `options`. Raises UsageError that names what is out of range.

    Without a schedule it is that of the run in `folder`, else the default.
    """
    values: dict[str, Any] = {
        name: value
        for name, value in options.items()
        if value is not None or name not in _AS_THE_SCHEDULE_HAS_THEM
    }
    if "schedule" not in values and folder is not None:
        before = binding_manifest(folder)
        if before is not None and before.task == "annotate" and "schedule" in before.plan:
            values["schedule"] = before.plan["schedule"]
    config = read_config(AnnotateConfig, cast("AnnotateOptions", values))
    config.check_effect(values)
    return config


@dataclass(kw_only=True)
class AnnotateTask(ImageTask[Annotation]):
    """The task of annotating images with one configuration."""

    name = "annotate"
    record_type = Annotation

    config: AnnotateConfig = field(default_factory=AnnotateConfig)
    agents: Sequence[OwnAgent] = ()
    nodes: AnnotateNodes | PackedNodes | None = None
    graph: AnnotateGraph[Context] | PackedGraph[Context] | None = None
    # Unless given, the set of the schedule, which no default of a field can know.
    prompts: PromptSet = None  # type: ignore[assignment]

    @property
    def roles(self) -> Mapping[str, str]:
        return {**ROLES, **{agent.name: agent.name for agent in self.agents}}

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.config.temperature, self.config.top_p, self.config.max_output_tokens)

    @property
    def inputs_at_once(self) -> int:
        return min(MOST_IMAGES_AT_ONCE, -(-self.options.concurrency // CALLS_AN_IMAGE_AT_ONCE) + 2)

    @property
    def calls_per_input(self) -> int:
        objects = usual_contents(self.config).objects
        return self.config.calls(objects) + own_calls(self.agents, self.config.times(objects))

    def __post_init__(self) -> None:
        if self.prompts is None:
            self.prompts = prompt_set(self.config.table.prompts)
        self.agents = check_agents(self.agents)
        schedule = self.config.schedule
        if self.nodes and schedule == "single":
            raise UsageError(
                "The schedule `single` has no nodes to replace", remedy="Give a graph, or another schedule."
            )
        if self.agents and schedule != "packed":
            raise UsageError(
                f"Agents of your own cannot be added to the schedule `{schedule}`",
                remedy="Leave out the schedule, or give a graph.",
            )
        if self.graph is not None and (self.nodes is not None or self.agents):
            raise UsageError(
                f"Both {'nodes' if self.nodes is not None else 'agents'} and a graph are given",
                remedy="Put them into the graph, as `packed_graph(nodes, agents)` does, or leave one out.",
            )
        if self._is_own:
            self.config_json()  # refuses what is not a graph or a node
        if self.graph is not None:
            self._check_schedule(self.graph)
        elif not self.nodes:
            self._check_roles()

    @property
    def _is_own(self) -> bool:
        """Whether images are taken through another graph than the schedule's."""
        return bool(self.nodes or self.agents or self.graph is not None)

    def _check_schedule(self, graph: AnnotateGraph[Context] | PackedGraph[Context]) -> None:
        """Raises UsageError for a graph of ours that asks with the prompts of another schedule."""
        from uncanny.graphs.annotate import graph_schedule

        made_for = graph_schedule(graph)
        if made_for not in (None, self.config.schedule):
            raise UsageError(
                f"The graph was made for the schedule `{made_for}`, and the run has the schedule "
                f"`{self.config.schedule}`",
                remedy=f"Give {option('schedule', made_for)}, or a graph made for `{self.config.schedule}`.",
            )

    def _check_roles(self) -> None:
        """Raises UsageError for the role of an agent that is never asked."""
        asked = self.config.agents()
        idle = [role for role in self.models.roles if role in ROLES and ROLES[role] not in asked]
        if idle:
            raise UsageError(
                f"{option('roles')} {idle[0]} has no effect: with these settings the schedule "
                f"`{self.config.schedule}` never asks the {ROLES[idle[0]]}",
                remedy="Leave it out, or take another schedule.",
            )

    def warnings(self, progress: Progress) -> Sequence[str]:
        blank, images = progress.without_objects, progress.total
        if not blank or self.config.schedule == "single" or self.config.scene_scans or self.graph is not None:
            return ()
        examined = "so that nothing in them was examined: they count as flawless"
        return (f"The model named no object in {blank:,} of {images:,} images, {examined}",)

    def config_json(self) -> dict[str, Any]:
        content = self.config.model_dump()
        if self._is_own:
            from uncanny.graphs.annotate import graph_names

            content["graph"] = graph_names(self.compiled_graph)
        return content

    def system_text(self) -> str:
        return system_text(self.prompts, self.config)

    def forecast(self, prices: PriceTable) -> RunForecast | None:
        if self.nodes or self.graph is not None or any(agent.look is not None for agent in self.agents):
            return None
        try:
            sizes, unreadable = sample_sizes(self.files)
        except StorageError:  # which the first image meets, too
            return None
        images = len(self.files) - unreadable
        plan = Plan(self.config, self.prompts, self.models, self.policy, tuple(self.agents))
        usage = plan.usage(prices, images, sizes)
        return RunForecast(
            images=images,
            objects_per_image=usual_contents(self.config).objects,
            calls=usage.calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cost_usd=usage.cost_usd,
        )

    @cached_property
    def compiled_graph(self) -> AnnotateGraph[Context] | PackedGraph[Context]:
        if self.graph is not None:
            return self.graph
        from uncanny.graphs.packed import schedule_graph  # LangGraph takes half a second to import

        return schedule_graph(self.config.schedule, self.nodes, self.agents)

    async def examine(
        self, file: ImageFile, image: PreparedImage, engine: Engine, calls: list[CallRecord]
    ) -> Annotation:
        with asking(engine, file.image, calls) as scope:
            context = AnnotateContext(
                engine.model_client,
                scope,
                self.config,
                self.prompts,
                sent_image(image),
                size=(image.width, image.height),
                source=file.source,
                source_sha256=image.source_sha256,
                max_pixels=self.policy.max_pixels,
            )
            state = await self.compiled_graph.ainvoke({"image": file.image}, context=context)
        return self._annotation(file, image, state, context)

    def _annotation(
        self, file: ImageFile, image: PreparedImage, state: dict[str, Any], context: AnnotateContext
    ) -> Annotation:
        branches = sorted(
            (*state.get("examined", ()), *state.get("sightings", ())), key=lambda branch: branch["order"]
        )
        errors = [error for branch in branches for error in branch_errors(branch)]
        failure = state.get("failure")
        if failure is None and "anomalies" not in state:
            raise TypeError("the graph set neither 'anomalies' nor 'failure': nothing is known of the image")
        # When nothing came through, an empty list would read as a flawless image.
        nothing = bool(branches) and not any(
            branch.get("answered", branch.get("error") is None) for branch in branches
        )
        errors = [*errors, *state.get("errors", ()), *([failure] if failure else [])]
        failed = failure is not None or nothing
        cut = [each.model_dump(exclude_none=True) for each in state.get("cut", ())]
        candidates = [each.model_dump() for each in state.get("candidates", ())]
        boxes = context.boxes
        return self.record(
            file,
            image,
            "failed" if failed else "partial" if errors else "ok",
            anomalies=tuple(state.get("anomalies", ())),
            objects=tuple(state.get("objects", ())),
            errors=tuple(errors),
            usage=usage(context.scope.calls),
            **({} if self.config.schedule == "paper" else {"schedule": self.config.schedule}),
            **({"cut_objects": cut} if cut else {}),
            **({"left_out": dict(sorted(context.left_out.items()))} if context.left_out else {}),
            **({"candidates": candidates} if candidates else {}),
            **({"boxes": boxes.as_recorded()} if boxes.given else {}),
            **other_models(context.scope.calls, str(self.models.model)),
        )


def branch_errors(branch: Mapping[str, Any]) -> Sequence[StepError]:
    """The errors of one branch of either graph."""
    error = branch.get("error")
    return branch.get("errors", ()) if error is None else (error,)
