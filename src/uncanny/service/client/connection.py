"""One HTTP exchange with a service: where it goes, what comes back, when it is made again, its errors.

The token goes to the address that the user gave and nowhere else: redirects are not followed. What comes back
is bounded in size. `Connection._exchange` is the one place where a request is made again.
"""

from __future__ import annotations

import os
import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, Protocol, TypeVar
from urllib.parse import quote

import httpx2
import orjson
from pydantic import TypeAdapter, ValidationError

from uncanny import __version__
from uncanny.errors import ServiceError, UncannyError, UsageError
from uncanny.models.addresses import parse_address, redacted, warn_of_open
from uncanny.models.error_body import one_line
from uncanny.service.client.failures import (
    LATER,
    READ_S,
    TOKEN_VARIABLE,
    host_of,
    no_service,
    of_exception,
    of_status,
)

T = TypeVar("T")


class Page(Protocol):
    """A part of what there is; `next` leads to the following one."""

    @property
    def next(self) -> str | None: ...


P = TypeVar("P", bound=Page)
API: Final = "api/v1"
VERSION_HEADER: Final = "uncanny-version"
LARGEST_ANSWER: Final = 64 * 1024 * 1024
"""Bytes of a JSON answer after which no more is read. A page of records or files is far smaller."""
_LARGEST_ERROR: Final = 64 * 1024
_CONNECT_S: Final = 15.0
_KEEPALIVE_S: Final = 4.0
_FIRST_WAIT_S: Final = 0.25
_LONGEST_WAIT_S: Final = 8.0
_UNREACHED_S: Final = 3.0
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
                f"{redacted(url)!r} is more than the address of a service",
                remedy=f"Give http://HOST:PORT, and the token as {TOKEN_VARIABLE}.",
            )
        self.shown: Final = address.shown.rstrip("/")
        self.url: Final = address.url
        self._token = _checked_token(os.environ.get(TOKEN_VARIABLE) if token is None else token)
        self._patience_s = patience_s
        warn_of_open(address, "The token of the service", self._token or "")
        proxy = address.proxy
        self._secrets = (*([self._token] if self._token else ()), *(proxy.secrets if proxy else ()))
        self._http = httpx2.Client(
            base_url=address.url,
            timeout=httpx2.Timeout(READ_S, connect=_CONNECT_S),
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

    def pages(
        self, path: str, form: type[P], params: Mapping[str, object] = {}, *, by: str = "after"
    ) -> Iterator[P]:
        """What is at `path`, page by page as they are wanted; `by` is the parameter that names the next one.

        Raises UsageError, ServiceError.
        """
        at: str | None = None
        while True:
            page = self.read(path, form, {**params, by: at})
            yield page
            if page.next is None or page.next == at:
                return
            at = page.next

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
        read_s: float = READ_S,
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
        return of_exception(error, self.shown, self._secrets)

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
        timeout: float = READ_S,
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

        bodies: list[bytes] = []

        def whole(response: httpx2.Response) -> None:
            bodies.append(self._body(response, LARGEST_ANSWER))

        # The body too is part of the exchange: one that is cut off is asked for again.
        response = self._exchange(request, whole, again=again)
        if form is None:
            return None
        adapter = form if isinstance(form, TypeAdapter) else TypeAdapter(form)
        try:
            return adapter.validate_python(orjson.loads(bodies[-1]))
        except (orjson.JSONDecodeError, ValidationError) as error:
            raise self._other_form(path, response.headers.get(VERSION_HEADER), error) from None

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
                    if response is not None:
                        response.close()
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
            # A service that has answered comes back; an address at which there was never one is wrong.
            patience_s = self._patience_s if self.was_reached else min(self._patience_s, _UNREACHED_S)
            if self._closed.is_set() or time.monotonic() + pause - begun > patience_s:
                raise error from None
            self.wait(pause)
            wait_s = min(2 * wait_s, _LONGEST_WAIT_S)

    def _check(self, response: httpx2.Response) -> None:
        """Raises what an answer that is no success stands for."""
        status = response.status_code
        if 200 <= status < 300:
            return
        if 300 <= status < 400:
            raise UsageError(
                f"{self.shown} redirects to {host_of(response.headers.get('location', ''), self._secrets)}",
                remedy="uncanny sent nothing there. If it is the service, give that address.",
            )
        try:
            body = self._body(response, _LARGEST_ERROR)
        except ServiceError:
            body = b""
        error = of_status(status, body, response.headers, self.shown, self._secrets, bool(self._token))
        if status in LATER:
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
            return no_service(self.shown, "its answer is not the service's")
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
        raise UsageError(f"The request cannot be written as JSON: {error}") from None


def _checked_token(token: str | None) -> str | None:
    if token is None or not token.strip():
        return None
    token = token.strip()
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise UsageError(
            "The token of the service contains invalid characters",
            remedy=f"Set {TOKEN_VARIABLE} to what `uncanny token add` printed.",
        )
    return token


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 7 else None
