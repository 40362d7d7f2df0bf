"""A job's own page, shown so that nothing in it can act on the service.

The page is a document that a command wrote, full of what models said. It is served into a frame without an
origin: its scripts run there, so that tables sort and pictures open, but they have no cookie, no storage and
no address they may ask, and cannot leave the frame. A frame without an origin sends no cookie, so its address
holds a ticket: a signature over the job and the hour, good for this one document and for the pictures that
the page itself names.
"""

from __future__ import annotations

import hmac
import os
import re
import secrets
import time
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import orjson
from fastapi import APIRouter, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, Response

from uncanny.eval.common.pages.pictures import page_json
from uncanny.service.api.auth import for_readers
from uncanny.service.api.errors import ApiError
from uncanny.service.assets import base_of
from uncanny.service.jobs.folder import open_no_link
from uncanny.service.pictures import Picture, Viewer
from uncanny.service.safety import HEADERS
from uncanny.service.service import Service
from uncanny.service.web.job_page import page_file
from uncanny.service.web.site import Site
from uncanny.service.web.views import JobView

_KEY: Final = "pages.key"
_KEY_BYTES: Final = 32
_HOURS_GOOD: Final = 12
_FRAMING: Final = HEADERS["Content-Security-Policy"] + "; frame-src 'self'"
_MOST_PAGE_BYTES: Final = 300_000_000
_VIEWS: Final = re.compile(rb'(<script type="application/json" id="views">)(.*?)(</script>)', re.DOTALL)


def add_report_pages(router: APIRouter, site: Site) -> None:
    """Adds `/jobs/{id}/report`, the document in its frame, and the pictures of that document."""
    key = ticket_key(site.service)

    @router.get("/jobs/{job_id}/report", dependencies=for_readers)
    def report(request: Request, job_id: str) -> HTMLResponse:
        job = site.service.jobs.get(job_id)
        folder = site.service.job_folder(job.id)
        page = page_file(site, job)
        if page is None:
            raise ApiError(404, "This job has no report yet: it is written when the job ends.")
        base = base_of(request)
        response = site.page(
            request,
            "report.html.j2",
            title=f"Report · {JobView(job).title}",
            job=JobView(job),
            address=f"{base}/jobs/{job.id}/report/{ticket(key, job.id)}/page",
            download=f"{base}/api/v1/jobs/{job.id}/files/{page.relative_to(folder).as_posix()}",
        )
        response.headers["Content-Security-Policy"] = _FRAMING
        return response

    @router.get("/jobs/{job_id}/report/{signature}/page")
    def document(request: Request, job_id: str, signature: str) -> Response:
        page = _page(site, key, job_id, signature)
        return Response(_with_own_pictures(page), media_type="text/html", headers=_own_policy(request))

    @router.get("/jobs/{job_id}/report/{signature}/picture/{number}")
    async def picture(request: Request, job_id: str, signature: str, number: int) -> Response:
        shot = await run_in_threadpool(_linked, site, key, job_id, signature, number)
        shown = await site.pictures.full(shot, Viewer(job_id, request.is_disconnected))
        if shown is None:
            raise ApiError(404, "The picture's file is gone.")
        # The frame has no origin, so that to the browser the picture is for somebody else.
        headers = {"Cross-Origin-Resource-Policy": "cross-origin", "Cache-Control": "private, max-age=3600"}
        return Response(shown.data, media_type=shown.media_type, headers=headers)


def ticket_key(service: Service) -> bytes:
    """The key that signs tickets: the same for all processes on one data folder, made by the first."""
    file = service.data / _KEY
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        pass
    else:
        with os.fdopen(descriptor, "wb") as new:
            new.write(secrets.token_bytes(_KEY_BYTES))
    return file.read_bytes()


def ticket(key: bytes, job_id: str, *, now: float | None = None) -> str:
    """Lets whoever has it read the page of one job, for some hours."""
    hour = int((time.time() if now is None else now) // 3600)
    return f"{hour:x}-{_signed(key, job_id, hour)}"


def is_good(key: bytes, job_id: str, signature: str, *, now: float | None = None) -> bool:
    """Whether `signature` is a ticket for that job that still holds."""
    hour, _, signed = signature.partition("-")
    if not re.fullmatch(r"[0-9a-f]{1,8}", hour) or not signed.isascii():
        return False
    age = (time.time() if now is None else now) // 3600 - int(hour, 16)
    return 0 <= age <= _HOURS_GOOD and hmac.compare_digest(signed, _signed(key, job_id, int(hour, 16)))


def _signed(key: bytes, job_id: str, hour: int) -> str:
    return hmac.new(key, f"page {job_id} {hour}".encode(), sha256).hexdigest()[:40]


def _page(site: Site, key: bytes, job_id: str, signature: str) -> Path:
    if not is_good(key, job_id, signature):
        raise ApiError(403, "This address of a report no longer holds. Open the report from its job.")
    page = page_file(site, site.service.jobs.get(job_id))
    if page is None or page.stat().st_size > _MOST_PAGE_BYTES:
        raise ApiError(404, "This report cannot be shown here. Download it from the files of its job.")
    return page


def _linked(site: Site, key: bytes, job_id: str, signature: str, number: int) -> Picture:
    page = _page(site, key, job_id, signature)
    links = _links(page, page.stat().st_mtime_ns)
    if not 0 <= number < len(links):
        raise ApiError(404)
    return Picture(Path(os.path.normpath(page.parent / unquote(links[number]))), None)


def _own_policy(request: Request) -> dict[str, str]:
    """What the document may do: run the scripts it brings, show the pictures of its own address, no more."""
    host = request.headers.get("host", "")
    pictures = f"{request.url.scheme}://{host}{request.url.path.removesuffix('page')}picture/"
    return {
        "Content-Security-Policy": "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; "
        f"style-src 'unsafe-inline'; img-src data: {pictures}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'",
        "X-Frame-Options": "SAMEORIGIN",
        "Cross-Origin-Resource-Policy": "cross-origin",
    }


def _with_own_pictures(page: Path) -> bytes:
    """The document with links to pictures led to this address, where they are served one by one."""
    content = _content(page)
    known = {link: number for number, link in enumerate(_links(page, page.stat().st_mtime_ns))}
    found = _VIEWS.search(content)
    if found is None or not known:
        return content
    views = orjson.loads(found[2])
    for layer in _layers(views):
        if layer.get("src") in known:
            layer["src"] = f"picture/{known[layer['src']]}"
    return content[: found.start(2)] + page_json(views).encode() + content[found.end(2) :]


def _content(page: Path) -> bytes:
    with open(page, "rb", opener=open_no_link) as file:
        return file.read(_MOST_PAGE_BYTES)


@lru_cache(maxsize=64)
def _links(page: Path, _changed: int) -> tuple[str, ...]:
    """The pictures that the page opens from their files, by their paths from the page."""
    found = _VIEWS.search(_content(page))
    if found is None:
        return ()
    links = (layer.get("src") for layer in _layers(orjson.loads(found[2])))
    return tuple(dict.fromkeys(link for link in links if isinstance(link, str) and ":" not in link))


def _layers(views: Any) -> list[dict[str, Any]]:
    return [layer for view in views for layer in view.get("layers", []) if isinstance(layer, dict)]
