"""`uncanny serve` as a process of its own, to be killed and started again under the same address."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class RunningService:
    """The service on a data folder. `start` waits for its first line, `kill` for its end."""

    def __init__(self, data: Path, *options: str, environment: Mapping[str, str] = {}) -> None:
        self.data, self._options, self._environment = data, options, environment
        self.port = _free_port()
        self.process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        options = ["--data", str(self.data), "--port", str(self.port), *self._options]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "uncanny", "serve", *options],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **self._environment},
        )
        assert self.process.stdout is not None
        first = self.process.stdout.readline()
        assert first == f"listening on {self.address}\n", first

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self._end()

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self._end()

    def _end(self) -> None:
        assert self.process is not None
        self.process.wait(60)
        with contextlib.suppress(OSError):
            assert self.process.stdout is not None
            self.process.stdout.close()
        self.process = None


@contextmanager
def running(data: Path, *options: str, environment: Mapping[str, str] = {}) -> Iterator[RunningService]:
    service = RunningService(data, *options, environment=environment)
    service.start()
    try:
        yield service
    finally:
        service.stop()


def make_token(data: Path, name: str, role: str) -> str:
    """A token, as an administrator makes it."""
    command = [sys.executable, "-m", "uncanny", "token", "add", name, "--role", role, "--data", str(data)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.split()[-1]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port
