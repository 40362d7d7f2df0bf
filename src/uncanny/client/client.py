"""The client through which all agents call models: from a request to an answer that validates.

A request goes: answer cache → endpoint of a model (budget, slot, retries, breaker) → validation of the
answer → at most two repairs → answer cache. A model that cannot be used hands over to the next endpoint.

`Generation` is the one place where a call is made again: after an error that may pass, with more room after
an answer that was cut off, and as a repair after an answer that did not validate. SDKs and graphs retry
nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from uncanny.client.budget import Budget, Spend, credible
from uncanny.client.calls import (
    CallRecord,
    CallScope,
    Prefix,
    Replayed,
    cache_key,
    load_answer,
    now,
    request_fields,
    store_answer,
)
from uncanny.client.endpoint import Endpoint, Retries, Slot
from uncanny.client.replicas import Suspicion
from uncanny.client.telemetry import telemetry
from uncanny.client.waiting import Gate, Ticket
from uncanny.errors import (
    AnswerError,
    BudgetError,
    DeferredError,
    ModelUnusableError,
    ProviderDefectError,
    ProviderError,
    RefusedError,
    RequestRejectedError,
    TransientError,
    TruncatedError,
)
from uncanny.models.base import Message, ModelRequest, ModelResponse, masked
from uncanny.models.error_body import KeyMask
from uncanny.records.answer_slots import Answers

if TYPE_CHECKING:
    from uncanny.client.discount import Discount, DiscountedAnswer

T = TypeVar("T")
# What `ModelProvider.generate` may raise.
CALL_ERRORS: Final = (TransientError, RequestRejectedError, ProviderDefectError, ModelUnusableError)
REPAIRS = 2
MOST_OUTPUT_TOKENS = 16_000
SIDE_BY_SIDE_S = 0.1
# Characters of an answer that are shown again in a repair.
MOST_REPEATED = 100_000


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """What one model is asked; `read` raises `AnswerError` for an answer that does not validate."""

    request: ModelRequest
    read: Callable[[str], T]


class ModelClient:
    """Routes each agent's requests to its model, and from there to the fallback.

    `routes` gives the endpoints of an agent, first choice first; the key "" is for every agent not named.
    `on_call` sees every call record, `on_fallback` each model that is given up, once. `on_estimate` gets the
    tokens and US dollars that the budget books for an answer without usage.
    """

    def __init__(
        self,
        routes: Mapping[str, Sequence[Endpoint]],
        *,
        cache: Answers | None = None,
        discount: Discount[Any] | None = None,
        budget: Budget | None = None,
        on_call: Callable[[CallRecord], None] | None = None,
        on_estimate: Callable[[float, float], None] | None = None,
        on_fallback: Callable[[Endpoint, ModelUnusableError], None] | None = None,
    ) -> None:
        self._routes = {agent: tuple(endpoints) for agent, endpoints in routes.items()}
        self.cache = cache
        # With an answer cache only: lines have its keys.
        self.discount = discount
        self.budget = budget if budget is not None and budget.limited else None
        self.on_call, self.on_estimate = on_call, on_estimate
        self._on_fallback = on_fallback
        self.telemetry = telemetry()
        # Takes keys out of a response before anything else reads it.
        self.mask = KeyMask(secret for server in self._servers() for secret in server.provider.secrets)
        self._in_flight: dict[str, Gate] = {}

    def endpoints(self, agent: str) -> tuple[Endpoint, ...]:
        return self._routes.get(agent) or self._routes[""]

    @contextmanager
    def scope(self, image: str) -> Iterator[CallScope]:
        """For the calls about one input, from the first one until it is done with."""
        scope, finished = CallScope(image), False
        try:
            yield scope
            finished = True
        finally:
            if self.budget is not None:
                self.budget.close(scope.order, finished=finished)

    def drain(self) -> None:
        """Start no further call; those in flight come back and are kept."""
        for server in self._servers():
            server.limiter.close()

    def in_flight(self) -> int:
        return sum(server.limiter.active for server in self._servers())

    def _servers(self) -> list[Endpoint]:
        routed = {id(endpoint): endpoint for endpoints in self._routes.values() for endpoint in endpoints}
        return [server for endpoint in routed.values() for server in endpoint.servers]

    async def generate(
        self,
        request: ModelRequest,
        read: Callable[[str], T],
        *,
        prompt: str,
        repair: Callable[[AnswerError], str],
        scope: CallScope,
        fallback: Callable[[str], Question[T]] | None = None,
    ) -> T:
        """The answer to `request`, read by `read`, which raises `AnswerError` where it does not validate.

        `fallback` is what a fallback of that name is asked instead, None where the same; agent and sample
        are those of `request`. `prompt` names the prompt in records. `repair` words the turn that follows an
        answer that did not validate. Raises one of `AnswerError`, `RefusedError`, `TruncatedError`,
        `TransientError`, `RequestRejectedError` and `ProviderDefectError` when this generation failed; what
        `ENDS_INPUT` names when no further call can be made for now, which ends `scope` for all that goes on
        side by side.
        """

        def replayed(place: int) -> Replayed[T] | None:
            assert self.cache is not None
            asked = questions[place]
            stored = load_answer(self.cache, keys[place], asked.request, scope, asked.read, prompt)
            if stored is not None:
                for call in scope.calls[-stored.calls :]:
                    self.telemetry.replayed(call, asked.request, endpoints[place])
                    if self.on_call is not None:
                        self.on_call(call)
            return stored

        endpoints = self.endpoints(request.agent)
        with self.telemetry.agent(request, endpoints[0]), scope.generating() as generating:
            first = Question(request, read)
            questions = [
                fallback(endpoint.name) if fallback and place else first
                for place, endpoint in enumerate(endpoints)
            ]
            keys = (
                []
                if self.cache is None
                else [
                    cache_key(each, asked.request) for each, asked in zip(endpoints, questions, strict=True)
                ]
            )
            for place in range(len(keys)):
                if (stored := replayed(place)) is not None:
                    return stored.value
            reason: ModelUnusableError | BudgetError | None = None
            for place, endpoint in enumerate(endpoints):
                own_key = keys[place] if keys else None
                paid = self.discount is not None and own_key is not None and self.discount.handed_in(own_key)
                if (given_up := endpoint.unavailable) is not None and not paid:
                    reason = given_up
                    continue
                generation = Generation(
                    endpoint=endpoint,
                    request=questions[place].request,
                    read=questions[place].read,
                    prompt=prompt,
                    repair=repair,
                    scope=scope,
                    calling=generating.calling,
                    keep=None
                    if self.cache is None or own_key is None
                    else partial(store_answer, self.cache, own_key),
                    ticket=Ticket(scope.order),
                    client=self,
                )
                try:
                    if own_key is None:
                        return await generation.answer()
                    async with self._in_turn(own_key, generation.ticket) as waited:
                        if waited and (stored := replayed(place)) is not None:
                            return stored.value
                        if self.discount is None:
                            return await generation.answer()
                        async with self.discount.answer(endpoint, own_key, generation.request) as given:
                            generation.given = given
                            return await generation.answer()
                except DeferredError:
                    # It ends the input: those that go side by side get to their questions first.
                    await asyncio.sleep(SIDE_BY_SIDE_S)
                    raise
                except (ModelUnusableError, BudgetError) as error:
                    if error is scope.ended:
                        raise  # it was another generation's, and perhaps another model's
                    if isinstance(error, ModelUnusableError):
                        self._give_up(endpoint, error)
                    reason = error
            assert reason is not None
            # The same error for everybody: tracebacks would add up, and keep all they lead through.
            raise reason.with_traceback(None)

    @asynccontextmanager
    async def _in_turn(self, key: str, ticket: Ticket) -> AsyncIterator[bool]:
        """Of equal generations at the same time one runs; it is true where the others have waited for it."""
        waited = False
        while (other := self._in_flight.get(key)) is not None:
            await other.passed(ticket)
            waited = True
        gate = self._in_flight[key] = Gate(ticket)
        try:
            yield waited
        finally:
            del self._in_flight[key]
            gate.open()

    def _give_up(self, endpoint: Endpoint, error: ModelUnusableError) -> None:
        if endpoint.unavailable is None:
            endpoint.give_up(error)
            if self._on_fallback is not None:
                self._on_fallback(endpoint, error)


class _MovedError(Exception):
    """Another replica is to be asked than the one that was chosen."""


@dataclass(slots=True)
class Generation(Generic[T]):
    """The state of one generation.

    `calling` is the scope's context around each call. `keep` makes a validated answer durable before its slot
    is given back: so at any moment no more answers can be lost to a kill than there are slots. `given` is
    a discounted answer, in the place of the first call.
    """

    endpoint: Endpoint
    request: ModelRequest
    read: Callable[[str], T]
    prompt: str
    repair: Callable[[AnswerError], str]
    scope: CallScope
    calling: AbstractContextManager[None]
    keep: Callable[[list[CallRecord]], Awaitable[None]] | None
    ticket: Ticket
    client: ModelClient
    given: DiscountedAnswer | None = None
    _calls: list[CallRecord] = field(default_factory=list)
    _repairs: int = 0
    _failures: int = 0
    _suspicion: Suspicion | None = None

    def __post_init__(self) -> None:
        if self.endpoint.replicas is not None:
            self._suspicion = Suspicion(self.endpoint.replicas)

    async def answer(self) -> T:
        """Raises what `ModelClient.generate` documents."""
        request = self.request
        retries: Retries | None = None
        while True:
            try:
                return await self._call(request)
            except _MovedError:
                continue
            except TransientError as error:
                self._failures += 1
                retries = retries or Retries(self.endpoint.breaker, self.scope.order)
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
                # On top of the first request, not of an earlier repair: two bad answers teach a third one.
                given = self._calls[-1].answer[:MOST_REPEATED] or "(empty)"
                repair = Message("assistant", (given,)), Message("user", (self.repair(error),))
                request = replace(request, messages=(*self.request.messages, *repair))
            retries = None

    async def _call(self, request: ModelRequest) -> T:
        """One call and the value its answer reads as."""
        endpoint, asked = self.endpoint, time.perf_counter()
        replicas, pin = endpoint.replicas, self._pin(request)
        server = endpoint if replicas is None else await replicas.serving(pin, self._failures)
        async with self._admission(request, server):
            if self.given is None and (given_up := endpoint.unavailable) is not None:
                raise given_up.with_traceback(None)
            if replicas is not None and replicas.moved(server, pin, self._failures):
                raise _MovedError
            if self.client.cache is not None:
                self.client.cache.check()
            with self.calling:
                record = self._record(request)
                began = time.perf_counter()
                with self.client.telemetry.call(record, request, server, began - asked) as watch:
                    given, self.given = self.given, None
                    if given is not None:
                        response, record.started = given.response, given.started
                        began -= given.latency_s
                    else:
                        try:
                            response = await server.provider.generate(request)
                        except CALL_ERRORS as error:
                            self._log(record, began, detail=str(error))
                            self._count_failure(error, server)
                            raise
                        server.limiter.succeeded()
                        server.breaker.succeeded()
                        if server is not endpoint:
                            endpoint.breaker.succeeded()
                    response = masked(response, self.client.mask)
                    most = endpoint.worst_case(request)
                    tokens = credible(response.tokens, most)
                    paid = given.price(tokens) if given else endpoint.cost(response.cost_usd, tokens, most)
                    record.enter(response, tokens, paid)
                    watch.finished(response.finish)
                    endpoint.compare_images(request, tokens)
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

    def _admission(self, request: ModelRequest, server: Endpoint) -> AbstractAsyncContextManager[None]:
        """Around one call: its prefix is warm, the budget covers it, and the server has a slot for it."""
        slot, prefix = server.limiter.slot(self.ticket), self._prefix(request)
        at_once = prefix is None and self.client.budget is None and self._suspicion is None
        return slot if at_once else self._in_order(request, prefix, slot)

    @asynccontextmanager
    async def _in_order(
        self, request: ModelRequest, prefix: Prefix | None, slot: Slot
    ) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            if self._suspicion is not None:
                await stack.enter_async_context(self._suspicion.asking(self.endpoint.name))
            if prefix is not None:
                # The first call with a prefix goes ahead alone, so that the others find it cached.
                gate = self.scope.warm.get(prefix)
                if gate is None:
                    gate = self.scope.warm[prefix] = Gate(self.ticket)
                    stack.callback(gate.open)
                else:
                    await gate.passed(self.ticket)
            if self.client.budget is not None:
                worst = self.endpoint.spend(self.endpoint.worst_case(request))
                if self.given is None:
                    await self.client.budget.reserve(worst, self.ticket)
                else:
                    self.client.budget.admit(worst, self.ticket)
                stack.callback(self._settle, self.client.budget, worst, len(self._calls))
            await stack.enter_async_context(slot)
            yield

    def _prefix(self, request: ModelRequest) -> Prefix | None:
        capabilities = self.endpoint.provider.capabilities
        if not capabilities.prefix_cache or self.given is not None:
            return None
        image = request.first_image()
        constrained = capabilities.schema_in_prefix and request.schema is not None
        return None if image is None else (self.endpoint.name, constrained, image.sha256)

    def _settle(self, budget: Budget, worst: Spend, calls_before: int) -> None:
        """A response without usage counts as the worst case, or there would be no limit."""
        used = estimated = Spend()
        call = self._calls[-1] if len(self._calls) > calls_before else None
        if call is not None and call.outcome != "error" and not call.replayed:
            measured = Spend((call.input_tokens or 0) + (call.output_tokens or 0), call.cost_usd or 0.0)
            unknown = call.input_tokens is None or call.output_tokens is None
            used = Spend(
                max(worst.tokens, measured.tokens) if unknown else measured.tokens,
                worst.cost_usd if call.cost_usd is None else call.cost_usd,
            )
            estimated = used - measured
            if used != measured and self.client.on_estimate is not None:
                self.client.on_estimate(estimated.tokens, estimated.cost_usd)
        budget.settle(worst, used, estimated)

    def _pin(self, request: ModelRequest) -> str:
        """What stays at one replica: an image; a question without one goes with its input."""
        image = request.first_image()
        return self.scope.image if image is None else image.sha256

    def _count_failure(self, error: ProviderError, server: Endpoint) -> None:
        """Raises `ModelDownError` when it is time to give up, `_MovedError` where another replica is left."""
        replicas = self.endpoint.replicas
        if (
            isinstance(error, ModelUnusableError)
            and replicas is not None
            and replicas.unusable(server, error)
        ):
            raise _MovedError
        if isinstance(error, TransientError):
            server.limiter.refused(error)
            if replicas is not None and self._suspicion is not None:
                self._suspicion.failed(server, error)
                replicas.failed(server, error, self.scope.order)
            self.endpoint.breaker.failed(error, self.scope.order)
        elif isinstance(error, RequestRejectedError | ProviderDefectError):
            self.endpoint.breaker.failed(error, self.scope.order)

    def _record(self, request: ModelRequest) -> CallRecord:
        return CallRecord(
            replayed=self.given is not None and self.given.book(),
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
        if self.client.on_call is not None:
            self.client.on_call(record)
