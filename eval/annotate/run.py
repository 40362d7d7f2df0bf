"""`uncanny annotate` without a terminal: a folder of images to a finished, or resumable, run.

One image through the annotation graph, to a record that never lies about what went wrong."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.agents import AnnotateConfig, ImageContext
from uncanny.client.calls import CallRecord, usage
from uncanny.errors import ImageError
from uncanny.images import PixelPolicy, PreparedImage, prepare
from uncanny.models.base import Sampling, SentImage, encode_image
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.engine import Engine
from uncanny.runs.inputs import ImageFile, Inputs, find_inputs, load_pending, note_skipped
from uncanny.runs.manifest import image_protocol
from uncanny.runs.progress import Progress
from uncanny.runs.queue import Annotated
from uncanny.runs.run import RunEnd, run_task
from uncanny.schema import Annotation, Pixels, SentPixels, StepError

if TYPE_CHECKING:
    from uncanny.graphs.annotate import AnnotateState
    from uncanny.runs.engine import Engine


MOST_IMAGES_AT_ONCE = 64
CALLS_AN_IMAGE_AT_ONCE = 4
OBJECTS_AN_IMAGE = 8


@dataclass(frozen=True, slots=True)
class AnnotateJob:
    """What to annotate, how, and into which folder.

    `prompts` are the texts of a new run; one that was begun goes on with its own.
    """

    folder: RunFolder
    paths: Sequence[Path]
    models: ModelOptions
    config: AnnotateConfig = field(default_factory=AnnotateConfig)
    policy: PixelPolicy = field(default_factory=PixelPolicy)
    options: RunOptions = field(default_factory=RunOptions)
    root: Path | None = None
    prompts: PromptSet = field(default_factory=lambda: prompt_set("annotate"))

    def inputs(self) -> Inputs:
        """The images in order of their names. Raises UsageError."""
        return find_inputs(self.paths, run=self.folder.path, root=self.root, limit=self.options.limit)


def annotate(job: AnnotateJob, on_start: Callable[[Progress], None] = lambda _: None) -> RunEnd:
    """Annotate all images of `job`, going on where an earlier run of the same job stopped.

    `on_start` gets the live counters before the first call. Raises what `run_task` raises.
    """
    return run_task(job.folder, job.models, job.options, AnnotateTask(job), on_start)


@dataclass(slots=True)
class AnnotateTask:
    """The `Task` of annotating images."""

    job: AnnotateJob
    prompts: PromptSet = field(init=False)
    _by_digest: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prompts = self.job.prompts

    @property
    def agents(self) -> Mapping[str, str]:
        from uncanny.agents import ROLES

        return ROLES

    @property
    def sampling(self) -> Sampling:
        config = self.job.config
        return Sampling(config.temperature, config.top_p, config.max_output_tokens)

    @property
    def at_once(self) -> int:
        return min(MOST_IMAGES_AT_ONCE, -(-self.job.options.concurrency // CALLS_AN_IMAGE_AT_ONCE) + 2)

    @property
    def usual_calls(self) -> int:
        config = self.job.config
        return config.calls(min(OBJECTS_AN_IMAGE, config.max_objects))

    def protocol(self) -> dict[str, Any]:
        job = self.job
        return image_protocol(self.prompts, job.models, job.config.model_dump(), job.policy, job.root)

    def records(self) -> RecordFile[Annotation]:
        return RecordFile(self.job.folder.annotations, Annotation, lambda record: record.image)

    def load_pending(self, records: RecordFile[Annotation], progress: Progress) -> Sequence[ImageFile]:
        job = self.job
        inputs = job.inputs()
        progress.total = len(inputs.files)
        note_skipped(progress, inputs.skipped)
        standing = load_pending(inputs.files, records, job.options, progress)
        self._by_digest = standing.by_digest
        return standing.pending

    def recorded(self, records: RecordFile[Annotation]) -> Callable[[str], bool]:
        return records.__contains__

    def open(
        self, engine: Engine, records: RecordFile[Annotation], calls: CallFile, progress: Progress
    ) -> Callable[[ImageFile], Awaitable[None]]:
        from uncanny.runs.queue import ImageQueue

        job = self.job
        annotator = ImageAnnotator(engine, job.config, job.policy, str(job.models.model), self.prompts)
        return ImageQueue(annotator, records, calls, progress, self._by_digest).work


@dataclass(frozen=True, slots=True)
class ImageAnnotator:
    """Annotates one image after the other with the same models, plan, pixels and texts."""

    engine: Engine
    config: AnnotateConfig
    policy: PixelPolicy
    model: str
    prompts: PromptSet = field(default_factory=lambda: prompt_set("annotate"))

    async def open(self, file: ImageFile) -> PreparedImage | Annotation:
        """The image ready to send, or the record that says why it cannot be read."""
        try:
            return await asyncio.to_thread(prepare, file.path, self.policy, self.engine.limits)
        except ImageError as error:
            return self._unreadable(file, error)

    async def annotate(self, file: ImageFile, image: PreparedImage) -> Annotated[Annotation]:
        """Ask the agents. Raises ModelUnusableError or BudgetError when no question can be asked any more."""
        from uncanny.graphs.annotate import bulk_graph  # LangGraph takes half a second to import

        with self.engine.model_client.scope(file.image) as scope:
            examination = ImageContext(
                sent_image(image), self.engine.model_client, scope, self.config, self.prompts
            )
            state: AnnotateState = await bulk_graph().ainvoke({"image": file.image}, context=examination)
        return Annotated(self._record(file, image, state, scope.calls), scope.calls)

    def failed(self, file: ImageFile, image: PreparedImage, error: StepError) -> Annotation:
        """The record of an image about which nothing was found out."""
        return Annotation(
            image=file.image,
            sha256=image.source_sha256,
            width=image.width,
            height=image.height,
            status="failed",
            errors=(error,),
            file_stamp=image.stamp,
            model=self.model,
            prompts=self.prompts.id,
        )

    def _record(
        self, file: ImageFile, image: PreparedImage, state: AnnotateState, calls: list[CallRecord]
    ) -> Annotation:
        objects = state.get("objects", [])
        examined = sorted(state.get("examined", []), key=lambda one: one["order"])
        errors = [one["error"] for one in examined if one["error"] is not None]
        failure = state.get("failure")
        # When no object came through, an empty list would read as a flawless image.
        failed = failure is not None or (len(errors) >= len(examined) > 0)
        extra: dict[str, object] = {}
        if state.get("cut"):
            extra["cut_objects"] = [found.model_dump() for found in state["cut"]]
        if (models := Counter(call.model for call in calls)).keys() - {self.model}:
            extra["models"] = dict(sorted(models.items()))
        return Annotation(
            image=file.image,
            sha256=image.source_sha256,
            width=image.width,
            height=image.height,
            status="failed" if failed else "partial" if errors else "ok",
            anomalies=tuple(state.get("anomalies", ())),
            objects=tuple(objects),
            errors=(*errors, *([failure] if failure else [])),
            model=self.model,
            prompts=self.prompts.id,
            usage=usage(calls),
            pixels=pixels(image),
            file_stamp=image.stamp,
            **extra,
        )

    def _unreadable(self, file: ImageFile, error: ImageError) -> Annotation:
        return Annotation(
            image=file.image,
            sha256=None,
            width=None,
            height=None,
            status="unreadable",
            errors=(StepError(agent="image", step=0, kind=error.kind, message=str(error)),),
            model=self.model,
            prompts=self.prompts.id,
            usage=usage([]),
        )


def sent_image(image: PreparedImage) -> SentImage:
    """Encoded once, for all requests about it."""
    return encode_image(
        sha256=image.sent_sha256,
        media_type=image.media_type,
        width=image.sent_width,
        height=image.sent_height,
        data=image.sent,
    )


def pixels(image: PreparedImage) -> Pixels:
    sent = None
    if image.changes:
        sent = SentPixels(
            sha256=image.sent_sha256,
            media_type=image.media_type,
            width=image.sent_width,
            height=image.sent_height,
            bytes=len(image.sent),
        )
    return Pixels(
        format=image.source_format,
        bytes=image.source_bytes,
        changes=image.changes,
        sent=sent,
    )
