"""A job's page, live: its figures, its records with their pictures as they finish, its files and its log."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response

from uncanny.errors import NotFoundError, UncannyError
from uncanny.eval.common.inputs.runs import open_run
from uncanny.protocol import jobs
from uncanny.runs.parameters import SpendLimits
from uncanny.service.answers import Job
from uncanny.service.api.auth import for_readers
from uncanny.service.api.errors import ApiError
from uncanny.service.assets import base_of
from uncanny.service.jobs.folder import ANSWERS, RUN, end_of_log, paths_within
from uncanny.service.jobs.kinds import KINDS, has_records
from uncanny.service.jobs.references import job_of, texts
from uncanny.service.pictures import Picture, Viewer
from uncanny.service.web.forms import form_fields
from uncanny.service.web.records import Cards, Failures
from uncanny.service.web.site import Site
from uncanny.service.web.views import IN_PART, OF_RUNS, JobView, LimitView, command_line, size

_LOG_SHOWN: Final = 20_000
_FILES_SHOWN: Final = 200
_INPUTS_SHOWN: Final = 10
_DAY: Final = "private, max-age=86400"
_GONE: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 120">'
    b'<rect width="160" height="120" fill="#868f99" fill-opacity=".25"/>'
    b'<path d="M60 40l40 40m0-40l-40 40" stroke="#868f99" stroke-width="4"/></svg>'
)


class FileView(NamedTuple):
    """A file of a job: its path within the job's folder, its size in words, where it is downloaded from."""

    path: str
    size: str
    href: str


class PageView(JobView):
    """The job with what lies in its folder: which of its pages there are, and what failed."""

    def __init__(self, site: Site, job: Job) -> None:
        super().__init__(job)
        index = site.records(job)
        self.shows_records = index is not None
        self.record_word = KINDS[job.kind].unit
        self.asks = KINDS[job.kind].protocol.asks
        self.opens_files = KINDS[job.kind].protocol.makes == "files" and not self.moving
        self.has_report = page_file(site, job) is not None
        self.reviewable = self.exportable = has_findings(site, job)
        self.failures = index.failures() if index is not None else Failures()
        self.limits = _limits(job) if job.state == "over_budget" else []
        if job.state == "incomplete" and not self.failures.items:
            self.advice = OF_RUNS if jobs()[job.kind].input.kind == "named" else IN_PART
            self.retry_word = "Try again"


