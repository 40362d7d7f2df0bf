"""Asynchronous functions for those who do not write any: in a script, and in a notebook, whose loop is
running."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from uncanny.errors import StoppedError, UsageError
from uncanny.runs.stop import Stop
from uncanny.wording import option

P = ParamSpec("P")
T = TypeVar("T")


async def in_thread(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """What `work`, which blocks, returns; it runs in a thread.

    A thread cannot be cancelled: who cancels this waits until `work` has ended, and `undo` takes back what it
    made. So nothing goes on behind the back of whoever comes next.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.wait([thread])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return thread.result()
    if not thread.cancelled() and thread.exception() is None:
        await asyncio.to_thread(undo, thread.result())
    raise cancelled


def blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The plain twin of an asynchronous function of options with a `stop`: the same, and it waits for the
    end."""

    signature, name = inspect.signature(function), function.__name__.removesuffix("_async")

    @wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            signature.bind(*args, **kwargs)
        except TypeError as error:
            raise UsageError(f"{name}(): {error}", remedy=f"Write {_call(name, signature)}.") from None
        stop = kwargs.get("stop") or Stop()
        if not isinstance(stop, Stop):
            raise UsageError(f"{option('stop')} must be an uncanny.Stop, not {stop!r}")
        kwargs["stop"] = stop
        try:
            return run_sync(partial(function, *args, **kwargs), stop)
        except UsageError as error:
            # Where the thread that it comes from has been says nothing of the call that is wrong.
            raise error.with_traceback(None)  # noqa: B904  it is the same error, with its cause

    twin.__name__ = name
    twin.__qualname__ = function.__qualname__.removesuffix("_async")
    return twin


def _call(name: str, signature: inspect.Signature) -> str:
    """How a function is called with what it cannot do without."""
    parameters = [each for each in signature.parameters.values() if each.default is each.empty]
    positional = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    by_name = [f"{each.name}=…" for each in parameters if each.kind is each.KEYWORD_ONLY]
    return f"{name}({', '.join([*positional, *by_name])})"


def run_sync(start: Callable[[], Coroutine[Any, Any, T]], stop: Stop | None = None) -> T:
    """Run what `start` returns to its end, in a thread with an event loop of its own.

    So it works whether or not a loop is running here, and leaves the caller's signal handlers alone. Ctrl-C
    asks `stop` to end the run, which then writes down how far it came, and again not to wait for calls in
    flight; KeyboardInterrupt is raised when it is over. Without a `stop` Ctrl-C cancels it."""
    outcome: Future[T] = Future()
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def watched() -> T:
        task = asyncio.current_task()
        assert task is not None
        running.append((asyncio.get_running_loop(), task))
        return await start()

    def work() -> None:
        try:
            outcome.set_result(asyncio.run(watched()))
        except BaseException as error:
            outcome.set_exception(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(work,), name="uncanny", daemon=True)
    thread.start()
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            result = outcome.result()
            thread.join()
            break
        except KeyboardInterrupt as error:
            if outcome.done() and outcome.exception() is error:
                raise
            interrupt = error
            if stop is not None:
                stop.request()
            elif running:
                loop, task = running[0]
                loop.call_soon_threadsafe(task.cancel)
        except (asyncio.CancelledError, StoppedError):
            if interrupt is None:
                raise
            break
        except Exception as error:
            if interrupt is None:
                raise
            raise interrupt from error
    if interrupt is not None:
        raise interrupt
    return result
