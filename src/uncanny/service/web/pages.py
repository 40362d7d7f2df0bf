"""The pages of the service as an application, below which nothing changes anything but what people review.

Pages are made here from what the database and the job folders hold, with everything escaped. What a person
starts, cancels, retries, uploads or deletes goes from the page's script to the HTTP interface, as any other
program's request does, so that roles, limits and the audit log have one door.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, cast, get_args
from urllib.parse import urlencode

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from pydantic import StringConstraints

from uncanny.errors import NotFoundError
from uncanny.service import State
from uncanny.service.api.auth import clear_session, for_readers, gate_of, set_session, who_of
from uncanny.service.api.errors import ApiError
from uncanny.service.api.routes import GuardedRoute
from uncanny.service.jobs.kinds import KINDS
from uncanny.service.pictures import Pictures
from uncanny.service.safety import Body
from uncanny.service.service import Service
from uncanny.service.web.job_page import add_job_pages
from uncanny.service.web.new_page import add_new_pages
from uncanny.service.web.report_page import add_report_pages
from uncanny.service.web.review_pages import add_review_pages
from uncanny.service.web.site import ASSETS, Site
from uncanny.service.web.views import STATES, JobView

PAGE: Final = 50


class _Token(Body):
    token: Annotated[str, StringConstraints(max_length=200, strip_whitespace=True)]


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the pages to the application of the service, and make its errors pages where a browser asks."""
    site = Site(service, Pictures(service.folders))
    app.state.error_page = site.error_page
    router = APIRouter(include_in_schema=False, route_class=GuardedRoute)
    ASSETS.serve(router)
    _entrance(router, site)
    _list(router, site)
    add_new_pages(router, site)
    add_job_pages(router, site)
    add_report_pages(router, site)
    app.include_router(router)
    add_review_pages(app, site)


def _entrance(router: APIRouter, site: Site) -> None:
    @router.get("/login")
    def login(request: Request) -> Response:
        who = who_of(request)
        if who is not None and who.via == "local":
            return RedirectResponse("./", 303)  # nobody has to sign in
        return site.page(request, "login.html.j2", title="Sign in")

    @router.post("/login")
    def log_in(request: Request, body: _Token) -> Response:
        session = gate_of(request).log_in(request, body.token)
        if session is None:
            raise ApiError(401, "This token is not valid or was revoked.")
        response = Response(status_code=204)
        set_session(request, response, session)
        return response

    @router.post("/logout")
    def log_out(request: Request) -> Response:
        gate_of(request).log_out(request)
        response = Response(status_code=204)
        clear_session(response)
        return response


def _list(router: APIRouter, site: Site) -> None:
    @router.get("/", dependencies=for_readers)
    def jobs(request: Request, state: str = "", kind: str = "", before: str = "") -> HTMLResponse:
        """The list, or with the header `X-Part` only its rows."""
        wanted = cast("State", state) if state in get_args(State) else None
        of_kind = kind if kind in KINDS else None
        try:
            page = site.service.jobs.page(state=wanted, kind=of_kind, limit=PAGE, before=before or None)
        except NotFoundError:
            raise ApiError(404, "The job that this page of the list begins after is gone.") from None
        shown = page.jobs
        filters = {name: value for name, value in (("state", wanted), ("kind", of_kind)) if value}
        content: dict[str, Any] = {
            "jobs": [JobView(job) for job in shown],
            "moving": not shown or any(job.state in ("queued", "running") for job in shown),
            "filtered": bool(filters or before),
            "before": before,
            "query": _query(filters | ({"before": before} if before else {})),
            "newest": _query(filters),
            "older": _query(filters | {"before": page.next}) if page.next else "",
        }
        if "x-part" in request.headers:
            return site.page(request, "rows.html.j2", **content)
        return site.page(
            request,
            "jobs.html.j2",
            here="jobs",
            title="Jobs",
            states={"": "all", **STATES},
            state=wanted or "",
            kinds=list(KINDS),
            kind=of_kind or "",
            **content,
        )


def _query(values: dict[str, str]) -> str:
    return f"?{urlencode(values)}" if values else ""
