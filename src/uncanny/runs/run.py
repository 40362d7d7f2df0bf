"""The machinery all runs share: lock, manifest, resuming, models, queue, stop, and the end.

What differs between annotating images, asking questions or judging pairs is a `Task`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from uncanny.errors import BudgetError, ModelUnusableError
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.call_file import CallFile
from uncanny.records.record_file import RecordFile
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.runs.manifest import Manifest, State, begun_with
from uncanny.runs.options import ModelOptions, RunOptions
from uncanny.runs.progress import Progress
from uncanny.runs.recount import Recount
from uncanny.runs.stop import Reason, Stop

if TYPE_CHECKING:
    from uncanny.providers.base import Sampling
    from uncanny.runs.engine import Engine

Item = TypeVar("Item")
MANIFEST_EVERY_S = 5.0
_STATES: dict[Reason | None, State] = {
    None: "finished",
    "interrupt": "interrupted",
    "budget": "budget",
    "model": "stopped",
}


class Task(Protocol[Item]):
    """One kind of run over many inputs.

    `prompts` are the texts it asks with: the package's, unless a run goes on that was begun with others.
    `agents` maps role names to agents, `sampling` is what `run.json` shows as sent, `at_once` how many
    inputs are worked on side by side, `usual_calls` how many calls one takes.
    """

    prompts: PromptSet

    @property
    def agents(self) -> Mapping[str, str]: ...

    @property
    def sampling(self) -> Sampling: ...

    @property
    def at_once(self) -> int: ...

    @property
    def usual_calls(self) -> int: ...

    def protocol(self) -> dict[str, Any]:
        """All that must stay the same for a run to be one run; it stands in `run.json`."""
        ...

    def records(self) -> RecordFile[Any]:
        """Open the run's record file."""
        ...

    def take_up(self, records: RecordFile[Any], started: float, progress: Progress) -> Sequence[Item]:
        """Load `records`, count what stands into `progress`, and return the inputs still to be done.

        `started` is when the run was first started, in seconds since the epoch. Raises UsageError.
        """
        ...

    def recorded(self, records: RecordFile[Any]) -> Callable[[str], bool]:
        """Whether an input, as call records name it, has a record."""
        ...

    def open(
        self, engine: Engine, records: RecordFile[Any], calls: CallFile, progress: Progress
    ) -> Callable[[Item], Awaitable[None]]:
        """The work on one input; it writes the record, and raises BudgetError and ModelUnusableError only."""
        ...


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: `reason` is None when all inputs were worked through."""

    progress: Progress
    reason: Reason | None = None
    error: BudgetError | ModelUnusableError | None = None


def run_task(
    folder: RunFolder,
    models: ModelOptions,
    options: RunOptions,
    task: Task[Item],
    on_start: Callable[[Progress], None] = lambda _: None,
) -> RunEnd:
    """Work through all inputs of `task`, going on where an earlier run of the same task stopped.

    `on_start` gets the live counters before the first call, when all is in order. Raises UsageError, and
    ModelUnusableError before the first input was taken up; later problems are in the result and in the
    records.
    """
    with folder.locked():
        before = _binding(folder)
        own = prompt_set(task.prompts.name)
        if before is not None:
            task.prompts = begun_with(before, own)
        protocol = task.protocol()
        if before is not None:
            known = {key: before.get(key) for key in protocol}
            known["pixels"] = {"policy": before.get("pixels", {}).get("policy")}
            check_same_protocol(folder, *(_by_id(each) for each in (known, protocol)))
        manifest = Manifest(folder, protocol, before)
        progress = Progress(spending=manifest.spending, seconds_before=manifest.seconds_before)
        if manifest.was_killed:
            own_cache = options.cache and options.answers is None
            served = manifest.spending.served
            recount = Recount(folder.calls, manifest.started, own_cache=own_cache, served=served)
            progress.spending, progress.paid_before = recount.spending, recount.paid_here
        records = task.records()
        with _nothing_left_behind(records):
            pending = task.take_up(records, manifest.started, progress)
            if pending and before is not None and task.prompts.id != own.id:
                progress.warnings.append(
                    f"{folder.path} was begun with the texts {task.prompts.id} and goes on with them. "
                    f"Name another folder with -o to ask with those of this version, {own.id}."
                )
            progress.calls_expected = len(pending) * task.usual_calls
            end = RunEnd(progress)
            if not pending:
                on_start(progress)
            else:
                ready = partial(on_start, progress)
                work = _work(folder, models, options, task, pending, records, manifest, progress, ready)
                end = asyncio.run(work)
        records.finish()
        manifest.write(_STATES[end.reason], progress)
        return end


def prompts_of(folder: RunFolder, own: PromptSet) -> PromptSet:
    """The texts that a run in `folder` is asked with: those it was begun with, else `own`."""
    before = _binding(folder)
    return own if before is None else begun_with(before, own)


def _binding(folder: RunFolder) -> dict[str, Any] | None:
    """The manifest of the run that goes on; one that never got an answer, after a typo say, binds nobody."""
    before = folder.read_manifest()
    return before if before is not None and (folder.begun() or _paid(before)) else None


def _by_id(protocol: dict[str, Any]) -> dict[str, Any]:
    """A protocol with its texts by their id alone, and the word on whose they are, where there is one."""
    prompts = protocol.get("prompts")
    if not isinstance(prompts, dict):
        return protocol
    texts = prompts.get("texts")
    whose = prompts.get("whose", texts if isinstance(texts, str) else None)  # as version 0.1.0 had it
    return protocol | {"prompts": {"id": prompts.get("id"), "whose": whose}}


def _paid(before: dict[str, Any]) -> bool:
    """Whether a sitting got answers before its first record was due: they count towards the budget."""
    totals = before.get("totals", {})
    answers = sum(number for outcome, number in totals.get("outcomes", {}).items() if outcome != "error")
    # Of a killed sitting the manifest may not know them yet.
    return bool(answers or totals.get("replayed") or before.get("state") == "running")


@contextlib.contextmanager
def _nothing_left_behind(records: RecordFile[Any]) -> Iterator[None]:
    """A run that could not start leaves no empty file that would look like one without inputs."""
    try:
        yield
    except BaseException:
        records.close()
        if not len(records) and not records.path.stat().st_size:
            records.path.unlink(missing_ok=True)
        raise


async def _work(
    folder: RunFolder,
    models: ModelOptions,
    options: RunOptions,
    task: Task[Item],
    pending: Sequence[Item],
    records: RecordFile[Any],
    manifest: Manifest,
    progress: Progress,
    on_ready: Callable[[], None],
) -> RunEnd:
    from uncanny.providers.budget import Budget, Spend
    from uncanny.runs.engine import open_engine
    from uncanny.runs.pool import work_through

    stop = Stop()
    spent = progress.spending.sums
    budget = Budget(
        options.max_cost_usd,
        options.max_tokens_total,
        Spend(int(spent["input_tokens"] + spent["output_tokens"]), spent["cost_usd"]),
        usual_calls=task.usual_calls,
    )
    async with open_engine(
        models,
        options,
        answers=(options.answers or folder.answers) if options.cache else None,
        budget=budget,
        agents=task.agents,
        on_call=progress.add_call,
        on_handover=lambda _lane, error: progress.warnings.append(str(error)),
        server_log=folder.path / "vllm.log",
        on_ready=on_ready,
    ) as engine:
        manifest.sent(models, engine.sent(task.sampling))
        manifest.write("running", progress)
        calls = CallFile(folder.calls, task.recorded(records))
        keeper = asyncio.create_task(_keep_manifest(manifest, progress))
        try:
            work = task.open(engine, records, calls, progress)
            with stop.on_signals(), _few_collections():
                await work_through(pending, work, at_once=task.at_once, stop=stop, caller=engine.caller)
        finally:
            keeper.cancel()
            calls.close()
            progress.warnings.extend(engine.notices())
            # A server may have turned out not to take a parameter.
            manifest.sent(models, engine.sent(task.sampling))
    return RunEnd(progress, stop.reason, stop.error)


async def _keep_manifest(manifest: Manifest, progress: Progress) -> None:
    while True:
        await asyncio.sleep(MANIFEST_EVERY_S)
        manifest.write("running", progress)


@contextlib.contextmanager
def _few_collections() -> Iterator[None]:
    # With hundreds of calls in flight the collector walks the same long-lived objects over and over.
    before = gc.get_threshold()
    # Not collected first: that takes longer than the little garbage of a start is worth.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
