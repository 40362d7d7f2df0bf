"""The machinery all runs share: lock, manifest, resuming, models, queue, stop, and the end.

What differs between annotating images, asking questions or judging pairs is a `Task`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from uncanny.errors import RunError, StorageError, UsageError
from uncanny.prompts import PromptSet, prompt_set
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.records.run_manifest import RunManifest, Totals
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.manifest import Manifest, State, begun_with
from uncanny.runs.progress import Progress, Recount, SpendingFile
from uncanny.runs.stop import Reason, Stop

if TYPE_CHECKING:
    from uncanny.client.budget import Budget
    from uncanny.client.calls import CallRecord
    from uncanny.models.base import Sampling
    from uncanny.runs.engine import Engine

Item = TypeVar("Item")
MANIFEST_EVERY_S = 5.0
_STATES: dict[Reason | None, State] = {
    None: "finished",
    "interrupt": "interrupted",
    "budget": "budget",
    "model": "stopped",
    "storage": "stopped",
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

    def load_pending(self, records: RecordFile[Any], progress: Progress) -> Sequence[Item]:
        """Load `records`, count what stands into `progress`, and return the inputs still to be done.

        Raises UsageError.
        """
        ...

    def recorded(self, records: RecordFile[Any]) -> Callable[[str], bool]:
        """Whether an input, as call records name it, has a record."""
        ...

    def open(
        self, engine: Engine, records: RecordFile[Any], calls: CallFile, progress: Progress
    ) -> Callable[[Item], Awaitable[None]]:
        """The work on one input; it writes the record, and raises what `ENDS_RUN` names only."""
        ...


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended: `reason` is None when all inputs were worked through.

    `manifest` is the content of `run.json`; `unwritten` names files that do not show the end, on a full disk.
    `lost` says that the run folder is not in its place any more, so that nothing in it can be read.
    """

    progress: Progress
    reason: Reason | None = None
    error: RunError | None = None
    manifest: Mapping[str, Any] = field(default_factory=dict)
    unwritten: tuple[Path, ...] = ()
    lost: bool = False


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
            known = before.written()
            known["pixels"] = {"policy": known.get("pixels", {}).get("policy")}
            check_same_protocol(folder, *(_by_id(each) for each in (known, protocol)))
        manifest = Manifest(folder, protocol, before)
        spending = SpendingFile(folder.spending)
        progress = Progress(seconds_before=manifest.seconds_before)
        _load_spending(folder, options, manifest, spending, progress, known=before is not None)
        records = task.records()
        records.made_with = {"model": protocol["model"], "prompts": protocol["prompts"]["id"]}
        with _nothing_left_behind(records):
            pending = task.load_pending(records, progress)
            records.open()
            if pending and before is not None and task.prompts.id != own.id:
                progress.warnings.append(
                    f"{folder.path} was begun with the texts {task.prompts.id} and goes on with them. "
                    f"Name another folder with -o to ask with those of this version, {own.id}."
                )
            if before is None and len(records):
                progress.warnings.append(
                    f"{folder.manifest} is missing; model and prompts of the records are those of now, other "
                    "settings they were made with are not known"
                )
            progress.calls_expected = len(pending) * task.usual_calls
            end = RunEnd(progress)
            if not pending:
                on_start(progress)
            else:
                session = _Session(folder, models, options, task, records, manifest, spending, progress)
                end = asyncio.run(session.work(pending, partial(on_start, progress)))
        return _concluded(folder, end, records, manifest, spending)


def prompts_of(folder: RunFolder, own: PromptSet) -> PromptSet:
    """The texts that a run in `folder` is asked with: those it was begun with, else `own`."""
    before = _binding(folder)
    return own if before is None else begun_with(before, own)


def _binding(folder: RunFolder) -> RunManifest | None:
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


def _paid(before: RunManifest) -> bool:
    """Whether a sitting got answers before its first record was due: they count towards the budget."""
    totals = before.totals or Totals()
    answers = sum(number for outcome, number in (totals.outcomes or {}).items() if outcome != "error")
    # Of a killed sitting the manifest may not know them yet.
    return bool(answers or totals.replayed or before.state == "running")


def _load_spending(
    folder: RunFolder,
    options: RunOptions,
    manifest: Manifest,
    spending: SpendingFile,
    progress: Progress,
    *,
    known: bool,
) -> None:
    """What earlier sittings spent, a killed one too; `known` is False where `run.json` is missing."""
    if known and not (manifest.was_killed and not spending.path.exists()):
        progress.spending = manifest.spending
        for call in spending.uncounted(progress.spending.calls):
            progress.spending.add(call)
        return
    own_cache = options.cache and options.answers is None
    since = manifest.started if known else 0.0
    served = manifest.spending.served
    recount = Recount(folder.calls, folder.spending, since=since, own_cache=own_cache, served=served)
    progress.spending, progress.paid_before = recount.spending, recount.paid_here
    if recount.unread:
        lines = (
            "1 line that is no call" if recount.unread == 1 else f"{recount.unread:,} lines that are no calls"
        )
        progress.warnings.append(f"{folder.calls} has {lines}; what they cost is not counted")
    if not known and recount.first is not None:
        manifest.began(min(max(recount.first, 0.0), manifest.started))


