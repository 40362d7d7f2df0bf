"""One HTTP exchange through an SDK: its authentication and errors, our bytes out and their bytes back.

What is sent goes to the address the user gave and nowhere else: redirects are not followed, and a proxy of
the environment is not used within this machine. What comes back is bounded in time and in size.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache, partial
from types import TracebackType
from typing import Any

import httpx2
import orjson
from openai import DefaultAioHttpClient

from uncanny.errors import ModelUnusableError, ProviderError
from uncanny.models.addresses import Address
from uncanny.models.error_body import one_line, read_error_body
from uncanny.models.http_errors import (
    ErrorContext,
    UnreadableResponseError,
    bad_body,
    from_exception,
    from_response,
    is_http_error,
)

CONNECT_S = 15.0
_MOST_DIGITS = 18
# Below the 5 s after which common servers close idle connections: a reused one is not lost to that race.
KEEPALIVE_S = 4.0
LARGEST_RESPONSE = 8 * 1024 * 1024
"""Bytes of a response, decompressed, after which no more is read. The longest answers have some 500 kB."""


def http_client(address: Address, timeout_s: float, largest: int = LARGEST_RESPONSE) -> httpx2.AsyncClient:
    """A client on aiohttp, which costs a fraction of the default one's time with hundreds of calls open.

    Of a response no more than `largest` bytes are read.
    """
    proxy = address.proxy
    return DefaultAioHttpClient(
        verify=_tls_context(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S)),
        limits=httpx2.Limits(max_connections=1000, keepalive_expiry=KEEPALIVE_S),
        follow_redirects=False,
        # What the address says of proxies holds, not what the client would find itself.
        mounts=dict.fromkeys(("all://", "http://", "https://")) if proxy is None else None,
        proxy=None if proxy is None else proxy.url,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"response": [partial(_bounded, largest)]},
    )


@cache
def _tls_context(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    """One for all clients of the process: reading the world's certificates takes 30 ms.

    The arguments are the variables that name other certificates.
    """
    return httpx2.create_ssl_context()


_GZIP_OR_ZLIB = zlib.MAX_WBITS | 32


async def _bounded(largest: int, response: httpx2.Response) -> None:
    encoding = response.headers.pop("content-encoding", "identity").strip().lower()
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    most = min(largest, LARGEST_RESPONSE) if response.is_error else largest
    response.stream = _BoundedStream(response.stream, encoding, most, cut=response.is_error)


class _BoundedStream(httpx2.AsyncByteStream):
    """A response's body, decompressed here: the usual decoders make a gigabyte of one small piece.

    A body that is too large or cannot be decompressed raises `UnreadableResponseError`; where `cut`, it ends
    there instead, since the beginning of an error says enough, and its status alone says much.
    """

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str, most: int, *, cut: bool) -> None:
        self._stream, self._most, self._cut = stream, most, cut
        self._inflater = None if encoding in ("", "identity") else _Inflater(encoding)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._most
        try:
            async for chunk in self._stream:
                for piece in [chunk] if self._inflater is None else self._inflater.pieces(chunk, left):
                    if len(piece) > left:
                        raise UnreadableResponseError(f"it has more than {self._most:,} bytes")
                    left -= len(piece)
                    yield piece
            if self._inflater is not None and not self._inflater.whole:
                raise UnreadableResponseError("its compressed body was cut off")
        except UnreadableResponseError:
            if not self._cut:
                raise

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Inflater:
    """Decompresses gzip or zlib, member after member; what follows them is left out, as others do."""

    def __init__(self, encoding: str) -> None:
        self._encoding = encoding
        self._member = zlib.decompressobj(_GZIP_OR_ZLIB)
        self.whole = False

    def pieces(self, chunk: bytes, most: int) -> Iterator[bytes]:
        """What comes of `chunk`; the last piece ends one byte after `most` if there is more than that."""
        if self._encoding not in ("gzip", "x-gzip", "deflate"):
            raise UnreadableResponseError(f"it is compressed, unasked, as {self._encoding[:20]!r}")
        while chunk:
            try:
                piece = self._member.decompress(chunk, most + 1)
            except zlib.error as error:
                if self.whole:
                    return
                raise UnreadableResponseError(f"its compressed body is broken: {error}") from None
            yield piece
            most -= len(piece)
            chunk, self.whole = self._member.unused_data, self._member.eof
            if self._member.eof:
                self._member = zlib.decompressobj(_GZIP_OR_ZLIB)


def environment_key(variable: str) -> str | None:
    """The key in the environment, None where there is none; keys come from nowhere else.

    Raises `ModelUnusableError` for text that no header can carry, such as a key in typographic quotes.
    """
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelUnusableError(
            f"{variable} contains characters that no key has", remedy="Copy the key again, without quotes."
        )
    return key or None


class Exchange:
    """Around one post through an SDK: bounded in time, its failure an error of `http_errors`.

    ::

        async with Exchange(context, timeout_s) as exchange:
            exchange.response = await client.post(path, cast_to=httpx2.Response, content=body)
        content, headers = exchange.result()

    `timeout_s` is for the whole exchange: a server that sends a byte now and then does not keep a slot for
    ever. The error is raised by `result`, so that nothing of the SDK's, which carries the key, is attached.
    """

    __slots__ = ("_context", "_failure", "_timeout", "response")

    def __init__(self, context: ErrorContext, timeout_s: float) -> None:
        self._context, self._timeout = context, asyncio.timeout(timeout_s)
        self._failure: ProviderError | None = None
        self.response: httpx2.Response | None = None

    async def __aenter__(self) -> Exchange:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError as timeout:
            error = timeout
        if error is None or not is_http_error(error):
            return False
        self._failure = from_exception(error, self._context)
        return True

    def result(self) -> tuple[dict[str, Any], httpx2.Headers]:
        """The JSON object that came back, with the headers. Raises the errors of `http_errors`."""
        response = self.checked()
        return read_body(response.content, response.headers, self._context), response.headers

    def checked(self) -> httpx2.Response:
        """The response as it came back. Raises the errors of `http_errors`."""
        if self._failure is not None:
            raise self._failure
        assert self.response is not None
        return self.response


# Ids become parts of addresses, and some come from files of runs.
_ID = re.compile(r"[A-Za-z0-9_-]{1,200}")


def checked_id(name: object, context: ErrorContext) -> str:
    """An id that a server gave to something. Raises `TransientError` where it is none."""
    if not isinstance(name, str) or _ID.fullmatch(name) is None:
        raise bad_body(context, "it has no id")
    return name


def read_body(
    body: bytes, headers: Mapping[str, str], context: ErrorContext, *, tells_errors: bool = False
) -> dict[str, Any]:
    """The JSON object in the body of a response with status 200. Raises the errors of `http_errors`.

    `tells_errors`: an error in it is what was asked for.
    """
    # Parsed here: the SDKs hand back broken JSON and HTML pages as a string, without an error.
    try:
        content = _parsed(body)
    except ValueError:
        kind = headers.get("content-type", "no content type")
        start = one_line(body[:100].decode("utf-8", "replace"), context.secrets)
        fault: ProviderError = bad_body(
            context, f"no valid JSON ({kind[:100]}, {len(body)} bytes, begins {start!r})"
        )
    else:
        if isinstance(content, dict) and (tells_errors or not content.get("error")):
            return content
        # Gateways report upstream errors in the body of a response with status 200.
        error = content.get("error") if isinstance(content, dict) else None
        status = error.get("code") if isinstance(error, dict) else None
        if isinstance(status, int) and 400 <= status < 600:
            fault = from_response(status, headers, body, context)
        else:
            fault = bad_body(context, read_error_body(body, context.secrets).message)
    raise fault


def _parsed(body: bytes) -> object:
    """Raises ValueError. A number beyond all bounds, which `orjson` refuses, must not cost the answer."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        if "infinity" not in str(error):
            raise
    try:
        return json.loads(body, parse_int=_whole)
    except RecursionError as error:
        raise ValueError(str(error)) from None


def _whole(digits: str) -> float:
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf
