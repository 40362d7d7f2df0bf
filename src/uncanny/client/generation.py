"""One question to one model, from the first attempt to a validated answer or the reason why there is none.

The one place where a call is tried again."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_base, wait_random_exponential

from uncanny.client.budget import Budget, Spend
from uncanny.client.calls import CallRecord, CallScope, Prefix, enter_reply, now
from uncanny.client.endpoint import Breaker, Endpoint
from uncanny.client.replay import asked_text, sees
from uncanny.client.waiting import Gate, Ticket
from uncanny.errors import (
    AnswerError,
    ModelUnusableError,
    RefusedError,
    RequestRejectedError,
    TransientError,
    TruncatedError,
)
from uncanny.models.base import Message, ModelRequest, ModelResponse, credible, masked

T = TypeVar("T")
REPAIRS = 2
MOST_OUTPUT_TOKENS = 16_000
# Characters of an answer that are shown again to whoever is asked to repair it.
MOST_REPEATED = 100_000


@dataclass(slots=True)
class Generation(Generic[T]):
    """State of one question. `mask` takes keys out of what comes back, before anything else sees it.

    `keep` makes a validated answer durable before its slot is given back: so at any moment no more answers
    can be lost to a kill than there are slots.
    """

    endpoint: Endpoint
    request: ModelRequest
    read: Callable[[str], T]
    prompt: str
    repair: Callable[[AnswerError], str]
    scope: CallScope
    mask: Callable[[str], str]
    budget: Budget | None
    keep: Callable[[list[CallRecord]], Awaitable[None]] | None
    on_call: Callable[[CallRecord], None] | None
    _calls: list[CallRecord] = field(default_factory=list)
    _repairs: int = 0
    ticket: Ticket = field(init=False)

    def __post_init__(self) -> None:
        self.ticket = Ticket(self.scope.order)

    async def answer(self) -> T:
        """Raises what `Caller.ask` documents."""
        request = self.request
        while True:
            try:
                return await self._retried(request)
            except TruncatedError:
                limit = request.sampling.max_output_tokens
                if limit >= MOST_OUTPUT_TOKENS:
                    raise
                longer = replace(request.sampling, max_output_tokens=min(2 * limit, MOST_OUTPUT_TOKENS))
                request = replace(request, sampling=longer)
            except AnswerError as error:
                if self._repairs == REPAIRS:
                    raise
                self._repairs += 1
                request = self._repair_request(request, error)

    async def _retried(self, request: ModelRequest) -> T:
        try:
            return await self._warmed(request)
        except TransientError as error:
            first: TransientError | None = error

        # Tenacity's bookkeeping costs more than all the rest of a call, so it starts at the first failure.
        async def attempt() -> T:
            nonlocal first
            if first is not None:
                failure, first = first, None
                raise failure
            return await self._warmed(request)

        return await retrying(self.endpoint.breaker, self.scope.image)(attempt)

    def _repair_request(self, request: ModelRequest, error: AnswerError) -> ModelRequest:
        # On top of the first question, not of an earlier repair: two bad answers in view teach a third one.
        turns = (
            *self.request.messages,
            Message("assistant", (self._calls[-1].answer[:MOST_REPEATED] or "(empty)",)),
            Message("user", (self.repair(error),)),
        )
        return replace(request, messages=turns)

    async def _warmed(self, request: ModelRequest) -> T:
        """One attempt; the first with a prefix goes ahead alone, so that the others find it cached."""
        key = self._prefix(request)
        if key is None:
            return await self._reserved(request)
        gate = self.scope.warm.get(key)
        if gate is not None:
            await gate.passed(self.ticket)
            return await self._reserved(request)
        gate = self.scope.warm[key] = Gate(self.ticket)
        try:
            return await self._reserved(request)
        finally:
            gate.open()

    def _prefix(self, request: ModelRequest) -> Prefix | None:
        capabilities = self.endpoint.provider.capabilities
        if not capabilities.prefix_cache:
            return None
        for message in request.messages:
            for part in message.parts:
                if not isinstance(part, str):
                    constrained = capabilities.schema_in_prefix and request.schema is not None
                    return self.endpoint.name, constrained, part.sha256
        return None

    async def _reserved(self, request: ModelRequest) -> T:
        if self.budget is None:
            return await self._attempt(request)
        worst = self.endpoint.spend(self.endpoint.worst_case(request))
        await self.budget.reserve(worst, self.ticket)
        before = len(self._calls)
        try:
            return await self._attempt(request)
        finally:
            self.budget.settle(worst, self._spent(before, worst))

    def _spent(self, before: int, worst: Spend) -> Spend:
        """A reply without usage counts as the worst case, or there would be no limit."""
        calls = self._calls[before:]
        if not calls or calls[-1].outcome == "error":
            return Spend()
        call = calls[-1]
        unknown = call.input_tokens is None or call.output_tokens is None
        return Spend(
            worst.tokens if unknown else (call.input_tokens or 0) + (call.output_tokens or 0),
            worst.cost_usd if call.cost_usd is None else call.cost_usd,
        )

    async def _attempt(self, request: ModelRequest) -> T:
        endpoint = self.endpoint
        async with endpoint.limiter.slot(self.ticket):
            if endpoint.unavailable is not None:
                raise endpoint.unavailable
            with self.scope.calling():
                return await self._call(request)

    async def _call(self, request: ModelRequest) -> T:
        endpoint = self.endpoint
        record = self._record(request)
        began = time.perf_counter()
        try:
            response = await endpoint.provider.generate(request)
        except (TransientError, RequestRejectedError, ModelUnusableError) as error:
            self._log(record, began, detail=str(error))
            self._failed(error)
            raise
        endpoint.limiter.succeeded()
        endpoint.breaker.succeeded()
        response = masked(response, self.mask)
        tokens = credible(response.tokens)
        enter_reply(record, response, tokens, endpoint.price(tokens))
        return await self._accept(request, response, record, began)

    async def _accept(
        self, request: ModelRequest, response: ModelResponse, record: CallRecord, began: float
    ) -> T:
        if response.finish == "refusal":
            record.outcome = "refused"
            self._log(record, began, detail=response.reason or "the model refused")
            said = response.text.strip()[:300] or response.reason or "The model refused without words"
            raise RefusedError(said, words=response.text)
        record.outcome = "unparseable"
        if response.finish == "length":
            limit = request.sampling.max_output_tokens
            self._log(record, began, detail=f"cut off at {limit} output tokens")
            raise TruncatedError(f"The answer was cut off at {limit} output tokens")
        try:
            value = self.read(response.text)
        except AnswerError as error:
            self._log(record, began, detail=error.message)
            raise
        record.outcome = "answered"
        self._log(record, began)
        if self.keep is not None:
            await self.keep(self._calls)
        return value

    def _failed(self, error: TransientError | RequestRejectedError | ModelUnusableError) -> None:
        if isinstance(error, TransientError):
            if error.overloaded or error.retry_after is not None:
                self.endpoint.limiter.overloaded(error.retry_after)
            self.endpoint.breaker.failed(error, self.scope.image)
        elif isinstance(error, RequestRejectedError):
            self.endpoint.breaker.failed(error, self.scope.image)

    def _record(self, request: ModelRequest) -> CallRecord:
        return CallRecord(
            image=self.scope.image,
            agent=request.agent,
            step=request.step,
            object=request.subject,
            sample=request.sample,
            model=self.endpoint.name,
            prompt=self.prompt,
            asked=asked_text(request),
            sees_image=sees(request),
            attempt=len(self._calls) + 1,
            repair=self._repairs,
            outcome="error",
            answer="",
            detail=None,
            latency_s=0.0,
            started=now(),
        )

    def _log(self, record: CallRecord, began: float, *, detail: str | None = None) -> None:
        record.latency_s = round(time.perf_counter() - began, 6)
        record.detail = detail
        self._calls.append(record)
        self.scope.calls.append(record)
        if self.on_call is not None:
            self.on_call(record)


ATTEMPTS = 6
TOTAL_S = 600.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_ASKED_WAIT_S = 120.0


class _Wait(wait_base):
    """A random time below a growing bound, but not less than the server asked for."""

    def __init__(self) -> None:
        self._usual = wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after if isinstance(error, TransientError) else None
        return max(self._usual(retry_state), min(asked or 0.0, LONGEST_ASKED_WAIT_S))


class _Tries:
    """Whether one question was tried often enough.

    A failure is the question's own where the model answered another one since the last failure, as when one
    image makes a server stumble. `ATTEMPTS` of them, or `TOTAL_S` seconds between them, are the end. While
    the model answers nobody, it is an outage and its failures count for nothing here: the breaker bounds it.
    """

    def __init__(self, breaker: Breaker, image: str) -> None:
        self._breaker, self._image = breaker, image
        self._failures = 0
        self._seconds = 0.0
        self._answers = -1
        self._at = breaker.clock()

    def enough(self, _: RetryCallState) -> bool:
        now, answers = self._breaker.clock(), self._breaker.answers
        if answers > self._answers:
            self._failures += 1
            self._seconds += now - self._at
        self._at, self._answers = now, answers
        if self._failures >= ATTEMPTS or self._seconds >= TOTAL_S:
            return True
        return self._breaker.out_of_patience_with(self._image)


def retrying(breaker: Breaker, image: str) -> AsyncRetrying:
    """For one question about `image` to the model of `breaker`, whose first attempt has just failed.

    Tries again on `TransientError` only; the last error is raised.
    """
    return AsyncRetrying(
        stop=_Tries(breaker, image).enough,
        wait=_Wait(),
        retry=retry_if_exception_type(TransientError),
        reraise=True,
    )
