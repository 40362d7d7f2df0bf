"""The review application of every job, under the job's own address, with whoever is signed in as reviewer."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Final

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from uncanny.service.api.auth import address_of, let_in, who_of
from uncanny.service.api.errors import ApiError
from uncanny.service.api.verdicts import runs_of
from uncanny.service.assets import base_of
from uncanny.service.jobs.kinds import title_of
from uncanny.service.pictures import Pictures
from uncanny.service.review.pages import ReviewSite, review_app
from uncanny.service.review.run import ReviewRun
from uncanny.service.review.runs import MOST_RUNS
from uncanny.service.web.job_page import has_findings
from uncanny.service.web.records import image_name
from uncanny.service.web.site import Site

# What the steps of a review are called in the audit log: those of the HTTP interface are `judge`, all.
_STEPS: Final = {
    "verdict": "judge",
    "edit": "edit_finding",
    "box": "move_box",
    "add": "add_finding",
    "undo": "undo_verdict",
    "complete": "complete_image",
}


def add_review_pages(app: FastAPI, site: Site) -> None:
    """Adds `/jobs/{id}/review/`."""

    @app.get("/jobs/{job_id}/review", include_in_schema=False)
    def without_slash(request: Request, job_id: str) -> Response:
        return RedirectResponse(f"{base_of(request)}/jobs/{job_id}/review/", 308)

    app.mount("/jobs/{job_id}/review", Reviews(site))


class Reviews:
    """An ASGI application that hands requests to the review application of their job.

    The runs are those of the HTTP interface, so that a verdict given there is on the page at once, and no run
    is read twice. What is done goes into the audit log, as what is done there.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._made = lru_cache(MOST_RUNS)(partial(_made, site.pictures))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        who = await let_in(request, "reader" if scope["method"] in ("GET", "HEAD") else "reviewer")
        app = await run_in_threadpool(self._app, request)
        job_id, address = request.path_params["job_id"], address_of(request)
        action = _STEPS.get(scope["path"].rpartition("/")[2]) if scope["method"] == "POST" else None

        def note(step: str) -> None:
            self._site.service.audit.write(who.name, who.role, step, subject=job_id, address=address)

        async def send_noted(message: Message) -> None:
            if action and message["type"] == "http.response.start" and message["status"] < 400:
                await run_in_threadpool(note, action)
            await send(message)

        await app(scope, receive, send_noted if action else send)

    def _app(self, request: Request) -> ASGIApp:
        job = self._site.service.jobs.get(request.path_params["job_id"])
        if not has_findings(self._site, job):
            raise ApiError(404, "There is nothing to review in this job, or not yet.")
        run = runs_of(request).get(self._site.service.run_folder(job.id))
        return self._made(job.id, title_of(job), run)


def _made(pictures: Pictures, job_id: str, title: str, run: ReviewRun) -> ASGIApp:
    def reviewer(request: Request) -> str | None:
        who = who_of(request)
        return None if who is None else who.name

    def export(request: Request) -> str | None:
        who = who_of(request)
        return f"../../{job_id}/export" if who is not None and who.may("operator") else None

    def may_judge(request: Request) -> bool:
        who = who_of(request)
        return who is not None and who.may("reviewer")

    return review_app(
        ReviewSite(
            run,
            reviewer=reviewer,
            name=title,
            home=f"../../{job_id}",
            image_name=image_name,
            export=export,
            may_judge=may_judge,
            pictures=pictures,
        )
    )
