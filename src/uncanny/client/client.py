"""Asking a question until it is answered, in the one place where that is decided for all providers.

A question goes: answer cache → model lane (limiter, retries, breaker, budget) → reading of the answer →
at most two repair questions → answer cache. A model that cannot be used hands over to the next lane.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from uncanny.client.budget import Budget
from uncanny.client.calls import CallRecord, CallScope
from uncanny.client.endpoint import Endpoint
from uncanny.client.generation import Generation
from uncanny.client.replay import Replayed, cache_key, load_answer, store_answer
from uncanny.client.waiting import Gate
from uncanny.errors import ENDS_RUN, AnswerError, BudgetError, ModelUnusableError, UncannyError
from uncanny.models.base import ModelRequest
from uncanny.models.error_body import KeyMask
from uncanny.records.answer_cache import AnswerCache

T = TypeVar("T")


class ModelClient:
    """Routes each agent's questions to its model, and from there to the fallback.

    `routes` gives the lanes of an agent, first choice first; the key "" is for every agent not named.
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
        self._on_handover = on_fallback
        self._mask = KeyMask(
            secret for endpoint in self._all_endpoints() for secret in endpoint.provider.secrets
        )
        self._in_flight: dict[str, Gate] = {}

    def endpoints(self, agent: str) -> tuple[Endpoint, ...]:
        return self._routes.get(agent) or self._routes[""]

    @contextmanager
    def scope(self, image: str) -> Iterator[CallScope]:
        """For the calls about one input, from when it is taken up until it is done with."""
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

        `prompt` names the prompt in records. `repair` words the question that follows an answer that did not
        validate. Raises `AnswerError`, `RefusedError`, `TruncatedError`, `TransientError` or
        `RequestRejectedError` when this question failed; what `ENDS_RUN` names when no further question can
        be asked, which ends `scope` for all that is asked side by side.
        """
        try:
            with scope.asking():
                return await self._answer(request, read, prompt, repair, scope)
        except ENDS_RUN as error:
            scope.end(error)
            raise

    async def _answer(
        self,
        request: ModelRequest,
        read: Callable[[str], T],
        prompt: str,
        repair: Callable[[AnswerError], str],
        scope: CallScope,
    ) -> T:
        endpoints = self.endpoints(request.agent)
        keys = [cache_key(endpoint, request) for endpoint in endpoints] if self._cache is not None else []
        for key in keys:
            found = self._replay(key, request, read, prompt, scope)
            if found is not None:
                return found.value
        stop: UncannyError | None = None
        for number, endpoint in enumerate(endpoints):
            if endpoint.unavailable is not None:
                stop = endpoint.unavailable
                continue
            generation = Generation(
                endpoint, request, read, prompt, repair, scope, self._mask, self._budget, None, self._on_call
            )
            try:
                if self._cache is None:
                    return await generation.answer()
                return await self._once(keys[number], generation)
            except (ModelUnusableError, BudgetError) as error:
                if error is scope.ended:
                    raise  # it was another question's, and perhaps another model's
                if isinstance(error, ModelUnusableError):
                    self._give_up(endpoint, error)
                stop = error
        assert stop is not None
        raise stop

    async def _once(self, key: str, generation: Generation[T]) -> T:
        """Single flight: of equal questions at the same time one is asked, the others read its answer."""
        while (other := self._in_flight.get(key)) is not None:
            await other.passed(generation.ticket)
            found = self._replay(
                key, generation.request, generation.read, generation.prompt, generation.scope
            )
            if found is not None:
                return found.value
        assert self._cache is not None
        generation.keep = partial(store_answer, self._cache, key)
        landed = self._in_flight[key] = Gate(generation.ticket)
        try:
            return await generation.answer()
        finally:
            del self._in_flight[key]
            landed.open()

    def _replay(
        self, key: str, request: ModelRequest, read: Callable[[str], T], prompt: str, scope: CallScope
    ) -> Replayed[T] | None:
        assert self._cache is not None
        found = load_answer(self._cache, key, request, scope, read, prompt, self._mask)
        if found is not None and self._on_call is not None:
            for call in scope.calls[-found.calls :]:
                self._on_call(call)
        return found

    def _give_up(self, endpoint: Endpoint, error: ModelUnusableError) -> None:
        if endpoint.unavailable is None:
            endpoint.unavailable = error
            if self._on_handover is not None:
                self._on_handover(endpoint, error)
