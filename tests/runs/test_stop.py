"""How a run is stopped: why, and whether at once."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys

import pytest

from uncanny.cli.common.session import TerminalStop
from uncanny.errors import BudgetError, ModelUnusableError
from uncanny.runs.stop import Ending, Stop


def test_nothing_has_stopped_it_at_first() -> None:
    ending = Ending()
    assert (ending.reason, ending.error, ending.now, ending.changed.is_set()) == (None, None, False, False)


def test_the_first_interrupt_is_gentle_and_the_second_is_not() -> None:
    ending = Ending()
    ending.interrupt()
    assert (ending.reason, ending.now, ending.changed.is_set()) == ("interrupt", False, True)
    ending.interrupt()
    assert ending.now
    ending.interrupt()
    assert ending.now


@pytest.mark.parametrize(
    ("error", "reason"), [(BudgetError("spent"), "budget"), (ModelUnusableError("wrong key"), "model")]
)
def test_the_first_reason_stands(error: BudgetError | ModelUnusableError, reason: str) -> None:
    ending = Ending()
    ending.because(error)
    ending.because(ModelUnusableError("another"))
    assert (ending.reason, ending.error, ending.now) == (reason, error, False)
    interrupted = Ending()
    interrupted.interrupt()
    interrupted.because(error)
    assert (interrupted.reason, interrupted.error) == ("interrupt", None)


def test_of_a_run_that_stops_for_another_reason_the_second_interrupt_ends_the_wait() -> None:
    ending = Ending()
    ending.because(BudgetError("spent"))
    ending.interrupt()
    assert (ending.reason, ending.now) == ("budget", False)
    ending.interrupt()
    assert (ending.reason, ending.now) == ("budget", True)


async def test_requests_reach_all_who_listen_and_those_made_before_at_once() -> None:
    stop = Stop()
    stop.request()
    first, second = Ending(), Ending()
    with stop.listening(first.interrupt):
        assert (first.reason, first.now, stop.requested) == ("interrupt", False, True)
        with stop.listening(second.interrupt):
            await asyncio.to_thread(stop.request)
            await asyncio.sleep(0)
            await asyncio.wait_for(second.changed.wait(), 30)
    assert (first.now, second.now) == (True, True)


def test_a_request_after_the_loop_has_ended_is_for_the_next_one() -> None:
    stop = Stop()

    async def main() -> Ending:
        ending = Ending()
        with stop.listening(ending.interrupt):
            return ending

    assert asyncio.run(main()).reason is None
    stop.request()
    assert asyncio.run(main()).reason == "interrupt"


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_at_a_terminal_signals_stop_it_while_it_works(number: signal.Signals) -> None:
    stop, ending = TerminalStop(), Ending()
    before = signal.getsignal(number)
    with stop.listening(ending.interrupt), stop.while_working():
        os.kill(os.getpid(), number)
        await asyncio.wait_for(ending.changed.wait(), 30)
    assert ending.reason == "interrupt"
    assert signal.getsignal(number) in (before, signal.SIG_DFL, signal.default_int_handler)


async def test_by_itself_a_stop_touches_neither_signals_nor_the_collector() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], gc.get_threshold()
    with Stop().while_working():
        after = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)], gc.get_threshold()
    assert before == after


def test_away_from_the_main_thread_signals_are_left_alone() -> None:
    async def main() -> None:
        with TerminalStop().while_working():
            pass

    before = signal.getsignal(signal.SIGINT)
    asyncio.run(asyncio.wait_for(asyncio.to_thread(asyncio.run, main()), 30))
    assert signal.getsignal(signal.SIGINT) is before
