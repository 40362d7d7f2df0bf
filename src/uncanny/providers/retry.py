"""The one place where a call is tried again."""

from __future__ import annotations

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type
from tenacity.wait import wait_base, wait_random_exponential

from uncanny.errors import TransientError
from uncanny.providers.breaker import Breaker

ATTEMPTS = 6
TOTAL_S = 600.0
FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LONGEST_ASKED_WAIT_S = 120.0


class _Wait(wait_base):
    """A random time below a growing bound, but not less than the server asked for."""

    def __init__(self) -> None:
        self._usual = wait_random_exponential(multiplier=FIRST_WAIT_S, max=LONGEST_WAIT_S)

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        asked = error.retry_after if isinstance(error, TransientError) else None
        return max(self._usual(retry_state), min(asked or 0.0, LONGEST_ASKED_WAIT_S))


class _Tries:
    """Whether one question was tried often enough.

    A failure is the question's own where the model answered another one since the last failure, as when one
    image makes a server stumble. `ATTEMPTS` of them, or `TOTAL_S` seconds between them, are the end. While
    the model answers nobody, it is an outage and its failures count for nothing here: the breaker bounds it.
    """

    def __init__(self, breaker: Breaker, image: str) -> None:
        self._breaker, self._image = breaker, image
        self._failures = 0
        self._seconds = 0.0
        self._answers = -1
        self._at = breaker.clock()

    def enough(self, _: RetryCallState) -> bool:
        now, answers = self._breaker.clock(), self._breaker.answers
        if answers > self._answers:
            self._failures += 1
            self._seconds += now - self._at
        self._at, self._answers = now, answers
        if self._failures >= ATTEMPTS or self._seconds >= TOTAL_S:
            return True
        return self._breaker.out_of_patience_with(self._image)


def retrying(breaker: Breaker, image: str) -> AsyncRetrying:
    """For one question about `image` to the model of `breaker`, whose first attempt has just failed.

    Tries again on `TransientError` only; the last error is raised.
    """
    return AsyncRetrying(
        stop=_Tries(breaker, image).enough,
        wait=_Wait(),
        retry=retry_if_exception_type(TransientError),
        reraise=True,
    )
