"""Pictures for pages, decoded in a few processes of their own that are killed when one takes too long.

A file can pass every check and still keep a decoder busy. Such a file keeps one of `PROCESSES` busy for
`SECONDS`, and no thread that serves requests. These are seconds of the processor, so that a busy machine
shows the same pictures as an idle one; by the clock it may take `WAIT_S`. Equal requests are merged. Parties,
such as jobs, are served in turn, and what nobody waits for any more is not decoded.
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
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from uncanny.errors import ImageError
from uncanny.files.beneath import common_folders
from uncanny.images.prepared import Measured
from uncanny.settings import settings

PROCESSES: Final = 2
SECONDS: Final = 10.0
WAIT_S: Final = 60.0
# Pictures that may wait: as many as a few pages show for one party, and of many parties at once.
MOST_OF_A_PARTY: Final = 250
MOST_WAITING: Final = 2_000
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


class BusyError(OSError):
    """Too many pictures wait to be decoded."""

    def __init__(self) -> None:
        super().__init__(errno.EAGAIN, "too many pictures wait to be decoded; try again in a moment")


@dataclass(slots=True)
class _Waiting:
    """A request that is not answered: how many wait for it, and whether it is being worked on."""

    party: str
    future: Future[Made] = field(default_factory=Future)
    waiters: int = 1
    begun: bool = False


class Decoders:
    """Up to `processes` processes. Safe from threads; the threads it starts end with this process.

    `seconds` of the processor is what one picture may take, `wait_s` seconds by the clock.
    """

    def __init__(
        self, *, seconds: float = SECONDS, wait_s: float = WAIT_S, processes: int = PROCESSES
    ) -> None:
        self.seconds, self.wait_s, self._processes = seconds, wait_s, processes
        self._lock = threading.Lock()
        self._more = threading.Condition(self._lock)
        # By party what it waits for, the party that is next first.
        self._turns: OrderedDict[str, deque[Asked]] = OrderedDict()
        self._waiting: dict[Asked, _Waiting] = {}
        self._children: list[_Child] = []
        self._threads = 0
        atexit.register(self._kill)

    def ask(self, asked: Asked, party: str = "") -> Future[Made]:
        """The answer, to be waited for; for an equal request that is not answered yet, the same one.

        It raises ImageError where decoding took too long, OSError where no process could be started or
        something else ended it. Raises BusyError where too much waits, of all or of this `party`. Who stops
        waiting calls `leave`.
        """
        with self._lock:
            known = self._waiting.get(asked)
            if known is not None:
                known.waiters += 1
                return known.future
            turn = self._turns.get(party, deque())
            if len(turn) >= MOST_OF_A_PARTY or len(self._waiting) >= MOST_WAITING:
                raise BusyError
            new = self._waiting[asked] = _Waiting(party)
            if self._threads < min(self._processes, len(self._waiting)):
                # Where the system takes no more threads those that run answer; without any this is said.
                with suppress(RuntimeError):
                    threading.Thread(target=self._work, name="decoder", daemon=True).start()
                    self._threads += 1
            if self._threads:
                turn.append(asked)
                self._turns[party] = turn
                self._more.notify()
            else:
                del self._waiting[asked]
                new.future.set_exception(_no_thread())
        return new.future

    def leave(self, asked: Asked, future: Future[Made]) -> None:
        """Wait no more for an answer; without anybody who does, it is not made unless it is begun."""
        with self._lock:
            known = self._waiting.get(asked)
            if known is None or known.future is not future:
                return
            known.waiters -= 1
            if known.waiters or known.begun:
                return
            del self._waiting[asked]
            turn = self._turns[known.party]
            turn.remove(asked)
            if not turn:
                del self._turns[known.party]
        future.cancel()

    def _next(self) -> Asked | None:
        """What is to be made next; None where nothing is asked for a while."""
        with self._more:
            if not self._more.wait_for(lambda: self._turns, _IDLE_S):
                return None
            party, turn = self._turns.popitem(last=False)
            asked = turn.popleft()
            if turn:
                self._turns[party] = turn  # behind all others
            self._waiting[asked].begun = True
            return asked

    def _work(self) -> None:
        child: _Child | None = None
        while True:
            asked = self._next()
            if asked is None:
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
            except (ImageError, OSError) as error:
                made = error
            except Exception as error:  # nobody else would answer those who wait
                made = _no_thread() if isinstance(error, RuntimeError) else OSError(str(error))
            if isinstance(made, Exception) and child is not None:
                self._end(child)
                child = None
            with self._lock:
                future = self._waiting.pop(asked).future
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
        """Raises ImageError where it takes too long, OSError where the process ends of something else."""
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
                raise ImageError(
                    "decoding it takes too long", kind="bomb", remedy="Save it anew with another program."
                ) from error
            # Perhaps memory was short: it need not be the picture's fault.
            raise OSError(errno.EAGAIN, "the process that decoded it ended") from error
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


def _no_thread() -> OSError:
    return OSError(errno.EAGAIN, "no thread could be started to decode it")


DECODERS: Final = Decoders()


def measure(path: Path, within: Sequence[Path] | None = None) -> Measured:
    """Decode a picture to know its size. Blocking, for at most `WAIT_S` once it is its turn.

    Raises ImageError where it cannot be read or takes too long, OSError where no process can be started, one
    was killed, or too many pictures wait.
    """
    asked = Asked("size", os.fspath(path), None, names_of(within))
    head = DECODERS.ask(asked, os.path.dirname(asked.path)).result().head  # noqa: PTH120  it may be no text
    if "error" in head:
        raise ImageError(head["error"], kind=head["kind"], remedy=head["remedy"])
    return Measured(head["width"], head["height"], head["sha256"])


def names_of(folders: Sequence[Path] | None) -> tuple[str, ...] | None:
    """Folders as `Asked.within` has them; where the setting `folders` names some, only what lies in both."""
    allowed = settings().folders
    if folders is None and allowed is None:
        return None
    return tuple(map(os.fspath, common_folders(allowed, folders)))
