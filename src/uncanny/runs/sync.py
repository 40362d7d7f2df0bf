"""Event loops and threads: asynchronous functions for callers that are not, and work off the caller's loop.

Nothing heavy is imported here: programs import it while their event loop is running.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Coroutine, Iterable
from concurrent.futures import Future, InvalidStateError, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from functools import partial, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from uncanny.errors import StoppedError, UsageError
from uncanny.parameters import check_call
from uncanny.runs.stop import Stop
from uncanny.wording import option, waiting_words

log = logging.getLogger("uncanny")

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")
# How often, a second apart, work that does not end is cancelled again.
CANCELLATIONS = 5
# Threads in which a `LoopThread` reads, decodes and encodes: one core is left to the callers.
HELPERS = max(1, min(4, (os.cpu_count() or 1) - 1))


async def in_thread(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """What `work`, which blocks, returns; it runs in a thread.

    A thread cannot be cancelled: who cancels this waits until `work` has ended, and `undo` takes back what it
    made. So nothing goes on behind the back of whoever comes next.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled = await until_done(thread)
    if cancelled is None:
        return thread.result()
    if not thread.cancelled() and thread.exception() is None:
        await asyncio.to_thread(undo, thread.result())
    raise cancelled


def look_at(future: asyncio.Future[Any]) -> None:
    """A callback for futures that may end when nobody waits any more: asyncio would complain of errors."""
    if not future.cancelled():
        future.exception()


async def until_done(future: asyncio.Future[Any]) -> asyncio.CancelledError | None:
    """Wait for a future, even when the waiting task is cancelled; returns the cancellation, to be raised."""
    cancelled: asyncio.CancelledError | None = None
    while not future.done():
        try:
            await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
    return cancelled


class _ToldStop(Stop):
    """Of calls whose progress is shown: whoever interrupts one is told what it waits for."""

    def waiting(self, calls: int) -> None:
        # A standard error that takes nothing any more changes nothing else.
        with contextlib.suppress(OSError, ValueError):
            print(waiting_words(calls), file=sys.stderr, flush=True)


def blocking(function: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]:
    """The plain twin of an asynchronous function of options with a `stop`: the same, and it waits for the
    end."""

    name = function.__name__.removesuffix("_async")

    @wraps(function)
    def twin(*args: P.args, **kwargs: P.kwargs) -> T:
        check_call(function, args, kwargs, name)
        stop = kwargs.get("stop") or (_ToldStop() if kwargs.get("progress") else Stop())
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


