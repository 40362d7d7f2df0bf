"""One model as a run uses it: the provider with what guards it, a limiter and a breaker.

The limiter says how many calls the model gets at once: additive increase, multiplicative decrease. It starts
slowly from half the ceiling, at least `START`; a server that says it is overloaded takes the limit to 0.7 of
what it was, at most once a second, and a Retry-After pauses all calls. Servers that queue (vLLM) get a fixed
limit. Slots are given in order of tickets. The breaker says when to give up a model that only fails, retries
when to give up a request.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Final

from uncanny.client.budget import MOST_TIMES, Spend
from uncanny.client.prices import Rates
from uncanny.client.waiting import Ticket, WaitingQueue
from uncanny.errors import (
    ModelDownError,
    ModelUnusableError,
    ProviderDefectError,
    RequestRejectedError,
    TransientError,
)
from uncanny.models.base import ModelProvider, ModelRequest, Tokens
from uncanny.models.tokens import disagreement
from uncanny.wording import server_address

if TYPE_CHECKING:
    from uncanny.client.replicas import Replicas

TIMEOUT_S = 120.0
PATIENCE_S = 120.0
# No model's list price was ever above these (o1-pro, 2025).
DEAREST: Final = Rates(input=150, output=600)


@dataclass(slots=True)
class Endpoint:
    """A provider, its limiter and breaker, and what it costs.

    `price` gives US dollars for tokens, None where the model has no known price. `worst_case` estimates the
    most one request can use, for budgets. `address` stands for the server in the answer cache's keys. A model
    that was given up is tried again after `rest_s` seconds, or never where that is None. `notice` is what
    turned out about it and is worth a word to the user.
    """

    provider: ModelProvider
    limiter: Limiter
    breaker: Breaker
    price: Callable[[Tokens], float | None]
    worst_case: Callable[[ModelRequest], Tokens]
    address: str | None
    rest_s: float | None = None
    notice: str | None = field(init=False, default=None)
    replicas: Replicas | None = field(init=False, default=None)
    _given_up: ModelUnusableError | None = field(init=False, default=None)
    _rests_until: float = field(init=False, default=math.inf)

    @property
    def name(self) -> str:
        return self.provider.name

    @property
    def servers(self) -> tuple[Endpoint, ...]:
        """The replicas, each as an endpoint; this one alone where there are none."""
        return (self,) if self.replicas is None else tuple(each.endpoint for each in self.replicas.members)

    def cost(self, reported_usd: float | None, tokens: Tokens, most: Tokens) -> float | None:
        """US dollars of a call that used `tokens`; None where that is not known.

        What the server reports comes before the price, unless it is more than `MOST_TIMES` the price of the
        request's worst case, `most`. Where no price is known, the highest one that any model has counts.
        """
        if reported_usd is not None:
            limit_usd = MOST_TIMES * (self.price(most) or 0.0) or DEAREST.cost(most) or 0.0
            if 0 <= reported_usd <= limit_usd:
                return reported_usd
        return self.price(tokens)

    @property
    def unavailable(self) -> ModelUnusableError | None:
        """Why no calls go to the model now; None where they do."""
        if self._given_up is not None and self.breaker.clock() >= self._rests_until:
            self._given_up = None
        return self._given_up

    def give_up(self, error: ModelUnusableError) -> None:
        """Send no more calls to the model, because of `error`, until it has rested.

        The breaker keeps its count: unless the first call after the rest comes back well, it gives up again.
        """
        self._given_up = error
        self._rests_until = math.inf if self.rest_s is None else self.breaker.clock() + self.rest_s

    def compare_images(self, request: ModelRequest, tokens: Tokens) -> None:
        """Keep the first `notice` about a model that does not see images as it is known to."""
        if self.notice is None and tokens.images is not None:
            self.notice = disagreement(self.name, request, tokens.images)

    def spend(self, tokens: Tokens) -> Spend:
        """What the budget books. Unknown prices count as nothing: a cost limit refuses them at the start."""
        return Spend((tokens.input or 0) + (tokens.output or 0), self.price(tokens) or 0.0)


def guarded_endpoint(
    provider: ModelProvider,
    concurrency: int,
    *,
    price: Callable[[Tokens], float | None],
    worst_case: Callable[[ModelRequest], Tokens],
    timeout_s: float = TIMEOUT_S,
    patience_s: float = PATIENCE_S,
    address: str | None = None,
    rest_s: float | None = None,
) -> Endpoint:
    """Build one. `timeout_s` is what the provider gives a call; `address` replaces the provider's own where
    that changes from start to start."""
    limiter = Limiter(concurrency, fixed=provider.capabilities.fixed_concurrency)
    breaker = Breaker(provider.name, patience_s, timeout_s)
    return Endpoint(provider, limiter, breaker, price, worst_case, address or provider.endpoint, rest_s)


START = 8
DECREASE = 0.85
DECREASE_INTERVAL_S = 1.0
# Beyond so many times the limit at which the server last wanted fewer calls, that is over.
RECOVERED = 1.25
RECOVERY = 0.25


class Limiter:
    """`async with limiter.slot(ticket):` has one slot. Not shared between event loops.

    The limit grows by one in a round trip. When the server wants fewer calls it falls by `DECREASE`, at most
    once in `DECREASE_INTERVAL_S`. A server that refuses what is too many at once takes the others that are
    open, so it falls to their number at once. Well above the limit of then it grows by `RECOVERY` of itself
    in a round trip: what the server takes has changed.
    """

    def __init__(self, ceiling: int, *, fixed: bool = False) -> None:
        if ceiling < 1:
            raise ValueError(f"concurrency must be at least 1, not {ceiling!r}")
        self.ceiling = ceiling
        self.fixed = fixed
        self.limit = float(ceiling if fixed else min(max(START, ceiling // 2), ceiling))
        self.active = 0
        self._fell_to = float("inf")
        self._slow_start = not fixed
        self._waiting = WaitingQueue[None]()
        self._decreased_at = float("-inf")
        self._paused_until = float("-inf")
        self._closed = self._waking = False

    def slot(self, ticket: Ticket) -> Slot:
        return Slot(self, ticket)

    async def acquire(self, ticket: Ticket) -> None:
        """Take a slot, in turn; to be given back with `release`."""
        if self._has_room() and self._waiting.first() is None:
            self.active += 1
            return
        granted = self._waiting.enter(ticket, None)
        self._wake()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self.release()
            raise

    def release(self) -> None:
        """Give a slot back. Who does has until the loop's next turn to go on with it, if its turn it is."""
        self.active -= 1
        self._wake_soon()

    def succeeded(self) -> None:
        """A call came back well: allow more."""
        if self.limit < self.ceiling:
            step = 1.0 / self.limit
            if self._slow_start:
                step = 1.0
            elif self.limit > RECOVERED * self._fell_to:
                step = max(step, RECOVERY)
            self.limit = min(float(self.ceiling), self.limit + step)
            self._wake()

    def refused(self, error: TransientError) -> None:
        """A call, which still has its slot, failed so: allow fewer where the server wants that."""
        if error.overloaded or error.retry_after is not None:
            too_many = error.refused and error.retry_after is None
            self.overloaded(error.retry_after, too_many=too_many)

    def overloaded(self, retry_after: float | None = None, *, too_many: bool = False) -> None:
        """The server wants fewer calls; with `retry_after` seconds above 0, none at all until then.

        It is not believed beyond `LONGEST_ASKED_WAIT_S`: nothing else would end the run meanwhile.
        `too_many`: it refused this call, which still has its slot, and did not say until when.
        """
        now = asyncio.get_running_loop().time()
        if retry_after is not None and retry_after > 0:
            self._pause_until(now + min(retry_after, LONGEST_ASKED_WAIT_S))
        if self.fixed:
            return
        self._slow_start = False
        if too_many:
            self.limit = max(1.0, min(self.limit, self.active - 1.0))
        if now - self._decreased_at >= DECREASE_INTERVAL_S:
            self._decreased_at = now
            self.limit = max(1.0, self.limit * DECREASE)
        self._fell_to = self.limit

    def close(self) -> None:
        """Give out no more slots; whoever waits for one waits until cancelled."""
        self._closed = True

    def _pause_until(self, moment: float) -> None:
        if moment > self._paused_until:
            self._paused_until = moment
            asyncio.get_running_loop().call_at(moment, self._resume, moment)

    def _resume(self, moment: float) -> None:
        # Not by the clock: timers may fire a little early, and nobody would wake the waiting again.
        if moment == self._paused_until:
            self._paused_until = float("-inf")
            self._wake()

    def _has_room(self) -> bool:
        paused = self._paused_until > float("-inf")
        return not self._closed and not paused and self.active < int(self.limit)

    def _wake_soon(self) -> None:
        if not self._waking:
            self._waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _wake(self) -> None:
        self._waking = False
        while self._has_room() and (waiter := self._waiting.first()) is not None:
            self.active += 1
            waiter.granted.set_result(None)


