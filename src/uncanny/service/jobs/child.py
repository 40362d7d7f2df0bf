"""`python -m uncanny.service.jobs.child`: a command with parameters from a line of JSON on standard input.

The worker holds the other end of standard input and writes nothing more to it: when the worker dies, however
it does, the pipe ends and so does the command. It is killed and not asked to stop, as another worker is about
to take the job over; nothing is lost by that but calls in flight.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from importlib import import_module
from typing import Final, NoReturn

import orjson

ORPHANED: Final = 137
# An argument: the pipe ends at once, and nobody takes over.
FORECAST: Final = "forecast"


def main() -> NoReturn:
    """Read what to do, watch standard input, and do it."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    with os.fdopen(pipe, "rb", buffering=0, closefd=False) as lines:
        given = b""
        while not given.endswith(b"\n"):
            part = lines.read(65_536)
            if not part:
                os._exit(ORPHANED)
            given += part
    order = orjson.loads(given)
    if FORECAST not in sys.argv:
        # A reader of `sys.stdin` would hold its lock when Python ends.
        threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    # Where a shell starts the service in the background it ignores interrupts, and so would this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # The command line is above the service; a job is one of its commands.
    import_module("uncanny.cli").main(order["command"], order["values"])
    raise AssertionError("the command line ends the process")


def _end_with(pipe: int) -> None:
    os.read(pipe, 1)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(ORPHANED)


if __name__ == "__main__":
    main()
