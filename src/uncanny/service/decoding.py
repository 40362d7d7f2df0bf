"""Pictures for pages, decoded in a few processes of their own that are killed when one takes too long.

A file can pass every check and still keep a decoder busy. Such a file keeps one of `PROCESSES` busy for
`SECONDS`, and no thread that serves requests. These are seconds of the processor, so that a busy machine
shows the same pictures as an idle one; by the clock it may take `WAIT_S`. Equal requests are merged.
The processes have no keys of providers in their environment. They start when they are needed and end when
they are not.
"""

from __future__ import annotations

import atexit
import errno
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, Literal, NamedTuple

from uncanny.beneath import common_folders
from uncanny.errors import ImageError
from uncanny.images.prepared import Measured
from uncanny.settings import settings

PROCESSES: Final = 2
SECONDS: Final = 10.0
WAIT_S: Final = 60.0
_IDLE_S: Final = 60.0
_GRACE_S: Final = 5.0
# By the signals that the child has set itself.
_OUT_OF_TIME: Final = (-signal.SIGPROF, -signal.SIGALRM)
_KEPT_VARIABLES: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TMPDIR")

Make = Literal["thumbnail", "preview", "copy", "size"]


class Asked(NamedTuple):
    """What is to be made of a file.

    `thumbnail`, `preview` and `copy` are pictures for a list, a screen, and a browser that does not know the
    format; `size` is what a picture measures once it is decoded whole. The file must have the digest
    `sha256`, unless that is None, and lie `within` one of these real folders, unless that is None.
    """

    make: Make
    path: str
    sha256: str | None = None
    within: tuple[str, ...] | None = None


class Made(NamedTuple):
    """What came of it: `head` has `media_type` of the `data`, or `width`, `height` and `sha256`, or `error`.

    None of these stands in `head` where there is nothing to show.
    """

    head: Mapping[str, Any]
    data: bytes


class Decoders:
    """Up to `processes` processes. Safe from threads; the threads it starts end with this process.

    `seconds` of the processor is what one picture may take, `wait_s` seconds by the clock.
    """

    def __init__(
        self, *, seconds: float = SECONDS, wait_s: float = WAIT_S, processes: int = PROCESSES
    ) -> None:
        self.seconds, self.wait_s, self._processes = seconds, wait_s, processes
        self._lock = threading.Lock()
        self._queue: SimpleQueue[Asked] = SimpleQueue()
        self._waiting: dict[Asked, Future[Made]] = {}
        self._children: list[_Child] = []
        self._threads = 0
        atexit.register(self._kill)

    def ask(self, asked: Asked) -> Future[Made]:
        """The answer, to be waited for; for an equal request that is not answered yet, the same one.

        It raises ImageError where decoding took too long or killed the process, OSError where none could be
        started.
        """
        with self._lock:
            future = self._waiting.get(asked)
            if future is None:
                future = self._waiting[asked] = Future()
                if self._threads < min(self._processes, len(self._waiting)):
                    self._start_thread()
                if self._threads:
                    self._queue.put(asked)
                else:
                    del self._waiting[asked]
                    future.set_exception(OSError(errno.EAGAIN, "no thread could be started to decode it"))
        return future

    def _start_thread(self) -> None:
        # The system may take no more threads; those that run answer then, and without any this is said.
        with suppress(RuntimeError):
            threading.Thread(target=self._work, name="decoder", daemon=True).start()
            self._threads += 1

    def _work(self) -> None:
        child: _Child | None = None
        while True:
            try:
                asked = self._queue.get(timeout=_IDLE_S)
            except Empty:
                if child is not None:
                    self._end(child)
                    child = None
                continue
            made: Made | Exception
            try:
                if child is not None and child.ended:  # while idle, as where memory is short: nobody's fault
                    self._end(child)
                    child = None
                if child is None:
                    child = _Child()
                    with self._lock:
                        self._children.append(child)
                made = child.make(asked, self.seconds, self.wait_s)
            except Exception as error:  # nobody else would answer those who wait
                made = error
                if child is not None:
                    self._end(child)
                    child = None
            with self._lock:
                future = self._waiting.pop(asked)
            if isinstance(made, Exception):
                future.set_exception(made)
            else:
                future.set_result(made)

    def _end(self, child: _Child) -> None:
        child.kill()
        with self._lock:
            self._children.remove(child)

    def _kill(self) -> None:
        with self._lock:
            children = list(self._children)
        for child in children:
            child.kill()


class _Child:
    """One process, for one request at a time."""

    def __init__(self) -> None:
        """Raises OSError where no process can be started."""
        environment = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "uncanny.service.decoding_child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Decoders write there what is wrong with a file, in its own words.
            stderr=subprocess.DEVNULL,
            env=environment,
        )

    @property
    def ended(self) -> bool:
        return self._process.poll() is not None

    def make(self, asked: Asked, seconds: float, wait_s: float) -> Made:
        """Raises ImageError where it takes too long, or the process dies of it."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(wait_s, give_up)
        timer.daemon = True
        timer.start()
        try:
            return self._exchange(asked, seconds, wait_s)
        except (OSError, EOFError, ValueError) as error:
            # Its pipe ends a moment before it does.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
            if late.is_set() or self._process.returncode in _OUT_OF_TIME:
                message = "decoding it takes too long"
            else:
                message = "the process that decoded it ended"
            raise ImageError(message, kind="bomb", remedy="Save it anew with another program.") from error
        finally:
            timer.cancel()

    def kill(self) -> None:
        with suppress(OSError):
            self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._process.wait()

    def _exchange(self, asked: Asked, seconds: float, wait_s: float) -> Made:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        # Where this process is killed, the child ends by itself soon after.
        self._process.stdin.write(json.dumps([*asked, seconds, wait_s + 1]).encode() + b"\n")
        self._process.stdin.flush()
        head = json.loads(self._process.stdout.readline() or "null")
        if not isinstance(head, dict):
            raise EOFError
        data = self._process.stdout.read(head["bytes"])
        if len(data) != head["bytes"]:
            raise EOFError
        return Made(head, data)


DECODERS: Final = Decoders()


def measure(path: Path, within: Sequence[Path] | None = None) -> Measured:
    """Decode a picture to know its size. Blocking, for at most `WAIT_S` once it is its turn.

    Raises ImageError where it cannot be read or takes too long, OSError where no process can be started.
    """
    head = DECODERS.ask(Asked("size", os.fspath(path), None, names_of(within))).result().head
    if "error" in head:
        raise ImageError(head["error"], kind=head["kind"], remedy=head["remedy"])
    return Measured(head["width"], head["height"], head["sha256"])


def names_of(folders: Sequence[Path] | None) -> tuple[str, ...] | None:
    """Folders as `Asked.within` has them; where the setting `folders` names some, only what lies in both."""
    allowed = settings().folders
    if folders is None and allowed is None:
        return None
    return tuple(map(os.fspath, common_folders(allowed, folders)))