async def cancel_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel all and wait for them; not for ever, as what they call may swallow that again and again."""
    left: set[asyncio.Task[Any]] = set(tasks)
    for _ in range(CANCELLATIONS):
        if not left:
            return
        for task in left:
            task.cancel()
        done, left = await asyncio.wait(left, timeout=1.0)
        for task in done:
            if not task.cancelled():
                task.exception()  # told already, or of no use any more
    if left:
        log.error("%d tasks do not end when they are cancelled; they are left alone", len(left))


class LoopThread(Generic[T]):
    """A thread with an event loop, which works for callers in any thread and any event loop.

    `serve` is entered in that loop when the thread starts, and left when it ends. `opened` is done when it
    has been entered, `ended` when it has been left; both have its errors. What it yields is handed to all
    work that is submitted. Context variables of whoever submits work are those of the work. `closed` is what
    a StoppedError says of work that was closed upon.
    """

    def __init__(self, serve: Callable[[], AbstractAsyncContextManager[T]], *, closed: str) -> None:
        self.opened: Future[T] = Future()
        self.ended: Future[None] = Future()
        self._serve, self._closed_words = serve, closed
        self._lock = threading.Lock()
        self._closed = self._ending = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main_task: asyncio.Task[Any] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._futures: set[Future[Any]] = set()
        self._process = os.getpid()
        # A daemon, so that a program that forgets to close it can end.
        self._thread = threading.Thread(target=self._run, name="uncanny", daemon=True)

    def start(self) -> None:
        """Start the thread. To be called once."""
        self._thread.start()

    @property
    def was_forked(self) -> bool:
        """Whether this process is a copy of the one that made this: threads are not copied."""
        return self._process != os.getpid()

    def submit(self, work: Callable[[T], Coroutine[Any, Any, R]]) -> Future[R] | None:
        """Begin `work`; cancelling the future cancels it. None where this is not open (any more)."""
        if self.was_forked:
            return None
        with self._lock:
            if self._closed or not self.opened.done() or self._loop is None:
                return None
            future = asyncio.run_coroutine_threadsafe(self._do(work), self._loop)
            self._futures.add(future)
            future.add_done_callback(self._futures.discard)
            return future

    def close(self) -> Future[None]:
        """Take no more work, cancel what is in flight, which ends in StoppedError, and end the thread.

        Returns `ended`; may be called again, and before `opened` is done.
        """
        if self.was_forked:
            nothing: Future[None] = Future()
            nothing.set_result(None)
            return nothing
        with self._lock:
            self._closed = True
            if self._loop is not None:
                with contextlib.suppress(RuntimeError):  # its loop has ended by itself
                    self._loop.call_soon_threadsafe(self._end)
        return self.ended

    def _end(self) -> None:
        self._closing.set()
        if not self.opened.done() and self._main_task is not None:
            self._main_task.cancel()

    def _run(self) -> None:
        error: Exception | None = None
        try:
            with asyncio.Runner() as runner:
                try:
                    runner.run(self._main())
                finally:
                    # The runner cancels what is left when it is closed.
                    self._ending = True
        except asyncio.CancelledError:
            pass  # closed while it was being opened
        except Exception as raised:
            error = raised
        except BaseException as raised:  # as SystemExit in a node, which ends the loop and not the program
            error = RuntimeError(f"{type(raised).__name__} was raised in the thread of a session")
            error.__cause__ = raised
        with self._lock:
            self._closed = True
        for future in list(self._futures):  # none, unless the loop broke down
            with contextlib.suppress(InvalidStateError):
                future.set_exception(StoppedError(self._closed_words))
        if not self.opened.done():
            self.opened.set_exception(error or StoppedError(self._closed_words))
            self.ended.set_result(None)
        elif error is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)

    async def _main(self) -> None:
        self._closing = asyncio.Event()
        loop = asyncio.get_running_loop()
        # Each more would take the interpreter's lock from the callers' loops, and gain nothing.
        loop.set_default_executor(ThreadPoolExecutor(HELPERS, thread_name_prefix="uncanny"))
        with self._lock:
            self._loop, self._main_task = loop, asyncio.current_task()
            if self._closed:
                return
        async with self._serve() as value:
            self.opened.set_result(value)
            await self._closing.wait()
            await asyncio.sleep(0)  # what was submitted before has begun then, and is told
            await cancel_all(self._tasks)

    async def _do(self, work: Callable[[T], Coroutine[Any, Any, R]]) -> R:
        task = asyncio.current_task()
        assert task is not None
        if self._closing.is_set():
            raise StoppedError(self._closed_words)
        self._tasks.add(task)
        task.add_done_callback(look_at)
        try:
            return await work(self.opened.result())
        except asyncio.CancelledError:
            if self._closing.is_set() or self._ending:
                raise StoppedError(self._closed_words) from None
            raise
        finally:
            self._tasks.discard(task)


def wait_for(future: Future[T]) -> T:
    """The result of work in another thread; Ctrl-C cancels it."""
    try:
        return future.result()
    except KeyboardInterrupt:
        future.cancel()
        raise


def check_done(done: Iterable[asyncio.Task[None]], _pending: object) -> None:
    """Raises what one of the tasks raised. One that was cancelled is passed over."""
    for task in done:
        if not task.cancelled() and (defect := task.exception()) is not None:
            raise defect