class Slot:
    """A slot of a limiter while this is open."""

    __slots__ = ("_limiter", "_ticket")

    def __init__(self, limiter: Limiter, ticket: Ticket) -> None:
        self._limiter, self._ticket = limiter, ticket

    async def __aenter__(self) -> None:
        await self._limiter.acquire(self._ticket)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._limiter.release()


FAILURES = 10
# Patience for so many calls that time out one after the other needs no count of failures.
TIMEOUTS = 4
UNREACHED_FAILURES = 5
UNREACHED_S = 5.0
LONGEST_ALONE_S = 600.0


class Breaker:
    """Counts failures in a row and gives up on a model that only fails.

    A model is given `patience_s` seconds without one good answer, and at least `FAILURES` failures: a few
    slow calls are not an outage. The count is waived where patience covers `TIMEOUTS` calls of `timeout_s`
    seconds, or a server that hangs would take several times the patience. A server that was never reached is
    given `UNREACHED_S` seconds, or `patience_s` where that is less: most often it was not started.
    Requests rejected as wrong from the first on, `FAILURES` of them, mean that the whole run would fail the
    same way; so do as many that failed in the provider's own code. Failures about one input only, by a server
    that can be reached, are that input's, not the model's: its generations end when patience does, and the
    model goes on.

    `answers` counts what came back, rejections too: whoever rejects is there. `clock` is the event loop's.
    """

    def __init__(
        self,
        model: str,
        patience_s: float,
        timeout_s: float = TIMEOUT_S,
        *,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self._model, self._patience_s = model, patience_s
        self._needed = 1 if patience_s >= TIMEOUTS * timeout_s else FAILURES
        self.clock = clock or (lambda: asyncio.get_running_loop().time())
        self.answers = 0
        self._answered = False
        self._rejections = 0
        self._failures = 0
        self._since = 0.0
        self._inputs: set[Hashable] = set()
        # Why it could not be reached: one model may have several servers.
        self._unreached: dict[str, None] = {}

    def succeeded(self) -> None:
        self._answered = True
        self._is_there()

    def restarted(self) -> None:
        """The server was started again: earlier failures say nothing about it."""
        self._failures = 0
        self._inputs.clear()

    def failed(
        self, error: TransientError | RequestRejectedError | ProviderDefectError, about: Hashable
    ) -> None:
        """Count one failed call, by the input it is about.

        Raises `ModelDownError` when it is time to give up.
        """
        if not isinstance(error, TransientError):
            self._rejected(error)
            return
        # Patience with the model begins when a second input fails: until then it may be the input.
        if not self._failures or (about not in self._inputs and len(self._inputs) == 1):
            self._failures, self._since = 0, self.clock()
        self._inputs.add(about)
        self._failures += 1
        reason = error.message_without(self._model)
        unreached = error.kind == "connection"
        if unreached and not self._answered:
            self._unreached[reason] = None
            if self._failures >= UNREACHED_FAILURES and self._lasted() >= min(UNREACHED_S, self._patience_s):
                raise ModelDownError(
                    f"{self._model} cannot be reached: {'; '.join(self._unreached)}",
                    remedy=f"Check that the server is up and {server_address()} right, then run the same "
                    "again.",
                ) from error
        elif (
            (unreached or len(self._inputs) > 1)
            and self._failures >= self._needed
            and self._lasted() >= self._patience_s
        ):
            how = f"{self._failures} times in a row over {self._lasted():.0f} s"
            raise ModelDownError(
                f"{self._model} failed {how}: {reason}",
                remedy="Run the same again when it is back; no answer is asked for twice.",
            ) from error

    def out_of_patience_with(self, about: Hashable) -> bool:
        """Whether patience is over and every failure of that time was about this input: its generations
        end."""
        if self._inputs != {about} or self._lasted() < self._patience_s:
            return False
        return self._failures >= self._needed or self._lasted() >= LONGEST_ALONE_S

    @property
    def longest_wait_s(self) -> float:
        """Seconds between two attempts in an outage at most: `FAILURES` random waits fill patience, on
        average."""
        return max(FIRST_WAIT_S, 2 * self._patience_s / FAILURES)

    def _lasted(self) -> float:
        return self.clock() - self._since

    def _is_there(self) -> None:
        self.answers += 1
        self._failures = 0
        self._inputs.clear()

    def _rejected(self, error: RequestRejectedError | ProviderDefectError) -> None:
        self._is_there()
        self._rejections += 1
        if self._answered or self._rejections < FAILURES:
            return
        reason = error.message_without(self._model)
        if isinstance(error, ProviderDefectError):
            raise ModelDownError(
                f"{self._model} failed on each of the first {self._rejections} requests: {reason}",
                remedy="Correct the provider's code; the log has the traceback.",
            ) from error
        raise ModelDownError(
            f"{self._model} rejected each of the first {self._rejections} requests: {reason}",
            remedy=error.remedy or "Check the parameters and whether the model takes images.",
        ) from error


ATTEMPTS = 6
REFUSALS = 20
TOTAL_S = 600.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_ASKED_WAIT_S = 120.0


class Retries:
    """When a request is sent again after errors that may pass, and when that is over.

    A failure is the request's own where the model answered another one since the last failure, as when one
    image makes a server stumble. `ATTEMPTS` of them, or `TOTAL_S` seconds between them, are the end; where
    the server only refuses what is too much at once, `REFUSALS` are. While the model answers nobody, it is an
    outage and its failures count for nothing here: the breaker bounds it.
    """

    def __init__(self, breaker: Breaker, about: Hashable) -> None:
        self._breaker, self._about = breaker, about
        self._waits = 0
        self._failures = self._refusals = 0
        self._seconds = 0.0
        self._answers = -1
        self._failed_at = breaker.clock()

    async def wait(self, error: TransientError) -> None:
        """Sleep until the next attempt; raises `error` where there is none.

        The time is random below a bound that doubles each time, but not less than the server asked for.
        """
        answers = self._answers
        if self._over(error):
            raise error
        bound = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(self._waits, 10))
        if self._answers == answers:
            # Nobody was answered since. Otherwise attempts count, and short waits would use them up.
            bound = min(bound, self._breaker.longest_wait_s)
        self._waits += 1
        asked_s = min(error.retry_after or 0.0, LONGEST_ASKED_WAIT_S)
        await asyncio.sleep(max(random.uniform(0, bound), asked_s))

    def _over(self, error: TransientError) -> bool:
        moment, answers = self._breaker.clock(), self._breaker.answers
        if answers > self._answers:
            self._failures += not error.refused
            self._refusals += error.refused
            self._seconds += moment - self._failed_at
        self._failed_at, self._answers = moment, answers
        if self._failures >= ATTEMPTS or self._refusals >= REFUSALS or self._seconds >= TOTAL_S:
            return True
        return self._breaker.out_of_patience_with(self._about)
