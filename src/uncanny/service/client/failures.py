"""What stands for a request that failed: the service's own words, those of a proxy, or a broken connection.

Whatever comes in is foreign: it is put on one line, and no secret is left in it.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

import httpx2
import orjson

from uncanny.errors import (
    AccessError,
    ConflictError,
    NotFoundError,
    ParamsError,
    ServiceError,
    UncannyError,
    UsageError,
)
from uncanny.models.error_body import one_line, read_error_body
from uncanny.wording import duration

TOKEN_VARIABLE: Final = "UNCANNY_SERVER_TOKEN"
READ_S: Final = 60.0
"""Seconds in which something has to come."""
# The server is busy or starting, or what stands before it cannot reach it: it did nothing.
LATER: Final = frozenset({429, 502, 503, 504})


def host_of(location: str, secrets: Sequence[str]) -> str:
    """Where a redirect leads, without path and parameters, which may be anything."""
    try:
        parts = urlsplit(location)
        host = parts.hostname
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        host, port = None, ""
    return one_line(f"{parts.scheme}://{host}{port}", secrets) if host else "another page"


def no_service(shown: str, why: str) -> UsageError:
    """There is something at the address, and it is not ours."""
    return UsageError(
        f"{shown} is not an uncanny service: {why}", remedy="Give the address that `uncanny serve` prints."
    )


def of_exception(error: Exception, shown: str, secrets: Sequence[str]) -> UncannyError:
    """An error of the connection: ServiceError where a later try may succeed, UsageError where none will."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and len(causes) < 10:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    text = one_line(str(error), secrets) or type(error).__name__
    for each in causes:
        if isinstance(each, ssl.SSLCertVerificationError):
            why = one_line(each.verify_message, secrets)
            return UsageError(
                f"The certificate of {shown} does not hold: {why}",
                remedy="Is the host name the one in the certificate?",
            )
        if isinstance(each, ssl.SSLError):
            return UsageError(f"{shown} does not speak https: {text}", remedy="Is it an http:// address?")
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        return UsageError(f"Nothing can be sent to {shown}: {text}")
    if isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        why = "no answer" if isinstance(error, httpx2.TimeoutException) else text
        return ServiceError(
            f"{shown} cannot be reached: {why}",
            remedy="Is the address right, and is `uncanny serve` running?",
        )
    if isinstance(error, httpx2.TimeoutException):
        return ServiceError(f"{shown} did not answer in {duration(READ_S)}", remedy="Try again later.")
    return ServiceError(f"The connection to {shown} broke: {text}", remedy="Try again; nothing is lost.")


def of_status(
    status: int,
    body: bytes,
    headers: httpx2.Headers,
    shown: str,
    secrets: Sequence[str],
    has_token: bool,
) -> UncannyError:
    """The error that an answer stands for: the server's own words where they are the service's."""
    message, fields = _own_words(body, secrets)
    if message is None:
        return _of_foreign(status, body, headers, shown, secrets)
    if status == 401:
        what = f"{shown} does not take this token" if has_token else f"{shown} wants a token"
        return AccessError(what, remedy=f"Set {TOKEN_VARIABLE} to one of `uncanny token add`.")
    if status == 403:
        return AccessError(f"{shown}: {message}", remedy="Use a token of a higher role.")
    if status == 404:
        return NotFoundError(f"{shown}: {message}")
    if status == 409:
        return ConflictError(f"{shown}: {message}")
    if status == 429:
        return ServiceError(f"{shown}: {message}", remedy="Try again later.")
    if status == 507:
        return ServiceError(f"{shown}: {message}")
    if status >= 500:
        return ServiceError(f"{shown} answers with error {status}: {message}", remedy="See the server's log.")
    if fields:
        return ParamsError(fields)
    return UsageError(f"{shown}: {message}")


def _own_words(body: bytes, secrets: Sequence[str]) -> tuple[str | None, list[tuple[str, str]]]:
    """Message and fields of an error of the service; None where it is no such error."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None, []
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("message"), str) or "code" not in error:
        return None, []
    message = one_line(error["message"], secrets).rstrip(".")
    field = error.get("field")
    if not isinstance(field, str) or not field:
        return message, []
    place = one_line(field, secrets)
    return message, [(place, message.removeprefix(f"{place}: "))]


def _of_foreign(
    status: int, body: bytes, headers: httpx2.Headers, shown: str, secrets: Sequence[str]
) -> UncannyError:
    """An answer of something else: of a proxy before the service, or of no service at all."""
    words = read_error_body(body, secrets).message if body else ""
    kind = headers.get("content-type", "").partition(";")[0].strip() or "nothing"
    if status in (401, 407):
        return AccessError(f"Something before {shown} wants a sign-in ({status})")
    if status in LATER or status >= 500:
        return ServiceError(f"{shown} answers with error {status}{f': {words}' if words else ''}")
    if status == 413:
        return UsageError(f"Something before {shown} takes no request so large (413)")
    return no_service(shown, f"it answers with {status} and {one_line(kind, secrets)}")
