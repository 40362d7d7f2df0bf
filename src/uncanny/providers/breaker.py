"""When to stop asking a model at all."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

from uncanny.errors import ModelDownError, RequestRejectedError, TransientError

FAILURES = 10
UNREACHED_FAILURES = 5
UNREACHED_S = 5.0
LONGEST_ALONE_S = 600.0


class Breaker:
    """Counts failures in a row and gives up on a model that only fails.

    A model is given `patience_s` seconds and at least `FAILURES` failures without one good answer between
    them. A server that was never reached is given `UNREACHED_S` seconds: most often it was not started.
    Requests rejected as wrong from the first on, `FAILURES` of them, mean that the whole run would fail the
    same way. Failures about one image only, by a server that can be reached, are that image's, not the
    model's: its questions end when patience does, and the model goes on.

    `answers` counts what came back, rejections too: whoever rejects is there. `clock` is the event loop's.
    """

    def __init__(self, model: str, patience_s: float, *, clock: Callable[[], float] | None = None) -> None:
        self._model, self._patience_s = model, patience_s
        self.clock = clock or (lambda: asyncio.get_running_loop().time())
        self.answers = 0
        self._answered = False
        self._rejections = 0
        self._failures = 0
        self._since = 0.0
        self._images: set[str] = set()

    def succeeded(self) -> None:
        self._answered = True
        self._is_there()

    def failed(self, error: TransientError | RequestRejectedError, image: str) -> None:
        """Count one failed attempt at a question about `image`.

        Raises `ModelDownError` when it is time to give up.
        """
        if isinstance(error, RequestRejectedError):
            self._rejected(error)
            return
        # Patience with the model begins when a second image fails: until then it may be the image.
        if not self._failures or (image not in self._images and len(self._images) == 1):
            self._failures, self._since = 0, self.clock()
        self._images.add(image)
        self._failures += 1
        unreached = error.kind == "connection"
        if unreached and not self._answered:
            if self._failures >= UNREACHED_FAILURES and self._lasted() >= UNREACHED_S:
                self._give_up_unreached(error)
        elif (
            (unreached or len(self._images) > 1)
            and self._failures >= FAILURES
            and self._lasted() >= self._patience_s
        ):
            self._give_up(error)

    def out_of_patience_with(self, image: str) -> bool:
        """Whether patience is over and every failure of that time was about `image`: its questions end."""
        if self._images != {image} or self._lasted() < self._patience_s:
            return False
        return self._failures >= FAILURES or self._lasted() >= LONGEST_ALONE_S

    def _lasted(self) -> float:
        return self.clock() - self._since

    def _is_there(self) -> None:
        self.answers += 1
        self._failures = 0
        self._images.clear()

    def _rejected(self, error: RequestRejectedError) -> None:
        self._is_there()
        self._rejections += 1
        if not self._answered and self._rejections >= FAILURES:
            raise ModelDownError(
                f"{self._model} rejected each of the first {self._rejections} requests: {error.message}",
                remedy="Check the parameters and whether the model takes images.",
            ) from error

    def _give_up_unreached(self, error: TransientError) -> NoReturn:
        raise ModelDownError(
            f"{self._model} cannot be reached: {error.message}",
            remedy="Check that the server is up and --base-url right, then run the command again.",
        ) from error

    def _give_up(self, error: TransientError) -> NoReturn:
        how = f"{self._failures} times in a row over {self._lasted():.0f} s"
        raise ModelDownError(
            f"{self._model} failed {how}: {error.message}",
            remedy="Run the same command again when it is back; no answer is asked for twice.",
        ) from error
