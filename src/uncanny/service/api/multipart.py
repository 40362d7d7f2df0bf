"""A multipart body taken apart while it comes in, so that a limit ends it where it is passed.

The framework's form parser first keeps all files of a request, of whatever size.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from uncanny.service.api.errors import ApiError

# It writes what a client has sent to the log, which is the operator's.
logging.getLogger("python_multipart").addHandler(logging.NullHandler())
logging.getLogger("python_multipart").propagate = False
_CALLBACKS: Final = (
    *("part_begin", "header_field", "header_value", "header_end"),
    *("headers_finished", "part_data", "part_end", "end"),
)
_UNREADABLE: Final = "The body is not readable as multipart/form-data."


class Begin(NamedTuple):
    """A file begins. `field` and `name` are as the client says."""

    field: str
    name: str


# Some bytes of the file that has begun; None where it is all there.
Event = Begin | bytes | None


async def events(request: Request, *, most_bytes: int, most_files: int) -> AsyncIterator[Event]:
    """The files of a body, in their order.

    Raises ApiError: 415 for another type, 413 past a limit, 400 for what cannot be read or is cut off, 422
    where a part is no file.
    """
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise ApiError(415, "The body must be multipart/form-data with a boundary.")
    if request.headers.get("content-encoding", "identity") != "identity":
        raise ApiError(415, "The body must not be compressed.")
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length[:20]) > most_bytes:
        raise ApiError(413, f"The body is larger than {most_bytes:,} bytes.")
    parts = _Parts(options[b"boundary"], most_files)
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most_bytes:
            raise ApiError(413, f"The body is larger than {most_bytes:,} bytes.")
        for event in parts.feed(chunk):
            yield event
    if not parts.complete:
        raise ApiError(400, "The body is cut off.")


class _Parts:
    """What the parser calls becomes a list of events a chunk."""

    def __init__(self, boundary: bytes, most_files: int) -> None:
        self.complete = False
        self._events: list[Event] = []
        self._most_files, self._files = most_files, 0
        self._name = self._value = b""
        self._disposition = b""
        callbacks: Any = {f"on_{name}": getattr(self, f"_{name}") for name in _CALLBACKS}
        try:
            self._parser = MultipartParser(boundary, callbacks)
        except FormParserError:
            raise ApiError(400, _UNREADABLE) from None

    def feed(self, chunk: bytes) -> list[Event]:
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise ApiError(400, _UNREADABLE) from None
        events, self._events = self._events, []
        return events

    def _part_begin(self) -> None:
        self._disposition = b""

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_end(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"filename" not in options:
            raise ApiError(422, "Only files are accepted, and a part has no file name.", field="body")
        self._files += 1
        if self._files > self._most_files:
            raise ApiError(413, f"More than {self._most_files:,} files in one request.")
        name = options[b"filename"].decode("utf-8", "replace")
        self._events.append(Begin(options.get(b"name", b"").decode("utf-8", "replace"), name))

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        self._events.append(data[start:end])

    def _part_end(self) -> None:
        self._events.append(None)

    def _end(self) -> None:
        self.complete = True
