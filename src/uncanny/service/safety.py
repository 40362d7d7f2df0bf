"""What guards every page that is served: whose requests are taken, how large they are, what a browser may do.

Browsers send requests to this machine on behalf of any site that is open in them. A request that changes
something has to come from our own page, and one for another host's name, which a site may have bound to this
machine, gets nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, Final, TypeVar

import orjson
from fastapi import HTTPException, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, ValidationError
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BODY_BYTES: Final = 64 * 1024
BODY_SECONDS: Final = 15.0
_SAFE_METHODS = frozenset({"GET", "HEAD"})
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}

M = TypeVar("M", bound=BaseModel)


class Guard:
    """ASGI middleware: hosts, origins and headers, ahead of everything else."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str] = LOOPBACK) -> None:
        """`hosts` are the names, without port, under which the pages may be asked for."""
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(scope["method"], headers)
        if refusal is None:
            await self._app(scope, receive, send_guarded)
        else:
            await PlainTextResponse(refusal[1], refusal[0])(scope, receive, send_guarded)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if _name(host) not in self._hosts:
            return 400, "This host is not served here."
        if method in _SAFE_METHODS:
            return None
        if not from_own_page(headers):
            return 403, "Changes are taken from this server's own pages only."
        return None


def from_own_page(headers: Headers) -> bool:
    """Whether a browser says that one of our own pages makes this request; False where nothing says so."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin", "")
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https") and bool(host) and host == headers.get("host")


def _name(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).lower()


def _printable(text: str) -> str:
    if "\0" in text:
        raise ValueError("has a zero character")
    return text


# Texts that people write: JSON's own rules keep lone surrogates out, this keeps out what files cannot hold.
Words = Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_printable)]


class Body(BaseModel):
    """Base of what a page sends: no further keys, nothing that is not JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def json_body(model: type[M]) -> Callable[[Request], Awaitable[M]]:
    """A dependency that reads the body as `model`.

    Refuses, with a status that says why, what is no JSON by its type (415) or content (400), too large (413),
    too slow (408), or not what was asked for (422, with the fields and never what was in them).
    """

    async def read(request: Request) -> M:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "The body has to be application/json.")
        try:
            async with asyncio.timeout(BODY_SECONDS):
                data = await _whole(request)
        except TimeoutError:
            raise HTTPException(408, "The body did not come in time.") from None
        try:
            content: Any = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise HTTPException(400, "The body is not valid JSON.") from None
        try:
            return model.model_validate(content)
        except ValidationError as error:
            wrong = "; ".join(
                f"{'.'.join(map(str, each['loc'])) or 'body'}: {each['msg']}"
                for each in error.errors(include_input=False, include_context=False, include_url=False)[:5]
            )
            raise HTTPException(422, f"{wrong}.") from None

    return read


async def _whole(request: Request) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > BODY_BYTES:
            raise HTTPException(413, f"The body is larger than {BODY_BYTES} bytes.")
        chunks.append(chunk)
    return b"".join(chunks)
