"""A run that any program can hold: opened, worked on and concluded under the program's own event loop.

Lock, manifest, models, queue and the end are the same for every task (`uncanny.runs.task`). Nothing here
touches signal handlers, garbage collector, event loops or logging of the host.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from uncanny.client.calls import CallRecord, dump_calls
from uncanny.client.telemetry import telemetry
from uncanny.errors import (
    ENDS_INPUT,
    ENDS_RUN,
    BudgetError,
    DeferredError,
    ExtensionError,
    RunError,
    StorageError,
    UsageError,
    text_of,
)
from uncanny.records.record_file import CallFile
from uncanny.runs.display import live_progress
from uncanny.runs.manifest import State, unwritten_manifest
from uncanny.runs.parameters import RunParameters
from uncanny.runs.progress import Progress
from uncanny.runs.resume import LoadedRun, bring_up_to_date, in_place, load_run, nothing_left_behind
from uncanny.runs.stop import Ending, Reason, Stop
from uncanny.runs.sync import cancel_all, check_done, in_thread
from uncanny.runs.task import DefectElsewhereError, Task
from uncanny.wording import counted, option

if TYPE_CHECKING:
    from uncanny.client.budget import Budget
    from uncanny.runs.cluster.driver import Cluster
    from uncanny.runs.engine import Engine, Queue

log = logging.getLogger("uncanny")

Item = TypeVar("Item")
R = TypeVar("R", bound=BaseModel)
T = TypeVar("T")
MANIFEST_EVERY_S = 5.0
# How long calls in flight are waited for when a run ends early.
GRACE_S = 60.0
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
    """Callbacks of a run, called in its event loop; what they raise ends the run in good order and is raised.

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


async def run_with(task: Task[Item, R], parameters: RunParameters) -> RunEnd:
    """Work through all inputs of `task`, resuming where an earlier run of the same task stopped.

    Of `parameters` the callbacks, `stop` and `progress` count. Raises what `open_run` raises, and what a
    callback raised. A run that is cancelled records how far it came.
    """
    about = f"{task.models.model} · {task.folder.path}"
    with live_progress(about, enabled=parameters.progress) as show:
        starts = [start for start in (parameters.on_start, show) if start is not None]

        def on_start(progress: Progress) -> None:
            for start in starts:
                start(progress)

        observer = Observer(on_start, parameters.on_record or _ignore, parameters.on_call or _ignore)
        async with open_run(task, stop=parameters.stop, observer=observer) as opened:
            await opened.work()
    assert opened.end is not None
    return opened.end


