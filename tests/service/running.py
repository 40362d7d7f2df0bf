"""Commands that serve, as processes of their own, and applications served by this one."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def serving(*arguments: str, environment: Mapping[str, str] = {}) -> Iterator[str]:
    """A command that serves a page, as a user starts it; its address."""
    with serving_process(*arguments, environment=environment) as (_, address):
        yield address


@contextmanager
def serving_process(
    *arguments: str, environment: Mapping[str, str] = {}, stderr: int | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The same with its process, which is to end in good order."""
    command = [sys.executable, "-m", "uncanny", *arguments]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=stderr, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            assert first.startswith("listening on http://"), first
            yield process, first.split()[-1]
        finally:
            process.terminate()
            assert process.wait(60) == 0


@contextmanager
def served_here(app: ASGIApp) -> Iterator[str]:
    """`app` in a thread of this process; its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="error", lifespan="off", timeout_graceful_shutdown=2)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


class RunningService:
    """The service on a data folder, to be killed and started again under the same address.

    `start` waits for its first line, `kill` for its end. `program` is what Python runs in place of `uncanny`.
    """

    def __init__(
        self,
        data: Path,
        *options: str,
        environment: Mapping[str, str] = {},
        program: Sequence[str] = ("-m", "uncanny"),
    ) -> None:
        self.data, self._options, self._environment = data, options, environment
        self._program = program
        self.port = _free_port()
        self.process: subprocess.Popen[str] | None = None

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        options = ["--data", str(self.data), "--port", str(self.port), *self._options]
        self.process = subprocess.Popen(
            [sys.executable, *self._program, "serve", *options],
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
def running(
    data: Path,
    *options: str,
    environment: Mapping[str, str] = {},
    program: Sequence[str] = ("-m", "uncanny"),
) -> Iterator[RunningService]:
    service = RunningService(data, *options, environment=environment, program=program)
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
