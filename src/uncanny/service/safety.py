"""What guards all that is served: whose requests are taken, how large and slow, and what a browser may do.

Browsers send requests to this machine on behalf of any site that is open in them. A request that changes
something has to come from our own page, or from no browser; one for another host's name, which a site may
have bound to this machine, gets nothing. A body that only trickles in is given up.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from ipaddress import ip_address
from typing import Annotated, Any, Final

import orjson
from fastapi import HTTPException, Request
from fastapi.routing import APIRoute
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES: Final = 64 * 1024
BODY_SECONDS: Final = 15.0
# A body may take `BODY_SECONDS`, and a second more for so many bytes of it.
BODY_RATE: Final = 16 * 1024
_SAFE_METHODS = frozenset({"GET", "HEAD"})
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

# `blob:` is for thumbnails of files that are being uploaded.
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class BodyError(HTTPException):
    """Raised to whoever reads the body of a request that is not taken, with the words for an answer."""


class SlowBodyError(BodyError):
    """Of a body that comes too slowly."""

    def __init__(self) -> None:
        super().__init__(408, "The body did not come in time.")


def plain_refusal(_: Scope, status: int, message: str) -> Response:
    return PlainTextResponse(message, status)


class Guard:
    """ASGI middleware: hosts, origins, slow bodies and headers, ahead of everything else."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Sequence[str] = LOOPBACK,
        *,
        any_address: bool = False,
        ambient: Callable[[Headers], bool] = lambda _: True,
        refuse: Callable[[Scope, int, str], Response] = plain_refusal,
        headers: Mapping[str, str] | None = None,
        body_seconds: float | None = None,
    ) -> None:
        """`hosts` are the names, without port, under which the pages may be asked for; with `any_address`
        also any numeric one, which no site can bind to another machine.

        `ambient` says whether what these headers are believed for, such as a cookie, is what a browser sends
        along for any site: then a change is taken only where the browser says that our own page makes it.
        Otherwise it is refused only where a browser says that another site does. `headers` come beside
        `HEADERS`; those that the application sets itself stay.
        """
        self._app, self._hosts, self._any_address = (
            app,
            frozenset(host.lower() for host in hosts),
            any_address,
        )
        self._ambient, self._refuse, self._body_seconds = ambient, refuse, body_seconds
        self._headers = {**HEADERS, **(headers or {})}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        body = _Body(receive, BODY_SECONDS if self._body_seconds is None else self._body_seconds)
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
                if not body.complete and _has_body(scope):
                    headers["Connection"] = "close"  # what is still coming would be waited for
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(scope["method"], headers)
        if refusal is not None:
            await self._refuse(scope, *refusal)(scope, receive, send_guarded)
            return
        try:
            await self._app(scope, body.receive, send_guarded)
        except SlowBodyError as slow:
            if started:
                raise
            await self._refuse(scope, slow.status_code, slow.detail)(scope, receive, send_guarded)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        name = _name(headers.get("host", ""))
        if name not in self._hosts and not (self._any_address and _is_address(name)):
            return 400, "This host is not served here."
        if method in _SAFE_METHODS or from_own_page(headers):
            return None
        if self._ambient(headers) or _from_a_page(headers):
            return 403, "Changes are taken from this server's own pages only."
        return None


class _Body:
    """The body of a request, as long as it keeps coming. Only the time that it is waited for counts."""

    def __init__(self, receive: Receive, seconds: float) -> None:
        self._receive, self._left, self.complete = receive, seconds, False

    async def receive(self) -> Message:
        if self.complete:
            return await self._receive()
        start = time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, self._left)):
                message = await self._receive()
        except TimeoutError:
            raise SlowBodyError from None
        self._left += start - time.monotonic() + len(message.get("body", b"")) / BODY_RATE
        self.complete = not message.get("more_body", False)
        return message


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def from_own_page(headers: Headers) -> bool:
    """Whether a browser says that one of our own pages makes this request; False where nothing says so."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin", "")
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https") and bool(host) and host == headers.get("host")


def _from_a_page(headers: Headers) -> bool:
    """Whether any page makes this request, ours or another's: a program sends neither."""
    return headers.get("sec-fetch-site", "none") != "none" or "origin" in headers


def _name(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _is_address(name: str) -> bool:
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    try:
        return ip_address(bare).version == (6 if bare != name else 4)
    except ValueError:
        return False


def _printable(text: str) -> str:
    if "\0" in text:
        raise ValueError("has a zero character")
    return text


# Texts that people write: JSON's own rules keep lone surrogates out, this keeps out what files cannot hold.
Words = Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_printable)]


class Body(BaseModel):
    """Base of what a page sends: no further keys, nothing that is not JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BoundedRequest(Request):
    """A request whose body is JSON as JSON is defined, of at most `most` bytes."""

    most = BODY_BYTES

    async def body(self) -> bytes:
        """Raises BodyError 413 for more, before it reads them where it can."""
        if hasattr(self, "_body"):
            return self._body
        too_large = BodyError(413, f"The body is larger than {self.most:,} bytes.")
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > self.most:
            raise too_large
        chunks: list[bytes] = []
        size = 0
        async for chunk in self.stream():
            size += len(chunk)
            if size > self.most:
                raise too_large
            chunks.append(chunk)
        self._body = b"".join(chunks)
        return self._body

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            self._json = orjson.loads(await self.body())
        return self._json


class BoundedRoute(APIRoute):
    """A route that reads bodies as `request`. A form is refused, as it can be sent from any site.

    FastAPI's own reading takes NaN, lone surrogates and any number of bytes.
    """

    request: type[BoundedRequest] = BoundedRequest

    def get_route_handler(self) -> Handler:
        handle, takes_json = super().get_route_handler(), self.body_field is not None

        async def handle_bounded(request: Request) -> Response:
            if takes_json:
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json":
                    raise BodyError(415, "The body must be application/json.")
                if request.headers.get("content-encoding", "identity") != "identity":
                    raise BodyError(415, "The body must not be compressed.")
            return await handle(self.request(request.scope, request.receive))

        return handle_bounded