def _is_cancelled() -> bool:
    """Whether somebody cancels the task that runs; else a CancelledError came out of something within."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


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
        loaded = await in_thread(partial(load_run, task), lambda loaded: loaded.records.close())
        opened = Run(task, loaded, stop, observer or Observer())
        with nothing_left_behind(loaded.records):
            loaded.records.open()
            if broken := loaded.records.broken:
                opened.progress.warnings.append(
                    f"{loaded.records.path} had {counted(broken, 'broken line')}, which "
                    f"{'is' if broken == 1 else 'are'} in {loaded.records.set_aside_in} now; {task.unit} "
                    "without a whole record are worked on again"
                )
            try:
                with stop.listening(opened.interrupt):
                    async with opened.models_open():
                        yield opened
            except BaseException:
                if opened.begun:
                    # Also where the loop is closed already, and nobody can be told.
                    with contextlib.suppress(RuntimeError):
                        opened.ending.interrupt()
                    opened.conclude()
                raise
        if not opened.worked:
            opened.ending.interrupt()
        opened.conclude()


@dataclass(slots=True)
class Run(Generic[Item, R]):
    """One session of a run, from `open_run`. `end` is set when it is concluded."""

    task: Task[Item, R]
    loaded: LoadedRun[Item, R]
    stop: Stop
    observer: Observer
    ending: Ending = field(default_factory=Ending)
    end: RunEnd | None = None
    begun: bool = False
    worked: bool = False
    engine: Engine | Cluster | None = None
    budget: Budget | None = None
    _defects: set[str] = field(default_factory=set)
    _deferred: list[Item] = field(default_factory=list)
    _again: bool = False

    @property
    def progress(self) -> Progress:
        """Live counters."""
        return self.loaded.progress

    @contextlib.asynccontextmanager
    async def models_open(self) -> AsyncIterator[None]:
        """With nothing left to do no model is opened, and no key needed."""
        if not self.loaded.pending:
            self.observer.on_start(self.progress)
            self.begun = True
            yield
            return
        task, folder, warnings = self.task, self.task.folder, self.progress.warnings
        self.budget = self._budget()
        async with contextlib.AsyncExitStack() as stack:
            told: dict[str, Any] = {
                "answers": task.options.answers(folder.answers),
                "budget": self.budget,
                "on_call": self._note_call,
                "on_estimate": self.progress.spending.estimate,
                "on_fallback": lambda _endpoint, error: warnings.append(error.text),
                "on_pixels": self.progress.pixel_changes.update,
                "warn": warnings.append,
                "on_ready": lambda: self.observer.on_start(self.progress),
            }
            opening: contextlib.AbstractAsyncContextManager[Engine | Cluster]
            if task.options.engine == "ray":
                from uncanny.runs.cluster.driver import open_cluster

                opening = open_cluster(task, **told)
            else:
                from uncanny.runs.engine import open_engine

                own: dict[str, Any] = {"folder": folder.path, "on_wait": self._wait}
                opening = open_engine(task.models, task.options, agents=task.roles, **told, **own)
            engine = await self._unless_stopped(stack.enter_async_context(opening))
            if engine is None:
                yield
                return
            self.loaded.manifest.sent(task.models, engine.sent(task.sampling))
            self.loaded.manifest.expect(await asyncio.to_thread(task.forecast, engine.prices))
            self._begin()
            self.engine = engine
            try:
                yield
            finally:
                warnings.extend(engine.notices())
                # A server may have turned out not to take a parameter.
                self.loaded.manifest.sent(task.models, engine.sent(task.sampling))

    def _wait(self, starting: Callable[[], str | None]) -> None:
        self.progress.starting = starting

    async def _unless_stopped(
        self, opening: Coroutine[Any, Any, Engine | Cluster]
    ) -> Engine | Cluster | None:
        """The engine; None where a stop is requested before it is there: a server takes minutes to start."""
        task = asyncio.current_task()
        assert task is not None
        if self.stop.requested:
            opening.close()
            return None
        waiting = True

        def cancel() -> None:
            # A request is heard a turn of the loop later, and the models may be there by then.
            if waiting:
                task.cancel()

        try:
            with self.stop.listening(cancel):
                return await opening
        except asyncio.CancelledError:
            # Whoever cancels the task besides means it.
            if not self.stop.requested or task.uncancel():
                raise
            return None
        finally:
            waiting = False

    async def work(self) -> None:
        """Work through what is pending, many inputs at a time, until it is done or the run ends early.

        Once it is ending no input is taken up, and work is cancelled when the calls in flight have come back
        (after `GRACE_S` seconds at most), or at once after a second request. Raises what a callback raised,
        and ExtensionError where work on an input raised it, when it is over.
        """
        self.worked = True
        if (engine := self.engine) is None:
            return
        task, folder = self.task, self.task.folder
        recorded, removed = task.recorded(self.loaded.records), folder.removed_names()
        calls = CallFile(folder.calls, lambda name: recorded(name) or name in removed)
        workers: list[asyncio.Task[None]] = []
        with telemetry().run(task.name), self.stop.while_working():
            keepers = [
                asyncio.create_task(self._keep_manifest()),
                asyncio.create_task(self._cancel_when_ending(workers, engine)),
            ]
            try:
                pending: Sequence[Item] = self.loaded.pending
                while pending:
                    self._deferred = []
                    queues = engine.queues(task, pending)
                    workers[:] = [asyncio.create_task(self._worker(queue, calls)) for queue in queues]
                    check_done(*await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION))
                    pending = await self._answered(workers, engine)
            except BaseException:
                # First of all: a worker whose cancellation gets lost takes up nothing more.
                engine.drain()
                self.ending.interrupt()
                raise
            finally:
                await cancel_all([*keepers, *workers])
                try:
                    calls.close(write=in_place(folder, self.progress))
                except OSError as error:
                    self.progress.warnings.append(
                        f"{calls.path} could not be put back: {error.strerror or error}"
                    )
        if self.ending.raised is not None:
            raise self.ending.raised

    async def _answered(self, tasks: list[asyncio.Task[None]], engine: Engine | Cluster) -> Sequence[Item]:
        """The inputs that wait for a batch, when all batches are answered; none where the run ends.

        `tasks` are those at work, for whoever has to end them.
        """
        if (discount := engine.discount) is None or self.ending.reason is not None:
            return ()
        discount.consumed()
        if self._deferred:
            self.progress.awaited = discount.awaited
            tasks[:] = [asyncio.create_task(discount.settle())]
            try:
                check_done(*await asyncio.wait(tasks))
            except ENDS_RUN as error:
                self.ending.because(error)
            self.progress.awaited = None
            self._again = True
        return () if self.ending.reason is not None else self._deferred

    async def _worker(self, queue: Queue, file: CallFile) -> None:
        """Take one input after the other to its records on disk; whatever goes wrong with it is in them."""
        task, records = self.task, self.loaded.records
        for item, process in queue:
            if self.ending.reason is not None:
                return
            calls: list[CallRecord] = []
            try:
                with telemetry().input(of=len(self.loaded.pending)) as watch:
                    try:
                        finished = await process(calls)
                    except (*ENDS_INPUT, ExtensionError):
                        raise
                    except (Exception, asyncio.CancelledError) as defect:
                        if isinstance(defect, asyncio.CancelledError) and _is_cancelled():
                            raise
                        finished = self._failed(item, defect, calls)
                    watch.recorded(task.outcomes(finished))
                # Calls first: an input with a record is never worked on again.
                if calls:
                    file.append(dump_calls(calls))
                for record in finished:
                    records.append(record)
                    task.note(self.progress, record)
                    self.progress.note_finished()
            except ENDS_RUN as error:
                self.ending.because(error)
                continue
            except DeferredError:
                self._deferred.append(item)
                continue
            except ExtensionError as error:
                self.ending.raise_when_over(error)
                continue
            for record in finished:
                self._tell(self.observer.on_record, record)

    def _failed(self, item: Item, defect: BaseException, calls: list[CallRecord]) -> Sequence[R]:
        """The records of an input that a defect ended: it must cost one input, not the run."""
        task = self.task
        elsewhere = defect if isinstance(defect, DefectElsewhereError) else None
        message = text_of(defect) if elsewhere is None else elsewhere.words
        finished = task.failed_by(item, message, calls) if elsewhere is None else elsewhere.records
        names = ", ".join(map(task.key, finished))
        # Where it came about says a traceback once; thousands of the same hide everything else.
        log.error("%s: %s failed: %s", task.name, names, message, exc_info=self._first(message))
        return finished

    def _first(self, defect: str) -> bool:
        known = defect in self._defects
        self._defects.add(defect)
        return not known

    def _tell(self, callback: Callable[[T], object], what: T) -> None:
        """Call the host back. What it raises is no failure of ours: it ends the run, in good order."""
        try:
            callback(what)
        except (Exception, asyncio.CancelledError) as error:
            self.ending.raise_when_over(error)

    def interrupt(self) -> None:
        """Asked for from outside: no further call is started, and the host hears how many are waited for."""
        self.ending.interrupt()
        if self.engine is None:
            return
        self.engine.drain()
        self._await_calls(self.engine)
        if not self.ending.now and (calls := self.engine.in_flight()):
            self._tell(self.stop.waiting, calls)

    def _await_calls(self, engine: Engine | Cluster) -> None:
        self.progress.awaited = lambda: counted(engine.in_flight(), "call")

    async def _cancel_when_ending(self, workers: list[asyncio.Task[None]], engine: Engine | Cluster) -> None:
        await self.ending.changed.wait()
        engine.drain()
        self._await_calls(engine)
        deadline = asyncio.get_running_loop().time() + GRACE_S
        # Polled: an event for every call that comes back would cost more than this does.
        while engine.in_flight() and not self.ending.now and asyncio.get_running_loop().time() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        for worker in workers:
            worker.cancel()

    def conclude(self) -> None:
        """Write down how it ended, as far as the disk takes it: what is in the records stands in any case."""
        if self.end is not None:
            return
        unwritten: list[Path] = []
        progress, warnings = self.progress, self.progress.warnings
        progress.end()
        if isinstance(self.ending.error, BudgetError) and self.budget is not None:
            # What was in flight, or cost less than the call that did not fit, was spent after it was said.
            self.ending.error = self.budget.error()
        if (
            self.ending.reason == "interrupt"
            and self.ending.raised is None
            and progress.done >= progress.total
        ):
            self.ending.reason = None  # it came when nothing was left to end
        warnings.extend(self.task.warnings(self.progress))
        is_in_place = in_place(self.task.folder, self.progress)
        if is_in_place:
            warnings.extend(bring_up_to_date(self.task, self.loaded))
        try:
            self.loaded.records.finish(write=is_in_place)
        except OSError as error:
            unwritten.append(self.loaded.records.path)
            warnings.append(
                f"{self.loaded.records.path} could not be put in order: {error.strerror or error}"
            )
        else:
            warnings.extend(self.task.after_records() if is_in_place else ())
        try:
            self.loaded.manifest.write(_STATES[self.ending.reason], self.progress, self.ending.error)
        except (OSError, StorageError) as error:
            unwritten.append(self.loaded.manifest.path)
            warnings.append(unwritten_manifest(self.loaded.manifest, error))
        self.loaded.spending.close(counted=self.loaded.manifest.path not in unwritten)
        self.end = RunEnd(
            self.progress,
            self.ending.reason,
            self.ending.error,
            self.loaded.manifest.content,
            tuple(unwritten),
            lost=not is_in_place,
        )

    def _begin(self) -> None:
        """Raises UsageError where nothing can be written: better now than after the first answers."""
        self.loaded.spending.open(self.ending.because)
        try:
            self.loaded.manifest.write("running", self.progress)
        except OSError as error:
            raise UsageError(
                unwritten_manifest(self.loaded.manifest, error),
                remedy=f"Free some disk space, or pass a folder that you can write to with {option('out')}.",
            ) from error
        self.loaded.spending.clear()
        self.begun = True

    def _budget(self) -> Budget:
        from uncanny.client.budget import Budget, Spend

        options, spending = self.task.options, self.progress.spending
        return Budget(
            options.max_cost_usd,
            options.max_tokens_total,
            Spend(*spending.booked()),
            usual_calls=self.task.calls_per_input,
            estimated=Spend(spending.estimated_tokens, spending.estimated_usd),
        )

    def _note_call(self, call: CallRecord) -> None:
        if call.replayed and self._again:
            return  # it was counted when a batch had answered it, or before
        self.progress.add_call(call)
        if not call.replayed:
            self.loaded.spending.append(call, self.progress.spending.calls)
        self._tell(self.observer.on_call, call)

    async def _keep_manifest(self) -> None:
        """Keep `run.json` fresh; where it cannot be written for a while, say so and go on trying."""
        warned = False
        while True:
            await asyncio.sleep(MANIFEST_EVERY_S)
            try:
                self.loaded.manifest.write("running", self.progress)
                self.loaded.spending.clear()
            except StorageError as error:
                self.ending.because(error)
            except OSError as error:
                if not warned:
                    more = "; the run continues and will try again"
                    self.progress.warnings.append(unwritten_manifest(self.loaded.manifest, error, more))
                warned = True
