"""`uncanny annotate` without a terminal: a folder of images to a finished, or resumable, run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.agents.plan import AnnotatePlan
from uncanny.images import PixelPolicy
from uncanny.models.base import Sampling
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.inputs import ImageFile, Inputs, find_inputs, note_skipped, take_up
from uncanny.runs.manifest import image_protocol
from uncanny.runs.progress import Progress
from uncanny.runs.run import RunEnd, run_task
from uncanny.schema import Annotation

if TYPE_CHECKING:
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
    plan: AnnotatePlan = field(default_factory=AnnotatePlan)
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
        plan = self.job.plan
        return Sampling(plan.temperature, plan.top_p, plan.max_output_tokens)

    @property
    def at_once(self) -> int:
        return min(MOST_IMAGES_AT_ONCE, -(-self.job.options.concurrency // CALLS_AN_IMAGE_AT_ONCE) + 2)

    @property
    def usual_calls(self) -> int:
        plan = self.job.plan
        return plan.calls(min(OBJECTS_AN_IMAGE, plan.max_objects))

    def protocol(self) -> dict[str, Any]:
        job = self.job
        return image_protocol(self.prompts, job.models, job.plan.model_dump(), job.policy, job.root)

    def records(self) -> RecordFile[Annotation]:
        return RecordFile(self.job.folder.annotations, Annotation, lambda record: record.image)

    def take_up(self, records: RecordFile[Annotation], progress: Progress) -> Sequence[ImageFile]:
        job = self.job
        inputs = job.inputs()
        progress.total = len(inputs.files)
        note_skipped(progress, inputs.skipped)
        standing = take_up(inputs.files, records, job.options, progress)
        self._by_digest = standing.by_digest
        return standing.pending

    def recorded(self, records: RecordFile[Annotation]) -> Callable[[str], bool]:
        return records.__contains__

    def open(
        self, engine: Engine, records: RecordFile[Annotation], calls: CallFile, progress: Progress
    ) -> Callable[[ImageFile], Awaitable[None]]:
        from uncanny.runs.annotate_image import ImageAnnotator
        from uncanny.runs.queue import ImageQueue

        job = self.job
        annotator = ImageAnnotator(engine, job.plan, job.policy, str(job.models.model), self.prompts)
        return ImageQueue(annotator, records, calls, progress, self._by_digest).work
