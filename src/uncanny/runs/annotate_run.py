"""`uncanny annotate` without a terminal: a folder of images to a finished, or resumable, run."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from uncanny.agents.plan import AnnotatePlan
from uncanny.errors import BudgetError, ModelUnusableError
from uncanny.images import PixelPolicy
from uncanny.records.call_file import CallFile
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.runs.inputs import find_inputs
from uncanny.runs.manifest import Manifest, annotate_protocol
from uncanny.runs.options import ModelOptions, RunOptions
from uncanny.runs.progress import Progress
from uncanny.runs.recount import Recount
from uncanny.runs.resume import Standing, take_up
from uncanny.runs.stop import Reason, Stop
from uncanny.schema import Annotation

MANIFEST_EVERY_S = 5.0
MOST_IMAGES_AT_ONCE = 64
CALLS_AN_IMAGE_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class AnnotateJob:
    """What to annotate, how, and into which folder."""

    folder: RunFolder
    paths: Sequence[Path]
    models: ModelOptions
    plan: AnnotatePlan = field(default_factory=AnnotatePlan)
    policy: PixelPolicy = field(default_factory=PixelPolicy)
    options: RunOptions = field(default_factory=RunOptions)
    root: Path | None = None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: `reason` is None when all inputs were worked through."""

    progress: Progress
    reason: Reason | None = None
    error: BudgetError | ModelUnusableError | None = None


def annotate(job: AnnotateJob, on_start: Callable[[Progress], None] = lambda _: None) -> RunEnd:
    """Annotate all images of `job`, going on where an earlier run of the same job stopped.

    `on_start` gets the live counters before the first call. Raises UsageError, and ModelUnusableError before
    the first image was taken up; later problems are in the result and in the records.
    """
    with job.folder.locked():
        before = job.folder.read_manifest()
        protocol = annotate_protocol(job.models, job.plan.model_dump(), job.policy, job.root)
        if before is not None:
            known = {key: before.get(key) for key in protocol}
            known["pixels"] = {"policy": before.get("pixels", {}).get("policy")}
            check_same_protocol(job.folder, known, protocol)
        inputs = find_inputs(job.paths, run=job.folder.path, root=job.root, limit=job.options.limit)
        manifest = Manifest(job.folder, protocol, before)
        records = RecordFile(job.folder.annotations, Annotation, lambda record: record.image)
        progress = Progress(total=len(inputs.files), spending=manifest.spending)
        if manifest.was_killed:
            own_cache = job.options.cache and job.options.answers is None
            recount = Recount(job.folder.calls, manifest.started, own_cache=own_cache)
            progress.spending, progress.paid_before = recount.spending, recount.paid_here
        standing = take_up(inputs.files, records, manifest.started, job.options, progress)
        on_start(progress)
        end = RunEnd(progress)
        if standing.pending:
            with _nothing_left_behind(records):
                end = asyncio.run(_annotate(job, standing, records, manifest, progress))
        records.finish()
        state = {None: "finished", "interrupt": "interrupted", "budget": "budget", "model": "stopped"}
        manifest.write(state[end.reason], progress)  # type: ignore[arg-type]
        return end


@contextlib.contextmanager
def _nothing_left_behind(records: RecordFile[Annotation]) -> Iterator[None]:
    """A run that could not start leaves no empty file that would look like one without images."""
    try:
        yield
    except BaseException:
        records.close()
        if not len(records):
            records.path.unlink(missing_ok=True)
        raise


async def _annotate(
    job: AnnotateJob,
    standing: Standing,
    records: RecordFile[Annotation],
    manifest: Manifest,
    progress: Progress,
) -> RunEnd:
    from uncanny.agents import ROLES
    from uncanny.providers.base import Sampling
    from uncanny.providers.budget import Budget, Spend
    from uncanny.runs.annotate_image import ImageAnnotator
    from uncanny.runs.annotate_queue import ImageQueue
    from uncanny.runs.engine import open_engine
    from uncanny.runs.pool import work_through

    stop = Stop()
    spent = progress.spending
    budget = Budget(
        job.options.max_cost_usd,
        job.options.max_tokens_total,
        Spend(int(spent.sums["input_tokens"] + spent.sums["output_tokens"]), spent.sums["cost_usd"]),
    )
    async with open_engine(
        job.models,
        job.options,
        answers=(job.options.answers or job.folder.answers) if job.options.cache else None,
        budget=budget,
        agents=ROLES,
        on_call=progress.add_call,
        on_handover=lambda _lane, error: progress.warnings.append(str(error)),
        server_log=job.folder.path / "vllm.log",
    ) as engine:
        plan = job.plan
        sampling = Sampling(plan.temperature, plan.top_p, plan.max_output_tokens)
        manifest.sent(job.models, engine.sent(sampling))
        manifest.write("running", progress)
        calls = CallFile(job.folder.calls, records.__contains__)
        annotator = ImageAnnotator(engine, plan, job.policy, str(job.models.model))
        queue = ImageQueue(annotator, records, calls, progress, standing.by_digest)
        keeper = asyncio.create_task(_keep_manifest(manifest, progress))
        try:
            with stop.on_signals(), _few_collections():
                await work_through(
                    standing.pending,
                    queue.work,
                    at_once=_at_once(job.options),
                    stop=stop,
                    caller=engine.caller,
                )
        finally:
            keeper.cancel()
            calls.close()
            # A server may have turned out not to take a parameter.
            manifest.sent(job.models, engine.sent(sampling))
    return RunEnd(progress, stop.reason, stop.error)


def _at_once(options: RunOptions) -> int:
    return min(MOST_IMAGES_AT_ONCE, -(-options.concurrency // CALLS_AN_IMAGE_AT_ONCE) + 2)


async def _keep_manifest(manifest: Manifest, progress: Progress) -> None:
    while True:
        await asyncio.sleep(MANIFEST_EVERY_S)
        manifest.write("running", progress)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    # With hundreds of calls in flight the collector walks the same long-lived objects over and over.
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
