"""A run that any program can hold: opened, worked on and concluded under the program's own event loop.

Lock, manifest, resuming, models, queue and the end are the same for every task (`uncanny.runs.task`). Nothing
here touches signal handlers, the garbage collector, event loops or logging of the host; the command line adds
what a terminal needs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from uncanny.errors import RunError, StorageError, UsageError
from uncanny.prompts import PromptSet, current_set
from uncanny.records.record_file import CallFile, RecordFile
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.records.run_manifest import RunManifest, Totals
from uncanny.runs.config import AskOptions, RunOptions
from uncanny.runs.display import live_progress
from uncanny.runs.manifest import Manifest, State, begun_with
from uncanny.runs.progress import Progress, Recount, SpendingFile
from uncanny.runs.stop import Ending, Reason, Stop
from uncanny.runs.task import Task
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.client.budget import Budget
    from uncanny.client.calls import CallRecord
    from uncanny.runs.engine import Engine

Item = TypeVar("Item")
R = TypeVar("R", bound=BaseModel)
MANIFEST_EVERY_S = 5.0
_STATES: dict[Reason | None, State] = {
    None: "finished",
    "interrupt": "interrupted",
    "budget": "budget",
    "model": "stopped",
    "storage": "stopped",
}


def _ignore(_value: object) -> None:
    """The callback of who wants none."""


@dataclass(frozen=True, slots=True)
class Observer:
    """Callbacks of a run, called in its event loop; what they raise ends the run and is raised.

    `on_start` gets the live counters before the first call, when all is in order. `on_record` gets each
    record when it is on disk, `on_call` every call record, replays too."""

    on_start: Callable[[Progress], None] = _ignore
    on_record: Callable[[Any], None] = _ignore
    on_call: Callable[[CallRecord], None] = _ignore


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


async def run(task: Task[Item, R], *, stop: Stop | None = None, observer: Observer | None = None) -> RunEnd:
    """Work through all inputs of `task`, going on where an earlier run of the same task stopped.

    Raises what `open_run` raises. A cancelled one writes down how far it came.
    """
    async with open_run(task, stop=stop, observer=observer) as opened:
        await opened.work()
    assert opened.end is not None
    return opened.end


async def run_with(
    task: Task[Item, R], options: AskOptions, on_record: Callable[[R], None] | None = None
) -> RunEnd:
    """`run` with the callbacks of a public function's options, and `on_record` besides."""
    sinks = [sink for sink in (on_record, options.get("on_record")) if sink is not None]

    def on_each(record: R) -> None:
        for sink in sinks:
            sink(record)

    about = f"{task.models.model} · {task.folder.path}"
    with live_progress(about, enabled=options.get("progress", False)) as show:
        starts = [start for start in (options.get("on_start"), show) if start is not None]

        def on_start(progress: Progress) -> None:
            for start in starts:
                start(progress)

        observer = Observer(on_start, on_each, options.get("on_call") or _ignore)
        return await run(task, stop=options.get("stop"), observer=observer)


@contextlib.asynccontextmanager
async def open_run(
    task: Task[Item, R], *, stop: Stop | None = None, observer: Observer | None = None
) -> AsyncIterator[Run[Item, R]]:
    """Hold the run folder of `task`, with its records loaded and its models open; concluded on leaving.

    `stop` ends it from outside. Raises UsageError, and ModelUnusableError before the first input is taken up;
    later problems are in the run's `end` and in the records.
    """
    stop = stop or Stop()
    with task.folder.locked():
        opened = await asyncio.to_thread(_load, task, stop, observer or Observer())
        with _nothing_left_behind(opened.records):
            try:
                async with opened.models_open():
                    with stop.listening(opened.ending.interrupt):
                        yield opened
            except BaseException:
                if opened.begun:
                    opened.ending.interrupt()
                    opened.conclude()
                raise
        if not opened.worked:
            opened.ending.interrupt()
        opened.conclude()


