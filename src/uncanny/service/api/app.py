"""The application of the service: its interface, and what pages are added to it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from socket import gethostname
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from uncanny import __version__
from uncanny.service.api.auth import Gate, Reader, ambient
from uncanny.service.api.errors import add_handlers, answers, refuse
from uncanny.service.api.rates import RateLimiter, Rates
from uncanny.service.api.routes import Route
from uncanny.service.listen import HOST, is_loopback
from uncanny.service.safety import LOOPBACK, Guard
from uncanny.service.service import Service

PREFIX: Final = "/api/v1"
_ABOUT: Final = """Jobs of uncanny over HTTP: each job is one of its commands, run by the service.

Send a token as `Authorization: Bearer …`. Errors are `{"error": {"code", "message", "field"?}}`. Keys of
queries and bodies that are not described are refused. Moments are UTC.
"""


def service_app(service: Service, *, tokens_needed: bool = False, rates: Rates | None = None) -> FastAPI:
    """The application, to be put behind `guarded`.

    `app.state` has `service`, `gate` (who asks) and `ending`, an event that is set when the server ends.
    With `tokens_needed`, as beyond loopback, nobody is let in without a token.
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
    app.state.service = service
    app.state.gate = Gate(service, RateLimiter(rates or Rates()), tokens_needed=tokens_needed)
    app.state.ending = threading.Event()
    app.state.error_page = None
    add_handlers(app)
    api = APIRouter(prefix=PREFIX, route_class=Route)
    _me(api)
    app.include_router(api)
    return app


def guarded(app: FastAPI, *, host: str = HOST, names: Sequence[str] = ()) -> ASGIApp:
    """The application as it is served: behind what keeps other sites, hosts and slow bodies out.

    `host` is where it listens; beyond loopback it may also be asked for by address, and by this machine's
    name. `names` are those it has besides, as at a proxy.
    """
    known = [*LOOPBACK, *names]
    if not is_loopback(host):
        known += [gethostname(), f"[{host}]" if ":" in host else host]
    return Guard(app, known, any_address=not is_loopback(host), ambient=ambient, refuse=refuse)


def _me(api: APIRouter) -> None:
    @api.get("/me", tags=["service"], summary="Who I am", responses=answers(400, 401, 403, 422, 429))
    def me(who: Reader) -> dict[str, Any]:
        """Name and role of the token, or of everybody on this machine while there is no token."""
        return {"name": who.name, "role": who.role, "via": who.via}
