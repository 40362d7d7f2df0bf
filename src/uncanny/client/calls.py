"""What was asked and what came of it: one record for every call to a model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from functools import cache
from itertools import count
from typing import Any

import orjson
from pydantic import TypeAdapter

from uncanny.client.waiting import Gate
from uncanny.errors import ENDS_RUN, AnswerError, ProviderError, RunError
from uncanny.models.base import MOST_TOKENS, ModelResponse, Outcome, Tokens
from uncanny.schema import Usage, as_count, as_dollars

# Of a name that a server gives; a longer one is none.
MOST_CHARACTERS = 200

# Model, whether the answer is constrained, digest of the image.
Prefix = tuple[str, bool, str]


@dataclass(slots=True)
class CallRecord:
    """One call, as a line of `calls.jsonl`.

    `attempt` counts from 1 within one question, `repair` says how many repair questions came before.
    `replayed` marks an answer taken from the answer cache: its usage is what it cost when it was asked.
    `served_model` is the model the server says answered, such as a dated snapshot of the one asked for, and
    `request_id` the provider's own name of the call; both are None where it told none.
    """

    image: str
    agent: str
    step: int
    object: str | None
    sample: int
    model: str
    prompt: str
    asked: str
    sees_image: bool
    attempt: int
    repair: int
    outcome: Outcome
    answer: str
    detail: str | None
    latency_s: float
    started: datetime
    input_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    replayed: bool = False
    served_model: str | None = None
    request_id: str | None = None

    @classmethod
    def read(cls, fields: dict[str, Any]) -> CallRecord:
        """A record as files have it, `started` as text; figures that cannot be true are unmeasured.

        Raises ValueError, TypeError or KeyError where it is not one of ours.
        """
        figures = {name: as_count(fields.get(name), MOST_TOKENS) for name in _TOKENS}
        cost = as_dollars(fields.get("cost_usd"))
        if None in (figures["input_tokens"], figures["output_tokens"]) and cost:
            cost = None  # it was counted from them
        started = datetime.fromisoformat(fields["started"])
        if unknown := fields.keys() - {each.name for each in dataclass_fields(cls)}:
            raise TypeError(f"of another version: {', '.join(unknown)}")
        return _fields().validate_python(fields | figures | {"cost_usd": cost, "started": started})

    def cached_form(self) -> dict[str, Any]:
        """The part the answer cache keeps: what the same request on another day would not tell again."""
        return {
            "model": self.model,
            "prompt": self.prompt,
            "attempt": self.attempt,
            "repair": self.repair,
            "outcome": self.outcome,
            "answer": self.answer,
            "detail": self.detail,
            "latency_s": self.latency_s,
            "started": self.started,
            "input_tokens": self.input_tokens,
            "cached_tokens": self.cached_tokens,
            "output_tokens": self.output_tokens,
            "cost_usd": self.cost_usd,
            "served_model": self.served_model,
            "request_id": self.request_id,
        }


@cache
def _fields() -> TypeAdapter[CallRecord]:
    return TypeAdapter(CallRecord)


def dump_calls(calls: Iterable[CallRecord]) -> bytes:
    """JSON Lines."""
    return b"".join(orjson.dumps(call, option=orjson.OPT_APPEND_NEWLINE) for call in calls)


def enter_reply(call: CallRecord, response: ModelResponse, tokens: Tokens, cost_usd: float | None) -> None:
    """Enter what came back, and from whom, into the call's record; `tokens` are the credible ones."""
    call.answer = response.text
    call.input_tokens, call.output_tokens = tokens.input, tokens.output
    call.cached_tokens, call.cost_usd = tokens.cached, cost_usd
    call.served_model, call.request_id = _name(response.model), _name(response.request_id)


def _name(text: str | None) -> str | None:
    return (text or "").strip()[:MOST_CHARACTERS] or None


def usage(calls: Iterable[CallRecord]) -> Usage:
    """Sum of what `calls` used. A sum is None if one call that brought a reply left the figure unmeasured.

    Calls that failed on the way (outcome `error`) brought no usage and are counted as calls only.
    """
    total = 0
    sums: dict[str, float | None] = dict.fromkeys(_FIGURES, 0)
    for call in calls:
        total += 1
        if call.outcome == "error":
            continue
        for name in _FIGURES:
            value = getattr(call, name)
            before = sums[name]
            sums[name] = None if value is None or before is None else before + value
    return Usage(calls=total, **sums)  # type: ignore[arg-type]


_TOKENS = ("input_tokens", "cached_tokens", "output_tokens")
_FIGURES = (*_TOKENS, "cost_usd")


def now() -> datetime:
    return datetime.now(UTC)


_TAKEN_UP = count()


@dataclass(slots=True)
class CallScope:
    """The calls about one input: their log, and which prefixes are already warm at the provider.

    `order` says when the input was taken up: calls about earlier ones go first.
    `ended` is why nothing more is asked about the input. What is asked side by side about it ends together:
    calls in flight come back and are kept, since they are paid for, and none is begun meanwhile.
    """

    image: str
    calls: list[CallRecord] = field(default_factory=list)
    warm: dict[Prefix, Gate] = field(default_factory=dict)
    order: int = field(default_factory=_TAKEN_UP.__next__)
    ended: RunError | None = None
    _waiting: set[asyncio.Task[Any]] = field(default_factory=set)
    _stopped: set[asyncio.Task[Any]] = field(default_factory=set)

    def end(self, error: RunError) -> None:
        """Begin no further call. Questions that wait, for a slot or to be asked again, raise `error`."""
        if self.ended is not None:
            return
        self.ended = error
        for task in self._waiting - {asyncio.current_task()}:
            self._stopped.add(task)
            task.cancel()

    def check(self) -> None:
        """Raises what has ended the input."""
        if self.ended is not None:
            raise self.ended

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Around one question; all its time but that of its calls is waiting. Raises what `check` does."""
        self.check()
        task = asyncio.current_task()
        assert task is not None  # questions are coroutines
        self._waiting.add(task)
        try:
            yield
        except asyncio.CancelledError:
            if task not in self._stopped:
                raise
            self._stopped.discard(task)
            # Whoever cancels the task besides means it.
            if task.uncancel():
                raise
            self.check()
        finally:
            self._waiting.discard(task)

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Around one call, from a moment when it can begin to when its answer is kept.

        A failure is final where the input has ended meanwhile: another call would follow it.
        """
        self.check()
        task = asyncio.current_task()
        assert task is not None
        self._waiting.discard(task)
        try:
            yield
        except (ProviderError, AnswerError) as error:
            if self.ended is not None:
                raise self.ended from error
            raise
        finally:
            self._waiting.add(task)

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Around one of several that go side by side: what ends the input waits until all are back.

        Whatever comes after them must `check`.
        """
        try:
            yield
        except ENDS_RUN as error:
            self.end(error)
