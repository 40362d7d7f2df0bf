"""An event loop in which waiting takes no time: when nothing is ready its clock jumps to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
# Far longer than anything waits on purpose: who is not done by then waits for ever.
FOR_EVER_S = 1e6


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` starts at 0. Other threads still wake it; timers do not wait for them."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._now

    def jump(self, seconds: float) -> None:
        self._now += seconds


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            self._loop.jump(timeout)
            timeout = 0
        return super().select(timeout)


def in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` to its end. Raises TimeoutError for one that waits for ever."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(asyncio.wait_for(main, FOR_EVER_S))


def virtual_time(test: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The same test in virtual time, fixtures and parameters as they are."""

    @wraps(test)
    def in_no_time(*args: P.args, **kwargs: P.kwargs) -> T:
        return in_virtual_time(test(*args, **kwargs))

    return in_no_time