def _load(task: Task[Item, R], stop: Stop, observer: Observer) -> Run[Item, R]:
    """The run as far as it can be told before a model is opened. Blocking."""
    folder, options = task.folder, task.options
    before = _binding(folder)
    own = current_set(task.prompts)
    if before is not None:
        task.prompts = begun_with(before, own)
    settings = task.settings()
    if before is not None:
        check_same_protocol(folder, before.comparable(), settings.comparable())
    manifest = Manifest(folder, settings, before)
    spending = SpendingFile(folder.spending)
    progress = Progress(unit=task.unit, kinds=task.statuses, seconds_before=manifest.seconds_before)
    _load_spending(folder, options, manifest, spending, progress, known=before is not None)
    records = task.records()
    records.made_with = {"model": str(task.models.model), "prompts": task.prompts.id}
    with _nothing_left_behind(records):
        pending = task.load_pending(records, progress)
        records.open()
    if pending and before is not None and task.prompts.id != own.id:
        progress.warnings.append(
            f"{folder.path} was begun with the texts {task.prompts.id} and goes on with them. "
            f"Name another folder with {option('out')} to ask with those of this version, {own.id}."
        )
    if before is None and len(records):
        progress.warnings.append(
            f"{folder.manifest} is missing; model and prompts of the records are those of now, other "
            "settings they were made with are not known"
        )
    progress.calls_expected = len(pending) * task.calls_per_input
    return Run(task, pending, records, manifest, spending, progress, stop, observer)


