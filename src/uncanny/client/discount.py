"""What batches and background calls share: a question is answered for less, in the place of a call.

`answer` is what the model client asks first. A question is asked directly, at full price, where it is the
first one to its model, which shows that key and model are right and what the server does not take; and where
it did not get an answer otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Generic, Self, TypeVar

from uncanny.client.endpoint import Endpoint
from uncanny.errors import (
    ENDS_INPUT,
    ModelDownError,
    ModelUnusableError,
    RequestRejectedError,
    TransientError,
    UsageError,
)
from uncanny.models.base import ModelRequest, ModelResponse, Tokens
from uncanny.models.http_errors import NothingThereError
from uncanny.wording import counted, option

Api = TypeVar("Api")
T = TypeVar("T")
LONGEST_POLL_S: Final = 60.0
# A network that is away for a quarter of an hour does not matter to what goes on at the provider.
LEAST_PATIENCE_S: Final = 900.0
MOST_TRIES: Final = 2


@dataclass(frozen=True, slots=True)
class DiscountedAnswer:
    """The response to a question, when it was handed in, and seconds until it was there.

    `price` gives US dollars for tokens. `booked` has the names of answers that were counted, as `name` is
    this one's: one that could not be kept is given again.
    """

    response: ModelResponse
    started: datetime
    latency_s: float
    price: Callable[[Tokens], float | None]
    name: str
    booked: set[str]

    def book(self) -> bool:
        """Count it; whether it was counted before."""
        before = self.name in self.booked
        self.booked.add(self.name)
        return before


class Discount(ABC, Generic[Api]):
    """Answers for less, of all models of one run that have them; other models are asked directly.

    `way` names it in messages, `parameter` is what asks for it, and `journal` the file that says what was
    handed in. Entered as a context, it takes up what an earlier session left under way.
    """

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        api: Callable[[Endpoint], Api | None],
        *,
        way: str,
        parameter: str,
        journal: Path,
        patience_s: float,
    ) -> None:
        """Raises UsageError where none of the models has it."""
        self._endpoints = {each.name: each for each in endpoints}
        found = ((name, api(each)) for name, each in self._endpoints.items())
        self._apis: Mapping[str, Api] = {name: each for name, each in found if each is not None}
        self._way, self._parameter, self._journal = way, parameter, journal
        if not self._apis:
            raise UsageError(
                f"{', '.join(self._endpoints)} cannot be asked {way}",
                remedy=f"Remove {option(parameter)}, or use a model whose provider offers it.",
            )
        self._patience_s = max(patience_s, LEAST_PATIENCE_S)
        self._probes: dict[str, asyncio.Event] = {}
        # Keys: of what was handed in and is not answered yet, and of what is asked directly.
        self._under_way: set[str] = set()
        self._direct: set[str] = set()
        self._tries: dict[str, int] = {}
        self._refused: list[str] = []
        self._elsewhere = 0

    @abstractmethod
    async def __aenter__(self) -> Self:
        """Raises UsageError, StorageError and ModelUnusableError."""

    @abstractmethod
    async def __aexit__(self, *_error: object) -> None:
        """What was handed in goes on at the provider."""

    @abstractmethod
    async def _ask(self, endpoint: Endpoint, key: str, request: ModelRequest) -> DiscountedAnswer | None:
        """The answer; None where it is to be asked directly. Raises DeferredError where it comes later."""

    async def settle(self) -> None:
        """Wait until all that was deferred is answered."""

    def consumed(self) -> None:
        """All inputs were worked through since `settle`."""

    def awaited(self) -> str:
        """What is under way, in words."""
        return f"{counted(len(self._under_way), 'question')} {self._way}"

    def notices(self) -> list[str]:
        """What is to be known when the run ends."""
        notices = []
        if self._refused:
            number = counted(len(self._refused), "question")
            were = "was" if len(self._refused) == 1 else "were"
            notices.append(
                f"{number} without an answer {self._way} {were} asked directly, at full price: "
                f"{self._refused[0]}"
            )
        if self._elsewhere:
            number = counted(self._elsewhere, "question")
            notices.append(
                f"{number} under way {self._way} with another model or server address; only a run with "
                "these waits for the answers"
            )
        return notices

    @contextlib.asynccontextmanager
    async def answer(
        self, endpoint: Endpoint, key: str, request: ModelRequest
    ) -> AsyncIterator[DiscountedAnswer | None]:
        """The answer to the question `key`; None where it is to be asked directly, within this context.

        Raises DeferredError where it comes later.
        """
        name = endpoint.name
        if name not in self._apis or key in self._direct:
            yield None
            return
        if not self.handed_in(key):
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
        given = await self._ask(endpoint, key, request)
        try:
            yield given
        except ENDS_INPUT:
            raise  # the answer is still to be used
        except Exception:
            self._taken(key)
            raise
        self._taken(key)

    def handed_in(self, key: str) -> bool:
        """Whether the question is paid for: its answer comes, or is there, whatever became of the model."""
        return key in self._under_way or self._is_there(key)

    def _taken(self, key: str) -> None:
        """The answer was used: it is in the answer cache, or nothing can be made of it."""

    def _is_there(self, key: str) -> bool:  # noqa: ARG002
        """Whether an answer has come that nobody has read yet."""
        return False

    def _no_answer(self, key: str, why: str, *, final: bool) -> None:
        self._tries[key] = self._tries.get(key, 0) + 1
        if final or self._tries[key] >= MOST_TRIES:
            self._direct.add(key)
            self._refused.append(why)

    def _is_ours(self, model: str | None, server: str | None, questions: int = 1) -> bool:
        """Whether so many questions that were handed in earlier can be waited for here."""
        ours = model is not None and model in self._apis and server == server_digest(self._endpoints[model])
        self._elsewhere += 0 if ours else questions
        return ours

    async def _patiently(
        self, model: str, call: Callable[..., Awaitable[T]], *arguments: object, noted: str | None = None
    ) -> T:
        """Again after errors that may pass, until patience is over. Raises ModelUnusableError.

        `noted` is what the lines of the journal have that are about it.
        """
        clock = asyncio.get_running_loop().time
        began, pause = clock(), 1.0
        while True:
            try:
                return await call(*arguments)
            except TransientError as error:
                if clock() - began >= self._patience_s:
                    raise ModelDownError(
                        f"{model} did not say for {self._patience_s:.0f} s what became of questions "
                        f"{self._way}: {error.message_without(model)}",
                        remedy="Run the same again when it is back; what was handed in goes on meanwhile.",
                    ) from error
                await asyncio.sleep(max(pause, error.retry_after or 0.0))
                pause = min(2 * pause, LONGEST_POLL_S)
            except (NothingThereError, RequestRejectedError) as error:
                lines = "all lines" if noted is None else f"only the lines with {noted}"
                raise ModelUnusableError(
                    f"{model} does not say what became of questions {self._way}: "
                    f"{error.message_without(model)}",
                    remedy="Use the key of the account that handed it in. To give it up and ask again, "
                    f"delete {lines} from {self._journal}.",
                ) from error

    def _not_taken(self, model: str, why: str) -> ModelUnusableError:
        return ModelUnusableError(
            f"{model} cannot be asked {self._way}: {why}",
            remedy=f"Run the same without {option(self._parameter)} to ask directly, at full price.",
        )


def server_digest(endpoint: Endpoint) -> str:
    """Tells servers apart, and names none: a run may be handed on."""
    return hashlib.sha256((endpoint.address or "").encode()).hexdigest()
