"""What all routes of the service share: how a body is read, which keys are taken, and the audit log.

FastAPI's own reading takes NaN, lone surrogates and any number of bytes, and ignores keys it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, StringConstraints
from sqlalchemy import Connection

from uncanny.service import ID_PATTERNS, Role
from uncanny.service.api.auth import SECURITY, Who, address_of, let_in, role_of
from uncanny.service.api.errors import ApiError
from uncanny.service.safety import BoundedRequest, BoundedRoute, Handler
from uncanny.service.service import Service
from uncanny.service.store.database import WRITTEN, Written

PREFIX: Final = "/api/v1"
JSON_BYTES: Final = 1024 * 1024


class Bounded(BaseModel):
    """Base of bodies: no further keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# Text without what no database takes, or what hides in a line of a page.
PLAIN: Final = r"^[^\x00-\x1f\x7f]*$"
Title = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=PLAIN)]


JobId = Annotated[str, Path(pattern=ID_PATTERNS["job"], examples=["job_aaaaaaaaaaaaaaaaaaaa"])]
SetId = Annotated[str, Path(pattern=ID_PATTERNS["set"], examples=["set_aaaaaaaaaaaaaaaaaaaa"])]
FileId = Annotated[str, Path(pattern=ID_PATTERNS["file"], examples=["file_aaaaaaaaaaaaaaaaaaaa"])]
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=200,
        pattern=r"^[\x21-\x7e]+$",
        description="Makes it one, however often it is sent: the same key and content get the same answer.",
        examples=["2f1c9c0e5d2a4c1c8d0e3b7f6a5b4c3d"],
    ),
]


def service_of(request: Request) -> Service:
    service = request.app.state.service
    assert isinstance(service, Service)
    return service


async def _service(request: Request) -> Service:
    return service_of(request)  # a plain function would be called in a thread


Kept = Annotated[Service, Depends(_service)]


class Note:
    """The audit line of a request that changes something, called in the transaction that does it.

    What was changed is named by the path, unless `subject` says it.
    """

    def __init__(self, request: Request) -> None:
        self._request = request
        self.subject: str | None = next(iter(map(str, request.path_params.values())), None)
        self.details: Mapping[str, Any] | None = None
        self.written = False
        request.state.note = self

    def __call__(self, connection: Connection) -> None:
        request = self._request
        who: Who = request.state.who
        service_of(request).audit.add(
            connection,
            who.name,
            who.role,
            request.scope["route"].name,
            subject=self.subject,
            address=address_of(request),
            details=self.details,
        )
        self.written = True


async def _note(request: Request) -> Note:
    return Note(request)


Noted = Annotated[Note, Depends(_note)]


class _JsonRequest(BoundedRequest):
    most = JSON_BYTES


class GuardedRoute(BoundedRoute):
    """A route that asks for the role its dependencies name before anything of a request is read.

    Dependencies alone come too late: the framework reads a body before the first of them.
    """

    def get_route_handler(self) -> Handler:
        handle, roles = self.inner_handler(), roles_of(self)

        async def handle_known(request: Request) -> Response:
            for role in roles:
                await let_in(request, role)
            # Of what is written from here on, also in other threads, an error has to know.
            WRITTEN.set(Written())
            return await handle(request)

        return handle_known

    def inner_handler(self) -> Handler:
        """What handles a request that was let in."""
        return super().get_route_handler()


class Route(GuardedRoute):
    """A route that also refuses query keys it does not know.

    One that changes something takes a `Note`, and hands it to what does it.
    """

    request = _JsonRequest

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        if roles_of(self):
            self.openapi_extra = {**(self.openapi_extra or {}), "security": SECURITY}

    def inner_handler(self) -> Handler:
        handle = super().inner_handler()
        known = frozenset(_query_names(self.dependant))

        async def handle_asked(request: Request) -> Response:
            unknown = next((name for name in request.query_params if name not in known), None)
            if unknown is not None:
                raise ApiError(
                    422, "The address has a query key that is not known.", code="unknown_key", field="query"
                )
            return await handle(request)

        return handle_asked


def roles_of(route: APIRoute) -> list[Role]:
    """The roles that a route wants, by its dependencies; none for one that is open to everybody."""
    return list(_roles(route.dependant))


def _roles(dependant: Dependant) -> Iterator[Role]:
    for each in dependant.dependencies:
        if (role := role_of(each.call)) is not None:
            yield role
        yield from _roles(each)


def _query_names(dependant: Dependant) -> Iterator[str]:
    for field in dependant.query_params:
        yield field.alias
    for each in dependant.dependencies:
        yield from _query_names(each)


def answer_of(media_type: str, description: str, **content: Any) -> dict[int | str, dict[str, Any]]:
    """`responses` of a route that answers 200 with something other than a model: its schema, an example."""
    return {200: {"description": description, "content": {media_type: content}}}


def routes(tag: str, prefix: str = PREFIX) -> APIRouter:
    """An empty part of the interface."""
    return APIRouter(prefix=prefix, tags=[tag], route_class=Route)
