"""One generation: calls to one model until its answer validates, or the reason why there is none.

The one place where a call is made again: after an error that may pass, with more room after an answer that
was cut off, and as a repair after an answer that did not validate. SDKs and graphs retry nothing.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from uncanny.client.budget import Budget, Spend
from uncanny.client.calls import CallRecord, CallScope, Prefix, now, request_fields
from uncanny.client.endpoint import Breaker, Endpoint, Slot
from uncanny.client.waiting import Gate, Ticket
from uncanny.errors import (
    AnswerError,
    ModelUnusableError,
    RefusedError,
    RequestRejectedError,
    TransientError,
    TruncatedError,
)
from uncanny.models.base import Message, ModelRequest, ModelResponse, SentImage, credible, masked

T = TypeVar("T")
REPAIRS = 2
MOST_OUTPUT_TOKENS = 16_000
# Characters of an answer that are shown again in a repair.
MOST_REPEATED = 100_000


@dataclass(slots=True)
class Generation(Generic[T]):
    """The state of one generation. `mask` takes keys out of a response before anything else reads it.

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
    ticket: Ticket
    _calls: list[CallRecord] = field(default_factory=list)
    _repairs: int = 0

    async def answer(self) -> T:
        """Raises what `ModelClient.generate` documents."""
        request = self.request
        retries: Retries | None = None
        while True:
            try:
                return await self._call(request)
            except TransientError as error:
                retries = retries or Retries(self.endpoint.breaker, self.scope.image)
                await retries.wait(error)
                continue
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
            retries = None

    def _repair_request(self, request: ModelRequest, error: AnswerError) -> ModelRequest:
        # On top of the first request, not of an earlier repair: two bad answers in view teach a third one.
        turns = (
            *self.request.messages,
            Message("assistant", (self._calls[-1].answer[:MOST_REPEATED] or "(empty)",)),
            Message("user", (self.repair(error),)),
        )
        return replace(request, messages=turns)

    async def _call(self, request: ModelRequest) -> T:
        """One call and the value its answer reads as."""
        endpoint = self.endpoint
        async with self._admission(request):
            if endpoint.unavailable is not None:
                raise endpoint.unavailable
            with self.scope.calling():
                record = self._record(request)
                began = time.perf_counter()
                try:
                    response = await endpoint.provider.generate(request)
                except (TransientError, RequestRejectedError, ModelUnusableError) as error:
                    self._log(record, began, detail=str(error))
                    self._count_failure(error)
                    raise
                endpoint.limiter.succeeded()
                endpoint.breaker.succeeded()
                response = masked(response, self.mask)
                tokens = credible(response.tokens)
                record.enter(response, tokens, endpoint.price(tokens))
                value = self._validated(request, response, record, began)
                if self.keep is not None:
                    await self.keep(self._calls)
                return value

    def _validated(
        self, request: ModelRequest, response: ModelResponse, record: CallRecord, began: float
    ) -> T:
        if response.finish == "refusal":
            record.outcome = "refused"
            self._log(record, began, detail=response.reason or "the model refused")
            message = response.text.strip()[:300] or response.reason or "The model refused without words"
            raise RefusedError(message, words=response.text)
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
        return value

    def _admission(self, request: ModelRequest) -> AbstractAsyncContextManager[None]:
        """Around one call: its prefix is warm, the budget covers it, and the model has a slot for it."""
        slot = self.endpoint.limiter.slot(self.ticket)
        prefix = self._prefix(request)
        return slot if prefix is None and self.budget is None else self._in_order(request, prefix, slot)

    @asynccontextmanager
    async def _in_order(
        self, request: ModelRequest, prefix: Prefix | None, slot: Slot
    ) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if prefix is not None:
                # The first call with a prefix goes ahead alone, so that the others find it cached.
                gate = self.scope.warm.get(prefix)
                if gate is None:
                    gate = self.scope.warm[prefix] = Gate(self.ticket)
                    stack.callback(gate.open)
                else:
                    await gate.passed(self.ticket)
            if self.budget is not None:
                worst = self.endpoint.spend(self.endpoint.worst_case(request))
                await self.budget.reserve(worst, self.ticket)
                stack.callback(self._settle, self.budget, worst, len(self._calls))
            await stack.enter_async_context(slot)
            yield

    def _prefix(self, request: ModelRequest) -> Prefix | None:
        capabilities = self.endpoint.provider.capabilities
        if not capabilities.prefix_cache:
            return None
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, SentImage):
                    constrained = capabilities.schema_in_prefix and request.schema is not None
                    return self.endpoint.name, constrained, part.sha256
        return None

    def _settle(self, budget: Budget, worst: Spend, calls_before: int) -> None:
        """A response without usage counts as the worst case, or there would be no limit."""
        used = Spend()
        if len(self._calls) > calls_before and self._calls[-1].outcome != "error":
            call = self._calls[-1]
            unknown = call.input_tokens is None or call.output_tokens is None
            used = Spend(
                worst.tokens if unknown else (call.input_tokens or 0) + (call.output_tokens or 0),
                worst.cost_usd if call.cost_usd is None else call.cost_usd,
            )
        budget.settle(worst, used)

    def _count_failure(self, error: TransientError | RequestRejectedError | ModelUnusableError) -> None:
        if isinstance(error, TransientError):
            if error.overloaded or error.retry_after is not None:
                self.endpoint.limiter.overloaded(error.retry_after)
            self.endpoint.breaker.failed(error, self.scope.image)
        elif isinstance(error, RequestRejectedError):
            self.endpoint.breaker.failed(error, self.scope.image)

    def _record(self, request: ModelRequest) -> CallRecord:
        return CallRecord(
            **request_fields(request, self.scope.image, self.prompt),
            model=self.endpoint.name,
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


class Retries:
    """When a request is sent again after errors that may pass, and when that is over.

    A failure is the request's own where the model answered another one since the last failure, as when one
    image makes a server stumble. `ATTEMPTS` of them, or `TOTAL_S` seconds between them, are the end. While
    the model answers nobody, it is an outage and its failures count for nothing here: the breaker bounds it.
    """

    def __init__(self, breaker: Breaker, image: str) -> None:
        self._breaker, self._image = breaker, image
        self._waits = 0
        self._failures = 0
        self._seconds = 0.0
        self._answers = -1
        self._failed_at = breaker.clock()

    async def wait(self, error: TransientError) -> None:
        """Sleep until the next attempt; raises `error` where there is none.

        The time is random below a bound that doubles each time, but not less than the server asked for.
        """
        if self._over():
            raise error
        bound = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2 ** min(self._waits, 10))
        self._waits += 1
        asked_s = min(error.retry_after or 0.0, LONGEST_ASKED_WAIT_S)
        await asyncio.sleep(max(random.uniform(0, bound), asked_s))

    def _over(self) -> bool:
        moment, answers = self._breaker.clock(), self._breaker.answers
        if answers > self._answers:
            self._failures += 1
            self._seconds += moment - self._failed_at
        self._failed_at, self._answers = moment, answers
        if self._failures >= ATTEMPTS or self._seconds >= TOTAL_S:
            return True
        return self._breaker.out_of_patience_with(self._image)
