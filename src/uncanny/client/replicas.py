"""Several servers of one model: which of them is asked about an image, and what becomes of one that dies.

An image stays with one replica, which has its prefixes and pictures in its caches: rendezvous hashing of its
digest gives the order in which replicas are tried. Where one does not answer, its images go to the next in
their order, and come back when it does; the others keep theirs. Records and keys of kept answers name the
model, not the replica.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from uncanny.errors import (
    ModelDownError,
    ModelUnusableError,
    ProviderError,
    RequestRejectedError,
    TransientError,
    UncannyError,
    text_of,
)
from uncanny.wording import Words, marked, option

if TYPE_CHECKING:
    from uncanny.client.endpoint import Breaker, Endpoint

FAILURES_EACH: Final = 2
"""So often a request fails at one replica before the next one is tried."""
DEATHS: Final = 2
"""So many servers die of one request before it is given up."""
MOST_TOLD: Final = 3
"""Of so many losses of one replica the user is told."""
REST_S: Final = 60.0
"""Seconds without calls for a replica that can be reached and yet only fails."""


@dataclass(slots=True, eq=False)
class Replica:
    """One server of a model: a provider with its own limiter and breaker.

    `revive` returns when the server answers again, having started it if it is ours, and raises
    `ModelUnusableError` where it never will. `waited_for`: while no replica is up, requests wait for this
    one; for a server that is not ours nobody knows whether it comes back, so it is asked again.
    `place` names it in messages. `restarts` says how often it was started again, `losses` how often it did
    not answer.
    """

    endpoint: Endpoint
    place: str
    revive: Callable[[], Awaitable[None]]
    waited_for: bool = False
    restarts: Callable[[], int] = lambda: 0
    state: Literal["up", "away", "gone"] = "up"
    losses: int = 0


class Replicas:
    """The replicas of one model; use as `async with`, or what revives them stays behind.

    `breaker` is that of the model as a whole. `warn` gets a sentence when a replica is lost, is back or is
    given up.
    """

    def __init__(self, members: Sequence[Replica], breaker: Breaker, warn: Callable[[str], None]) -> None:
        self.members = tuple(members)
        self._breaker, self._warn = breaker, warn
        self._by_endpoint = {id(each.endpoint): each for each in self.members}
        self._changed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._checked: set[Replica] = set()
        self._error: ModelUnusableError | None = None
        self.suspected = asyncio.Lock()

    async def __aenter__(self) -> Replicas:
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serving(self, pin: str, failures: int) -> Endpoint:
        """The replica for a request that has failed so often; waits while one that is ours starts again.

        `pin` is the image's digest. Raises `ModelUnusableError` where every replica is gone for good.
        """
        while (chosen := self._choice(pin, failures)) is None:
            await self._changed.wait()
        return chosen.endpoint

    def of(self, endpoint: Endpoint) -> Replica:
        return self._by_endpoint[id(endpoint)]

    def moved(self, endpoint: Endpoint, pin: str, failures: int) -> bool:
        """Whether the request would now go elsewhere: it has waited for its slot meanwhile."""
        chosen = self._choice(pin, failures)
        return chosen is None or chosen.endpoint is not endpoint

    def _choice(self, pin: str, failures: int) -> Replica | None:
        order = self.members if len(self.members) == 1 else self._order(pin)
        ready = [each for each in order if each.state == "up"]
        if not ready and any(map(_is_awaited, order)):
            return None
        ready = ready or [each for each in order if each.state == "away"]
        if not ready:
            assert self._error is not None
            raise self._error.with_traceback(None)
        return ready[failures // FAILURES_EACH % len(ready)]

    def _order(self, pin: str) -> list[Replica]:
        # By number, not by address: servers of ours get another port in the next session.
        def rank(number: int) -> bytes:
            return hashlib.sha256(f"{number} {pin}".encode()).digest()

        return [self.members[number] for number in sorted(range(len(self.members)), key=rank)]

    def failed(self, endpoint: Endpoint, error: TransientError, about: Hashable) -> None:
        """Count a failed call, by the input it is about; a replica that does not answer gets no more."""
        replica = self.of(endpoint)
        if replica.state != "up":
            return
        if error.kind == "connection":
            self._lose(replica, error, at_once=True)
            return
        try:
            endpoint.breaker.failed(error, about)
        except ModelDownError as down:
            if len(self.members) > 1:
                self._lose(replica, down, at_once=False)
            return
        if error.kind.startswith("http_5") and replica not in self._checked:
            self._checked.add(replica)
            self._keep(self._check(replica, error))

    def unusable(self, endpoint: Endpoint, error: ModelUnusableError) -> bool:
        """Ask this replica nothing more, if there is another one to ask; whether there is."""
        replica = self.of(endpoint)
        if all(each.state == "gone" for each in self.members if each is not replica):
            return False  # the error is the model's
        if replica.state != "gone":
            self._give_up(replica, error)
        return True

    async def _check(self, replica: Replica, error: TransientError) -> None:
        """A server that answers with errors may be about to end."""
        try:
            if replica.state == "up" and not await replica.endpoint.provider.is_up():
                self._lose(replica, error, at_once=True)
        finally:
            self._checked.discard(replica)

    def _lose(self, replica: Replica, error: ProviderError, *, at_once: bool) -> None:
        if replica.state != "up":
            return
        replica.state = "away"
        self._keep(self._revive(replica, error, at_once=at_once))
        self._tell()

    async def _revive(self, replica: Replica, error: ProviderError, *, at_once: bool) -> None:
        began, restarts = asyncio.get_running_loop().time(), replica.restarts()
        told = False
        try:
            if not at_once or not await replica.endpoint.provider.is_up():
                # Of restarts the server itself tells.
                replica.losses += not replica.waited_for
                told = 0 < replica.losses <= MOST_TOLD and len(self.members) > 1
            if told:
                self._warn(_sentence(replica, "is not asked for now", error))
            if not at_once:
                await asyncio.sleep(REST_S)
            await replica.revive()
        except ModelUnusableError as gone:
            self._give_up(replica, gone)
            return
        except Exception as gone:  # whoever waits for it would wait for ever
            self._give_up(replica, _unusable(gone))
            return
        replica.state = "up"
        replica.endpoint.breaker.restarted()
        if replica.restarts() > restarts:
            self._breaker.restarted()
        if told:
            seconds = asyncio.get_running_loop().time() - began
            again = ", and later losses are not told" if replica.losses == MOST_TOLD else ""
            self._warn(f"{replica.place} was back after {seconds:.0f} s{again}")
        self._tell()

    def _give_up(self, replica: Replica, error: ModelUnusableError) -> None:
        replica.state, self._error = "gone", error
        if any(each.state != "gone" for each in self.members):
            self._warn(_sentence(replica, "is not asked any more", error))
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _keep(self, coroutine: object) -> None:
        task: asyncio.Task[None] = asyncio.create_task(coroutine)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class Suspicion:
    """Whether it is one generation's request that servers die of.

    All requests under way at a death are suspected, and asked one at a time from then on. The one that is
    under way at a second death is given up: without that it would end every server, one restart after the
    other.
    """

    __slots__ = ("_asked", "_deaths", "_replicas")

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._asked: list[tuple[Replica, int]] = []
        self._deaths = 0

    @asynccontextmanager
    async def asking(self, name: str) -> AsyncIterator[None]:
        """Around one call and the waiting for it. Raises `RequestRejectedError` after `DEATHS` deaths."""
        self._deaths += sum(
            replica.state != "up" or replica.restarts() > before for replica, before in self._asked
        )
        self._asked.clear()
        if self._deaths >= DEATHS:
            raise RequestRejectedError(
                f"{name}: its server died {self._deaths} times while it answered this question",
                remedy="The server's log says why. Perhaps a smaller image helps: "
                f"{option('max_side', 1024)}.",
            )
        async with self._replicas.suspected if self._deaths else nullcontext():
            yield

    def failed(self, endpoint: Endpoint, error: TransientError) -> None:
        """The call has failed: perhaps its server, if that is ours, has died."""
        replica = self._replicas.of(endpoint)
        if replica.waited_for and _may_be_dead(error):
            self._asked.append((replica, replica.restarts()))


def _may_be_dead(error: TransientError) -> bool:
    return error.kind == "connection" or error.kind.startswith("http_5")


def _unusable(error: Exception) -> ModelUnusableError:
    if isinstance(error, UncannyError):
        return ModelUnusableError(marked(error.message), remedy=error.remedy and marked(error.remedy))
    return ModelUnusableError(text_of(error))


def _is_awaited(replica: Replica) -> bool:
    return replica.state == "away" and replica.waited_for


def _sentence(replica: Replica, what: str, error: ProviderError) -> Words:
    return Words(f"{replica.place} {what}: {error.message_without(replica.endpoint.name)}")