@dataclass(slots=True)
class Run(Generic[Item, R]):
    """One session of a run, from `open_run`. `progress` is live; `end` is set when it is concluded."""

    task: Task[Item, R]
    pending: Sequence[Item]
    records: RecordFile[R]
    manifest: Manifest
    spending: SpendingFile
    progress: Progress
    stop: Stop
    observer: Observer
    ending: Ending = field(default_factory=Ending)
    end: RunEnd | None = None
    begun: bool = False
    worked: bool = False
    _engine: Engine | None = None
    _callback_error: Exception | None = None

    @contextlib.asynccontextmanager
    async def models_open(self) -> AsyncIterator[None]:
        """With nothing left to do no model is opened, and no key needed."""
        if not self.pending:
            self.observer.on_start(self.progress)
            self.begun = True
            yield
            return
        from uncanny.runs.engine import open_engine

        task, folder, warnings = self.task, self.task.folder, self.progress.warnings
        async with open_engine(
            task.models,
            task.options,
            answers=(task.options.answers or folder.answers) if task.options.cache else None,
            budget=self._budget(),
            agents=task.roles,
            on_call=self._note_call,
            on_fallback=lambda _endpoint, error: warnings.append(str(error)),
            warn=warnings.append,
            server_log=folder.path / "vllm.log",
            on_ready=lambda: self.observer.on_start(self.progress),
        ) as engine:
            self.manifest.sent(task.models, engine.sent(task.sampling))
            self._begin()
            self._engine = engine
            try:
                yield
            finally:
                warnings.extend(engine.notices())
                # A server may have turned out not to take a parameter.
                self.manifest.sent(task.models, engine.sent(task.sampling))

    async def work(self) -> None:
        """Work through what is pending, until it is done or the run ends early."""
        self.worked = True
        if self._engine is None:
            return
        from uncanny.runs.queue import Recorder, work_through

        task, folder = self.task, self.task.folder
        calls = CallFile(folder.calls, task.recorded(self.records))
        recorder = Recorder(task, self._engine, self.records, calls, self.progress, self.observer.on_record)

        async def work(item: Item) -> None:
            await recorder.work(item)
            if self._callback_error is not None:
                raise self._callback_error

        keeper = asyncio.create_task(self._keep_manifest())
        try:
            with self.stop.while_working():
                await work_through(
                    self.pending,
                    work,
                    at_once=task.inputs_at_once,
                    ending=self.ending,
                    model_client=self._engine.model_client,
                )
        finally:
            keeper.cancel()
            try:
                calls.close(write=_in_place(folder, self.progress))
            except OSError as error:
                self.progress.warnings.append(
                    f"{calls.path} could not be put back: {error.strerror or error}"
                )

    def conclude(self) -> None:
        """Write down how it ended, as far as the disk takes it: what is in the records stands in any case."""
        if self.end is not None:
            return
        unwritten: list[Path] = []
        warnings = self.progress.warnings
        in_place = _in_place(self.task.folder, self.progress)
        try:
            self.records.finish(write=in_place)
        except OSError as error:
            unwritten.append(self.records.path)
            warnings.append(f"{self.records.path} could not be put in order: {error.strerror or error}")
        try:
            self.manifest.write(_STATES[self.ending.reason], self.progress)
        except (OSError, StorageError) as error:
            unwritten.append(self.manifest.path)
            warnings.append(_unwritten_manifest(self.manifest, error))
        self.spending.close(counted=self.manifest.path not in unwritten)
        self.end = RunEnd(
            self.progress,
            self.ending.reason,
            self.ending.error,
            self.manifest.content,
            tuple(unwritten),
            lost=not in_place,
        )

    def _begin(self) -> None:
        """Raises UsageError where nothing can be written: better now than after the first answers."""
        self.spending.open(self.ending.because)
        try:
            self.manifest.write("running", self.progress)
        except OSError as error:
            raise UsageError(
                _unwritten_manifest(self.manifest, error),
                remedy=f"Free some disk space, or name a folder that can be written with {option('out')}.",
            ) from error
        self.spending.clear()
        self.begun = True

    def _budget(self) -> Budget:
        from uncanny.client.budget import Budget, Spend

        spent, options = self.progress.spending.sums, self.task.options
        return Budget(
            options.max_cost_usd,
            options.max_tokens_total,
            Spend(int(spent["input_tokens"] + spent["output_tokens"]), spent["cost_usd"]),
            usual_calls=self.task.calls_per_input,
        )

    def _note_call(self, call: CallRecord) -> None:
        self.progress.add_call(call)
        if not call.replayed:
            self.spending.append(call, self.progress.spending.calls)
        try:
            self.observer.on_call(call)
        except Exception as error:  # raised between inputs: here it would pass for a failure of this one
            self._callback_error = self._callback_error or error

    async def _keep_manifest(self) -> None:
        """Keep `run.json` fresh; where it cannot be written for a while, say so and go on trying."""
        warned = False
        while True:
            await asyncio.sleep(MANIFEST_EVERY_S)
            try:
                self.manifest.write("running", self.progress)
                self.spending.clear()
            except StorageError as error:
                self.ending.because(error)
            except OSError as error:
                if not warned:
                    more = "; the run goes on, and so does trying"
                    self.progress.warnings.append(_unwritten_manifest(self.manifest, error) + more)
                warned = True


def prompts_of(folder: RunFolder, own: PromptSet) -> PromptSet:
    """The texts that a run in `folder` is asked with: those it was begun with, else `own`."""
    before = _binding(folder)
    return own if before is None else begun_with(before, own)


def _binding(folder: RunFolder) -> RunManifest | None:
    """The manifest of the run that goes on; one that never got an answer, after a typo say, binds nobody."""
    before = folder.read_manifest()
    return before if before is not None and (folder.begun() or _paid(before)) else None


def _paid(before: RunManifest) -> bool:
    """Whether a session got answers before its first record was due: they count towards the budget."""
    totals = before.totals or Totals()
    answers = sum(number for outcome, number in (totals.outcomes or {}).items() if outcome != "error")
    # Of a killed session the manifest may not know them yet.
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
    """What earlier sessions spent, a killed one too; `known` is False where `run.json` is missing."""
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
