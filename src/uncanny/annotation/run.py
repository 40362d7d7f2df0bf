"""Annotating images: the public function, the task of a run, and the record of one image.

`annotate` takes a folder of images to a finished, or resumable, run. It has an `_async` twin for programs
with an event loop of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uncanny.agents.common.annotate_context import AnnotateContext, system_text
from uncanny.agents.common.own_agent import OwnAgent, check_agents, own_calls
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import ROLES, ScheduleName
from uncanny.annotation.parameters import AnnotateParameters
from uncanny.annotation.usage import Plan, usual_contents
from uncanny.client.calls import usage
from uncanny.errors import StorageError, UsageError
from uncanny.eval.common.alike import together
from uncanny.eval.common.frames import FILE, USAGE, Cells, Row, table_cells
from uncanny.eval.common.parameters import MIN_CONFIDENCE, ReportParameters
from uncanny.eval.common.run_result import ImagesRun, Records
from uncanny.images.prepared import PreparedImage
from uncanny.models.base import sent_image
from uncanny.parameters import takes
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.annotation_table import check_format
from uncanny.records.calibration import Calibration, MadeWith
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.records.run_manifest import RunForecast
from uncanny.runs.image_task import MOST_IMAGES_AT_ONCE, Images, ImageTask, other_models, task_parts
from uncanny.runs.inputs import ImageFile, sample_sizes
from uncanny.runs.progress import Progress
from uncanny.runs.resume import binding_manifest
from uncanny.runs.run import run_with
from uncanny.runs.sync import blocking
from uncanny.runs.task import INPUTS_AHEAD, asking
from uncanny.schema import STATUSES, Annotation, Anomaly, StepError, as_count
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.agents.common.annotate_context import Context
    from uncanny.client.calls import CallRecord
    from uncanny.client.prices import PriceTable
    from uncanny.eval.common.pages.pictures import PicturesMode
    from uncanny.graphs.annotate import AnnotateGraph, AnnotateNodes
    from uncanny.graphs.packed import PackedGraph, PackedNodes
    from uncanny.runs.engine import Engine

# Images worked on side by side, for each call at once. The calls of `paper` about objects go side by side;
# those of other schedules go one after the other, with pauses in which pictures are read.
IMAGES_A_CALL: Final[dict[ScheduleName, float]] = {"single": 1.5, "packed": 1.5, "paper": 0.34}


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
    "confidence": "real",
    "probability": "real",
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

    def report(
        self,
        out: str | Path | None = None,
        *,
        max_images: int = 300,
        pictures: PicturesMode = "link",
        min_confidence: float = MIN_CONFIDENCE,
    ) -> Path:
        """Write the page of the run, `report.html` in its folder unless `out` names another file.

        At most `max_images` are shown. Full-size `pictures` are linked from their files, or embedded in the
        page. Findings below `min_confidence`, 0-1, are in no figure, and each image offers its own behind a
        click.
        """
        from uncanny.annotation.report.page import page_of

        self.check_not_lost()
        page = ReportParameters(
            out=out, max_images=max_images, pictures=pictures, min_confidence=min_confidence
        )
        return page_of(self.path, page)

    def files_json(self) -> dict[str, str | None]:
        page = RunFolder(self.path).report
        report = str(page) if page.is_file() else None
        return {"annotations": str(self.path / self.record_file), "report": report}

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


def annotate_task(parameters: AnnotateParameters, images: Images) -> AnnotateTask:
    """The task over these images. Raises UsageError."""
    config = annotate_config(parameters, parameters.folder)
    return AnnotateTask(
        **task_parts(config.table.prompts, images, parameters),
        config=config,
        agents=parameters.agents,
        nodes=parameters.nodes,
        graph=parameters.graph,
        format=check_format(parameters.format),
        calibration=parameters.read_calibration(),
    )


def annotate_config(parameters: AnnotateConfig, folder: RunFolder | None) -> AnnotateConfig:
    """What changes the annotation, without the rest of `parameters`. Raises UsageError.

    Unless a schedule is given, that of the run in `folder` is kept.
    """
    more = {}
    if "schedule" not in parameters.model_fields_set and folder is not None:
        before = binding_manifest(folder)
        if before is not None and before.task == "annotate" and "schedule" in before.plan:
            more = {"schedule": before.plan["schedule"]}
    config = parameters.part(AnnotateConfig, **more)
    config.check_effect(parameters.model_fields_set)
    return config


@takes(AnnotateParameters, "out")
async def annotate_async(images: Images, parameters: AnnotateParameters) -> AnnotateRun:
    """Find what is wrong in images: validated anomalies with name, phenomenon, reasoning and severity.

    `images` are files and folders, also Parquet and Arrow files with pictures in their rows. Results go to
    `out` as they come. The same call resumes a run that was interrupted.

    Returns the run, even if it ended early or some images failed: see its `summary` and the records'
    `status`. Raises UsageError for invalid parameters, and ModelUnusableError if the model cannot be called
    at all. Added agents and replaced nodes are recorded in `run.json`; such a run resumes only with the same
    ones.

    `annotate_async` is the same for programs with an event loop. Several can run at once, each with its own
    `out`. A run that is cancelled records how far it came.

    >>> run = uncanny.annotate(images, model="demo", out=out)
    >>> run.summary.state
    'finished'
    >>> again = asyncio.run(uncanny.annotate_async(images, model="demo", out=out))
    >>> len(again.annotations)
    1

    Source: AnomReason, section 2 and appendix D.
    """
    task = annotate_task(parameters, images)
    end = await run_with(task, parameters)
    return AnnotateRun(task.folder.path, end)


annotate = blocking(annotate_async)


@dataclass(kw_only=True)
class AnnotateTask(ImageTask[Annotation]):
    """The task of annotating images with one configuration.

    With a `calibration` each finding gets the probability that people accept it.
    """

    name = "annotate"
    record_type = Annotation

    config: AnnotateConfig = field(default_factory=AnnotateConfig)
    agents: Sequence[OwnAgent] = ()
    nodes: AnnotateNodes | PackedNodes | None = None
    graph: AnnotateGraph[Context] | PackedGraph[Context] | None = None
    calibration: Calibration | None = None
    # Unless given, the set of the schedule, which no default of a field can know.
    prompts: PromptSet = None  # type: ignore[assignment]

    @property
    def roles(self) -> Mapping[str, str]:
        return {**ROLES, **{agent.name: agent.name for agent in self.agents}}

    @property
    def inputs_at_once(self) -> int:
        images = round(self.options.concurrency * IMAGES_A_CALL[self.config.schedule])
        return min(MOST_IMAGES_AT_ONCE, images + INPUTS_AHEAD)

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
                "The schedule `single` has no nodes to replace", remedy="Pass a graph, or another schedule."
            )
        if self.agents and schedule != "packed":
            raise UsageError(
                f"Agents of your own cannot be added to the schedule `{schedule}`",
                remedy=f"Remove {option('schedule')}, or pass a graph.",
            )
        if self.graph is not None and (self.nodes is not None or self.agents):
            raise UsageError(
                f"Both {'nodes' if self.nodes is not None else 'agents'} and a graph are given",
                remedy="Put them into the graph, as `packed_graph(nodes, agents)` does, or remove one.",
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
        asked = self.config.asked_agents()
        idle = [role for role in self.models.roles if role in ROLES and ROLES[role] not in asked]
        if idle:
            raise UsageError(
                f"{option('roles')} {idle[0]} has no effect: with these settings the schedule "
                f"`{self.config.schedule}` never asks the {ROLES[idle[0]]}",
                remedy=f"Remove it, or pass another {option('schedule')}.",
            )

    def load_pending(self, records: RecordFile[Annotation], progress: Progress) -> Sequence[ImageFile]:
        for words in self.warnings_before():
            progress.warn_now(words)
        return super().load_pending(records, progress)

    def warnings_before(self) -> Sequence[str]:
        """What is to be known of the findings before a model is asked, without a full stop."""
        if self.calibration is None:
            return ()
        roles = {role: str(model) for role, model in self.models.roles.items()}
        models = (together(str(self.models.model), roles),)
        made = MadeWith(models=models, prompts=(self.prompts.id,), schedule=self.config.schedule)
        unlike = self.calibration.unlike(made)
        return () if unlike is None else (unlike.removesuffix("."),)

    def warnings(self, progress: Progress) -> Sequence[str]:
        blank, images = progress.without_objects, progress.total
        if not blank or self.config.schedule == "single" or self.config.scene_scans or self.graph is not None:
            return ()
        examined = "so that nothing in them was examined: they count as flawless"
        return (f"The model named no object in {blank:,} of {images:,} images, {examined}",)

    def config_json(self) -> dict[str, Any]:
        content = self.config.model_dump()
        if self.calibration is not None:
            content["calibration"] = self.calibration.digest
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
        errors = list[StepError]()
        for branch in branches:
            errors += branch.get("errors", ()) if branch.get("error") is None else (branch["error"],)
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
        regions = [each.model_dump() for each in state.get("regions", ())]
        boxes = context.boxes
        return self.record(
            file,
            image,
            "failed" if failed else "partial" if errors else "ok",
            anomalies=self._calibrated(state.get("anomalies", ())),
            objects=tuple(state.get("objects", ())),
            errors=tuple(errors),
            usage=usage(context.scope.calls),
            **({} if self.config.schedule == "paper" else {"schedule": self.config.schedule}),
            **({"cut_objects": cut} if cut else {}),
            **({"left_out": dict(sorted(context.left_out.items()))} if context.left_out else {}),
            **({"candidates": candidates} if candidates else {}),
            **({"regions": regions} if regions else {}),
            **({"boxes": boxes.as_recorded()} if boxes.given else {}),
            **other_models(context.scope.calls, str(self.models.model)),
        )

    def _calibrated(self, anomalies: Iterable[Anomaly]) -> tuple[Anomaly, ...]:
        return tuple(anomalies if self.calibration is None else map(self.calibration.finding, anomalies))
