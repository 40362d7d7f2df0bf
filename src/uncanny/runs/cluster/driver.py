"""The engine of a run whose inputs are worked on by actors of Ray.

Lock, manifest, records, calls and the limit on cost stay in the process that holds the run. Inputs are
divided into slots, for their answers; an actor takes one slot after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from array import array
from collections import defaultdict, deque
from collections.abc import (
    AsyncIterator,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from uncanny.client.budget import Budget, Spend
from uncanny.client.calls import CallRecord
from uncanny.client.prices import PriceTable
from uncanny.errors import ModelUnusableError, StorageError, UncannyError, UsageError
from uncanny.extras import optional
from uncanny.models.base import Sampling
from uncanny.records.answer_cache import AnswerCache
from uncanny.records.answer_slots import slot_of
from uncanny.records.answer_store import NAME
from uncanny.runs.cluster.budget import Leases
from uncanny.runs.cluster.worker import News, Outcome, Start, Worker
from uncanny.runs.engine import Engine, Queue, Step, check_prices, check_roles, needs_server
from uncanny.wording import option, server_address

if TYPE_CHECKING:
    from uncanny.runs.task import Task

log = logging.getLogger("uncanny")
T = TypeVar("T")
# An input that is worked on when its actor is lost is asked about again, so often at most.
MOST_LOST: Final = 3
OPENING_S: Final = 300.0
CLOSING_S: Final = 30.0
# Tasks of one actor side by side: many more than inputs.
_SIDE_BY_SIDE: Final = 1_000
# Nothing is told to others, and actors are no less urgent than this process.
_RAY_SETTINGS: Final = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
# What goes between processes is small.
_OBJECTS_BYTES: Final = 100_000_000


class LostActorError(Exception):
    """The actor that worked on an input was lost, again and again."""


@dataclass(kw_only=True, slots=True)
class Told:
    """What the run wants to be told; see `open_engine`."""

    on_call: Callable[[CallRecord], None]
    on_estimate: Callable[[float, float], None]
    on_fallback: Callable[[None, ModelUnusableError], None]
    on_pixels: Callable[[Iterable[str]], None]
    warn: Callable[[str], None]


@contextlib.asynccontextmanager
async def open_cluster(
    task: Task[Any, Any],
    *,
    answers: Path | None,
    budget: Budget,
    on_ready: Callable[[], None],
    **told: Any,
) -> AsyncIterator[Cluster]:
    """Start the actors that work on inputs of `task`, with their models; end them in the end.

    Parameters are those of `open_engine`. Raises UsageError and ModelUnusableError before anything is asked.
    """
    ray = optional("ray", "ray", f"{option('engine')} ray")
    options = task.options
    _check(task)
    prices = PriceTable.load(task.models.prices)
    check_prices(task.models, options, prices)
    if answers is not None:
        await asyncio.to_thread(_fold_log, answers)
    async with contextlib.AsyncExitStack() as stack:
        # Not in the main thread: Ray would take over the signals there.
        await asyncio.to_thread(_connect, ray, task, stack)
        number = min(options.ray_actors or int(ray.cluster_resources().get("CPU", 1)), options.concurrency)
        cluster = Cluster(ray, task, answers, budget, prices, Told(**told), number)
        stack.push_async_callback(cluster.close)
        await cluster.open()
        on_ready()
        yield cluster


def _check(task: Task[Any, Any]) -> None:
    """Raises UsageError for what cannot be done by several processes."""
    check_roles(task.models, task.roles)
    if task.options.processing is not None:
        cheaper = option("batch") if task.options.batch else option("completion_window")
        raise UsageError(
            f"{cheaper} does not go with {option('engine')} ray",
            remedy="Remove one of them: what is handed in keeps no machine busy.",
        )
    for model in task.models.all_models():
        if needs_server(model, task.models):
            raise UsageError(
                f"With {option('engine')} ray, no vLLM server is started for {model}",
                remedy=f"Start one, and set {server_address()}.",
            )


def _fold_log(answers: Path) -> None:
    """Of a session that was killed here: its database is read by actors, perhaps on other machines."""
    if answers.joinpath(f"{NAME}-wal").exists():
        AnswerCache(answers).close()


def _connect(ray: Any, task: Task[Any, Any], stack: contextlib.AsyncExitStack) -> None:
    """Raises UsageError."""
    if ray.is_initialized():
        return  # by the program that calls us, and ended by it
    address, number = task.options.ray_address, task.options.ray_actors
    own: dict[str, Any] = {"address": address}
    if address is None:
        own = {"num_cpus": number, "include_dashboard": False, "object_store_memory": _OBJECTS_BYTES}
    for name, value in _RAY_SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        ray.init(**own, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises all kinds, plain `Exception` among them
        ray.shutdown()  # what was started by then
        if address is None:
            raise UsageError(
                f"Ray cannot be started on this machine: {_first_line(error)}",
                remedy="Run the same again when the machine is less busy, or start a cluster with "
                f"`ray start` and pass {option('ray_address')}.",
            ) from error
        raise UsageError(
            f"The Ray cluster at {address} cannot be reached: {_first_line(error)}",
            remedy=f"Check {option('ray_address')}.",
        ) from error
    stack.push_async_callback(asyncio.to_thread, ray.shutdown)


@dataclass(slots=True, eq=False)
class Actor:
    """A worker somewhere. `heard` are its events up to this number; `lost` says that there are no more."""

    handle: Any
    in_flight: int = 0
    heard: int = 0
    lost: bool = False
    news: asyncio.Condition = field(default_factory=asyncio.Condition)
    listening: asyncio.Task[None] | None = None

    async def hear(self, number: int) -> bool:
        """Wait until all events up to `number` are passed on; False where the actor is lost before."""
        async with self.news:
            await self.news.wait_for(lambda: self.heard >= number or self.lost)
        return self.heard >= number


@dataclass(slots=True, eq=False)
class Lane:
    """One actor after the other: where one is lost, the next takes its place. `share` is of calls at once.

    `left` are places of the inputs of its `slot` that nobody has taken. Inputs whose actor was lost go
    `alone`, one after the other: one of them may be what ends its actor.
    """

    share: int
    actor: Actor | None = None
    slot: str = ""
    left: deque[int] = field(default_factory=deque)
    replacing: asyncio.Lock = field(default_factory=asyncio.Lock)
    alone: asyncio.Lock = field(default_factory=asyncio.Lock)


class Cluster:
    """The actors of a run, in the place of an `Engine`: agents and their models are in the actors."""

    discount = None

    def __init__(
        self,
        ray: Any,
        task: Task[Any, Any],
        answers: Path | None,
        budget: Budget,
        prices: PriceTable,
        told: Told,
        number: int,
    ) -> None:
        self.prices = prices
        self._ray, self._task, self._told = ray, task, told
        self._answers = answers
        concurrency = task.options.concurrency
        shares = (concurrency // number + (each < concurrency % number) for each in range(number))
        self._lanes = [Lane(share) for share in shares]
        self._leases = Leases(budget, number, self._take_back)
        self._draining = False
        self._numbers = count()
        self._calls: dict[int, list[CallRecord]] = {}
        self._pending: Sequence[Any] = ()
        self._slots: deque[tuple[str, array[int]]] = deque()
        self._said: set[str] = set()
        self._sent: dict[str, dict[str, Any]] = {}
        self._notices: dict[str, None] = {}
        self._talking: set[asyncio.Task[None]] = set()
        self._lost = (
            ray.exceptions.RayActorError,
            ray.exceptions.ActorUnavailableError,
            ray.exceptions.OutOfMemoryError,
            ray.exceptions.NodeDiedError,
            ray.exceptions.WorkerCrashedError,
        )

    async def open(self) -> None:
        """Raises UsageError and ModelUnusableError."""
        try:
            self._packed = self._ray.cloudpickle.dumps(self._task.for_workers())
        except Exception as error:  # whatever a user's own nodes and agents have in them
            raise UsageError(
                f"The run cannot be sent to other processes: {error}",
                remedy=f"Remove your own agents and graphs, or {option('engine')}.",
            ) from error
        opening = [asyncio.create_task(self._open(lane)) for lane in self._lanes]
        try:
            await asyncio.gather(*opening)
        finally:
            for each in opening:
                each.cancel()

    def queues(self, task: Task[Any, Any], pending: Sequence[Any]) -> Sequence[Queue]:
        """As of an `Engine`, with the queues of one actor after those of another."""
        slots: defaultdict[str, array[int]] = defaultdict(lambda: array("Q"))
        for place, item in enumerate(pending):
            slots[slot_of(task.name_of(item))].append(place)
        self._pending, self._slots = pending, deque(slots.items())
        queues: list[Queue] = []
        part = copy(task)
        for lane in self._lanes:
            part.options = task.options.model_copy(update={"concurrency": lane.share})
            queues += [self._queue(lane)] * part.inputs_at_once
        return queues

    def _queue(self, lane: Lane) -> Iterator[Any]:
        while True:
            if not lane.left:
                if not self._slots:
                    return
                lane.slot, places = self._slots.popleft()
                lane.left = deque(places)
            item = self._pending[lane.left.popleft()]
            at = _InLane(self, lane, lane.slot)
            if self._task.in_steps:
                yield item, partial(self._task.process, item, cast("Engine", at))
            else:
                yield item, partial(at.perform, self._task.process, item)

    def sent(self, sampling: Sampling) -> dict[str, dict[str, Any]]:  # noqa: ARG002  actors know it
        """Parameters as each model is really sent them."""
        return self._sent

    def notices(self) -> list[str]:
        """What turned out about servers and is worth a word to the user."""
        return list(self._notices)

    def drain(self) -> None:
        """Start no further call; those in flight come back and are kept."""
        self._draining = True
        for actor in self._actors():
            # Until it has said so itself, there may be some.
            actor.in_flight = max(1, actor.in_flight)
            self._talk(self._drain(actor))

    def in_flight(self) -> int:
        """Calls that have not come back, as far as actors have said."""
        return sum(actor.in_flight for actor in self._actors())

    async def close(self) -> None:
        """End the actors, when all they have to tell is told."""
        every = [lane.actor for lane in self._lanes if lane.actor is not None and not lane.actor.lost]
        await asyncio.gather(*map(self._close, every))

    async def perform(self, lane: Lane, slot: str, step: str, item: Any, calls: list[CallRecord]) -> Any:
        """One step of the task in an actor, in another one where that is lost."""
        before, lost = len(calls), "it was lost"
        async with contextlib.AsyncExitStack() as stack:
            for time in range(MOST_LOST):
                if time == 1:
                    await stack.enter_async_context(lane.alone)
                if (actor := lane.actor) is None or actor.lost:
                    actor = await self._replaced(lane, actor)
                number = next(self._numbers)
                self._calls[number] = calls
                try:
                    outcome: Outcome = await actor.handle.perform.remote(step, item, number, slot)
                    if await actor.hear(outcome.number):
                        if outcome.error is not None:
                            raise outcome.error
                        return outcome.value
                except self._lost as error:
                    lost = _first_line(error)
                finally:
                    del self._calls[number]
                await self._lose(actor)
                # What was asked by then comes back from the answers.
                del calls[before:]
        raise LostActorError(f"{MOST_LOST} actors of Ray were lost while they worked on it: {lost}")

    async def _replaced(self, lane: Lane, lost: Actor | None) -> Actor:
        """Raises StorageError where there is no other."""
        async with lane.replacing:
            if lane.actor is not lost and lane.actor is not None:
                return lane.actor
            log.warning("An actor of Ray was lost; another one takes its place")
            try:
                return await self._open(lane)
            except UncannyError as error:
                raise StorageError(
                    f"An actor of Ray was lost, and no other could be started: {error.message}",
                    remedy="Run the same again to resume.",
                ) from error

    async def _open(self, lane: Lane) -> Actor:
        """Raises UsageError and ModelUnusableError."""
        actor_class = self._ray.remote(num_cpus=1, max_restarts=0, max_concurrency=_SIDE_BY_SIDE)(Worker)
        actor = lane.actor = Actor(actor_class.remote(self._packed, Start.here()))
        try:
            async with asyncio.timeout(OPENING_S):
                sent = await actor.handle.open.remote(lane.share, self._answers)
        except TimeoutError as error:
            await self._lose(actor)
            raise UsageError(
                f"Ray has not started an actor within {OPENING_S:.0f} s",
                remedy=f"Check that the cluster has free CPUs, or lower {option('ray_actors')}.",
            ) from error
        except self._ray.exceptions.RayError as error:
            raise UsageError(
                f"An actor of Ray could not start: {_first_line(error)}",
                remedy="Check that uncanny and the folders of the run are there on each machine.",
            ) from error
        if isinstance(sent, UncannyError):
            await self._lose(actor)
            raise sent
        self._sent = self._sent or sent
        if self._draining:
            await self._drain(actor)
        actor.listening = asyncio.create_task(self._listen(actor))
        return actor

    async def _listen(self, actor: Actor) -> None:
        """Pass on what an actor tells, until it is closed or lost."""
        try:
            while True:
                news: News = await actor.handle.news.remote()
                for what, about in news.events:
                    getattr(self, f"_on_{what}")(actor, *about)
                async with actor.news:
                    actor.heard, actor.in_flight = news.number, news.in_flight
                    actor.news.notify_all()
                if news.last:
                    return
        except self._lost:
            await self._lose(actor)
        except Exception:  # those who wait for its events would wait for ever
            log.exception("An actor of Ray is given up: what it told could not be passed on")
            await self._lose(actor)

    def _talk(self, talk: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(talk)
        self._talking.add(task)
        task.add_done_callback(self._talking.discard)

    def _actors(self) -> list[Actor]:
        """Those that can be talked to; one that takes another's place is still opening."""
        actors = (lane.actor for lane in self._lanes if lane.actor is not None)
        return [each for each in actors if each.listening is not None and not each.lost]

    def _on_call(self, _actor: Actor, number: int, call: CallRecord) -> None:
        if (calls := self._calls.get(number)) is not None:
            calls.append(call)
        self._told.on_call(call)

    def _on_estimate(self, _actor: Actor, tokens: float, usd: float) -> None:
        self._told.on_estimate(tokens, usd)

    def _on_settled(self, actor: Actor, actual: Spend, estimated: Spend) -> None:
        self._leases.settled(actor, actual, estimated)

    def _on_pixels(self, _actor: Actor, changes: Sequence[str]) -> None:
        self._told.on_pixels(changes)

    def _on_fallback(self, _actor: Actor, error: ModelUnusableError) -> None:
        if str(error) not in self._said:
            self._said.add(str(error))
            self._told.on_fallback(None, error)

    def _on_warn(self, _actor: Actor, words: str) -> None:
        if words not in self._said:
            self._said.add(words)
            self._told.warn(words)

    def _on_lease(self, actor: Actor, worst: Spend) -> None:
        self._talk(self._grant(actor, worst))

    async def _grant(self, actor: Actor, worst: Spend) -> None:
        lease = await self._leases.lease(actor, worst)
        with contextlib.suppress(*self._lost):
            await actor.handle.grant.remote(lease)

    async def _take_back(self) -> Mapping[Hashable, Spend]:
        returned: dict[Hashable, Spend] = {}
        for actor in self._actors():
            with contextlib.suppress(*self._lost):
                returned[actor] = await actor.handle.take_back.remote()
        return returned

    async def _drain(self, actor: Actor) -> None:
        with contextlib.suppress(*self._lost):
            actor.in_flight = await actor.handle.drain.remote()

    async def _lose(self, actor: Actor) -> None:
        """Nothing comes from this actor any more."""
        actor.in_flight = 0
        self._leases.lose(actor)
        self._ray.kill(actor.handle)
        async with actor.news:
            actor.lost = True
            actor.news.notify_all()

    async def _close(self, actor: Actor) -> None:
        try:
            if actor.listening is not None:
                async with asyncio.timeout(CLOSING_S):
                    self._sent, notices = await actor.handle.close.remote()
                    await actor.listening
                self._notices |= dict.fromkeys(notices)
        except (TimeoutError, *self._lost) as error:
            log.warning("An actor of Ray did not end in good order: %s", _first_line(error))
        finally:
            await self._lose(actor)


@dataclass(frozen=True, slots=True)
class _InLane:
    """An `Engine` for tasks that work in steps: it performs them in the lane's actor."""

    cluster: Cluster
    lane: Lane
    slot: str

    async def perform(self, step: Step[T], item: Any, calls: list[CallRecord]) -> T:
        name = step.__name__
        value: T = await self.cluster.perform(self.lane, self.slot, name, item, calls)
        return value


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
