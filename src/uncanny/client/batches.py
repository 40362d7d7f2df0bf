"""Questions of a run that go into batches, at half price, instead of being asked one by one.

A run asks as always. Where a question has no answer yet, `Batches` writes it down as a line of a batch and
raises `DeferredError`, which ends the work on its input for now. When all inputs were worked through, or are
deferred, `settle` hands the lines in and waits. Then the run works through the deferred inputs again: the
same question finds the answer of its line in the place of a call's, and all that follows, validation, repair,
cost and answer cache, is as with a call. What only these answers lead to makes the next batch. So each
protocol takes as many batches as it has steps that build on each other, and knows nothing of it.

The file `batches.jsonl` of the run says before and after a batch is handed in what is in it, so a session
after a kill waits for it instead of handing it in again. Each line is answered or asked at full price:

- The first question to a model is a single call. It shows that key and model are right, and what the server
  does not take.
- A line without a result, or with an error that may pass, goes into one more batch, then is asked directly.
- A line that is rejected is asked directly, which says why.
- A batch that the provider does not take as a whole ends the run: nothing is asked at full price for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import uuid4

import orjson

from uncanny.client.budget import Budget, Spend
from uncanny.client.calls import now
from uncanny.client.endpoint import Endpoint
from uncanny.client.prices import PriceTable
from uncanny.errors import (
    DeferredError,
    ModelDownError,
    ModelUnusableError,
    ProviderError,
    RequestRejectedError,
    TransientError,
    UsageError,
)
from uncanny.files import open_file
from uncanny.models.base import ModelRequest, ModelResponse, Tokens
from uncanny.models.batches import MOST_BYTES, MOST_LINES, BatchApi, LostBatch
from uncanny.models.http_errors import NothingThereError
from uncanny.records.batch_files import BatchEntry, BatchEvent, BatchFiles
from uncanny.wording import counted, option

T = TypeVar("T")
FIRST_POLL_S, LONGEST_POLL_S = 0.2, 60.0
# After a batch was handed in without an answer, before it is looked for.
LISTED_S = 2.0
# A network that is away for a quarter of an hour does not matter to a batch.
LEAST_PATIENCE_S = 900.0
MOST_TRIES = 2
MOST_AT_ONCE = 100


@dataclass(slots=True, eq=False)
class _Batch:
    """A batch of `model`; `id` is None until it was handed in, `at` when that began."""

    tag: str
    model: str
    keys: list[str] = field(default_factory=list)
    size: int = 0
    at: datetime = field(default_factory=now)
    id: str | None = None
    ended: datetime | None = None


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """What a line came to: the response, when its batch was handed in, and seconds until it was there.

    `price` gives US dollars for tokens.
    """

    response: ModelResponse
    started: datetime
    latency_s: float
    price: Callable[[Tokens], float | None]


class Batches:
    """The batches of one run, of all its models that have any; other models are asked directly.

    `prices` are those of batches. Entered as a context, it takes up what an earlier session left under way.
    """

    def __init__(
        self,
        files: BatchFiles,
        endpoints: Iterable[Endpoint],
        *,
        prices: PriceTable,
        budget: Budget,
        patience_s: float,
    ) -> None:
        """Raises UsageError where none of the models has batches."""
        every = tuple(endpoints)
        self._apis: dict[str, BatchApi] = {}
        self._endpoints = {each.name: each for each in every}
        for each in every:
            if (api := each.provider.batches()) is not None:
                self._apis[each.name] = api
        if not self._apis:
            raise UsageError(
                f"{', '.join(self._endpoints)} cannot be asked in batches",
                remedy=f"Remove {option('batch')}, or use a model of OpenAI or Anthropic.",
            )
        self._files = files
        self._prices, self._budget = prices, budget
        self._patience_s = max(patience_s, LEAST_PATIENCE_S)
        self._probes: dict[str, asyncio.Event] = {}
        self._collected: dict[str, _Batch] = {}
        self._full: list[_Batch] = []
        self._flying: list[_Batch] = []
        self._fetched: list[_Batch] = []
        self._held: dict[str, Spend] = {}
        self._held_in_all = Spend()
        # Keys: of lines that were not answered yet, of those that are asked directly, and where answers are.
        self._under_way: set[str] = set()
        self._direct: set[str] = set()
        self._answers: dict[str, tuple[_Batch, int, int, int]] = {}
        self._tries: dict[str, int] = {}
        # Ids of batches of this run.
        self._known: set[str] = set()
        self._at_once = MOST_AT_ONCE
        self._short_of_money = False
        self._refused: list[str] = []

    async def __aenter__(self) -> Batches:
        """Raises UsageError, StorageError and ModelUnusableError."""
        self._files.open()
        self._known = self._files.ids()
        entries = self._files.under_way()
        for entry in filter(self._is_ours, entries.values()):
            batch = _Batch(entry.tag, str(entry.model), list(entry.keys), at=entry.at, id=entry.id)
            each = Spend(entry.tokens, entry.cost_usd) * (1 / max(1, len(entry.keys)))
            for key in entry.keys:
                self._hold(key, each)
            if batch.id is not None:
                self._flying.append(batch)
            elif not await self._find(batch):
                self._end(batch)
                continue
            self._under_way.update(batch.keys)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._files.keep(self._files.under_way().keys())

    def _is_ours(self, entry: BatchEntry) -> bool:
        endpoint = self._endpoints.get(entry.model or "")
        return endpoint is not None and entry.model in self._apis and _server(endpoint) == entry.server

    @property
    def waiting(self) -> int:
        """Lines under way."""
        return len(self._under_way)

    def notices(self) -> list[str]:
        """What is to be known of the lines when the run ends."""
        notices = []
        if self._refused:
            number = counted(len(self._refused), "question")
            notices.append(
                f"{number} without an answer in a batch {'was' if len(self._refused) == 1 else 'were'} asked "
                f"directly, at full price: {self._refused[0]}"
            )
        if self._flying:
            number = counted(sum(len(batch.keys) for batch in self._flying), "question")
            notices.append(f"{number} in batches under way; the same command waits for the answers")
        return notices

    @contextlib.asynccontextmanager
    async def answer(
        self, endpoint: Endpoint, key: str, request: ModelRequest
    ) -> AsyncIterator[BatchAnswer | None]:
        """The answer of the line `key`; None where it is to be asked directly, within this context.

        Raises DeferredError where it is in a batch from now on, or was before.
        """
        name = endpoint.name
        if name not in self._apis or key in self._direct:
            yield None
            return
        if (given := self._read(key)) is not None:
            self._release_key(key)
            yield given
            return
        if key not in self._under_way:
            if (probe := self._probes.get(name)) is None:
                probe = self._probes[name] = asyncio.Event()
                self._direct.add(key)
                try:
                    yield None
                finally:
                    probe.set()
                return
            await probe.wait()
            if endpoint.unavailable is not None:
                yield None
                return
            if key not in self._under_way:
                self._collect(endpoint, key, request)
        raise DeferredError("The question goes into a batch")

    def _collect(self, endpoint: Endpoint, key: str, request: ModelRequest) -> None:
        """Raises StorageError."""
        name = endpoint.name
        tokens = endpoint.worst_case(request)
        total = (tokens.input or 0) + (tokens.output or 0)
        worst = Spend(total, self._prices.cost(name, tokens) or 0.0)
        if not self._budget.covers(self._held_in_all + worst):
            self._short_of_money = True
            return
        line = self._apis[name].line(key, request) + b"\n"
        batch = self._collected.get(name)
        if batch is not None and (len(batch.keys) == MOST_LINES or batch.size + len(line) > MOST_BYTES):
            self._full.append(batch)
            batch = None
        if batch is None:
            batch = self._collected[name] = _Batch(uuid4().hex, name)
        self._files.add_line(batch.tag, line)
        batch.keys.append(key)
        batch.size += len(line)
        self._under_way.add(key)
        self._hold(key, worst)

    async def settle(self) -> None:
        """Hand in what was collected, and wait until all batches have ended.

        Raises BudgetError where the budget did not cover a single line, ModelUnusableError where a provider
        takes no batch or is away for too long, and StorageError.
        """
        queue = deque([*self._full, *self._collected.values()])
        self._full, self._collected = [], {}
        if not queue and not self._flying and self._short_of_money:
            raise self._budget.error()
        self._short_of_money = False
        pause = FIRST_POLL_S
        while queue or self._flying:
            while queue and len(self._flying) < self._at_once:
                await self._submit(queue.popleft())
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_POLL_S)
            for batch in list(self._flying):
                assert batch.id is not None
                state = await self._patiently(batch.model, self._apis[batch.model].state, batch.id)
                if not state.ended:
                    continue
                self._flying.remove(batch)
                pause = FIRST_POLL_S
                if state.rejected is None:
                    await self._fetch(batch)
                    continue
                # Too much at once: again when another one has ended, or in halves where it is the only one.
                self._at_once = max(1, len(self._flying))
                parts = self._parts(batch, 1 if self._flying else 2) if state.over_limit else []
                if not parts:
                    self._end(batch)
                    raise _not_taken(batch.model, state.rejected)
                self._note(batch, "done")
                self._files.lines(batch.tag).unlink(missing_ok=True)
                queue.extendleft(reversed(parts))

    def consumed(self) -> None:
        """All inputs were worked through since `settle`: what batches answered is in the answer cache."""
        for batch in self._fetched:
            self._end(batch)
        self._fetched = []

    async def _submit(self, batch: _Batch) -> None:
        api, endpoint = self._apis[batch.model], self._endpoints[batch.model]
        worst = sum((self._held.get(key, Spend()) for key in batch.keys), Spend())
        batch.at = now()
        self._note(
            batch,
            "submitting",
            model=batch.model,
            server=_server(endpoint),
            keys=tuple(batch.keys),
            tokens=worst.tokens,
            cost_usd=worst.cost_usd,
        )

        async def hand_in() -> str:
            try:
                return await api.submit(batch.tag, self._files.lines(batch.tag))
            except TransientError:
                # It may have come through all the same, and be listed a little later.
                await asyncio.sleep(LISTED_S)
                if (found := await api.find(self._lost(batch))) is None:
                    raise
                return found
            except (NothingThereError, RequestRejectedError) as error:
                self._end(batch)
                raise _not_taken(batch.model, error.message) from error

        batch.id = await self._patiently(batch.model, hand_in)
        self._submitted(batch)

    async def _find(self, batch: _Batch) -> bool:
        find = self._apis[batch.model].find
        batch.id = await self._patiently(batch.model, find, self._lost(batch))
        if batch.id is not None:
            self._submitted(batch)
        return batch.id is not None

    def _lost(self, batch: _Batch) -> LostBatch:
        return LostBatch(batch.tag, len(batch.keys), batch.at, self._known)

    def _submitted(self, batch: _Batch) -> None:
        assert batch.id is not None
        self._known.add(batch.id)
        self._note(batch, "submitted", id=batch.id)
        self._flying.append(batch)

    async def _fetch(self, batch: _Batch) -> None:
        """Get the results of a batch that has ended, and note which lines have an answer."""
        api, target = self._apis[batch.model], self._files.results(batch.tag)
        assert batch.id is not None
        if not target.exists():
            results = await self._patiently(batch.model, api.results, batch.id)
            await asyncio.to_thread(self._files.write, target, [results])
        batch.ended = now()
        left = set(batch.keys)
        offset = 0
        with open_file(target) as file:
            for number, line in enumerate(file):
                key, outcome = _result(api, line)
                if key in left:
                    left.remove(key)
                    if isinstance(outcome, ModelResponse):
                        self._answers[key] = batch, number, offset, len(line)
                    else:
                        self._no_answer(key, str(outcome), final=isinstance(outcome, RequestRejectedError))
                offset += len(line)
        for key in left:
            self._no_answer(key, f"{batch.model}: the results of a batch did not have it", final=False)
        self._under_way.difference_update(batch.keys)
        self._fetched.append(batch)
        with contextlib.suppress(ProviderError):  # it goes by itself in the end
            await api.forget(batch.id)

    def _no_answer(self, key: str, why: str, *, final: bool) -> None:
        self._release_key(key)
        self._tries[key] = self._tries.get(key, 0) + 1
        if final or self._tries[key] >= MOST_TRIES:
            self._direct.add(key)
            self._refused.append(why)

    def _read(self, key: str) -> BatchAnswer | None:
        place = self._answers.get(key)
        if place is None:
            return None
        batch, number, offset, length = place
        line = self._files.result(batch.tag, offset, length)
        _, response = _result(self._apis[batch.model], line)
        if not isinstance(response, ModelResponse):  # changed on disk
            return None
        assert batch.ended is not None
        seconds = max(0.0, (batch.ended - batch.at).total_seconds())
        # Calls of a run are known by the moment at which they began.
        started = batch.at + timedelta(microseconds=number)
        return BatchAnswer(
            response, started, round(seconds, 3), lambda tokens: self._prices.cost(batch.model, tokens)
        )

    def _parts(self, batch: _Batch, number: int) -> list[_Batch]:
        """The lines of a batch in so many new ones; none where there are fewer, or they are gone."""
        lines = self._files.read_lines(batch.tag)
        if len(lines) < number or len(lines) != len(batch.keys):
            return []
        size = -(-len(lines) // number)
        parts = []
        for start in range(0, len(lines), size):
            part = _Batch(uuid4().hex, batch.model, batch.keys[start : start + size])
            self._files.write(self._files.lines(part.tag), lines[start : start + size])
            parts.append(part)
        return parts

    async def _patiently(self, model: str, call: Callable[..., Awaitable[T]], *arguments: object) -> T:
        """Again after errors that may pass, until patience is over. Raises ModelUnusableError."""
        clock = asyncio.get_running_loop().time
        began, pause = clock(), 1.0
        while True:
            try:
                return await call(*arguments)
            except TransientError as error:
                if clock() - began >= self._patience_s:
                    raise ModelDownError(
                        f"{model} did not answer about a batch for {self._patience_s:.0f} s: {error.message}",
                        remedy="Run the same again when it is back; batches go on meanwhile.",
                    ) from error
                await asyncio.sleep(max(pause, error.retry_after or 0.0))
                pause = min(2 * pause, LONGEST_POLL_S)
            except (NothingThereError, RequestRejectedError) as error:
                raise ModelUnusableError(
                    f"{model} does not tell about a batch of this run: {error.message}",
                    remedy="Use the key of the account that handed it in. To give it up and ask again, "
                    f"remove {self._files.journal}.",
                ) from error

    def _note(self, batch: _Batch, event: BatchEvent, **more: object) -> None:
        self._files.note(BatchEntry.model_validate({"tag": batch.tag, "event": event, "at": now(), **more}))

    def _end(self, batch: _Batch) -> None:
        self._note(batch, "done")
        self._files.lines(batch.tag).unlink(missing_ok=True)
        if batch.ended is None:
            self._under_way.difference_update(batch.keys)
        self._release(batch)

    def _hold(self, key: str, worst: Spend) -> None:
        self._release_key(key)
        self._held[key] = worst
        self._held_in_all += worst

    def _release(self, batch: _Batch) -> None:
        for key in batch.keys:
            self._release_key(key)

    def _release_key(self, key: str) -> None:
        self._held_in_all -= self._held.pop(key, Spend())


def _result(api: BatchApi, line: bytes) -> tuple[str, ModelResponse | ProviderError | None]:
    """Key and outcome of a line of results; an empty key where it has none."""
    try:
        result = orjson.loads(line)
    except orjson.JSONDecodeError:
        return "", None
    key = result.get("custom_id") if isinstance(result, dict) else None
    return (key, api.answer(result)) if isinstance(key, str) else ("", None)


def _server(endpoint: Endpoint) -> str:
    """Tells servers apart, and names none: a run may be handed on."""
    return hashlib.sha256((endpoint.address or "").encode()).hexdigest()


def _not_taken(model: str, why: str) -> ModelUnusableError:
    return ModelUnusableError(
        f"{model} did not take a batch: {why}",
        remedy=f"Run the same without {option('batch')} to ask directly, at full price.",
    )
