"""The application of the service: its interface, and what pages are added to it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from socket import gethostname
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, FastAPI
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import ASGIApp

from uncanny import __version__
from uncanny.service import Role
from uncanny.service.api.audit import add_audit_routes
from uncanny.service.api.auth import SECURITY_SCHEMES, Gate, Reader, ambient
from uncanny.service.api.errors import add_handlers, answers, refuse
from uncanny.service.api.events import add_event_routes
from uncanny.service.api.health import Measured, Metrics, WorkerAlive, add_health_routes
from uncanny.service.api.jobs import add_job_routes, with_params
from uncanny.service.api.rates import RateLimiter, Rates
from uncanny.service.api.results import add_result_routes
from uncanny.service.api.routes import Route, answer
from uncanny.service.api.uploads import add_upload_routes
from uncanny.service.api.verdicts import add_verdict_routes
from uncanny.service.listen import HOST, is_loopback
from uncanny.service.review.runs import ReviewRuns
from uncanny.service.safety import LOOPBACK, Guard
from uncanny.service.service import Service

PREFIX: Final = "/api/v1"
VERSION_HEADER: Final = "uncanny-version"
_ABOUT: Final = """Jobs of uncanny over HTTP: each job is one of its commands, run by the service.

Send a token as `Authorization: Bearer …`. Errors are `{"error": {"code", "message", "field"?}}`. Keys of
queries and bodies that are not described are refused. Moments are UTC.
"""


def service_app(
    service: Service,
    *,
    tokens_needed: bool = False,
    rates: Rates | None = None,
    worker_alive: WorkerAlive = lambda: None,
) -> FastAPI:
    """The application, to be served `guarded`.

    Its `state` has `service`, `gate` (who asks), `review_runs`, and `ending`, an event to be set when the
    server ends: streams end then. With `tokens_needed`, as beyond loopback, nobody is let in without a token.
    """
    app = FastAPI(
        title="uncanny",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.router.route_class = Route
    state = app.state
    state.service, state.worker_alive = service, worker_alive
    state.gate = Gate(service, RateLimiter(rates or Rates()), tokens_needed=tokens_needed)
    state.review_runs = ReviewRuns()
    state.metrics = Metrics(service, worker_alive)
    state.ending, state.streams, state.error_page = threading.Event(), Counter[str](), None
    add_handlers(app)
    api = APIRouter(prefix=PREFIX, route_class=Route)
    _add_me(api)
    for add in (add_job_routes, add_event_routes, add_result_routes, add_verdict_routes):
        add(api)
    add_upload_routes(api)
    add_audit_routes(api)
    app.include_router(api)
    outside = APIRouter(route_class=Route)
    add_health_routes(outside)
    app.include_router(outside)
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = with_params(describe())
            app.openapi_schema["components"]["securitySchemes"] = SECURITY_SCHEMES
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
    app.add_middleware(Measured, metrics=state.metrics)
    return app


def guarded(app: FastAPI, *, host: str = HOST, names: Sequence[str] = ()) -> ASGIApp:
    """The application as it is served: behind what keeps other sites, hosts and slow bodies out.

    `host` is where it listens; beyond loopback it may also be asked for by address, and by this machine's
    name. `names` are those it has besides, as at a proxy.
    """
    known = [*LOOPBACK, *names]
    if not is_loopback(host):
        known += [gethostname(), f"[{host}]" if ":" in host else host]
    return Guard(
        app,
        known,
        any_address=not is_loopback(host),
        ambient=ambient,
        refuse=refuse,
        headers={VERSION_HEADER: __version__},
    )


class Me(BaseModel):
    """Who asks: by a token, by a session of a browser, or from this machine while there is no token."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    name: Annotated[str, Field(examples=["ann"])]
    role: Role
    via: Literal["local", "token", "session"]


def _add_me(api: APIRouter) -> None:
    @api.get(
        "/me",
        tags=["service"],
        summary="Who I am",
        response_model=Me,
        responses=answers(400, 401, 403, 422, 429),
    )
    async def me(who: Reader) -> Any:
        """Name and role of the token, or of everybody on this machine while there is no token."""
        return answer(Me.model_validate(who))
