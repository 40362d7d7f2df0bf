"""What goes wrong, as the interface answers it: `{"error": {"code", "message", "field"?}}` and a status.

What a request held is never in an answer: neither in the words of a check that failed, nor in a log.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, TypedDict, Unpack
from urllib.parse import quote

import orjson
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy.exc import OperationalError
from sqlalchemy.exc import TimeoutError as SqlTimeoutError
from starlette.routing import Match
from starlette.types import Scope

from uncanny.errors import (
    ConflictError,
    NotFoundError,
    ParamsError,
    ReviewConflictError,
    RunLockedError,
    StorageError,
    UncannyError,
    text_of,
    writable,
)
from uncanny.parameters import in_words
from uncanny.service.jobs.params import PATTERNS
from uncanny.service.safety import BodyError
from uncanny.service.store.database import WRITTEN
from uncanny.wording import rendered

API: Final = "/api/"
_LOG: Final = logging.getLogger("uncanny.service")
_MOST_MESSAGE: Final = 600
_MEANING: Final[Mapping[int, tuple[str, str]]] = {
    400: ("bad_request", "The request cannot be read: no JSON, no multipart, or a host not served here."),
    401: ("unauthorized", "A token is needed, or the one that was sent is not valid."),
    403: ("forbidden", "This role may not do that, or a page of another site asks for it."),
    404: ("not_found", "There is nothing of that id or name."),
    405: ("method_not_allowed", "This address does not know that method."),
    408: ("too_slow", "The body did not come in time."),
    409: ("conflict", "Not in the state in which this can be done, or the key came with another request."),
    413: ("too_large", "The body is larger than what is taken."),
    415: ("unsupported_media_type", "The body is of another type than what is asked for."),
    416: ("range_not_satisfiable", "The file has no such range."),
    422: ("invalid", "A value does not fit; `field` says which."),
    429: ("too_many_requests", "Too many requests; `Retry-After` says for how many seconds to wait."),
    500: ("internal", "Something went wrong here."),
    503: ("unavailable", "The service cannot answer now."),
    507: ("storage", "What came in cannot be kept: the disk takes no more."),
}


class ErrorBody(BaseModel):
    """What went wrong: `code` for programs, `message` for people, `field` where one value is to blame."""

    model_config = ConfigDict(frozen=True)

    code: Annotated[str, Field(examples=["not_found"])]
    message: Annotated[str, Field(examples=["There is no such job."])]
    field: str | None = None


class ErrorAnswer(BaseModel):
    """The answer to whatever could not be done."""

    model_config = ConfigDict(frozen=True)

    error: ErrorBody


class ApiError(HTTPException):
    """Raised by routes. `code` is the status' own where none is given."""

    def __init__(
        self,
        status: int,
        message: str | None = None,
        *,
        code: str | None = None,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        own, meaning = _MEANING.get(status, ("error", "It could not be done."))
        super().__init__(status, message or meaning, headers=dict(headers or {}))
        self.code, self.field = code or own, field


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses` of a route: these statuses with what they mean here and an example.

    Those of every route like it come by themselves (`described`).
    """
    documented: dict[int | str, dict[str, Any]] = {}
    for status in statuses:
        code, meaning = _MEANING[status]
        example = {"error": {"code": code, "message": meaning}}
        content = {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}, "example": example}
        documented[status] = {"description": meaning, "content": {"application/json": content}}
    return documented


def described(schema: dict[str, Any]) -> dict[str, Any]:
    """The description of the interface, with the errors that any route of its form may answer."""
    model = ErrorAnswer.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas = schema["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):  # the framework's own
        schemas.pop(unused, None)
    schemas |= {**model.pop("$defs"), "ErrorAnswer": model}
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            statuses = {400, 422}
            statuses |= {401, 403, 429} if "security" in operation else set()
            statuses |= {404} if "{" in path else set()
            statuses |= {408, 413, 415} if "requestBody" in operation else set()
            statuses |= {409} if method in ("post", "delete") else set()
            errors = {str(status): about for status, about in answers(*statuses).items()}
            operation["responses"] = dict(sorted((operation["responses"] | errors).items()))
    return schema


class About(TypedDict, total=False):
    """What an error says besides its status and message."""

    code: str | None
    field: str | None
    headers: Mapping[str, str]


def error_response(status: int, message: str, **about: Unpack[About]) -> Response:
    code = about.get("code") or _MEANING.get(status, ("error", ""))[0]
    error = {"code": code, "message": _short(rendered(message, "service"))}
    if (field := about.get("field")) is not None:
        error["field"] = _short(field)
    return Response(orjson.dumps({"error": error}), status, about.get("headers"), "application/json")


def refuse(_: Scope, status: int, message: str) -> Response:
    """For `safety.Guard`, which knows no application."""
    return error_response(status, message)


def add_handlers(app: FastAPI) -> None:
    """Every error becomes an answer here; a page of the service may give its own (`app.state.error_page`)."""
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(404, _http)
    app.add_exception_handler(405, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(UncannyError, _uncanny)
    # Both are what SQLAlchemy says of a database that is away, locked or full.
    app.add_exception_handler(OperationalError, _no_database)
    app.add_exception_handler(SqlTimeoutError, _no_database)
    app.add_exception_handler(Exception, _unexpected)


async def _http(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    headers = dict(getattr(error, "headers", None) or {})
    if status == 204:
        return Response(status_code=204, headers=headers)
    code, field = getattr(error, "code", None), getattr(error, "field", None)
    message = str(getattr(error, "detail", "It could not be done."))
    if status in _MEANING and not isinstance(error, ApiError | BodyError):
        message = _MEANING[status][1]  # the framework's words say how it is built
    if status == 405:
        headers["Allow"] = ", ".join(allowed_methods(request))
    if status == 401:
        headers.setdefault("WWW-Authenticate", "Bearer")
    return _answer(request, status, message, code=code, field=field, headers=headers)


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = [str(part) for part in first["loc"] if isinstance(part, str | int)]
    if first["type"] == "json_invalid":
        return _answer(request, 400, "The body is not valid JSON.", code="bad_json")
    # The place starts with what it is part of: path, query, header, body.
    field = ".".join(where[1:]) or where[0]
    words = in_words(first, PATTERNS)
    message = f"{field}: {words}." if field else f"{words[:1].upper()}{words[1:]}."
    return _answer(request, 422, message, field=field)


async def _uncanny(request: Request, error: Exception) -> Response:
    assert isinstance(error, UncannyError)
    match error:
        case NotFoundError():
            status = 404
        case ConflictError() | ReviewConflictError() | RunLockedError():
            status = 409
        case StorageError():
            status = 507
        case _:
            status = 422
    field = error.fields[0][0] if isinstance(error, ParamsError) and error.fields else None
    return _answer(request, status, error.text, field=field)


async def _no_database(request: Request, error: Exception) -> Response:
    """Where nothing was written the same may simply be asked again; else nobody knows here how far it got."""
    _LOG.warning("The database does not answer: %s", text_of(error).partition("\n")[0])
    if not hasattr(request.state, "who"):
        request.state.who = None  # a page of an error would ask once more who this is
    original = getattr(error, "orig", None)
    if isinstance(original, sqlite3.Error) and original.sqlite_errorcode == sqlite3.SQLITE_FULL:
        return _answer(request, 507, "The disk of the service is full. Free some space there.")
    written = WRITTEN.get()
    if written is None or not written.maybe:
        changes = request.method not in ("GET", "HEAD")
        message = "The database does not answer, and nothing was changed. Try again in a moment."
        return _answer(request, 503, message if changes else _MEANING[503][1], headers={"Retry-After": "2"})
    return _answer(request, 500, "The database does not answer; look whether the change was made.")


async def _unexpected(request: Request, _: Exception) -> Response:
    """Of what nobody thought of nothing is told outside; the server's own log has it."""
    return _answer(request, 500, _MEANING[500][1])


def _answer(request: Request, status: int, message: str, **about: Unpack[About]) -> Response:
    page: Callable[[Request, int, str], Response] | None = getattr(request.app.state, "error_page", None)
    wants_page = request.method in ("GET", "HEAD") and "text/html" in request.headers.get("accept", "")
    if page is None or not wants_page or request.url.path.startswith(API):
        return error_response(status, message, **about)
    if status == 401:
        back = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        return RedirectResponse(f"/login?next={quote(back, safe='/')}", 303)
    answer = page(request, status, _short(rendered(message, "service")))
    for name, value in about.get("headers", {}).items():
        answer.headers.setdefault(name, value)
    return answer


def allowed_methods(request: Request) -> Sequence[str]:
    """Of all routes with this address; the framework names those of the first one only."""
    methods: set[str] = set()
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE"):
        scope = dict(request.scope) | {"method": method}
        if any(route.matches(scope)[0] == Match.FULL for route in request.app.router.routes):
            methods.add(method)
    return sorted(methods)


def _short(text: str) -> str:
    text = writable(text)
    return text if len(text) <= _MOST_MESSAGE else text[: _MOST_MESSAGE - 1] + "…"
