"""The command at a terminal: a real pseudo-terminal of a width, on which keys are pressed and lines seen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from tests.runs.e2e import NO_CHANGE, environment

# Colors, cursor movements and erased lines; what a line drawn again begins with.
_CONTROLS: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_DRAWN_AGAIN: Final = re.compile(r"[\r\n]+")
ROWS: Final = 30


class Terminal:
    """A process whose standard streams are all one terminal, which is what Ctrl-C is pressed on."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self._seen: list[tuple[float, bytes]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # all who had it open have ended
                return
            if not data:
                return
            self._seen.append((time.monotonic(), data))

    def mark(self) -> int:
        """A place in what is seen, for `text` and `wait_for`."""
        return len(self._seen)

    def text(self, mark: int = 0) -> str:
        """What was written since, as characters alone: each line once for every time it was drawn."""
        raw = b"".join(data for _, data in self._seen[mark:]).decode(errors="replace")
        return _CONTROLS.sub("", raw)

    def lines(self, mark: int = 0) -> list[str]:
        """The same as lines without blanks at their ends; empty ones are left out."""
        return [line.rstrip() for line in _DRAWN_AGAIN.split(self.text(mark)) if line.strip()]

    def press_ctrl_c(self) -> None:
        os.write(self._master, b"\x03")

    def resize(self, columns: int) -> None:
        """Make the window wider or narrower while the command runs."""
        set_size(self._master, columns)
        self.process.send_signal(signal.SIGWINCH)

    def wait_for(self, found: Callable[[str], object], mark: int = 0, timeout_s: float = 60.0) -> float:
        """Until `found` is true of the text since `mark`; returns how long it took."""
        began = time.monotonic()
        while not found(self.text(mark)):
            assert time.monotonic() - began < timeout_s, self.text(mark)[-2000:]
            assert self.process.poll() is None or found(self.text(mark)), self.text()[-2000:]
            time.sleep(0.005)
        return time.monotonic() - began

    def end(self, timeout_s: float = 60.0) -> int:
        """The exit code, when it has ended and all it said is read."""
        code = self.process.wait(timeout_s)
        self._reader.join(5)
        return code


def set_size(terminal: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))


@contextmanager
def at_terminal(
    *arguments: object, columns: int = 100, env: Mapping[str, str | None] = NO_CHANGE
) -> Iterator[Terminal]:
    """`uncanny …` at a terminal of so many columns; killed where it has not ended by then."""
    with python_at_terminal("-m", "uncanny", *arguments, columns=columns, env=env) as terminal:
        yield terminal


@contextmanager
def python_at_terminal(
    *arguments: object, columns: int = 100, env: Mapping[str, str | None] = NO_CHANGE
) -> Iterator[Terminal]:
    """Python with these arguments at a terminal."""
    master, slave = pty.openpty()
    set_size(slave, columns)
    plain = {"TERM": "xterm-256color", "COLUMNS": None, "LINES": None, "NO_COLOR": None, "CI": None}
    process = subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        env=environment({**plain, **env}),
    )
    os.close(slave)
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        terminal._reader.join(5)
        os.close(master)
