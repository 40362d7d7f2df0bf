"""When to stop asking a model at all."""

from __future__ import annotations

import time
from collections.abc import Callable

from uncanny.errors import ModelDownError, RequestRejectedError, TransientError

FAILURES = 10
UNREACHED_FAILURES = 5
UNREACHED_S = 5.0


class Breaker:
    """Counts failures in a row and gives up on a model that only fails.

    A model that has answered before is given `patience_s` seconds and at least `FAILURES` failures without
    one success between them. A server that was never reached is given `UNREACHED_S` seconds: most often it
    was not started. Requests rejected as wrong from the first on, `FAILURES` of them, mean that the whole
    run would fail the same way.
    """

    def __init__(self, model: str, patience_s: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._model, self._patience_s, self._clock = model, patience_s, clock
        self._failures = 0
        self._rejections = 0
        self._since: float | None = None
        self._answered = False

    def succeeded(self) -> None:
        self._failures, self._since, self._answered = 0, None, True

    def failed(self, error: TransientError | RequestRejectedError) -> None:
        """Count one failed attempt. Raises `ModelDownError` when it is time to give up."""
        if isinstance(error, RequestRejectedError):
            self._rejected(error)
            return
        now = self._clock()
        self._since = now if self._since is None else self._since
        self._failures += 1
        lasted = now - self._since
        if error.kind == "connection" and not self._answered:
            if self._failures >= UNREACHED_FAILURES and lasted >= UNREACHED_S:
                self.exhausted(error)
        elif self._failures >= FAILURES and lasted >= self._patience_s:
            raise ModelDownError(
                f"{self._model} failed {self._failures} times in a row over {lasted:.0f} s: {error.message}",
                remedy="Run the same command again when it is back; no answer is asked for twice.",
            ) from error

    def _rejected(self, error: RequestRejectedError) -> None:
        self._failures, self._since = 0, None  # whoever rejects is there
        self._rejections += 1
        if not self._answered and self._rejections >= FAILURES:
            raise ModelDownError(
                f"{self._model} rejected each of the first {self._rejections} requests: {error.message}",
                remedy="Check the parameters and whether the model takes images.",
            ) from error

    def exhausted(self, error: TransientError) -> None:
        """A question used up its retries. Raises `ModelDownError` if the server was never reached."""
        if error.kind == "connection" and not self._answered:
            raise ModelDownError(
                f"{self._model} cannot be reached: {error.message}",
                remedy="Check that the server is up and --base-url right, then run the command again.",
            ) from error
