"""`uncanny detect` without a terminal: which of these images are generated, and what gives them away?"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.agents.detect_plan import DetectPlan
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
from uncanny.schema import Detection

if TYPE_CHECKING:
    from uncanny.runs.engine import Engine

MOST_IMAGES_AT_ONCE = 128
# An image has one call in flight; some more are opened, so that no slot waits for a file.
IMAGES_AHEAD = 4
TURNS = 2


@dataclass(frozen=True, slots=True)
class DetectJob:
    """What to judge, how, and into which folder."""

    folder: RunFolder
    paths: Sequence[Path]
    models: ModelOptions
    plan: DetectPlan = field(default_factory=DetectPlan)
    policy: PixelPolicy = field(default_factory=PixelPolicy)
    options: RunOptions = field(default_factory=RunOptions)
    root: Path | None = None

    def inputs(self) -> Inputs:
        """The images in order of their names. Raises UsageError."""
        return find_inputs(self.paths, run=self.folder.path, root=self.root, limit=self.options.limit)


def detect(job: DetectJob, on_start: Callable[[Progress], None] = lambda _: None) -> RunEnd:
    """Judge all images of `job`, going on where an earlier run of the same job stopped.

    `on_start` gets the live counters before the first call. Raises what `run_task` raises.
    """
    return run_task(job.folder, job.models, job.options, DetectTask(job), on_start)


@dataclass(slots=True)
class DetectTask:
    """The `Task` of telling generated images from real ones."""

    job: DetectJob
    prompts: PromptSet = field(default_factory=lambda: prompt_set("detect"))
    _by_digest: dict[str, str] = field(default_factory=dict)

    @property
    def agents(self) -> Mapping[str, str]:
        from uncanny.agents.source_detector import ROLES

        return ROLES

    @property
    def sampling(self) -> Sampling:
        plan = self.job.plan
        return Sampling(plan.temperature, plan.top_p, plan.max_output_tokens)

    @property
    def at_once(self) -> int:
        return min(MOST_IMAGES_AT_ONCE, self.job.options.concurrency + IMAGES_AHEAD)

    @property
    def usual_calls(self) -> int:
        return TURNS

    def protocol(self) -> dict[str, Any]:
        job = self.job
        return image_protocol(self.prompts, job.models, job.plan.model_dump(), job.policy, job.root)

    def records(self) -> RecordFile[Detection]:
        return RecordFile(self.job.folder.annotations, Detection, lambda record: record.image)

    def take_up(self, records: RecordFile[Detection], progress: Progress) -> Sequence[ImageFile]:
        inputs = self.job.inputs()
        progress.total = len(inputs.files)
        note_skipped(progress, inputs.skipped)
        standing = take_up(inputs.files, records, self.job.options, progress)
        self._by_digest = standing.by_digest
        return standing.pending

    def recorded(self, records: RecordFile[Detection]) -> Callable[[str], bool]:
        return records.__contains__

    def open(
        self, engine: Engine, records: RecordFile[Detection], calls: CallFile, progress: Progress
    ) -> Callable[[ImageFile], Awaitable[None]]:
        from uncanny.runs.detect_image import ImageDetector
        from uncanny.runs.queue import ImageQueue

        job = self.job
        detector = ImageDetector(engine, job.plan, job.policy, str(job.models.model), self.prompts)
        return ImageQueue(detector, records, calls, progress, self._by_digest).work
