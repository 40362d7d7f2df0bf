"""Questions of a run that go into batches, at half price, instead of being asked one by one.

A run asks as always. Where a question has no answer yet, `Batches` writes it down as a line of a batch and
raises `DeferredError`, which ends the work on its input for now. When all inputs were worked through, or are
deferred, `settle` hands the lines in and waits. Then the run works through the deferred inputs again: the
same question finds the answer of its line in the place of a call's, and all that follows, validation, repair,
cost and answer cache, is as with a call. What only these answers lead to makes the next batch. So each
protocol takes as many batches as it has steps that build on each other, and knows nothing of it.

Lines name images that were uploaded before: see `uncanny.client.uploads`. So a question is written down when
its images are there, also where the work on its input has ended meanwhile for another question.

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
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self
from uuid import uuid4

import orjson

from uncanny.client.budget import Budget, Spend
from uncanny.client.calls import now
from uncanny.client.discount import LONGEST_POLL_S, Discount, DiscountedAnswer, server_digest
from uncanny.client.endpoint import Endpoint
from uncanny.client.prices import PriceTable
from uncanny.client.uploads import Uploads
from uncanny.errors import (
    DeferredError,
    ModelDownError,
    ModelUnusableError,
    ProviderError,
    RequestRejectedError,
    StorageError,
)
from uncanny.models.base import ModelRequest, ModelResponse
from uncanny.models.discount.batches import MOST_BYTES, MOST_LINES, BatchApi, LostBatch
from uncanny.models.http_errors import NothingThereError
from uncanny.records.batch_files import BatchEntry, BatchEvent, BatchFiles, unreadable
from uncanny.wording import counted

FIRST_POLL_S = 0.2
# After a batch was handed in without an answer, before it is looked for.
LISTED_S = 2.0
MOST_AT_ONCE = 100


@dataclass(slots=True, eq=False)
class _Batch:
    """A batch of `model`; `id` is None until it was handed in, `at` when that began.

    `booked` are the keys of answers that were counted.
    """

    tag: str
    model: str
    keys: list[str] = field(default_factory=list)
    size: int = 0
    at: datetime = field(default_factory=now)
    id: str | None = None
    ended: datetime | None = None
    booked: set[str] = field(default_factory=set)


class Batches(Discount[BatchApi]):
    """The batches of one run. `prices` are those of batches."""

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
        super().__init__(
            endpoints,
            lambda endpoint: endpoint.provider.batches(),
            way="in a batch",
            parameter="batch",
            journal=files.journal,
            patience_s=patience_s,
        )
        self._files = files
        self._prices, self._budget = prices, budget
        servers = {name: server_digest(self._endpoints[name]) for name in self._apis}
        self._uploads = Uploads(files, self._apis, servers, self._patiently)
        self._collecting: set[asyncio.Task[None]] = set()
        self._collected: dict[str, _Batch] = {}
        self._full: list[_Batch] = []
        self._flying: list[_Batch] = []
        self._fetched: list[_Batch] = []
        self._held: dict[str, Spend] = {}
        self._held_in_all = Spend()
        # Where answers are.
        self._answers: dict[str, tuple[_Batch, int, int, int]] = {}
        self._unread: set[str] = set()
        # Ids of batches of this run.
        self._known: set[str] = set()
        self._at_once = MOST_AT_ONCE
        self._short_of_money = False

    async def __aenter__(self) -> Self:
        self._files.open()
        self._known = self._files.ids()
        self._uploads.open()
        entries = self._files.under_way()
        for entry in entries.values():
            if not self._is_ours(entry.model, entry.server, len(entry.keys)):
                continue
            batch = _Batch(
                str(entry.tag),
                str(entry.model),
                list(entry.keys),
                at=entry.at,
                id=entry.id,
                booked=set(entry.booked),
            )
            each = Spend(entry.tokens, entry.cost_usd) * (1 / max(1, len(entry.keys)))
            for key in entry.keys:
                self._hold(key, each)
            if batch.id is None and not await self._find(batch):
                self._end(batch)
                continue
            self._under_way.update(batch.keys)
            if self._files.results(batch.tag).exists():
                await self._fetch(batch)
            else:
                self._flying.append(batch)
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self._uploads.close()
        await asyncio.gather(*self._collecting, return_exceptions=True)
        if not self._under_way:
            await self._uploads.delete()
        entries = self._files.under_way()
        with contextlib.suppress(StorageError):  # a disk that is full: `run.json` may lack them, too
            for batch in (*self._fetched, *self._flying):
                if batch.tag in entries and batch.booked - set(entries[batch.tag].booked):
                    self._note_left(batch)
        self._files.keep(entries.keys())

    def notices(self) -> list[str]:
        notices = super().notices()
        if self._flying:
            number = counted(sum(len(batch.keys) for batch in self._flying), "question")
            notices.append(f"{number} in batches under way; the same command waits for the answers")
        return notices

    def _is_there(self, key: str) -> bool:
        return key in self._answers

    async def _ask(self, endpoint: Endpoint, key: str, request: ModelRequest) -> DiscountedAnswer | None:
        if (given := self._read(key)) is not None:
            self._release_key(key)
            return given
        if key not in self._under_way and self._afford(endpoint, key, request):
            collecting = asyncio.create_task(self._collect(endpoint.name, key, request))
            self._collecting.add(collecting)
            collecting.add_done_callback(self._collecting.discard)
            await asyncio.shield(collecting)
        raise DeferredError("The question goes into a batch")

    def _afford(self, endpoint: Endpoint, key: str, request: ModelRequest) -> bool:
        """Whether the budget covers the question, which is under way then."""
        tokens = endpoint.worst_case(request)
        total = (tokens.input or 0) + (tokens.output or 0)
        worst = Spend(total, self._prices.cost(endpoint.name, tokens) or 0.0)
        if not self._budget.covers(self._held_in_all + worst):
            self._short_of_money = True
            return False
        self._under_way.add(key)
        self._hold(key, worst)
        return True

    async def _collect(self, name: str, key: str, request: ModelRequest) -> None:
        """Raises ModelUnusableError and StorageError."""
        try:
            self._write(name, key, self._apis[name].line(key, request, await self._uploads.of(name, request)))
        except BaseException:
            self._under_way.discard(key)
            self._release_key(key)
            raise

    def _write(self, name: str, key: str, line: bytes) -> None:
        batch = self._collected.get(name)
        if batch is not None and (len(batch.keys) == MOST_LINES or batch.size + len(line) > MOST_BYTES):
            self._full.append(batch)
            batch = None
        if batch is None:
            batch = self._collected[name] = _Batch(uuid4().hex, name)
        self._files.add_line(batch.tag, line + b"\n")
        batch.keys.append(key)
        batch.size += len(line)

    async def settle(self) -> None:
        """Hand in what was collected, and wait until all batches have ended.

        Raises BudgetError where the budget did not cover a single line, ModelUnusableError where a provider
        takes no batch or is away for too long, and StorageError.
        """
        await asyncio.gather(*self._collecting, return_exceptions=True)
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
                state = await self._patiently(
                    batch.model, self._apis[batch.model].state, batch.id, noted=batch.tag
                )
                if not state.ended:
                    continue
                pause = FIRST_POLL_S
                if state.rejected is None:
                    await self._fetch(batch)
                self._flying.remove(batch)
                if state.rejected is None:
                    continue
                await self._forget(batch)
                # Too much at once: again when another one has ended, or in halves where it is the only one.
                self._at_once = max(1, len(self._flying))
                parts = self._parts(batch, 1 if self._flying else 2) if state.over_limit else []
                if not parts:
                    self._end(batch)
                    raise self._not_taken(batch.model, state.rejected)
                self._files.note(self._entry(batch, "done"))
                self._files.lines(batch.tag).unlink(missing_ok=True)
                queue.extendleft(reversed(parts))

    def consumed(self) -> None:
        """All inputs were worked through since `settle`: what batches answered is in the answer cache.

        What nobody asked for, as with fewer inputs than last time, is kept for a later session.
        """
        fetched, self._fetched = self._fetched, []
        for batch in fetched:
            unread = [key for key in batch.keys if key in self._unread]
            if not unread:
                self._end(batch)
                continue
            self._fetched.append(batch)
            if len(unread) < len(batch.keys):
                batch.keys = unread
                self._note_left(batch)

    async def _submit(self, batch: _Batch) -> None:
        api, tried = self._apis[batch.model], False
        batch.at = now()
        self._files.note(self._submitting(batch))

        async def hand_in() -> str:
            nonlocal tried
            if tried:
                # It may have come through all the same, and be listed a little later.
                await asyncio.sleep(LISTED_S)
                if (found := await api.find(self._lost(batch))) is not None:
                    return found
            tried = True
            try:
                return await api.submit(batch.tag, self._files.lines(batch.tag))
            except (NothingThereError, RequestRejectedError) as error:
                self._end(batch)
                raise self._not_taken(batch.model, error.message_without(batch.model)) from error
            except OSError as error:
                self._end(batch)
                raise unreadable(self._files.lines(batch.tag), error) from error

        batch.id = await self._patiently(batch.model, hand_in, noted=batch.tag)
        self._submitted(batch)
        self._flying.append(batch)

    async def _find(self, batch: _Batch) -> bool:
        find = self._apis[batch.model].find
        batch.id = await self._patiently(batch.model, find, self._lost(batch), noted=batch.tag)
        if batch.id is not None:
            self._submitted(batch)
        return batch.id is not None

    def _lost(self, batch: _Batch) -> LostBatch:
        return LostBatch(batch.tag, len(batch.keys), batch.at, self._known)

    def _submitted(self, batch: _Batch) -> None:
        assert batch.id is not None
        self._known.add(batch.id)
        self._files.note(self._entry(batch, "submitted", id=batch.id))

    async def _fetch(self, batch: _Batch, *, again: bool = False) -> None:
        """Get the results of a batch that has ended, and note which lines have an answer.

        `again` is for results that are here and lack some: they stay until there are others.
        """
        api, target = self._apis[batch.model], self._files.results(batch.tag)
        assert batch.id is not None
        is_here = target.exists()
        if again or not is_here:
            try:
                results = await self._patiently(batch.model, api.results, batch.id, noted=batch.tag)
            except ModelDownError:
                raise
            except ModelUnusableError:  # providers do not keep them for ever
                if not is_here:
                    raise
            else:
                await asyncio.to_thread(self._files.write, target, [results])
                await self._forget(batch)
        batch.ended = now()
        left = set(batch.keys)
        answers: dict[str, tuple[_Batch, int, int, int]] = {}
        unanswered: dict[str, ProviderError | None] = {}
        offset = 0
        for number, line in enumerate(self._files.read_results(batch.tag)):
            key, outcome = _result(api, line)
            if key in left:
                left.remove(key)
                if isinstance(outcome, ModelResponse):
                    answers[key] = batch, number, offset, len(line)
                else:
                    unanswered[key] = outcome
            offset += len(line)
        if left and is_here and not again:  # perhaps it is damaged
            await self._fetch(batch, again=True)
            return
        self._answers.update(answers)
        self._unread.update(answers)
        for key, outcome in unanswered.items():
            lost = self._uploads.lost(str(outcome))
            rejected = isinstance(outcome, RequestRejectedError)
            self._no_answer(key, str(outcome), final=rejected and not lost)
        for key in left:
            self._no_answer(key, f"{batch.model}: the results of a batch did not have it", final=False)
        self._under_way.difference_update(batch.keys)
        self._fetched.append(batch)

    def _fetch_again(self, batch: _Batch) -> None:
        """What is left of the results is read once more by `settle`, and fetched where it lacks some."""
        for key in batch.keys:
            self._answers.pop(key, None)
        if batch in self._fetched:
            self._fetched.remove(batch)
            batch.keys = [key for key in batch.keys if key in self._unread]
            self._unread.difference_update(batch.keys)
            self._under_way.update(batch.keys)
            self._flying.append(batch)

    async def _forget(self, batch: _Batch) -> None:
        assert batch.id is not None
        with contextlib.suppress(ProviderError):  # it goes by itself in the end
            await self._apis[batch.model].forget(batch.id)

    def _no_answer(self, key: str, why: str, *, final: bool) -> None:
        self._release_key(key)
        super()._no_answer(key, why, final=final)

    def _taken(self, key: str) -> None:
        self._unread.discard(key)

    def _read(self, key: str) -> DiscountedAnswer | None:
        place = self._answers.get(key)
        if place is None:
            return None
        batch, number, offset, length = place
        try:
            found, response = _result(self._apis[batch.model], self._files.result(batch.tag, offset, length))
        except OSError:
            found, response = "", None
        if found != key or not isinstance(response, ModelResponse):  # changed on disk
            self._fetch_again(batch)
            return None
        assert batch.ended is not None
        seconds = max(0.0, (batch.ended - batch.at).total_seconds())
        # Calls of a run are known by the moment at which they began.
        started = batch.at + timedelta(microseconds=number)
        return DiscountedAnswer(
            response,
            started,
            round(seconds, 3),
            lambda tokens: self._prices.cost(batch.model, tokens),
            key,
            batch.booked,
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

    def _submitting(self, batch: _Batch) -> BatchEntry:
        worst = sum((self._held.get(key, Spend()) for key in batch.keys), Spend())
        return self._entry(
            batch,
            "submitting",
            at=batch.at,
            model=batch.model,
            server=server_digest(self._endpoints[batch.model]),
            keys=tuple(batch.keys),
            booked=tuple(key for key in batch.keys if key in batch.booked),
            tokens=worst.tokens,
            cost_usd=worst.cost_usd,
        )

    def _note_left(self, batch: _Batch) -> None:
        self._files.note(self._submitting(batch), self._entry(batch, "submitted", id=batch.id))

    def _entry(self, batch: _Batch, event: BatchEvent, **more: object) -> BatchEntry:
        return BatchEntry.model_validate({"tag": batch.tag, "event": event, "at": now(), **more})

    def _end(self, batch: _Batch) -> None:
        self._files.note(self._entry(batch, "done"))
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
