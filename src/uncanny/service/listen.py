"""Serving an application on the loopback address until SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Final

import uvicorn
from starlette.types import ASGIApp

from uncanny.errors import UsageError

HOST: Final = "127.0.0.1"
_BACKLOG = 256
# So long an open request may keep the server from ending.
_GRACE_S = 3


def serve(app: ASGIApp, port: int = 0, *, ready: Callable[[str], None] = lambda _: None) -> None:
    """Serve `app`; the first line printed says where it listens, and `ready` is called with the address.

    `port` 0 takes a free one. Raises UsageError where the port is taken.
    """
    listening = _listening(port)
    address = f"http://{HOST}:{listening.getsockname()[1]}"
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    with listening:
        print(f"listening on {address}", flush=True)
        ready(address)
        asyncio.run(_Server(config).serve(sockets=[listening]))


class _Server(uvicorn.Server):
    """Ends on a signal as its normal end: uvicorn would raise the signal once more."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._end)
        try:
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self.force_exit, self.should_exit = self.should_exit, True


def _listening(port: int) -> socket.socket:
    # Only where the protocol is named asyncio sends small pieces at once; else each answer waits 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((HOST, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"The page cannot listen on port {port}: {error.strerror or error}",
            remedy="Choose another port, or 0 for any free one.",
        ) from error
    return listening
