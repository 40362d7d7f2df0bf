"""The application of the service: its interface, and what pages are added to it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from socket import gethostname
from typing import Annotated, Any, Final, Literal

from fastapi import FastAPI, Query
from pydantic import ConfigDict
from starlette.types import ASGIApp

from uncanny import __version__
from uncanny.service.answers import AuditPage, Who
from uncanny.service.api import events, health, jobs, results, uploads, verdicts
from uncanny.service.api.auth import (
    SECURITY_SCHEMES,
    Gate,
    RateLimiter,
    Rates,
    Reader,
    ambient,
    for_operators,
)
from uncanny.service.api.errors import add_handlers, described, refuse
from uncanny.service.api.health import Measured, Metrics, WorkerAlive
from uncanny.service.api.routes import Kept, Route, routes
from uncanny.service.jobs.kinds import KINDS
from uncanny.service.listen import HOST, is_loopback
from uncanny.service.review.runs import ReviewRuns
from uncanny.service.safety import LOOPBACK, Guard
from uncanny.service.service import Service

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
    )
    app.router.route_class = Route
    state = app.state
    state.service, state.worker_alive = service, worker_alive
    state.gate = Gate(service, RateLimiter(rates or Rates()), tokens_needed=tokens_needed)
    state.review_runs = ReviewRuns()
    state.metrics = Metrics(service, worker_alive)
    state.ending, state.streams, state.error_page = threading.Event(), Counter[str](), None
    add_handlers(app)
    for router in (_SERVICE, *(part.ROUTER for part in (jobs, events, results, verdicts, uploads, health))):
        app.include_router(router)
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _with_params(described(describe()))
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


class Me(Who):
    """Who asks: by a token, by a session of a browser, or from this machine while there is no token."""

    model_config = ConfigDict(from_attributes=True)

    via: Literal["local", "token", "session"]


_SERVICE: Final = routes("service")


@_SERVICE.get("/me", summary="Who I am")
async def me(who: Reader) -> Me:
    """Name and role of the token, or of everybody on this machine while there is no token."""
    return Me.model_validate(who)


@_SERVICE.get("/audit", summary="Who changed what", dependencies=for_operators)
def audit(
    service: Kept,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Annotated[int | None, Query(ge=1, le=2**62, description="`next` of the page before.")] = None,
) -> AuditPage:
    """Every change that was done, and every login that failed; the newest first."""
    return service.audit.page(limit=limit, before=before)


def _with_params(schema: dict[str, Any]) -> dict[str, Any]:
    """The description of the interface, with the parameters of every kind in that of a new job."""
    schemas: dict[str, Any] = schema["components"]["schemas"]
    variants = []
    for name, kind in KINDS.items():
        own = kind.params.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas |= own.pop("$defs", {})
        schemas[kind.params.__name__] = own
        params = {"$ref": f"#/components/schemas/{kind.params.__name__}"}
        properties = {"kind": {"const": name}, "params": params}
        variants.append({"title": kind.protocol.title, "properties": properties})
    schemas["NewJob"]["oneOf"] = variants
    return schema