@contextlib.contextmanager
def _nothing_left_behind(records: RecordFile[Any]) -> Iterator[None]:
    """A run that could not start leaves no empty file that would look like one without inputs."""
    try:
        yield
    except BaseException:
        records.close()
        with contextlib.suppress(OSError):
            if not len(records) and not records.path.stat().st_size:
                records.path.unlink()
        raise


def _concluded(
    folder: RunFolder, end: RunEnd, records: RecordFile[Any], manifest: Manifest, spending: SpendingFile
) -> RunEnd:
    """Write down how it ended, as far as the disk takes it: what is in the records stands in any case."""
    unwritten: list[Path] = []
    warnings = end.progress.warnings
    in_place = _in_place(folder, end.progress)
    try:
        records.finish(write=in_place)
    except OSError as error:
        unwritten.append(records.path)
        warnings.append(f"{records.path} could not be put in order: {error.strerror or error}")
    try:
        manifest.write(_STATES[end.reason], end.progress)
    except (OSError, StorageError) as error:
        unwritten.append(manifest.path)
        warnings.append(_unwritten_manifest(manifest, error))
    spending.close(counted=manifest.path not in unwritten)
    return replace(end, manifest=manifest.content, unwritten=tuple(unwritten), lost=not in_place)


def _in_place(folder: RunFolder, progress: Progress) -> bool:
    """Whether files can be put where they belong; a folder that was deleted is made again."""
    if not folder.lost():
        return True
    if folder.put_back():
        progress.warnings.append(f"{folder.path} was deleted; what was done by then was put back there")
        return True
    return False


def _unwritten_manifest(manifest: Manifest, error: OSError | StorageError) -> str:
    why = str(error) if isinstance(error, StorageError) else error.strerror or str(error)
    return f"{manifest.path} could not be written: {why}"


@dataclass(frozen=True, slots=True)
class _Session(Generic[Item]):
    """One sitting of a run: from its first call to the end."""

    folder: RunFolder
    models: ModelOptions
    options: RunOptions
    task: Task[Item]
    records: RecordFile[Any]
    manifest: Manifest
    spending: SpendingFile
    progress: Progress

    async def work(self, pending: Sequence[Item], on_ready: Callable[[], None]) -> RunEnd:
        from uncanny.runs.engine import open_engine
        from uncanny.runs.queue import work_through

        stop = Stop()
        folder, options, task, progress = self.folder, self.options, self.task, self.progress
        async with open_engine(
            self.models,
            options,
            answers=(options.answers or folder.answers) if options.cache else None,
            budget=self._budget(),
            agents=task.agents,
            on_call=self._note,
            on_fallback=lambda _lane, error: progress.warnings.append(str(error)),
            warn=progress.warnings.append,
            server_log=folder.path / "vllm.log",
            on_ready=on_ready,
        ) as engine:
            self.manifest.sent(self.models, engine.sent(task.sampling))
            self._begin(stop)
            calls = CallFile(folder.calls, task.recorded(self.records))
            keeper = asyncio.create_task(self._keep_manifest(stop))
            try:
                work = task.open(engine, self.records, calls, progress)
                with stop.on_signals(), _few_collections():
                    await work_through(
                        pending, work, at_once=task.at_once, stop=stop, model_client=engine.model_client
                    )
            finally:
                keeper.cancel()
                try:
                    calls.close(write=_in_place(folder, progress))
                except OSError as error:
                    progress.warnings.append(f"{calls.path} could not be put back: {error.strerror or error}")
                progress.warnings.extend(engine.notices())
                # A server may have turned out not to take a parameter.
                self.manifest.sent(self.models, engine.sent(task.sampling))
        return RunEnd(progress, stop.reason, stop.error)

    def _begin(self, stop: Stop) -> None:
        """Raises UsageError where nothing can be written: better now than after the first answers."""
        self.spending.open(stop.because)
        try:
            self.manifest.write("running", self.progress)
        except OSError as error:
            raise UsageError(
                _unwritten_manifest(self.manifest, error),
                remedy="Free some disk space, or name a folder that can be written with -o.",
            ) from error
        self.spending.clear()

    def _budget(self) -> Budget:
        from uncanny.client.budget import Budget, Spend

        spent = self.progress.spending.sums
        return Budget(
            self.options.max_cost_usd,
            self.options.max_tokens_total,
            Spend(int(spent["input_tokens"] + spent["output_tokens"]), spent["cost_usd"]),
            usual_calls=self.task.usual_calls,
        )

    def _note(self, call: CallRecord) -> None:
        self.progress.add_call(call)
        if not call.replayed:
            self.spending.append(call, self.progress.spending.calls)

    async def _keep_manifest(self, stop: Stop) -> None:
        """Keep `run.json` fresh; where it cannot be written for a while, say so and go on trying."""
        warned = False
        while True:
            await asyncio.sleep(MANIFEST_EVERY_S)
            try:
                self.manifest.write("running", self.progress)
                self.spending.clear()
            except StorageError as error:
                stop.because(error)
            except OSError as error:
                if not warned:
                    more = "; the run goes on, and so does trying"
                    self.progress.warnings.append(_unwritten_manifest(self.manifest, error) + more)
                warned = True


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
