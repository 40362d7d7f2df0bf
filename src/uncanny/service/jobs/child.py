"""`python -m uncanny.service.jobs.child ARGUMENTS…`: `uncanny ARGUMENTS…`, which ends with its worker.

The worker holds the other end of standard input and never writes to it: when the worker dies, however it
does, the pipe ends and so does the command. It is killed and not asked to stop, as another worker is about
to take the job over; nothing is lost by that but calls in flight.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
import threading
from typing import Final, NoReturn

from uncanny.wording import in_service

ORPHANED: Final = 137


def main() -> NoReturn:
    """Watch standard input, then run the command line."""
    pipe = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # A reader of `sys.stdin` would hold its lock when Python ends.
    threading.Thread(target=_end_with, args=(pipe,), daemon=True).start()
    # Where a shell starts the service in the background it ignores interrupts, and so would this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    command()


def command() -> NoReturn:
    """The command line, in words for the pages of the service."""
    in_service()
    runpy.run_module("uncanny", run_name="__main__")
    sys.exit(0)


def _end_with(pipe: int) -> None:
    os.read(pipe, 1)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(ORPHANED)


if __name__ == "__main__":
    main()
