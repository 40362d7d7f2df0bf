"""A thread with an event loop: what callers of other threads get, however it ends."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from uncanny.errors import StoppedError
from uncanny.runs.sync import LoopThread

Serve = Callable[[], AbstractAsyncContextManager[str]]


@asynccontextmanager
async def served() -> AsyncIterator[str]:
    yield "value"


async def endless(_value: str) -> None:
    await asyncio.Event().wait()


async def named(value: str) -> tuple[str, str]:
    return value, threading.current_thread().name


def opened(serve: Serve = served) -> LoopThread[str]:
    thread = LoopThread(serve, closed="It was closed")
    thread.start()
    thread.opened.result(30)
    return thread


def test_work_is_done_in_the_thread_with_what_it_serves() -> None:
    thread = opened()
    future = thread.submit(named)
    assert future is not None
    assert future.result(30) == ("value", "uncanny")
    thread.close().result(30)
    assert thread.submit(named) is None
    assert thread.close().done()


def test_closing_ends_work_in_flight() -> None:
    thread = opened()
    futures = [thread.submit(endless) for _ in range(3)]
    thread.close().result(30)
    for future in futures:
        assert future is not None
        with pytest.raises(StoppedError, match="It was closed"):
            future.result(30)


def test_cancelling_a_future_cancels_its_work_alone() -> None:
    ended = threading.Event()

    async def told(_value: str) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    thread = opened()
    doomed, other = thread.submit(told), thread.submit(named)
    assert doomed is not None
    assert other is not None
    other.result(30)
    doomed.cancel()
    assert ended.wait(30)
    assert (again := thread.submit(named)) is not None
    assert again.result(30)[0] == "value"
    thread.close().result(30)


def test_an_error_on_opening_is_told_and_one_on_closing_is_too() -> None:
    @asynccontextmanager
    async def unopened() -> AsyncIterator[str]:
        raise ValueError("not today")
        yield ""

    @asynccontextmanager
    async def unclosed() -> AsyncIterator[str]:
        yield ""
        raise ValueError("stuck")

    with pytest.raises(ValueError, match="not today"):
        opened(unopened)
    thread = opened(unclosed)
    with pytest.raises(ValueError, match="stuck"):
        thread.close().result(30)


def test_closing_before_it_is_open_ends_it() -> None:
    @asynccontextmanager
    async def slow() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    for wait in (False, True):
        thread = LoopThread(slow, closed="It was closed")
        thread.start()
        if wait:
            assert thread.submit(named) is None
        thread.close().result(30)
        with pytest.raises(StoppedError, match="It was closed"):
            thread.opened.result(30)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_work_that_exits_ends_the_thread_and_nobody_waits_for_ever() -> None:
    async def leave(_value: str) -> None:
        raise SystemExit(3)

    thread = opened()
    waiting, leaving = thread.submit(endless), thread.submit(leave)
    assert waiting is not None
    assert leaving is not None
    with pytest.raises(StoppedError, match="It was closed"):
        waiting.result(30)
    with pytest.raises((StoppedError, SystemExit)):
        leaving.result(30)
    with pytest.raises(RuntimeError, match="SystemExit was raised"):
        thread.ended.result(30)
    assert thread.submit(named) is None
