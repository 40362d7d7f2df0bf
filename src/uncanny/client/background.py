"""Questions of a run that are answered in the background, within hours, for less than single calls.

Each question is handed in by itself, and what its answer leads to is asked as soon as it is there: all else
is as with a call. The file `background.jsonl` of the run says what was handed in, so a session after a kill
waits for it instead of handing it in again. A question without an answer is handed in once more, then asked
directly.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from functools import partial
from itertools import count
from typing import Self

from uncanny.client.budget import Budget, Spend
from uncanny.client.calls import now
from uncanny.client.discount import LONGEST_POLL_S, Discount, DiscountedAnswer, server_digest
from uncanny.client.endpoint import FAILURES, Endpoint
from uncanny.client.prices import PriceTable
from uncanny.client.waiting import Ticket
from uncanny.errors import ProviderError, RequestRejectedError, StorageError, TransientError
from uncanny.models.base import ModelRequest, ModelResponse
from uncanny.models.discount.responses import BackgroundApi
from uncanny.models.http_errors import NothingThereError
from uncanny.models.presets import Window
from uncanny.records.batch_files import BackgroundEntry, BackgroundLog
from uncanny.wording import counted

FIRST_POLL_S = 0.5
# Well above the longest window.
LONGEST = timedelta(hours=32)
# For questions that are being handed in when a run ends.
HAND_IN_S = 10.0


class Background(Discount[BackgroundApi]):
    """The calls in the background of one run. `prices` are those of each window."""

    def __init__(
        self,
        log: BackgroundLog,
        endpoints: Iterable[Endpoint],
        *,
        window: Window,
        prices: Mapping[Window, PriceTable],
        budget: Budget,
        patience_s: float,
    ) -> None:
        """Raises UsageError where none of the models takes calls in the background."""
        super().__init__(
            endpoints,
            lambda endpoint: endpoint.provider.background(window),
            way="in the background",
            parameter="completion_window",
            journal=log.path,
            patience_s=patience_s,
        )
        self._log, self._window, self._prices, self._budget = log, window, prices, budget
        self._entries: dict[str, BackgroundEntry] = {}
        # Ids of answers that were counted.
        self._booked: set[str] = set()
        # What is held of the budget, and for how many questions.
        self._held, self._held_by = Spend(), 0
        self._changed = asyncio.Condition()
        self._order = count()
        self._handing_in: set[asyncio.Task[BackgroundEntry | ProviderError]] = set()
        # Models that took a question, and how many they did not take.
        self._accepting: set[str] = set()
        self._not_accepted = Counter[str]()

    async def __aenter__(self) -> Self:
        entries = self._log.under_way().values()
        self._entries = {each.key: each for each in entries if self._is_ours(each.model, each.server)}
        self._under_way = set(self._entries)
        self._booked = {each.id for each in self._entries.values() if each.booked}
        self._accepting = {each.model for each in self._entries.values()}
        return self

    async def __aexit__(self, *_error: object) -> None:
        if self._handing_in:
            await asyncio.wait(self._handing_in, timeout=HAND_IN_S)
        with contextlib.suppress(StorageError):  # a disk that is full: `run.json` may lack them, too
            for entry in self._entries.values():
                if entry.id in self._booked and not entry.booked:
                    self._log.note(entry.model_copy(update={"booked": True}))

    def notices(self) -> list[str]:
        notices = super().notices()
        if under_way := len(self._under_way) + len(self._handing_in):
            number = counted(under_way, "question")
            notices.append(f"{number} under way in the background; the same command waits for the answers")
        return notices

    async def _ask(self, endpoint: Endpoint, key: str, request: ModelRequest) -> DiscountedAnswer | None:
        tokens = endpoint.worst_case(request)
        total = (tokens.input or 0) + (tokens.output or 0)
        worst = Spend(total, self._prices[self._window].cost(endpoint.name, tokens) or 0.0)
        async with self._changed:
            await self._changed.wait_for(lambda: self._covers(worst) or not self._held_by)
            if not self._covers(worst):
                raise self._budget.error()
            self._held, self._held_by = self._held + worst, self._held_by + 1
        try:
            while key not in self._direct:
                outcome = await self._outcome(endpoint, key, request)
                if isinstance(outcome, DiscountedAnswer):
                    return outcome
                self._no_answer(key, outcome.message, final=isinstance(outcome, RequestRejectedError))
            return None
        finally:
            # The caller books what the answer costs.
            async with self._changed:
                self._held, self._held_by = self._held - worst, self._held_by - 1
                self._changed.notify_all()

    def _covers(self, worst: Spend) -> bool:
        return self._budget.covers(self._held + worst)

    async def _outcome(
        self, endpoint: Endpoint, key: str, request: ModelRequest
    ) -> DiscountedAnswer | ProviderError:
        """Raises ModelUnusableError and StorageError."""
        name, api = endpoint.name, self._apis[endpoint.name]
        if (entry := self._entries.get(key)) is None:
            handed_in = await self._patiently(name, self._in_slot, endpoint, key, request)
            if isinstance(handed_in, ProviderError):
                return handed_in
            entry = handed_in
        pause = FIRST_POLL_S
        while (outcome := await self._patiently(name, api.result, entry.id, noted=entry.id)) is None:
            if now() - entry.at > LONGEST:
                outcome = TransientError(f"{name}: no answer within {LONGEST}", kind="background")
                break
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_POLL_S)
        if not isinstance(outcome, ModelResponse):
            self._taken(key)
            return outcome
        seconds = (now() - entry.at).total_seconds()
        prices = next((each for window, each in self._prices.items() if window == entry.window), None)
        price = partial((prices or self._prices[self._window]).cost, name)
        return DiscountedAnswer(outcome, entry.at, round(seconds, 3), price, entry.id, self._booked)

    async def _in_slot(
        self, endpoint: Endpoint, key: str, request: ModelRequest
    ) -> BackgroundEntry | ProviderError:
        """Hand in a question when the server takes another one: a 429 slows down all, as with calls."""
        limiter = endpoint.limiter
        async with limiter.slot(Ticket(next(self._order))):
            try:
                handed_in = await self._uncancelled(endpoint, key, request)
            except TransientError as error:
                limiter.refused(error)
                raise
            limiter.succeeded()
            return handed_in

    async def _uncancelled(
        self, endpoint: Endpoint, key: str, request: ModelRequest
    ) -> BackgroundEntry | ProviderError:
        """Hand in a question. What the provider took gets to disk, also where the run ends meanwhile."""
        task = asyncio.create_task(self._hand_in(endpoint, key, request))
        self._handing_in.add(task)
        task.add_done_callback(self._handed_in)
        return await asyncio.shield(task)

    def _handed_in(self, task: asyncio.Task[BackgroundEntry | ProviderError]) -> None:
        self._handing_in.discard(task)
        if not task.cancelled():
            task.exception()  # where a run ended meanwhile, nobody else asks for it

    async def _hand_in(
        self, endpoint: Endpoint, key: str, request: ModelRequest
    ) -> BackgroundEntry | ProviderError:
        name, began = endpoint.name, now()
        try:
            handed_in = await self._apis[name].submit(request)
        except NothingThereError as error:
            raise self._not_taken(name, error.message_without(name)) from error
        except (RequestRejectedError, TransientError) as error:
            # Where the server took it and gave no id, nobody can wait for it: that is a try, too.
            if isinstance(error, TransientError) and error.kind != "bad_body":
                raise
            self._not_accepted[name] += 1
            if name not in self._accepting and self._not_accepted[name] >= FAILURES:
                raise self._not_taken(name, error.message_without(name)) from error
            return error
        self._accepting.add(name)
        entry = self._entries[key] = BackgroundEntry(
            key=key, at=began, id=handed_in, model=name, server=server_digest(endpoint), window=self._window
        )
        self._log.note(entry)
        self._under_way.add(key)
        return entry

    def _taken(self, key: str) -> None:
        if (entry := self._entries.pop(key, None)) is not None:
            self._under_way.discard(key)
            self._log.note(entry.model_copy(update={"done": True}))
