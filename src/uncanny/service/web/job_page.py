"""A job's page, live: its figures, its records with their pictures as they finish, its files and its log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from uncanny.errors import NotFoundError, UncannyError
from uncanny.eval.common.runs import open_run
from uncanny.images import thumbnail
from uncanny.service.api.errors import ApiError
from uncanny.service.api.verdicts import REVIEWED_KINDS
from uncanny.service.assets import base_of
from uncanny.service.jobs.kinds import KINDS
from uncanny.service.jobs.references import job_of, texts
from uncanny.service.pictures import Picture
from uncanny.service.store.jobs import Job
from uncanny.service.web.command import command_line
from uncanny.service.web.records import RECORD_WORDS, Cards, Failures
from uncanny.service.web.site import Site
from uncanny.service.web.views import IN_PART, JobView, size

_THUMBNAIL_SIDE: Final = 320
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


class InputView(NamedTuple):
    """A job whose results another one works on."""

    id: str
    title: str


def add_job_pages(router: APIRouter, site: Site) -> None:
    """Adds `/jobs/{id}` and what its script fetches."""

    @router.get("/jobs/{job_id}")
    def job_page(request: Request, job_id: str) -> HTMLResponse:
        site.known(request)
        job = site.service.jobs.get(job_id)
        index = site.records.of(job.kind, site.service.job_folder(job.id))
        cards = Cards() if index is None else index.latest()
        view = page_view(site, job)
        view.command = command_line(site.service, job.kind, job.params)
        view.inputs = _inputs(site, job)
        title = f"{job.state.replace('_', ' ')} · {view.title}"
        return site.page(request, "job.html.j2", title=title, job=view, cards=cards)

    @router.get("/jobs/{job_id}/live")
    def live(request: Request, job_id: str) -> HTMLResponse:
        site.known(request)
        view = page_view(site, site.service.jobs.get(job_id))
        return site.page(request, "live.html.j2", job=view)

    @router.get("/jobs/{job_id}/cards")
    def cards(
        request: Request, job_id: str, after: int | None = None, of: str = "", before: int | None = None
    ) -> HTMLResponse:
        """Records since number `after` of the file `of`, those before number `before`, or the latest."""
        site.known(request)
        job = site.service.jobs.get(job_id)
        index = site.records.of(job.kind, site.service.job_folder(job.id))
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

    @router.get("/jobs/{job_id}/files")
    def files(request: Request, job_id: str) -> HTMLResponse:
        site.known(request)
        job = site.service.jobs.get(job_id)
        address = f"{base_of(request)}/api/v1/jobs/{job.id}/files"
        found = _files(site.service.job_folder(job.id), address)
        return site.page(
            request, "files.html.j2", files=found[:_FILES_SHOWN], more=max(0, len(found) - _FILES_SHOWN)
        )

    @router.get("/jobs/{job_id}/log")
    def log(request: Request, job_id: str) -> HTMLResponse:
        site.known(request)
        job = site.service.jobs.get(job_id)
        text, cut = _end_of(site.service.job_folder(job.id) / "stderr.log")
        return site.page(request, "log.html.j2", text=text, cut=cut, shown=_LOG_SHOWN, job_id=job.id)

    @router.get("/jobs/{job_id}/thumb/{key}")
    def thumb(request: Request, job_id: str, key: str) -> Response:
        site.known(request)
        shot = _picture(site, job_id, key)
        data = thumbnail(shot.path, _THUMBNAIL_SIDE, sha256=shot.sha256) if shot.sha256 else None
        if data is None:
            return Response(_GONE, media_type="image/svg+xml", headers={"Cache-Control": "no-cache"})
        return Response(data, media_type="image/webp", headers={"Cache-Control": _DAY})

    @router.get("/jobs/{job_id}/picture/{key}")
    def picture(request: Request, job_id: str, key: str) -> Response:
        site.known(request)
        shot = _picture(site, job_id, key)
        shown = site.pictures.full(shot) if shot.sha256 else None
        if shown is None:
            raise ApiError(404, "The picture's file is gone, or is no longer the one that was examined.")
        return Response(shown.data, media_type=shown.media_type, headers={"Cache-Control": _DAY})


def run_folder(site: Site, job: Job) -> Path:
    """Where the run of a job lies."""
    return site.service.job_folder(job.id) / "run"


def page_view(site: Site, job: Job) -> Any:
    """The job with what lies in its folder: which of its pages there are, and what failed."""
    view: Any = JobView(job)
    folder = site.service.job_folder(job.id)
    index = site.records.of(job.kind, folder)
    view.shows_records = index is not None
    view.record_word = RECORD_WORDS[job.kind] if index is not None else ""
    view.asks, view.opens_files = KINDS[job.kind].asks, job.kind == "export" and not view.moving
    view.has_report = page_file(site, job) is not None
    view.reviewable = view.exportable = has_findings(site, job)
    view.failures = index.failures() if index is not None else Failures()
    if job.state == "incomplete" and not view.failures.items:
        view.advice = IN_PART
        view.retry_word = "Try again"
    return view


def has_findings(site: Site, job: Job) -> bool:
    """Whether there is something to review and to export, by now."""
    return job.kind in REVIEWED_KINDS and (run_folder(site, job) / "annotations.jsonl").is_file()


def page_file(site: Site, job: Job) -> Path | None:
    """The page that a job's command has written; None where there is none yet."""
    name = KINDS[job.kind].page
    file = site.service.job_folder(job.id) / (name or "run/report.html")
    return file if file.is_file() and not file.is_symlink() else None


def _inputs(site: Site, job: Job) -> list[InputView]:
    named = dict.fromkeys(job_of(text) for _, text in texts(job.params))
    views = []
    for job_id in list(filter(None, named))[:_INPUTS_SHOWN]:
        try:
            views.append(InputView(job_id, JobView(site.service.jobs.get(job_id)).title))
        except NotFoundError:
            continue
    return views


def _files(folder: Path, address: str) -> list[FileView]:
    """Files that people have a use for: locks and journals are none."""
    found = []
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if each != "answers" and not each.startswith("."))
        for name in sorted(names):
            file = Path(root, name)
            if name.startswith(".") or file.is_symlink() or not file.is_file():
                continue
            path = file.relative_to(folder).as_posix()
            found.append(
                FileView(
                    path.encode("utf-8", "replace").decode(),
                    size(file.stat().st_size),
                    f"{address}/{quote(path.encode('utf-8', 'surrogateescape'))}",
                )
            )
    return found


def _end_of(file: Path) -> tuple[str, bool]:
    try:
        with file.open("rb") as log:
            length = os.fstat(log.fileno()).st_size
            log.seek(max(0, length - _LOG_SHOWN))
            return log.read().decode("utf-8", "replace"), length > _LOG_SHOWN
    except OSError:
        return "", False


def _picture(site: Site, job_id: str, key: str) -> Picture:
    """The file of a record's image, which is shown only if it has the bytes that were examined.

    Raises ApiError where no record has that key.
    """
    job = site.service.jobs.get(job_id)
    run = run_folder(site, job)
    index = site.records.of(job.kind, site.service.job_folder(job_id))
    record = index.by_key(key) if index is not None else None
    if record is None:
        raise ApiError(404, "No record of this job has such a picture.")
    digest = record.get("sha256")
    try:
        path = open_run(run).picture(str(record["image"]))
    except UncannyError:
        path = run / str(record["image"])
    return Picture(path, digest if isinstance(digest, str) else "")
