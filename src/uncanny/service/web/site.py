"""What all pages are made with: the service, who asks, templates, files that pages load, pages of errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request
from fastapi.responses import HTMLResponse, Response

from uncanny.service import Role
from uncanny.service.answers import Job
from uncanny.service.api.auth import who_of
from uncanny.service.assets import Assets, app_base_of
from uncanny.service.jobs.kinds import KINDS, records_file
from uncanny.service.pictures import Pictures
from uncanny.service.service import Service
from uncanny.service.web.records import RecordIndex, record_index

ROLES: Final[Mapping[Role, str]] = {
    "reader": "may look at everything",
    "reviewer": "may look at everything and judge findings",
    "operator": "may do everything: upload, start, cancel, delete",
}
ASSETS: Final = Assets("uncanny.service.web", ("service.css", "service.js", "job.js", "new.js"))
_TITLES: Final[Mapping[int, str]] = {
    401: "Sign in first",
    403: "You may not do that",
    404: "There is nothing here",
    429: "That was too often",
    500: "The server made a mistake",
}
_REMEDIES: Final[Mapping[int, str]] = {
    403: "Ask the service's operator for a token with another role.",
    404: "It may have been deleted, or the address is not complete.",
    429: "Wait a moment, then load the page again.",
    500: "Its log says which.",
}


@dataclass(frozen=True, slots=True)
class Site:
    """What pages need."""

    service: Service
    pictures: Pictures

    def records(self, job: Job) -> RecordIndex | None:
        """The records of a job; None where its kind has none to show."""
        file = records_file(self.service, job)
        return record_index(file) if file is not None and KINDS[job.kind].unit else None

    def page(
        self, request: Request, template: str, *, status: int = 200, here: str = "", **content: Any
    ) -> HTMLResponse:
        """The page, or the piece of one, that `template` makes of `content`."""
        who = who_of(request)
        shared = {
            "base": app_base_of(request),
            "here": here,
            "who": who,
            "roles": ROLES,
            "disk_full": who is not None and self.service.is_disk_full(),
            "logged_in": who is not None and who.via == "session",
            "may": lambda role: who is not None and who.may(role),
        }
        return ASSETS.html(request, template, shared | content, status=status)

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
