"""What all pages are made with: the service, who asks, templates, files that pages load, pages of errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import quote

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, PackageLoader, StrictUndefined

from uncanny.eval.common.page import breakable
from uncanny.service.api.auth import Who, count, who_of
from uncanny.service.api.errors import ApiError
from uncanny.service.assets import KEPT, base_of
from uncanny.service.pictures import Pictures
from uncanny.service.service import Service
from uncanny.service.store.tokens import Role
from uncanny.service.web.records import RecordIndexes

ROLES: Final[Mapping[Role, str]] = {
    "reader": "may look at everything",
    "reviewer": "may look at everything and judge findings",
    "operator": "may do everything: upload, start, cancel, delete",
}
# Where pages find what they load; the script of htmx is the one of the review page.
_FILES: Final[Mapping[str, tuple[str, str, str]]] = {
    "service.css": ("uncanny.service.web", "static/service.css", "text/css"),
    "service.js": ("uncanny.service.web", "static/service.js", "text/javascript"),
    "job.js": ("uncanny.service.web", "static/job.js", "text/javascript"),
    "new.js": ("uncanny.service.web", "static/new.js", "text/javascript"),
    "run.css": ("uncanny.eval.common", "templates/run.css", "text/css"),
    "htmx.min.js": ("uncanny.service", "static/vendor/htmx.min.js", "text/javascript"),
    "icon.svg": ("uncanny.service", "static/icon.svg", "image/svg+xml"),
}
_TITLES: Final[Mapping[int, str]] = {
    401: "Sign in first",
    403: "You may not do that",
    404: "There is nothing here",
    429: "That was too often",
    500: "The server made a mistake",
}
_REMEDIES: Final[Mapping[int, str]] = {
    403: "Ask whoever runs the service for a token of another role.",
    404: "It may have been deleted, or the address is not complete.",
    429: "Wait a moment, then load the page again.",
    500: "Its log says which.",
}


@dataclass(frozen=True, slots=True)
class Site:
    """What pages need: the service, and what is kept in memory between requests."""

    service: Service
    records: RecordIndexes = field(default_factory=RecordIndexes)
    pictures: Pictures = field(default_factory=Pictures)

    def known(self, request: Request, least: Role = "reader") -> Who:
        """Who asks. Raises ApiError 401 where nobody is signed in, 403 where the role is too low, 429."""
        who = who_of(request)
        if who is None:
            raise ApiError(401)
        count(request, who)
        if not who.may(least):
            raise ApiError(403, f"This is for the role {least}; yours is {who.role}.")
        return who

    def page(
        self, request: Request, template: str, *, status: int = 200, here: str = "", **content: Any
    ) -> HTMLResponse:
        """The page, or the piece of one, that `template` makes of `content`."""
        base = _quoted_base(request)
        who = who_of(request)
        html = (
            _templates()
            .get_template(template)
            .render(
                base=base,
                here=here,
                who=who,
                roles=ROLES,
                logged_in=who is not None and who.via == "session",
                may=lambda role: who is not None and who.may(role),
                static=lambda name: f"{base}/static/{name}?v={static_tag(name)}",
                **content,
            )
        )
        return HTMLResponse(html.encode("utf-8", "replace"), status)

    def error_page(self, request: Request, status: int, message: str) -> Response:
        """The page that says what went wrong; `message` is what the interface would say."""
        title = _TITLES.get(status, "That did not work")
        return self.page(
            request,
            "error.html.j2",
            status=status,
            code=status,
            title=title,
            text=message,
            remedy=_REMEDIES.get(status, ""),
        )


def _quoted_base(request: Request) -> str:
    """What comes before all addresses, where the service lies below a path; not what is mounted below it."""
    return quote(request.scope.get("app_root_path", base_of(request)))


def static_file(name: str) -> Response:
    """A file that pages load; its address changes with it. Raises ApiError."""
    if name not in _FILES:
        raise ApiError(404, "There is no such file.")
    return Response(_static(name), media_type=_FILES[name][2], headers=dict(KEPT))


@cache
def static_tag(name: str) -> str:
    """What changes in the address of a file when the file does."""
    return sha256(_static(name)).hexdigest()[:16]


@cache
def _static(name: str) -> bytes:
    package, path, _ = _FILES[name]
    return files(package).joinpath(*path.split("/")).read_bytes()


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("uncanny.service.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": lambda value: f"{value:,}", "breakable": breakable}
    parts: Any = environment.get_template("parts.html.j2").module
    environment.globals |= {"badge": parts.badge, "bar": parts.bar}
    return environment
