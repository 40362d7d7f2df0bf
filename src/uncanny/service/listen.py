"""Serving an application until SIGINT or SIGTERM, on the loopback address unless another one is named.

Uvicorn waits for a request's head for ever, for its answer to be taken, and for open streams before it ends.
Here a head has to come in time, an answer has to be taken, and what is served is told when the end begins.
Bodies that come too slowly are `safety.Guard`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from uncanny.errors import UsageError
from uncanny.wording import Words, option

HOST: Final = "127.0.0.1"
# In so many seconds all lines of a request's head have to be there, from the connection or its first byte on.
HEAD_SECONDS: Final = 10.0
# Whoever takes nothing of an answer for so long gets no more of it.
STALL_SECONDS: Final = 60.0
# More connections at once are answered 503.
MOST_CONNECTIONS: Final = 1000
_BACKLOG = 256
_LOG: Final = logging.getLogger("uncanny.service")
_FORWARDED: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-real-ip"})
# Anybody can send such a header: the log names so many of them and no more.
_MOST_WARNED: Final = 20
# So long an open request may keep the server from ending.
_GRACE_S = 3


def serve(
    app: ASGIApp,
    port: int = 0,
    *,
    host: str = HOST,
    ready: Callable[[str], None] = lambda _: None,
    ending: Callable[[], None] = lambda: None,
    head_seconds: float = HEAD_SECONDS,
    stall_seconds: float = STALL_SECONDS,
    proxies: Sequence[str] = (),
) -> None:
    """Serve `app`; the first line printed says where it listens, and `ready` is called with the address.

    `port` 0 takes a free one. `ending` is called once, in the loop's thread, before open requests are waited
    for: streams end there. `proxies` are addresses or networks whose headers `X-Forwarded-For` and `-Proto`
    are believed. Raises UsageError where the port is taken or the host is none of this machine.
    """
    listening = _listening(host, port)
    address = f"http://{_in_address(host)}:{listening.getsockname()[1]}"

    class Protocol(_Protocol):
        seconds, stall = head_seconds, stall_seconds

    config = uvicorn.Config(
        BehindProxies(app, proxies),
        http=Protocol,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        lifespan="off",
        proxy_headers=False,
        limit_concurrency=MOST_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE_S,
    )

    def begin() -> None:
        print(f"listening on {address}", flush=True)
        ready(address)

    with listening:
        asyncio.run(_Server(config, begin, ending).serve(sockets=[listening]))


class BehindProxies:
    """ASGI middleware that takes the sender's address from named proxies, and warns of others.

    Everybody behind a proxy that is not named seems to come from its address, so failed logins of one count
    against all.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[str]) -> None:
        self._app = ProxyHeadersMiddleware(app, list(proxies))  # type: ignore[arg-type]
        self._warned: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._look_at(scope)
        await self._app(scope, receive, send)  # type: ignore[arg-type]

    def _look_at(self, scope: Scope) -> None:
        sender = scope["client"][0] if scope.get("client") else "unknown"
        if sender in self._warned or sender in self._app.trusted_hosts or len(self._warned) >= _MOST_WARNED:
            return
        if any(name in _FORWARDED for name, _ in scope["headers"]):
            self._warned.add(sender)
            words = (
                f"A request from {sender} has a proxy's header. The service ignores it, so everybody behind "
                f"that proxy counts as one address. If it is your proxy, restart with "
                f"{option('proxies', sender)}."
            )
            _LOG.warning(Words(words))


class _Protocol(H11Protocol):
    """Closes a connection whose request's head does not come in time, also between two requests.

    And one that asks and does not take the answer, which would be waited for as long as it stays.
    """

    seconds: float = HEAD_SECONDS
    stall: float = STALL_SECONDS
    _deadline: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(self.seconds, self._too_slow)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self.seconds, self._too_slow)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Part of the next head may have come already, and nothing of it may follow.
        if self._deadline is None and self.conn.trailing_data[0] and self.conn.their_state is h11.IDLE:
            self._deadline = self.loop.call_later(self.seconds, self._too_slow)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stalled = self.loop.call_later(self.stall, self._give_up)

    def resume_writing(self) -> None:
        self._taken()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        self._taken()
        super().connection_lost(exc)

    def _give_up(self) -> None:
        # Without this the system goes on with what it holds of the answer.
        self.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.transport.abort()

    def _taken(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        if not self.transport.is_closing() and (self.cycle is None or self.cycle.response_complete):
            self.transport.write(
                b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            )
            self.transport.close()


class _Server(uvicorn.Server):
    """Ends on a signal as its normal end: uvicorn would raise the signal once more.

    From `begin` on, which is called once: whoever has read that it listens may end it.
    """

    def __init__(self, config: uvicorn.Config, begin: Callable[[], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._begin = begin
        self._ending: Callable[[], None] | None = ending

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._end)
        try:
            self._begin()
            yield
        finally:
            for number in signals:
                loop.remove_signal_handler(number)

    def _end(self) -> None:
        self.force_exit, self.should_exit = self.should_exit, True
        if self._ending is not None:
            ending, self._ending = self._ending, None
            ending()


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach what listens there."""
    from ipaddress import ip_address

    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only where the protocol is named asyncio sends small pieces at once; else each answer waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except (OSError, UnicodeError) as error:
        listening.close()
        where = f"port {port}" if host == HOST else f"{host}, port {port}"
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise UsageError(
            f"The page cannot listen on {where}: {reason}",
            remedy="Choose another port, or 0 for any free one.",
        ) from error
    return listening
