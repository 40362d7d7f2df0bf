"""The client through which all agents call models: routes, answer cache, fallback.

A request goes: answer cache → endpoint of a model (budget, slot, retries, breaker) → validation of the
answer → at most two repairs → answer cache. A model that cannot be used hands over to the next endpoint.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from typing import TypeVar

from uncanny.client.budget import Budget
from uncanny.client.calls import CallRecord, CallScope
from uncanny.client.endpoint import Endpoint
from uncanny.client.generation import Generation
from uncanny.client.replay import Replayed, cache_key, load_answer, store_answer
from uncanny.client.waiting import Gate, Ticket
from uncanny.errors import AnswerError, BudgetError, ModelUnusableError
from uncanny.models.base import ModelRequest
from uncanny.models.error_body import KeyMask
from uncanny.records.answer_cache import AnswerCache

T = TypeVar("T")


class ModelClient:
    """Routes each agent's requests to its model, and from there to the fallback.

    `routes` gives the endpoints of an agent, first choice first; the key "" is for every agent not named.
    `on_call` sees every call record, `on_fallback` each model that is given up, once.
    """

    def __init__(
        self,
        routes: Mapping[str, Sequence[Endpoint]],
        *,
        cache: AnswerCache | None = None,
        budget: Budget | None = None,
        on_call: Callable[[CallRecord], None] | None = None,
        on_fallback: Callable[[Endpoint, ModelUnusableError], None] | None = None,
    ) -> None:
        self._routes = {agent: tuple(endpoints) for agent, endpoints in routes.items()}
        self._cache = cache
        self._budget = budget if budget is not None and budget.limited else None
        self._on_call = on_call
        self._on_fallback = on_fallback
        self._mask = KeyMask(
            secret for endpoint in self._all_endpoints() for secret in endpoint.provider.secrets
        )
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
            if self._budget is not None:
                self._budget.close(scope.order, finished=finished)

    def drain(self) -> None:
        """Start no further call; those in flight come back and are kept."""
        for endpoint in self._all_endpoints():
            endpoint.limiter.close()

    def in_flight(self) -> int:
        return sum(endpoint.limiter.active for endpoint in self._all_endpoints())

    def _all_endpoints(self) -> list[Endpoint]:
        return list(
            {id(endpoint): endpoint for endpoints in self._routes.values() for endpoint in endpoints}.values()
        )

    async def generate(
        self,
        request: ModelRequest,
        read: Callable[[str], T],
        *,
        prompt: str,
        repair: Callable[[AnswerError], str],
        scope: CallScope,
    ) -> T:
        """The answer to `request`, read by `read`, which raises `AnswerError` where it does not validate.

        `prompt` names the prompt in records. `repair` words the turn that follows an answer that did not
        validate. Raises `AnswerError`, `RefusedError`, `TruncatedError`, `TransientError` or
        `RequestRejectedError` when this generation failed; what `ENDS_RUN` names when no further call can be
        made, which ends `scope` for all that goes on side by side.
        """

        def replayed(key: str) -> Replayed[T] | None:
            return self._replay(key, request, read, prompt, scope)

        with scope.generating():
            endpoints = self.endpoints(request.agent)
            keys = [None if self._cache is None else cache_key(endpoint, request) for endpoint in endpoints]
            for key in keys:
                if key is not None and (stored := replayed(key)) is not None:
                    return stored.value
            reason: ModelUnusableError | BudgetError | None = None
            for endpoint, key in zip(endpoints, keys, strict=True):
                if endpoint.unavailable is not None:
                    reason = endpoint.unavailable
                    continue
                generation = Generation(
                    endpoint=endpoint,
                    request=request,
                    read=read,
                    prompt=prompt,
                    repair=repair,
                    scope=scope,
                    mask=self._mask,
                    budget=self._budget,
                    keep=self._keeper(key),
                    on_call=self._on_call,
                    ticket=Ticket(scope.order),
                )
                try:
                    async with self._single_flight(key, generation.ticket) as waited:
                        if waited and key is not None and (stored := replayed(key)) is not None:
                            return stored.value
                        return await generation.answer()
                except (ModelUnusableError, BudgetError) as error:
                    if error is scope.ended:
                        raise  # it was another generation's, and perhaps another model's
                    if isinstance(error, ModelUnusableError):
                        self._give_up(endpoint, error)
                    reason = error
            assert reason is not None
            raise reason

    def _keeper(self, key: str | None) -> Callable[[list[CallRecord]], Awaitable[None]] | None:
        return None if self._cache is None or key is None else partial(store_answer, self._cache, key)

    def _single_flight(self, key: str | None, ticket: Ticket) -> AbstractAsyncContextManager[bool]:
        """Of equal generations at the same time one runs; it is true where the others have waited for it."""
        return nullcontext(False) if key is None else self._in_turn(key, ticket)

    @asynccontextmanager
    async def _in_turn(self, key: str, ticket: Ticket) -> AsyncIterator[bool]:
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

    def _replay(
        self, key: str, request: ModelRequest, read: Callable[[str], T], prompt: str, scope: CallScope
    ) -> Replayed[T] | None:
        assert self._cache is not None
        stored = load_answer(self._cache, key, request, scope, read, prompt, self._mask)
        if stored is not None and self._on_call is not None:
            for call in scope.calls[-stored.calls :]:
                self._on_call(call)
        return stored

    def _give_up(self, endpoint: Endpoint, error: ModelUnusableError) -> None:
        if endpoint.unavailable is None:
            endpoint.unavailable = error
            if self._on_fallback is not None:
                self._on_fallback(endpoint, error)
