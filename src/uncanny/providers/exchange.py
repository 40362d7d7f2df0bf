"""One HTTP exchange through an SDK: its authentication and errors, our bytes out and their bytes back."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from typing import Any

import httpx2
import orjson
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI, DefaultAioHttpClient

from uncanny.errors import ModelUnusableError, ProviderError, UsageError
from uncanny.providers.faults import HTTP_ERRORS, Where, bad_body, from_exception, from_response
from uncanny.providers.server_words import one_line, read_words

CONNECT_S = 15.0
# Below the 5 s after which common servers close idle connections: a reused one is not lost to that race.
KEEPALIVE_S = 4.0


def http_client(timeout_s: float) -> httpx2.AsyncClient:
    """A client on aiohttp, which costs a fraction of the default one's time with hundreds of calls open."""
    return DefaultAioHttpClient(
        timeout=httpx2.Timeout(timeout_s, connect=min(timeout_s, CONNECT_S)),
        limits=httpx2.Limits(max_connections=1000, keepalive_expiry=KEEPALIVE_S),
    )


def environment_key(variable: str) -> str | None:
    """The key in the environment, None where there is none; keys come from nowhere else.

    Raises `ModelUnusableError` for text that no header can carry, such as a key in typographic quotes.
    """
    key = os.environ.get(variable, "").strip()
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ModelUnusableError(
            f"{variable} holds characters that no key has", remedy="Copy the key again, without quotes."
        )
    return key or None


def checked_url(base_url: str) -> str:
    """`base_url` if calls can go there; raises `UsageError` otherwise."""
    if not base_url.startswith(("http://", "https://")):
        raise UsageError(
            f"{base_url!r} is no base URL", remedy="Give one that begins with http:// or https://."
        )
    return base_url


async def exchange(
    client: AsyncOpenAI | AsyncAnthropic, path: str, body: bytes, *, where: Where, timeout_s: float
) -> tuple[dict[str, Any], httpx2.Headers]:
    """Post `body` and return the JSON object that comes back, with the headers.

    `timeout_s` is for the whole exchange: a server that sends a byte now and then does not hold a slot
    for ever. Raises the errors of `faults`, with nothing of the SDK's (which carry the key) attached.
    """
    try:
        async with asyncio.timeout(timeout_s):
            response = await client.post(path, cast_to=httpx2.Response, content=body)
    except HTTP_ERRORS as error:
        fault = from_exception(error, where)
    else:
        return read_body(response.content, response.headers, where), response.headers
    raise fault


def read_body(body: bytes, headers: Mapping[str, str], where: Where) -> dict[str, Any]:
    """The JSON object in the body of a response with status 200. Raises the errors of `faults`."""
    # Parsed here: the SDKs hand back broken JSON and HTML pages as a string, without an error.
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        kind = headers.get("content-type", "no content type")
        start = one_line(body[:100].decode("utf-8", "replace"), where.secrets)
        fault: ProviderError = bad_body(
            where, f"no valid JSON ({kind[:100]}, {len(body)} bytes, begins {start!r})"
        )
    else:
        if isinstance(content, dict) and not content.get("error"):
            return content
        fault = _error_within(content, body, headers, where)
    raise fault


def _error_within(content: object, body: bytes, headers: Mapping[str, str], where: Where) -> ProviderError:
    """Gateways report upstream errors in the body of a response with status 200."""
    error = content.get("error") if isinstance(content, dict) else None
    status = error.get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and 400 <= status < 600:
        return from_response(status, headers, body, where)
    return bad_body(where, read_words(body, where.secrets).message)
