"""Run one command and see to its end: `python vllm_watch.py COMMAND ARGUMENT…`.

The command runs in a process group of its own, and this process outlives it. The group is ended when the
command exits, on SIGTERM, and when standard input reaches its end: a run has the other end of that pipe
and the kernel closes it however the run ends, SIGKILL included. The command's output goes to standard
error; its process id is the one line written to standard output.

A file of its own, without imports of the package: it must start in no time and stay small beside the server.
Also here, since it needs nothing either: which lines of a failed server's log name the cause.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

GRACE_S = 15.0
"""How long a server may take to end by itself after SIGTERM."""
LEFT_OVER_S = 3.0
"""How long each may take that comes after: SIGTERM to its left-over children, and SIGKILL."""

_POLL_S = 0.1
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def _ask_kernel(request: int, value: int) -> None:
    """`prctl`, where there is one: Linux alone has it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(request, value, 0, 0, 0)


def end_with_parent() -> None:
    """Get SIGTERM when the watcher dies, which it does only when somebody kills it.

    vLLM's main process then ends its children in good order.
    """
    _ask_kernel(_PR_SET_PDEATHSIG, signal.SIGTERM)


def adopt_orphans() -> None:
    """Become the parent of the group's orphans, where Linux allows it, so that they can be reaped here.

    Without this, members that have ended stay in the group as zombies for as long as process 1 does not reap
    them, which it never does in many containers.
    """
    _ask_kernel(_PR_SET_CHILD_SUBREAPER, 1)


def group_lives(group: int) -> bool:
    """Whether any process of the group is left, once those that have ended are reaped."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG)[0]:
            pass
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):  # macOS answers the latter when only zombies are left
        return False
    return True


def wait_until_gone(group: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while group_lives(group):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def end_group(server: subprocess.Popen[bytes]) -> None:
    """Ask the server to end, which ends its children in good order; then ask whoever is left; then kill."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.terminate()
        server.wait(GRACE_S)
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not group_lives(server.pid):
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, number)
        wait_until_gone(server.pid, LEFT_OVER_S)


def end_adopted() -> None:
    """Kill what has left the group, with a session of its own say: it came to us when its parent ended."""
    deadline = time.monotonic() + LEFT_OVER_S
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:  # noqa: PTH123  pathlib is large
                children = [int(each) for each in file.read().split()]
        except OSError:  # not on Linux
            return
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(child, os.WNOHANG)
        time.sleep(_POLL_S)


def input_ended() -> bool:
    """Wait a moment for the end of standard input."""
    readable, _, _ = select.select([0], [], [], _POLL_S)
    return bool(readable) and os.read(0, 4096) == b""


def watch(command: list[str]) -> int:
    """Run `command` until it exits or nobody wants it any more; its exit code, or 0 if ended here."""
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            process_group=0,
            preexec_fn=end_with_parent,  # safe: there are no threads here
        )
    except OSError as error:
        print(f"{command[0]!r} cannot be started: {error.strerror}", file=sys.stderr, flush=True)
        return 127
    try:
        os.write(1, b"%d\n" % server.pid)
        while server.poll() is None:
            if input_ended():
                return 0
        return server.returncode if server.returncode >= 0 else 128 - server.returncode
    except BrokenPipeError:
        return 0
    finally:
        end_group(server)
        end_adopted()


def _leave(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(0)


if __name__ == "__main__":
    adopt_orphans()
    signal.signal(signal.SIGTERM, _leave)
    raise SystemExit(watch(sys.argv[1:]))


_NOISE = re.compile(
    r"""^(?:\([^()]*\)\ )?                                   # which process: (APIServer pid=7)
    (?:(?:INFO|WARNING)\ |(?:ERROR\ \S+\ \S+\ \[[^][]*\]\ )?  # its logger: ERROR 01-31 12:00:00 [core.py:12]
    (?:\ {4,}|\ \ File\ "|\ \ warnings\.|[\ ^~]*$|Traceback\ |\S+Warning:\ |\S+\ \S*Warning:\ ))""",
    re.VERBOSE,
)
_NAMES_ERROR = re.compile(r"\w(?:Error|Exception): ")
_ERRORS, _LAST, _WIDTH = 2, 2, 400


def cause_lines(log: Sequence[str]) -> list[str]:
    """The few lines of a failed start that name the cause: the last errors in it, and how it ends.

    The very last lines alone do not do: vLLM's main process only says that its engine failed.
    """
    messages = [line.strip() for line in log if line.strip() and not _NOISE.match(line)]
    errors = [line for line in messages if _NAMES_ERROR.search(line)]
    shown = {*errors[-_ERRORS:], *messages[-_LAST:]}
    return [line[:_WIDTH] for line in dict.fromkeys(messages) if line in shown]
