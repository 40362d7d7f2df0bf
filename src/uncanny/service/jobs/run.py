"""One child process: started, listened to, interrupted, killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import ValidationError

from uncanny.models.error_body import KeyMask
from uncanny.service.answers import JobProgress
from uncanny.service.jobs.folder import LOG, RESULT
from uncanny.settings import SHORTEST_SECRET, secrets

_MOST_LINE: Final = 64 * 1024
_MOST_LOG: Final = 1024 * 1024
_LAST_LINES: Final = 20
_PROGRESS: Final = b'{"progress":'
# Of the service alone: who may use it and its database.
_OURS: Final = ("UNCANNY_DATABASE", "UNCANNY_SERVER")
# Settings that are paths: the child works in another folder than this process.
_PATHS: Final = ("UNCANNY_CACHE_DIR", "UNCANNY_PRICES", "UNCANNY_EMBEDDINGS_DIR")


class ChildRun:
    """A command in a process group of its own. `wait` has to be called in the end.

    Standard output becomes `result.json`, what it says of its progress `progress`, all else on standard error
    `stderr.log`. `ended` is set as soon as the process has.
    """

    def __init__(
        self,
        command: Sequence[str],
        values: Mapping[str, Any],
        folder: Path,
        settings: Mapping[str, str],
        *,
        result: str | None = RESULT,
        shown: Callable[[str], str] = str,
    ) -> None:
        """Start a command with the values of its parameters in `folder`, with `settings` in its environment.

        Raises OSError. `result` None: what it prints goes nowhere. `shown` makes of its words on standard
        error what people may read.
        """
        self.progress: JobProgress | None = None
        # Grows with everything that is finished for good.
        self.mark = 0
        self.ended = threading.Event()
        self._folder, self._shown = folder, shown
        self._last: deque[str] = deque(maxlen=_LAST_LINES)
        self._result = Path(os.devnull) if result is None else folder / f".{result}.part"
        with self._result.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "uncanny.service.jobs.child"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.PIPE,
                start_new_session=True,
                cwd=folder,
                env={**child_environment(), **settings, "UNCANNY_PROGRESS": "jsonl"},
            )
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended, which its exit code tells
            self.process.stdin.write(order(command, values))
            self.process.stdin.flush()
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._read, self._wait_for_process)
        ]
        for thread in self._threads:
            thread.start()

    def interrupt(self) -> None:
        """Ask the command to stop, as Ctrl-C does; the second time it does not wait for calls in flight."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        """End the command and all it has started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def wait(self) -> int:
        """The exit code, as a shell has it: 128 and the number of the signal that killed it."""
        for thread in self._threads:
            thread.join()
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        with contextlib.suppress(BrokenPipeError):  # it ended before it had read its order
            self.process.stdin.close()
        self.process.stderr.close()
        code = self.process.returncode
        return code if code >= 0 else 128 - code

    def keep_result(self) -> bool:
        """Make what the command printed its result, unless that is nothing; says whether it did."""
        if not self._result.stat().st_size:
            return False
        self._result.replace(self._folder / RESULT)
        return True

    def last_lines(self) -> str | None:
        """The end of what the command said on standard error, None where it said nothing."""
        return "\n".join(self._last) or None

    def _wait_for_process(self) -> None:
        self.process.wait()
        # What the command left running would hold standard error open for ever.
        self.kill()
        self.ended.set()

    def _read(self) -> None:
        assert self.process.stderr is not None
        try:
            with (self._folder / LOG).open("ab") as log:
                while line := without_keys(self.process.stderr.readline(_MOST_LINE)):
                    if line.startswith(_PROGRESS) and self._take_progress(line):
                        continue
                    line = os.fsencode(self._shown(os.fsdecode(line)))
                    self._last.append(line.decode(errors="replace").rstrip())
                    if log.tell() < _MOST_LOG:
                        log.write(line)
                        log.flush()
        except OSError as error:
            self._last.append(f"The log of the job cannot be written: {error.strerror or error}")
            # Read on, or the command would wait for ever to say something.
            while self.process.stderr.read(_MOST_LINE):
                pass

    def _take_progress(self, line: bytes) -> bool:
        try:
            counters: dict[str, Any] = orjson.loads(line)["progress"]
            self.progress = JobProgress.model_validate(counters)
            self.mark = max(self.mark, int(counters["done"]) + int(counters["answered"]))
        except (orjson.JSONDecodeError, ValidationError, KeyError, TypeError, ValueError):
            return False
        return True


def order(command: Sequence[str], values: Mapping[str, Any]) -> bytes:
    """What a child reads: a line with the words of its command, and its parameters."""
    return orjson.dumps({"command": [*command], "values": dict(values)}) + b"\n"


def without_keys(text: bytes) -> bytes:
    """The words of a command, without any key of this process. Commands keep them out; a library may not."""
    words = os.fsdecode(text)
    for name, secret in secrets():
        words = _mask(name, secret)(words)
    return os.fsencode(words)


@lru_cache(maxsize=256)
def _mask(name: str, secret: str) -> KeyMask:
    return KeyMask([secret], shortest=SHORTEST_SECRET, hidden=f"[{name}]")


def child_environment() -> dict[str, str]:
    """This process's own, keys of providers included, with paths that hold in another folder too."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    for name in _PATHS:
        if kept.get(name, "").strip():
            kept[name] = str(Path(kept[name]).absolute())
    return kept
