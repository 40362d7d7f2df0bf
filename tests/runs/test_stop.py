"""How a run is stopped: why, and whether at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from uncanny.errors import BudgetError, ModelUnusableError
from uncanny.runs.stop import Stop


def test_nothing_has_stopped_it_at_first() -> None:
    stop = Stop()
    assert (stop.reason, stop.error, stop.now, stop.changed.is_set()) == (None, None, False, False)


def test_the_first_interrupt_is_gentle_and_the_second_is_not() -> None:
    stop = Stop()
    stop.interrupt()
    assert (stop.reason, stop.now, stop.changed.is_set()) == ("interrupt", False, True)
    stop.interrupt()
    assert stop.now
    stop.interrupt()
    assert stop.now


@pytest.mark.parametrize(
    ("error", "reason"), [(BudgetError("spent"), "budget"), (ModelUnusableError("wrong key"), "model")]
)
def test_the_first_reason_stands(error: BudgetError | ModelUnusableError, reason: str) -> None:
    stop = Stop()
    stop.because(error)
    stop.because(ModelUnusableError("another"))
    assert (stop.reason, stop.error, stop.now) == (reason, error, False)
    interrupted = Stop()
    interrupted.interrupt()
    interrupted.because(error)
    assert (interrupted.reason, interrupted.error) == ("interrupt", None)


def test_an_interrupt_ends_the_wait_of_a_run_that_stops_for_another_reason() -> None:
    stop = Stop()
    stop.because(BudgetError("spent"))
    stop.interrupt()
    assert (stop.reason, stop.now) == ("budget", True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_signals_stop_it_while_it_listens(number: signal.Signals) -> None:
    stop = Stop()
    before = signal.getsignal(number)
    with stop.on_signals():
        os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.changed.wait(), 30)
    assert stop.reason == "interrupt"
    assert signal.getsignal(number) in (before, signal.SIG_DFL, signal.default_int_handler)


def test_away_from_the_main_thread_signals_are_left_alone() -> None:
    async def main() -> None:
        with Stop().on_signals():
            pass

    before = signal.getsignal(signal.SIGINT)
    asyncio.run(asyncio.wait_for(asyncio.to_thread(asyncio.run, main()), 30))
    assert signal.getsignal(signal.SIGINT) is before
