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
from uncanny.client.endpoint import Lane
from uncanny.client.generation import Question
from uncanny.client.replay import Replayed, cache_key, load_answer, store_answer
from uncanny.client.waiting import Gate
from uncanny.errors import ENDS_RUN, AnswerError, BudgetError, ModelUnusableError, UncannyError
from uncanny.models.base import Request
from uncanny.models.error_body import KeyMask
from uncanny.records.answer_cache import AnswerCache

T = TypeVar("T")


class Caller:
    """Routes each agent's questions to its model, and from there to the fallback.

    `routes` gives the lanes of an agent, first choice first; the key "" is for every agent not named.
    `on_call` sees every call record, `on_handover` each model that is given up, once.
    """

    def __init__(
        self,
        routes: Mapping[str, Sequence[Lane]],
        *,
        cache: AnswerCache | None = None,
        budget: Budget | None = None,
        on_call: Callable[[CallRecord], None] | None = None,
        on_handover: Callable[[Lane, ModelUnusableError], None] | None = None,
    ) -> None:
        self._routes = {agent: tuple(lanes) for agent, lanes in routes.items()}
        self._cache = cache
        self._budget = budget if budget is not None and budget.limited else None
        self._on_call = on_call
        self._on_handover = on_handover
        self._mask = KeyMask(secret for lane in self._all_lanes() for secret in lane.provider.secrets)
        self._flying: dict[str, Gate] = {}

    def lanes(self, agent: str) -> tuple[Lane, ...]:
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

    def hold(self) -> None:
        """Start no further call; those in flight come back and are kept."""
        for lane in self._all_lanes():
            lane.limiter.close()

    def in_flight(self) -> int:
        return sum(lane.limiter.active for lane in self._all_lanes())

    def _all_lanes(self) -> list[Lane]:
        return list({id(lane): lane for lanes in self._routes.values() for lane in lanes}.values())

    async def ask(
        self,
        request: Request,
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
        request: Request,
        read: Callable[[str], T],
        prompt: str,
        repair: Callable[[AnswerError], str],
        scope: CallScope,
    ) -> T:
        lanes = self.lanes(request.agent)
        keys = [cache_key(lane, request) for lane in lanes] if self._cache is not None else []
        for key in keys:
            found = self._replay(key, request, read, prompt, scope)
            if found is not None:
                return found.value
        stop: UncannyError | None = None
        for number, lane in enumerate(lanes):
            if lane.dead is not None:
                stop = lane.dead
                continue
            question = Question(
                lane, request, read, prompt, repair, scope, self._mask, self._budget, None, self._on_call
            )
            try:
                if self._cache is None:
                    return await question.answer()
                return await self._once(keys[number], question)
            except (ModelUnusableError, BudgetError) as error:
                if error is scope.ended:
                    raise  # it was another question's, and perhaps another model's
                if isinstance(error, ModelUnusableError):
                    self._give_up(lane, error)
                stop = error
        assert stop is not None
        raise stop

    async def _once(self, key: str, question: Question[T]) -> T:
        """Single flight: of equal questions at the same time one is asked, the others read its answer."""
        while (other := self._flying.get(key)) is not None:
            await other.passed(question.ticket)
            found = self._replay(key, question.request, question.read, question.prompt, question.scope)
            if found is not None:
                return found.value
        assert self._cache is not None
        question.keep = partial(store_answer, self._cache, key)
        landed = self._flying[key] = Gate(question.ticket)
        try:
            return await question.answer()
        finally:
            del self._flying[key]
            landed.open()

    def _replay(
        self, key: str, request: Request, read: Callable[[str], T], prompt: str, scope: CallScope
    ) -> Replayed[T] | None:
        assert self._cache is not None
        found = load_answer(self._cache, key, request, scope, read, prompt, self._mask)
        if found is not None and self._on_call is not None:
            for call in scope.calls[-found.calls :]:
                self._on_call(call)
        return found

    def _give_up(self, lane: Lane, error: ModelUnusableError) -> None:
        if lane.dead is None:
            lane.dead = error
            if self._on_handover is not None:
                self._on_handover(lane, error)
