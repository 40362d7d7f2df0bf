"""The record of every call to a model, the scope of the calls about one input, and answers that are replayed.

An answer goes to the answer cache and comes back from there with its call records, under a key of all that it
depends on.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import fields as dataclass_fields
from datetime import UTC, datetime
from functools import cache
from itertools import count
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypedDict, TypeVar

import orjson
from pydantic import TypeAdapter

from uncanny.client.waiting import Gate
from uncanny.errors import ENDS_INPUT, AnswerError, InputError, ProviderError
from uncanny.models.base import MOST_TOKENS, ModelRequest, ModelResponse, Outcome, Tokens
from uncanny.schema import Usage, as_count, as_dollars

if TYPE_CHECKING:
    from uncanny.client.endpoint import Endpoint
    from uncanny.records.answer_slots import Answers

# Of a name that a server gives; a longer one is none.
MOST_CHARACTERS = 200

T = TypeVar("T")
# Model, whether the answer is constrained, digest of the image.
Prefix = tuple[str, bool, str]


class RequestFields(TypedDict):
    """What a record says of the request."""

    image: str
    agent: str
    step: int
    object: str | None
    sample: int
    prompt: str
    asked: str
    sees_image: bool
    objects: tuple[str, ...] | None


def request_fields(request: ModelRequest, image: str, prompt: str) -> RequestFields:
    """`asked` is the text of the last user turn."""
    return {
        "image": image,
        "agent": request.agent,
        "step": request.step,
        "object": request.subject,
        "sample": request.sample,
        "prompt": prompt,
        "asked": "\n\n".join([part for part in request.messages[-1].parts if isinstance(part, str)]),
        "sees_image": request.first_image() is not None,
        "objects": request.batch or None,
    }


@dataclass(slots=True)
class CallRecord:
    """One call, as a line of `calls.jsonl`.

    `attempt` counts from 1 within one generation, `repair` says how many repairs came before. `replayed`
    marks an answer taken from the answer cache: its usage is what it cost when the call was made.
    `objects` are the names where it was about several objects at once, None where `object` says it all.
    `served_model` is the model the server says answered, such as a dated snapshot of the one named in the
    request, and `request_id` the provider's own name of the call; both are None where it gave none.
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
    image_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    replayed: bool = False
    served_model: str | None = None
    request_id: str | None = None
    objects: tuple[str, ...] | None = None  # the last, see `dump_calls`

    @classmethod
    def read(cls, fields: dict[str, Any]) -> CallRecord:
        """A record as files have it, `started` as text; figures that cannot be true are unmeasured.

        Raises ValueError, TypeError or KeyError where it is not one of ours.
        """
        figures = {name: as_count(fields.get(name), MOST_TOKENS) for name in (*_TOKENS, "image_tokens")}
        cost = as_dollars(fields.get("cost_usd"))
        if None in (figures["input_tokens"], figures["output_tokens"]) and cost:
            cost = None  # it was counted from them
        started = datetime.fromisoformat(fields["started"])
        if unknown := fields.keys() - {each.name for each in dataclass_fields(cls)}:
            raise TypeError(f"of another version: {', '.join(unknown)}")
        return _fields().validate_python(fields | figures | {"cost_usd": cost, "started": started})

    def enter(self, response: ModelResponse, tokens: Tokens, cost_usd: float | None) -> None:
        """Enter what came back, and from whom; `tokens` are the credible ones."""
        self.answer = response.text
        self.input_tokens, self.output_tokens = tokens.input, tokens.output
        self.cached_tokens, self.image_tokens, self.cost_usd = tokens.cached, tokens.images, cost_usd
        self.served_model, self.request_id = _name(response.model), _name(response.request_id)

    def cached_form(self) -> dict[str, Any]:
        """The part the answer cache keeps: all that another run could not say of the same request."""
        return {name: getattr(self, name) for name in _CACHED}


_CACHED: Final = tuple(
    each.name
    for each in dataclass_fields(CallRecord)
    if each.name == "prompt" or each.name not in {*RequestFields.__annotations__, "replayed"}
)


@cache
def _fields() -> TypeAdapter[CallRecord]:
    return TypeAdapter(CallRecord)


def dump_calls(calls: Iterable[CallRecord]) -> bytes:
    """JSON Lines; `objects` stands only where there are some."""
    lines = []
    for call in calls:
        line = orjson.dumps(call, option=orjson.OPT_APPEND_NEWLINE)
        lines.append(line if call.objects else line.removesuffix(_WITHOUT_OBJECTS) + b"}\n")
    return b"".join(lines)


_WITHOUT_OBJECTS = b',"objects":null}\n'


def _name(text: str | None) -> str | None:
    return (text or "").strip()[:MOST_CHARACTERS] or None


