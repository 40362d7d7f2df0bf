"""How often and after how long a call is tried again."""

from __future__ import annotations

import pytest

from uncanny.errors import (
    AnswerError,
    ModelDownError,
    ProviderError,
    RefusedError,
    RequestRejectedError,
    TransientError,
    TruncatedError,
    UncannyError,
)
from uncanny.providers.retry import ATTEMPTS, LONGEST_WAIT_S, retrying


class Attempts:
    """Fails with the given errors in turn, then answers. `waits` are the seconds slept between."""

    def __init__(self, *errors: UncannyError) -> None:
        self.errors = list(errors)
        self.made = 0
        self.waits: list[float] = []

    async def call(self) -> str:
        self.made += 1
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def run(self) -> str:
        return await retrying().copy(sleep=self.sleep)(self.call)


def failure(number: int, retry_after: float | None = None) -> TransientError:
    return TransientError(f"failure {number}", kind="server", retry_after=retry_after)


async def test_nothing_is_slept_without_a_failure() -> None:
    attempts = Attempts()
    assert await attempts.run() == "answer"
    assert (attempts.made, attempts.waits) == (1, [])


async def test_it_waits_as_long_as_the_server_asks_within_reason() -> None:
    attempts = Attempts(failure(1, 7.5), failure(2, 0.0), failure(3, 86_400.0))
    assert await attempts.run() == "answer"
    assert attempts.waits == [7.5, 0.0, LONGEST_WAIT_S]


async def test_left_to_itself_it_waits_a_random_time_below_a_growing_bound() -> None:
    attempts = Attempts(*(failure(number) for number in range(ATTEMPTS - 1)))
    assert await attempts.run() == "answer"
    assert all(0 <= wait <= 0.5 * 2**number for number, wait in enumerate(attempts.waits))
    assert len(set(attempts.waits)) == len(attempts.waits)


async def test_after_the_last_attempt_the_last_error_is_raised() -> None:
    attempts = Attempts(*(failure(number, 0.0) for number in range(1, 20)))
    with pytest.raises(TransientError, match=f"failure {ATTEMPTS}"):
        await attempts.run()
    assert attempts.made == ATTEMPTS == 6


@pytest.mark.parametrize(
    "error",
    [
        RequestRejectedError("x"),
        RefusedError("x"),
        TruncatedError("x"),
        ModelDownError("x"),
        AnswerError("x"),
        ProviderError("x"),
    ],
)
async def test_only_what_may_pass_is_tried_again(error: UncannyError) -> None:
    attempts = Attempts(error)
    with pytest.raises(type(error)):
        await attempts.run()
    assert (attempts.made, attempts.waits) == (1, [])
