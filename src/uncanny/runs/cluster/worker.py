"""What works on inputs in another process: the task without its inputs, and the models it asks."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import pickle
import traceback
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncanny.client.budget import Spend
from uncanny.client.calls import CallRecord
from uncanny.errors import ENDS_INPUT, ExtensionError, UncannyError, text_of
from uncanny.records.answer_slots import AnswerSlots
from uncanny.runs.cluster.budget import LeasedBudget
from uncanny.runs.engine import Engine, open_engine
from uncanny.runs.task import DefectElsewhereError
from uncanny.settings import settings

if TYPE_CHECKING:
    from uncanny.runs.task import Task

# After this time `news` returns, even if nothing has happened.
NEWS_S = 1.0
_INPUT: ContextVar[int] = ContextVar("input")


@dataclass(frozen=True, slots=True)
class Start:
    """Where a worker starts: the folder and the settings of the process that holds the run.

    Keys are not among them: each machine has its own.
    """

    folder: str
    settings: Mapping[str, str]

    @classmethod
    def here(cls) -> Start:
        """As in this process."""
        own = {name: value for name, value in os.environ.items() if name.startswith("UNCANNY_")}
        return cls(str(Path.cwd()), own)

    def enter(self) -> None:
        """Raises OSError where this machine does not have the folder."""
        os.chdir(self.folder)
        os.environ.update(self.settings)
        settings.cache_clear()


@dataclass(frozen=True, slots=True)
class News:
    """What has happened in a worker since it last said so, each with the name of what to do about it.

    `number` counts all events so far, `in_flight` the calls that have not come back; the `last` ones come
    when the worker is closed.
    """

    events: Sequence[tuple[str, tuple[Any, ...]]]
    number: int
    in_flight: int
    last: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step ended: its value, or the error to raise. `number` counts events by then."""

    value: Any
    error: BaseException | None
    number: int


class Worker:
    """An actor. Its methods run side by side in one event loop; none but `close` ends before its time."""

    def __init__(self, task: bytes, start: Start) -> None:
        start.enter()
        self._task: Task[Any, Any] = pickle.loads(task)
        self._stack = contextlib.AsyncExitStack()
        self._events: list[tuple[str, tuple[Any, ...]]] = []
        self._number, self._closed = 0, False
        self._happened = asyncio.Event()
        self._leases: list[asyncio.Future[Spend | None]] = []
        self._engine: Engine
        self._budget: LeasedBudget
        self._slots: AnswerSlots | None = None

    async def open(self, concurrency: int, answers: Path | None) -> dict[str, dict[str, Any]] | UncannyError:
        """Open the models, with so many calls at once; the parameters as each is sent them."""
        task = self._task
        self._budget = LeasedBudget(
            task.options, self._lease, self._settled, usual_calls=task.calls_per_input
        )
        try:
            if answers is not None:
                self._slots = AnswerSlots(answers, lambda words: self._tell("warn", words))
                self._stack.push_async_callback(self._slots.aclose)
            opening = open_engine(
                task.models,
                task.options.model_copy(update={"concurrency": concurrency}),
                answers=None,
                slots=self._slots,
                budget=self._budget,
                agents=task.roles,
                on_call=lambda call: self._tell("call", _INPUT.get(), call),
                on_estimate=lambda tokens, usd: self._tell("estimate", tokens, usd),
                on_fallback=lambda _, error: self._tell("fallback", error),
                on_pixels=lambda changes: self._tell("pixels", tuple(changes)),
                warn=lambda words: self._tell("warn", words),
            )
            self._engine = await self._stack.enter_async_context(opening)
        except UncannyError as error:
            return error
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        return self._engine.sent(task.sampling)

    async def perform(self, step: str, item: Any, number: int, slot: str) -> Outcome:
        """One step of the task about the input that has this number."""
        _INPUT.set(number)
        calls: list[CallRecord] = []
        value: Any = None
        ended: BaseException | None = None
        async with contextlib.AsyncExitStack() as stack:
            try:
                if self._slots is not None:
                    await stack.enter_async_context(self._slots.held(slot))
                value = await getattr(self._task, step)(item, self._engine, calls)
            except (*ENDS_INPUT, ExtensionError) as error:
                ended = error.with_traceback(None)
            except (Exception, asyncio.CancelledError) as defect:
                words = text_of(defect)
                records = self._task.failed_by(item, words, calls)
                ended = DefectElsewhereError(words, records, traceback.format_exc())
        return Outcome(value, ended, self._number)

    async def news(self) -> News:
        """What has happened; waits for something, but not for long."""
        if not self._events and not self._closed:
            self._happened.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._happened.wait(), NEWS_S)
        events, self._events = self._events, []
        return News(events, self._number, self._engine.in_flight(), self._closed)

    async def grant(self, lease: Spend | None) -> None:
        """The answer to the first lease that was asked for."""
        self._leases.pop(0).set_result(lease)

    async def take_back(self) -> Spend:
        """What of the lease nobody uses."""
        return self._budget.take_back()

    async def drain(self) -> int:
        """Start no further call; how many are in flight."""
        self._engine.drain()
        return self._engine.in_flight()

    async def close(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Close the models and the answers; parameters as they were sent, and notices."""
        sent, notices = self._engine.sent(self._task.sampling), self._engine.notices()
        await self._stack.aclose()
        self._closed = True
        self._happened.set()
        return sent, notices

    async def _lease(self, worst: Spend) -> Spend | None:
        granted: asyncio.Future[Spend | None] = asyncio.get_running_loop().create_future()
        self._leases.append(granted)
        self._tell("lease", worst)
        return await granted

    def _settled(self, actual: Spend, estimated: Spend) -> None:
        self._tell("settled", actual, estimated)

    def _tell(self, what: str, *about: Any) -> None:
        self._events.append((what, about))
        self._number += 1
        self._happened.set()