def usage(calls: Iterable[CallRecord]) -> Usage:
    """Sum of what `calls` used. A sum is None if one call that brought a response left the figure unmeasured.

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


_ORDER = count()


@dataclass(slots=True)
class CallScope:
    """The calls about one input: their log, and which prefixes are already warm at the provider.

    `order` says when the input was begun: calls about earlier ones go first. `ended` is why no more calls are
    made about the input. Generations side by side about it end together: calls in flight come back and are
    kept, since they are paid for, and none is begun meanwhile. `waiting` are tasks with a generation between
    its calls, `stopped` those of them that the end has cancelled.
    """

    image: str
    calls: list[CallRecord] = field(default_factory=list)
    warm: dict[Prefix, Gate] = field(default_factory=dict)
    order: int = field(default_factory=_ORDER.__next__)
    ended: InputError | None = None
    waiting: set[asyncio.Task[Any]] = field(default_factory=set)
    stopped: set[asyncio.Task[Any]] = field(default_factory=set)

    def end(self, error: InputError) -> None:
        """Begin no further call. Generations that wait, for a slot or to try again, raise `error`."""
        if self.ended is not None:
            return
        self.ended = error
        for task in self.waiting - {asyncio.current_task()}:
            self.stopped.add(task)
            task.cancel()

    def check(self) -> None:
        """Raises what has ended the input."""
        if self.ended is not None:
            raise self.ended

    def generating(self) -> Generating:
        """Around one generation; all its time but that of its calls is waiting. Raises what `check` does.

        What ends the run ends the input.
        """
        return Generating(self)

    async def side_by_side(self, asked: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """The results of coroutines run side by side; raises what ends the input when all are back."""

        async def one(each: Coroutine[Any, Any, T]) -> list[T]:
            with self.branch():
                return [await each]
            return []

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one(each)) for each in asked]
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None
        self.check()
        return [result for task in tasks for result in task.result()]

    @contextmanager
    def branch(self) -> Iterator[None]:
        """Around one of several that go side by side: what ends the input waits until all are back.

        Whatever comes after them must `check`.
        """
        try:
            yield
        except ENDS_INPUT as error:
            self.end(error)


class Generating:
    """One generation of a scope, as a context; `with` it again, as `calling`, around each of its calls."""

    # A class, not a generator with `contextmanager`: it stands around every call and costs a third.
    __slots__ = ("_scope", "_task", "calling")

    def __init__(self, scope: CallScope) -> None:
        task = asyncio.current_task()
        assert task is not None  # generations are coroutines
        self._scope, self._task = scope, task
        self.calling = _Calling(scope, task)

    def __enter__(self) -> Generating:
        self._scope.check()
        self._scope.waiting.add(self._task)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        scope, task = self._scope, self._task
        scope.waiting.discard(task)
        if error is None:
            return
        if isinstance(error, ENDS_INPUT):
            scope.end(error)
        elif isinstance(error, asyncio.CancelledError) and task in scope.stopped:
            scope.stopped.discard(task)
            # Whoever cancels the task besides means it.
            if not task.uncancel():
                scope.check()


class _Calling:
    """Around one call, from when it can begin to when its answer is kept. Raises what `check` does.

    A failure is final where the input has ended meanwhile: another call would follow it.
    """

    __slots__ = ("_scope", "_task")

    def __init__(self, scope: CallScope, task: asyncio.Task[Any]) -> None:
        self._scope, self._task = scope, task

    def __enter__(self) -> None:
        self._scope.check()
        self._scope.waiting.discard(self._task)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scope.waiting.add(self._task)
        ended = self._scope.ended
        if isinstance(error, ProviderError | AnswerError) and ended is not None and ended is not error:
            raise ended from error


@dataclass(frozen=True, slots=True)
class Replayed(Generic[T]):
    """An answer read again, and how many call records it stands for."""

    value: T
    calls: int


async def store_answer(cache: Answers, key: str, calls: Sequence[CallRecord]) -> None:
    """Keep the calls that led to a validated answer; the last one carries it."""
    await cache.put(key, orjson.dumps([call.cached_form() for call in calls]))


def load_answer(
    cache: Answers,
    key: str,
    request: ModelRequest,
    scope: CallScope,
    read: Callable[[str], T],
    prompt: str,
) -> Replayed[T] | None:
    """The stored answer, its calls appended to `scope` as replayed; None without one that still reads."""
    stored = cache.get(key)
    if stored is None:
        return None
    try:
        own = {**request_fields(request, scope.image, prompt), "replayed": True}
        calls = [CallRecord.read({**call, **own}) for call in orjson.loads(stored)]
        value = read(calls[-1].answer)
    except (AnswerError, LookupError, TypeError, ValueError, AttributeError):
        return None  # stored by another version or damaged on disk: the call is made again
    scope.calls += calls
    return Replayed(value, len(calls))


SCHEMA_VERSION = 1


def cache_key(endpoint: Endpoint, request: ModelRequest) -> str:
    """SHA-256 of everything the answer depends on, the image's own digest in the image's place."""
    provider = endpoint.provider
    sampling = request.sampling
    schema = request.schema
    content = [
        SCHEMA_VERSION,
        provider.name,
        endpoint.address,
        [
            sampling.temperature if provider.capabilities.temperature else None,
            sampling.top_p if provider.capabilities.top_p else None,
            sampling.max_output_tokens,
        ],
        [
            [
                message.role,
                [part if isinstance(part, str) else [part.sha256, part.media_type] for part in message.parts],
            ]
            for message in request.messages
        ],
        None if schema is None else [schema.name, schema.own],
        request.sample,
    ]
    if request.painting is not None:
        content.append(request.painting.parameters)
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
