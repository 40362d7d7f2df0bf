"""One HTTP exchange with a service: where it goes, what comes back, when it is made again, its errors.

The token goes to the address that the user gave and nowhere else: redirects are not followed. What comes back
is bounded in size. `Connection._exchange` is the one place where a request is made again.
"""

from __future__ import annotations

import os
import random
import ssl
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
import orjson
from pydantic import TypeAdapter, ValidationError

from uncanny import __version__
from uncanny.errors import (
    AccessError,
    ConflictError,
    NotFoundError,
    ParamsError,
    ServiceError,
    UncannyError,
    UsageError,
)
from uncanny.models.addresses import parse_address, redacted
from uncanny.models.error_body import one_line, read_error_body
from uncanny.wording import duration

T = TypeVar("T")
TOKEN_VARIABLE: Final = "UNCANNY_SERVER_TOKEN"
API: Final = "api/v1"
VERSION_HEADER: Final = "uncanny-version"
LARGEST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of a JSON answer after which no more is read. A page of records or files is far smaller."""
_LARGEST_ERROR: Final = 64 * 1024
_CONNECT_S: Final = 15.0
_READ_S: Final = 60.0
_KEEPALIVE_S: Final = 4.0
_FIRST_WAIT_S: Final = 0.25
_LONGEST_WAIT_S: Final = 8.0
_UNREACHED_S: Final = 3.0
# The server is busy or starting, or what stands before it cannot reach it: it did nothing.
_LATER: Final = frozenset({429, 502, 503, 504})
Method = Literal["GET", "POST", "DELETE"]
# A file of a form: field, then name, content and media type.
FormFile = tuple[str, tuple[str, bytes, str]]


class Connection:
    """Requests to one service. May be used by several threads."""

    def __init__(self, url: str, token: str | None, *, patience_s: float) -> None:
        """`patience_s` is how long a service that cannot be reached is asked again.

        Raises UsageError for an address or a token that nothing can be sent with.
        """
        address = parse_address(
            url, without=("/api/v1",), remedy="Give the address of `uncanny serve`, as http://HOST:PORT."
        )
        if address.authorization or address.parameters:
            raise UsageError(
                f"{redacted(url)!r} has more in it than the address of a service",
                remedy=f"Give http://HOST:PORT, and the token as {TOKEN_VARIABLE}.",
            )
        self.shown: Final = address.shown.rstrip("/")
        self.url: Final = address.url
        self._token = _checked_token(os.environ.get(TOKEN_VARIABLE) if token is None else token)
        self._patience_s = patience_s
        proxy = address.proxy
        self._secrets = (*([self._token] if self._token else ()), *(proxy.secrets if proxy else ()))
        self._http = httpx2.Client(
            base_url=address.url,
            timeout=httpx2.Timeout(_READ_S, connect=_CONNECT_S),
            limits=httpx2.Limits(keepalive_expiry=_KEEPALIVE_S),
            follow_redirects=False,
            # What the address says of proxies holds, not what the client would find itself.
            mounts=dict.fromkeys(("all://", "http://", "https://")) if proxy is None else None,
            proxy=None if proxy is None else proxy.url,
            headers={"Accept-Encoding": "identity", "User-Agent": f"uncanny/{__version__}"},
        )
        self._closed = threading.Event()
        self.was_reached = False
        """Whether there was an answer at this address, of whatever kind."""

    def __repr__(self) -> str:
        return f"<Connection {self.shown}>"

    def close(self) -> None:
        self._closed.set()
        self._http.close()

    def read(self, path: str, form: type[T] | TypeAdapter[T], params: Mapping[str, object] = {}) -> T:
        """What is at `path`, as `form`. Raises UsageError, ServiceError."""
        answer: T = self._answer("GET", path, form, params=params)
        return answer

    def write(
        self,
        method: Literal["POST", "DELETE"],
        path: str,
        form: type[T] | TypeAdapter[T] | None,
        *,
        key: str | None = None,
        again: bool = True,
        content: object = None,
        files: Sequence[FormFile] = (),
    ) -> T | None:
        """Send `content` as JSON, or `files` as a form; the answer as `form`, None where none is wanted.

        `key` is the idempotency key, with which the same request does nothing twice. `again` False is for
        what must not be said twice. Raises UsageError, ServiceError.
        """
        answer: T | None = self._answer(
            method, path, form, key=key, again=again, content=content, files=files
        )
        return answer

    @contextmanager
    def stream(
        self,
        path: str,
        params: Mapping[str, object] = {},
        *,
        headers: Mapping[str, str] = {},
        read_s: float = _READ_S,
    ) -> Iterator[httpx2.Response]:
        """An answer whose body is still to be read, whole or from where `headers` say.

        Raises UsageError, ServiceError; reading on raises `httpx2.HTTPError`, for `lost` to translate.
        """
        response = self._exchange(
            lambda: self._request("GET", path, params=params, headers=headers, timeout=read_s)
        )
        try:
            yield response
        finally:
            response.close()

    def lost(self, error: Exception) -> UncannyError:
        """What stands for an error of the connection."""
        return _of_exception(error, self.shown, self._secrets)

    def wait(self, seconds: float) -> None:
        """Wait, or until the connection is closed."""
        self._closed.wait(seconds)

    # One exchange.

    def _request(
        self,
        method: Method,
        path: str,
        *,
        params: Mapping[str, object] = {},
        headers: Mapping[str, str] = {},
        content: object = None,
        files: Sequence[FormFile] = (),
        timeout: float = _READ_S,
    ) -> httpx2.Request:
        known = {name: str(value) for name, value in params.items() if value is not None}
        all_headers = dict(headers)
        if self._token:
            all_headers["Authorization"] = f"Bearer {self._token}"
        body = None
        if content is not None:
            body = _as_json(content)
            all_headers["Content-Type"] = "application/json"
        return self._http.build_request(
            method,
            f"{API}/{path}",
            params=known,
            headers=all_headers,
            content=body,
            files=list(files) or None,
            timeout=httpx2.Timeout(timeout, connect=_CONNECT_S),
        )

    def _answer(
        self,
        method: Method,
        path: str,
        form: type[T] | TypeAdapter[T] | None,
        *,
        params: Mapping[str, object] = {},
        key: str | None = None,
        again: bool = True,
        content: object = None,
        files: Sequence[FormFile] = (),
    ) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}

        def request() -> httpx2.Request:
            return self._request(method, path, params=params, headers=headers, content=content, files=files)

        def whole(response: httpx2.Response) -> bytes:
            return self._body(response, LARGEST_ANSWER)

        body, version = self._read_all(request, whole, again=again)
        if form is None:
            return None
        adapter = form if isinstance(form, TypeAdapter) else TypeAdapter(form)
        try:
            return adapter.validate_python(orjson.loads(body))
        except (orjson.JSONDecodeError, ValidationError) as error:
            raise self._other_form(path, version, error) from None

    def _read_all(
        self, request: Callable[[], httpx2.Request], whole: Callable[[httpx2.Response], bytes], *, again: bool
    ) -> tuple[bytes, str | None]:
        """The body too is part of the exchange: one that is cut off is asked for again."""
        result: list[bytes] = []
        response = self._exchange(request, lambda response: result.append(whole(response)), again=again)
        return result[-1], response.headers.get(VERSION_HEADER)

    def _exchange(
        self,
        request: Callable[[], httpx2.Request],
        consume: Callable[[httpx2.Response], object] | None = None,
        *,
        again: bool = True,
    ) -> httpx2.Response:
        """Make a request, again where that is safe and helps, until patience is at its end.

        Safe is what reads, what does the same however often it is done, and what has an idempotency key:
        callers say with `again` that it is none of these. Whether it helps is known here: for what did not
        arrive or was cut off, and for what the server puts off. What never got to a server may always be
        sent again.
        """
        begun = time.monotonic()
        wait_s = _FIRST_WAIT_S
        while True:
            response: httpx2.Response | None = None
            asked_s: float | None = None
            try:
                response = self._http.send(request(), stream=True)
                self.was_reached = True
                self._check(response)
                if consume is not None:
                    consume(response)
                    response.close()
                return response
            except _LaterError as later:
                error, asked_s = later.error, later.wait_s
            except httpx2.HTTPError as broken:
                error = self.lost(broken)
                unsent = isinstance(broken, httpx2.ConnectError | httpx2.ConnectTimeout)
                if not isinstance(error, ServiceError) or not (again or unsent):
                    raise error from None
            except RuntimeError:
                if self._closed.is_set():
                    raise UsageError("The client is closed", remedy="Make another Client.") from None
                raise
            except UncannyError:
                if response is not None:
                    response.close()
                raise
            if response is not None:
                response.close()
            pause = max(wait_s * random.uniform(0.5, 1.0), min(asked_s or 0.0, 60.0))
            if self._closed.is_set() or time.monotonic() + pause - begun > self._patience():
                raise error from None
            self.wait(pause)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _patience(self) -> float:
        """A service that has answered comes back; an address at which there was never one is wrong."""
        return self._patience_s if self.was_reached else min(self._patience_s, _UNREACHED_S)

    def _check(self, response: httpx2.Response) -> None:
        """Raises what an answer that is no success stands for."""
        status = response.status_code
        if 200 <= status < 300:
            return
        if 300 <= status < 400:
            raise UsageError(
                f"{self.shown} sends on to {_host(response.headers.get('location', ''), self._secrets)}",
                remedy="Nothing was sent there. Give that address if it is the service's.",
            )
        try:
            body = self._body(response, _LARGEST_ERROR)
        except ServiceError:
            body = b""
        error = _of_status(status, body, response.headers, self.shown, self._secrets, bool(self._token))
        if status in _LATER:
            raise _LaterError(error, _seconds(response.headers.get("retry-after")))
        raise error

    def _body(self, response: httpx2.Response, most: int) -> bytes:
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise ServiceError(f"{self.shown} answers packed as {one_line(encoding, self._secrets)}")
        chunks: list[bytes] = []
        size = 0
        for chunk in response.iter_raw():
            size += len(chunk)
            if size > most:
                raise ServiceError(f"{self.shown} answers with more than {most:,} bytes")
            chunks.append(chunk)
        return b"".join(chunks)

    def _other_form(self, path: str, version: str | None, error: Exception) -> UncannyError:
        if version is None:
            return _no_service(self.shown, "its answer is not the service's")
        where = f"/{API}/{path.partition('?')[0]}"
        if isinstance(error, ValidationError):
            first = error.errors(include_input=False, include_url=False, include_context=False)[0]
            where += f", {'.'.join(map(str, first['loc']))}: {first['msg']}"
        theirs = one_line(version, self._secrets)
        words = f"{self.shown} runs uncanny {theirs}, and answers in a form that {__version__} does not know"
        return ServiceError(f"{words} ({where})", remedy="Use the same version on both sides.")


class _LaterError(Exception):
    """The same request may succeed later, not before `wait_s` seconds where that is not None."""

    def __init__(self, error: UncannyError, wait_s: float | None) -> None:
        super().__init__(str(error))
        self.error, self.wait_s = error, wait_s


def new_key() -> str:
    """An idempotency key that nobody has used."""
    return uuid.uuid4().hex


def part(name: str) -> str:
    """A name as one or several parts of an address."""
    return quote(name, safe="/")


def _as_json(content: object) -> bytes:
    try:
        return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)
    except (TypeError, ValueError) as error:
        raise UsageError(f"What is to be sent cannot be written as JSON: {error}") from None


def _checked_token(token: str | None) -> str | None:
    if token is None or not token.strip():
        return None
    token = token.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise UsageError(
            "The token of the service has characters that no token has",
            remedy=f"Set {TOKEN_VARIABLE} to what `uncanny token add` printed.",
        )
    return token


def _host(location: str, secrets: Sequence[str]) -> str:
    """Where a redirect leads, without path and parameters, which may be anything."""
    try:
        parts = urlsplit(location)
        host = parts.hostname
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        host, port = None, ""
    return one_line(f"{parts.scheme}://{host}{port}", secrets) if host else "another page"


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 7 else None


def _no_service(shown: str, why: str) -> UsageError:
    return UsageError(
        f"{shown} is no service of uncanny: {why}", remedy="Give the address that `uncanny serve` prints."
    )


def _of_exception(error: Exception, shown: str, secrets: Sequence[str]) -> UncannyError:
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
        return ServiceError(f"{shown} did not answer in {duration(_READ_S)}", remedy="Try again later.")
    return ServiceError(f"The connection to {shown} broke: {text}", remedy="Try again; nothing is lost.")


def _of_status(
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
    if status in _LATER or status >= 500:
        return ServiceError(f"{shown} answers with error {status}{f': {words}' if words else ''}")
    if status == 413:
        return UsageError(f"Something before {shown} takes no request so large (413)")
    return _no_service(shown, f"it answers with {status} and {one_line(kind, secrets)}")
