"""The user's own limit on what a run may cost, and the most that one request can use.

The most is reserved before a call, what was used is booked after it. What a server says was used is believed
only as far as the request allows: no answer can use up a budget by its figures alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Final

from uncanny.client.waiting import Ticket, WaitingQueue
from uncanny.errors import BudgetError
from uncanny.models.base import ModelRequest, Tokens
from uncanny.models.tokens import image_tokens
from uncanny.schema import as_count
from uncanny.wording import cost


@dataclass(frozen=True, slots=True)
class Spend:
    """An amount of tokens and, where the model has a price, of US dollars."""

    tokens: float = 0
    cost_usd: float = 0.0

    def __add__(self, other: Spend) -> Spend:
        return Spend(self.tokens + other.tokens, self.cost_usd + other.cost_usd)

    def __sub__(self, other: Spend) -> Spend:
        return Spend(self.tokens - other.tokens, self.cost_usd - other.cost_usd)

    def __mul__(self, factor: float) -> Spend:
        return Spend(self.tokens * factor, self.cost_usd * factor)


class Budget:
    """A hard limit over all calls of a run, earlier sessions included.

    Before a call its worst case is reserved (all output tokens it may use); a call that does not fit waits
    until running ones have settled for less, and fails with `BudgetError` once none is left to wait for.
    So the limit is kept as far as the token estimate of the input is right. None means no limit.

    Calls about earlier inputs go first. Where money is short a call also leaves what the inputs before its
    own will probably still need: better one whole than parts of several. `usual_calls` is how many an input
    takes, for as long as none of this session is finished; 0 for not known. `estimated` is the part of
    `spent` that was booked for answers without usage.
    """

    def __init__(
        self,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
        spent: Spend | None = None,
        *,
        usual_calls: int = 0,
        estimated: Spend | None = None,
    ) -> None:
        self.max_cost_usd, self.max_tokens = max_cost_usd, max_tokens
        self.spent = spent or Spend()
        self._estimated = estimated or Spend()
        self._reserved = Spend()
        self._running = 0
        self._waiting = WaitingQueue[Spend]()
        # For what inputs still need: all calls that are paid for, and those of inputs not yet finished.
        self._spent_before = self.spent
        self._paid = 0
        self._dearest = Spend()
        self._calls_of = Counter[int]()
        self._usual_calls = usual_calls
        self._finished = self._calls_of_finished = 0

    @property
    def limited(self) -> bool:
        return self.max_cost_usd is not None or self.max_tokens is not None

    async def reserve(self, worst: Spend, ticket: Ticket) -> None:
        """Reserve `worst`, waiting for running calls if need be. Raises `BudgetError` when it cannot fit."""
        first = self._waiting.first() is None
        if self._free(worst) or (first and self._fits(worst + self._needed_before(ticket))):
            self._grant(worst, ticket)
            return
        granted = self._waiting.enter(ticket, worst)
        self._serve()
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled() and granted.exception() is None:
                self.settle(worst, Spend())
            else:
                self._serve()  # the next one may need less
            raise

    def covers(self, worst: Spend) -> bool:
        """Whether there is as much left."""
        return self._fits(worst)

    def admit(self, worst: Spend, ticket: Ticket) -> None:
        """Reserve `worst` whether it fits or not, for an answer that is there and will be billed."""
        self._grant(worst, ticket)

    def settle(self, worst: Spend, actual: Spend, estimated: Spend | None = None) -> None:
        """Give back what was reserved and book what was used, of which `estimated` was not measured."""
        self._running -= 1
        self._reserved -= worst
        self.spent += actual
        self._estimated += estimated or Spend()
        self._paid += actual != Spend()
        # Not at once: the call after this one, about the same input, may be on its way.
        if self._waiting.first() is not None:
            asyncio.get_running_loop().call_soon(self._serve)

    def book(self, actual: Spend, estimated: Spend) -> None:
        """Book what another process has used of this limit."""
        self.spent += actual
        self._estimated += estimated

    def left(self) -> Spend:
        """What is not spent; of what has no limit 0."""
        tokens = 0 if self.max_tokens is None else self.max_tokens - self.spent.tokens
        return Spend(tokens, 0.0 if self.max_cost_usd is None else self.max_cost_usd - self.spent.cost_usd)

    def close(self, number: int, *, finished: bool) -> None:
        """No more calls come from this input; `finished` says that it had all it needed."""
        calls = self._calls_of.pop(number, 0)
        if calls and finished:
            self._finished += 1
            self._calls_of_finished += calls
        self._serve()

    def _grant(self, worst: Spend, ticket: Ticket) -> None:
        self._running += 1
        self._reserved += worst
        self._calls_of[ticket.input] += 1
        self._dearest = max(self._dearest, worst, key=lambda spend: (spend.cost_usd, spend.tokens))

    def _serve(self) -> None:
        while (waiter := self._waiting.first()) is not None:
            worst = waiter.wanted
            if not self._fits(worst + self._needed_before(waiter.ticket)):
                if self._running:
                    return
                # What is left for others may be left for ever: whoever is first has it when nothing runs.
                if not self._fits(worst):
                    waiter.granted.set_exception(self.error())
                    continue
            self._grant(worst, waiter.ticket)
            waiter.granted.set_result(None)

    def _needed_before(self, ticket: Ticket) -> Spend:
        """What the inputs before this one will probably still use, and the most a single call reserves."""
        each = self._calls_of_finished / self._finished if self._finished else self._usual_calls
        missing = [each - calls for number, calls in self._calls_of.items() if number < ticket.order]
        if not (missing and each):
            return Spend()
        # Until a call is paid for, each may cost the most: or inputs would be begun that are not ended.
        a_call = (self.spent - self._spent_before) * (1 / self._paid) if self._paid else self._dearest
        return self._dearest + a_call * sum(max(0.0, calls) for calls in missing)

    def _free(self, wanted: Spend) -> bool:
        tokens = self.max_tokens is not None and wanted.tokens
        return not tokens and (self.max_cost_usd is None or not wanted.cost_usd)

    def _fits(self, wanted: Spend) -> bool:
        total = self.spent + self._reserved + wanted
        if self.max_tokens is not None and total.tokens > self.max_tokens:
            return False
        return self.max_cost_usd is None or wanted.cost_usd == 0 or total.cost_usd <= self.max_cost_usd

    def error(self) -> BudgetError:
        """What whoever asks for more is told, with what is spent by now."""
        limits, guessed = [], []
        if self.max_cost_usd is not None:
            limits.append(f"{cost(self.spent.cost_usd)} of {cost(self.max_cost_usd)}")
            if self._estimated.cost_usd:
                guessed.append(cost(self._estimated.cost_usd))
        if self.max_tokens is not None:
            limits.append(f"{round(self.spent.tokens):,} of {self.max_tokens:,} tokens")
            if self._estimated.tokens:
                guessed.append(f"{round(self._estimated.tokens):,} tokens")
        part = f", {' and '.join(guessed)} of it estimated for answers without usage" if guessed else ""
        return BudgetError(
            f"The budget does not cover another call: {' and '.join(limits)} spent{part}",
            remedy="Raise the limit and run the same again to go on.",
        )


# Dense text, such as JSON or a script without spaces, has fewer characters a token than prose has.
_CHARACTERS_PER_TOKEN = 3
_TURN_TOKENS = 8
_UNKNOWN_IMAGE_TOKENS = 4_000


def worst_case(model: str, request: ModelRequest) -> Tokens:
    """Input as an upper estimate, output at its limit, nothing cached."""
    total = 0
    for message in request.messages:
        total += _TURN_TOKENS
        for part in message.parts:
            if isinstance(part, str):
                total += len(part) // _CHARACTERS_PER_TOKEN + 1
            else:
                total += image_tokens(model, part.width, part.height) or _UNKNOWN_IMAGE_TOKENS
    if request.schema is not None:
        total += 600
    return Tokens(input=total, output=request.sampling.max_output_tokens, cached=0, cache_written=0)


# An upper estimate is too low for scripts with several tokens a character, and for images of servers that are
# not known; nothing honest was seen beyond six times.
MOST_TIMES: Final = 10


def credible(tokens: Tokens, most: Tokens) -> Tokens:
    """Usage as a server reports it, None for each figure that cannot be true.

    `most` is the request's `worst_case`. Input is at most `MOST_TIMES` as much, output at most the limit that
    was asked for. What was read from the cache and written to it is part of the input, so both together are
    at most that, and so are those of pictures.
    """
    most_input = MOST_TIMES * (most.input or 0)
    input_ = as_count(tokens.input, most_input)
    within = most_input if input_ is None else input_
    cached, written = as_count(tokens.cached, within), as_count(tokens.cache_written, within)
    if (cached or 0) + (written or 0) > within:
        cached = written = None
    images = as_count(tokens.images, within)
    return Tokens(input_, as_count(tokens.output, most.output or 0), cached, written, images)