def add_job_pages(router: APIRouter, site: Site) -> None:
    """Adds `/jobs/{id}` and what its script fetches."""

    @router.get("/jobs/{job_id}", dependencies=for_readers)
    def job_page(request: Request, job_id: str) -> HTMLResponse:
        job = site.service.jobs.get(job_id)
        index = site.records(job)
        cards = Cards() if index is None else index.latest()
        view = PageView(site, job)
        return site.page(
            request,
            "job.html.j2",
            title=f"{job.state.replace('_', ' ')} · {view.title}",
            job=view,
            cards=cards,
            command=command_line(site.service, job.kind, job.params),
            inputs=_inputs(site, job),
        )

    @router.get("/jobs/{job_id}/live", dependencies=for_readers)
    def live(request: Request, job_id: str) -> HTMLResponse:
        view = PageView(site, site.service.jobs.get(job_id))
        return site.page(request, "live.html.j2", job=view)

    @router.get("/jobs/{job_id}/cards", dependencies=for_readers)
    def cards(
        request: Request, job_id: str, after: int | None = None, of: str = "", before: int | None = None
    ) -> HTMLResponse:
        """Records since number `after` of the file `of`, those before number `before`, or the latest."""
        job = site.service.jobs.get(job_id)
        index = site.records(job)
        if index is None:
            raise ApiError(404)
        found = index.after(after, of) if after is not None else index.latest(before)
        anew = found is None
        return site.page(
            request,
            "cards.html.j2",
            job=JobView(job),
            cards=index.latest() if found is None else found,
            cards_part=True,
            anew=anew,
        )

    @router.get("/jobs/{job_id}/files", dependencies=for_readers)
    def files(request: Request, job_id: str) -> HTMLResponse:
        job = site.service.jobs.get(job_id)
        address = f"{base_of(request)}/api/v1/jobs/{job.id}/files"
        views = _files(site.service.job_folder(job.id), address)
        return site.page(
            request,
            "files.html.j2",
            files=views[:_FILES_SHOWN],
            more=max(0, len(views) - _FILES_SHOWN),
            archive=f"{base_of(request)}/api/v1/jobs/{job.id}/archive{'?under=out' * (job.kind == 'export')}",
        )

    @router.get("/jobs/{job_id}/log", dependencies=for_readers)
    def log(request: Request, job_id: str) -> HTMLResponse:
        job = site.service.jobs.get(job_id)
        text, cut = end_of_log(site.service.job_folder(job.id), _LOG_SHOWN)
        return site.page(request, "log.html.j2", text=text, cut=cut, shown=_LOG_SHOWN, job_id=job.id)

    @router.get("/jobs/{job_id}/thumb/{key}", dependencies=for_readers)
    async def thumb(request: Request, job_id: str, key: str) -> Response:
        shot = await run_in_threadpool(_picture, site, job_id, key)
        shown = await site.pictures.thumbnail(shot, Viewer(job_id, request.is_disconnected))
        if shown is None:
            return Response(_GONE, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})
        return Response(shown.data, media_type=shown.media_type, headers={"Cache-Control": _DAY})

    @router.get("/jobs/{job_id}/picture/{key}", dependencies=for_readers)
    async def picture(request: Request, job_id: str, key: str) -> Response:
        shot = await run_in_threadpool(_picture, site, job_id, key)
        shown = await site.pictures.full(shot, Viewer(job_id, request.is_disconnected))
        if shown is None:
            raise ApiError(404, "The picture's file is gone, or is no longer the one that was examined.")
        return Response(shown.data, media_type=shown.media_type, headers={"Cache-Control": _DAY})


def _limits(job: Job) -> list[LimitView]:
    """Those that a job may have come to its end by."""
    fields = form_fields(KINDS[job.kind].params, job.params)
    return [
        LimitView(field.name, field.label, field.value, field.whole)
        for field in fields
        if field.name in SpendLimits.model_fields and field.value
    ]


def has_findings(site: Site, job: Job) -> bool:
    """Whether there is something to review and to export, by now."""
    return KINDS[job.kind].protocol.reviewed and has_records(site.service, job)


def page_file(site: Site, job: Job) -> Path | None:
    """The page that a job's command has written; None where there is none yet."""
    name = KINDS[job.kind].page
    file = site.service.job_folder(job.id) / (name or f"{RUN}/report.html")
    return file if file.is_file() and not file.is_symlink() else None


def _inputs(site: Site, job: Job) -> list[JobView]:
    """Jobs whose results this one works on."""
    named = dict.fromkeys(job_of(text) for _, text in texts(job.params))
    views = []
    for job_id in list(filter(None, named))[:_INPUTS_SHOWN]:
        try:
            views.append(JobView(site.service.jobs.get(job_id)))
        except NotFoundError:
            continue
    return views


def _files(folder: Path, address: str) -> list[FileView]:
    """Files that people have a use for: locks and journals are none."""
    views = []
    for path in paths_within(folder, without=ANSWERS):
        with contextlib.suppress(OSError):  # it was there a moment ago
            views.append(FileView(path, size((folder / path).stat().st_size), f"{address}/{quote(path)}"))
    return views


def _picture(site: Site, job_id: str, key: str) -> Picture:
    """The file of a record's image, which is shown only if it has the bytes that were examined.

    Raises ApiError where no record has that key.
    """
    job = site.service.jobs.get(job_id)
    run = site.service.run_folder(job_id)
    index = site.records(job)
    record = index.by_key(key) if index is not None else None
    if record is None:
        raise ApiError(404, "No record of this job has such a picture.")
    digest = record.get("sha256")
    try:
        path = open_run(run).picture(str(record["image"]))
    except UncannyError:
        path = run / str(record["image"])
    return Picture(path, digest if isinstance(digest, str) else "")
