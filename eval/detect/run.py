"""`uncanny detect` without a terminal: which of these images are generated, and what gives them away?

One image through the detection graph, to its record.

What a detection run would ask and roughly cost, from the files' sizes and the prompts' lengths alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.agents.detect_config import DetectConfig
from uncanny.agents.source_detector import Conversation
from uncanny.client.calls import CallRecord, usage
from uncanny.client.prices import PriceTable
from uncanny.client.tokens import InputEstimate, image_tokens, text_tokens
from uncanny.errors import ImageError
from uncanny.eval.annotate.forecast import PREFIXES
from uncanny.eval.annotate.run import pixels, sent_image
from uncanny.images import PixelPolicy, PreparedImage, prepare
from uncanny.models.base import Sampling, Tokens
from uncanny.models.registry import missing_addresses
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.engine import Engine
from uncanny.runs.inputs import (
    ImageFile,
    Inputs,
    find_inputs,
    load_pending,
    mean_size,
    note_skipped,
    sample_sizes,
    skipped_figures,
    still_pending,
)
from uncanny.runs.manifest import image_protocol
from uncanny.runs.progress import Progress
from uncanny.runs.queue import Annotated
from uncanny.runs.run import RunEnd, run_task
from uncanny.schema import Detection, Status, StepError

if TYPE_CHECKING:
    from uncanny.graphs.detect import DetectState
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
    config: DetectConfig = field(default_factory=DetectConfig)
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
        config = self.job.config
        return Sampling(config.temperature, config.top_p, config.max_output_tokens)

    @property
    def at_once(self) -> int:
        return min(MOST_IMAGES_AT_ONCE, self.job.options.concurrency + IMAGES_AHEAD)

    @property
    def usual_calls(self) -> int:
        return TURNS

    def protocol(self) -> dict[str, Any]:
        job = self.job
        return image_protocol(self.prompts, job.models, job.config.model_dump(), job.policy, job.root)

    def records(self) -> RecordFile[Detection]:
        return RecordFile(self.job.folder.annotations, Detection, lambda record: record.image)

    def load_pending(self, records: RecordFile[Detection], progress: Progress) -> Sequence[ImageFile]:
        inputs = self.job.inputs()
        progress.total = len(inputs.files)
        note_skipped(progress, inputs.skipped)
        standing = load_pending(inputs.files, records, self.job.options, progress)
        self._by_digest = standing.by_digest
        return standing.pending

    def recorded(self, records: RecordFile[Detection]) -> Callable[[str], bool]:
        return records.__contains__

    def open(
        self, engine: Engine, records: RecordFile[Detection], calls: CallFile, progress: Progress
    ) -> Callable[[ImageFile], Awaitable[None]]:
        from uncanny.runs.queue import ImageQueue

        job = self.job
        detector = ImageDetector(engine, job.config, job.policy, str(job.models.model), self.prompts)
        return ImageQueue(detector, records, calls, progress, self._by_digest).work


@dataclass(frozen=True, slots=True)
class ImageDetector:
    """Judges one image after the other with the same models, plan, pixels and texts."""

    engine: Engine
    config: DetectConfig
    policy: PixelPolicy
    model: str
    prompts: PromptSet = field(default_factory=lambda: prompt_set("detect"))

    async def open(self, file: ImageFile) -> PreparedImage | Detection:
        """The image ready to send, or the record that says why it cannot be read."""
        try:
            return await asyncio.to_thread(prepare, file.path, self.policy, self.engine.limits)
        except ImageError as error:
            why = StepError(agent="image", step=0, kind=error.kind, message=str(error))
            return self._detection(file, None, "unreadable", errors=(why,), usage=usage([]))

    async def annotate(self, file: ImageFile, image: PreparedImage) -> Annotated[Detection]:
        """Ask both turns. Raises ModelUnusableError or BudgetError when no question can be asked any more."""
        from uncanny.graphs.detect import detect_graph  # LangGraph takes half a second to import

        with self.engine.model_client.scope(file.image) as scope:
            talk = Conversation(sent_image(image), self.engine.model_client, scope, self.config, self.prompts)
            state: DetectState = await detect_graph().ainvoke({"image": file.image}, context=talk)
        return Annotated(self._record(file, image, state, scope.calls), scope.calls)

    def failed(self, file: ImageFile, image: PreparedImage, error: StepError) -> Detection:
        """The record of an image about which nothing was found out."""
        return self._detection(file, image, "failed", errors=(error,))

    def _record(
        self, file: ImageFile, image: PreparedImage, state: DetectState, calls: list[CallRecord]
    ) -> Detection:
        verdict, listing, failure = state.get("verdict"), state.get("listing"), state.get("failure")
        status: Status = "ok" if failure is None else "failed" if verdict is None else "partial"
        extra: dict[str, Any] = {}
        if len(models := Counter(call.model for call in calls)) > 1:
            extra["models"] = dict(sorted(models.items()))
        return self._detection(
            file,
            image,
            status,
            anomalies=() if listing is None else listing.anomalies,
            errors=() if failure is None else (failure,),
            usage=usage(calls),
            source=None if verdict is None else verdict.source,
            verdict=None if verdict is None else verdict.raw,
            refused=verdict is not None and verdict.refused,
            listing=None if listing is None else listing.raw,
            description=state.get("description"),
            **extra,
        )

    def _detection(
        self, file: ImageFile, image: PreparedImage | None, status: Status, **more: Any
    ) -> Detection:
        return Detection(
            image=file.image,
            sha256=None if image is None else image.source_sha256,
            width=None if image is None else image.width,
            height=None if image is None else image.height,
            status=status,
            model=self.model,
            prompts=self.prompts.id,
            pixels=None if image is None else pixels(image),
            file_stamp=None if image is None else image.stamp,
            **more,
        )


# One word, then a list of some anomalies or a few sentences; reasoning models use far more.
VERDICT_TOKENS = 5
SECOND_TOKENS = 350


def forecast_detect(job: DetectJob) -> dict[str, Any]:
    """Calls, tokens and cost of what is left to do: two turns an image. Opens no model and needs no key.

    An image without a clear verdict takes one call only: `calls_least` is for all of them like that. Repair
    questions and reasoning are not counted. Tokens and cost are None where a model's image tokens are not
    known (see `InputEstimate`), the cost also where its price is not. Raises UsageError.
    """
    prices = PriceTable.load(job.models.prices)
    inputs = job.inputs()
    files = inputs.files
    pending = still_pending(job.folder, files, job.options, Detection)
    sizes, unreadable = sample_sizes(pending)
    images = len(pending) - unreadable
    model = job.models.roles.get("detector", job.models.model)
    name = str(model)
    picture = image_tokens(name, *mean_size(sizes))
    first = _length("system") + _length("source")
    second = first + VERDICT_TOKENS + max(_length("anomalies"), _length("content"))
    tokens = InputEstimate()
    tokens.add(name, first, picture, calls=images)
    tokens.add(name, second, picture, calls=images)
    output = images * (VERDICT_TOKENS + SECOND_TOKENS)
    total = tokens.total
    cached = images * (first + (picture or 0)) if model.provider in PREFIXES else 0
    return {
        "images": len(files),
        "pending": len(pending),
        "unreadable": unreadable,
        **skipped_figures(inputs.skipped),
        "calls": 2 * images,
        "calls_least": images,
        "calls_most": 2 * images,
        **tokens.as_json(),
        "output_tokens": output,
        "cost_usd": None if total is None else prices.cost(name, Tokens(total, output, cached, 0)),
        "cost_usd_uncached": None if total is None else prices.cost(name, Tokens(total, output, 0, 0)),
        "image_tokens_unknown": sorted(tokens.models),
        "missing": missing_addresses(job.models.all_models(), job.models.base_urls),
    }


def _length(prompt: str) -> int:
    return text_tokens(prompt_set("detect")[prompt].template.template)
