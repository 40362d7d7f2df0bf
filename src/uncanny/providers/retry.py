"""The one place where a call is tried again."""

from __future__ import annotations

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
)
from tenacity.wait import wait_base, wait_random_exponential

from uncanny.errors import TransientError

ATTEMPTS = 6
TOTAL_S = 600.0
LONGEST_WAIT_S = 120.0


class _WaitAsAsked(wait_base):
    """Wait as long as the server asked for, else a random exponential time."""

    def __init__(self, otherwise: wait_base) -> None:
        self._otherwise = otherwise

    def __call__(self, retry_state: RetryCallState) -> float:
        error = retry_state.outcome.exception() if retry_state.outcome else None
        if isinstance(error, TransientError) and error.retry_after is not None:
            return min(error.retry_after, LONGEST_WAIT_S)
        return self._otherwise(retry_state)


def retrying(first_wait_s: float = 0.5) -> AsyncRetrying:
    """Up to `ATTEMPTS` attempts or `TOTAL_S` seconds, on `TransientError` only; the last error is raised."""
    return AsyncRetrying(
        stop=stop_after_attempt(ATTEMPTS) | stop_after_delay(TOTAL_S),
        wait=_WaitAsAsked(wait_random_exponential(multiplier=first_wait_s, max=60)),
        retry=retry_if_exception_type(TransientError),
        reraise=True,
    )
