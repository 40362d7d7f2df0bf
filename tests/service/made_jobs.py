"""A service with jobs in it as a worker leaves them, without a worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from tests.service.made_review import make_run
from tests.service.running import served_here
from uncanny.service import Ended, Role
from uncanny.service.answers import Job, JobProgress
from uncanny.service.api.app import guarded, service_app
from uncanny.service.service import Service
from uncanny.service.web.pages import add_pages

ADDRESS = "http://127.0.0.1:8000"
OURS = {"Origin": ADDRESS}
LEASE_S = 3600.0


def pages_of(service: Service) -> FastAPI:
    """The application of a service with its pages."""
    app = service_app(service)
    if not any(getattr(route, "path", None) == "/login" for route in app.routes):
        add_pages(app, service)
    return app


@contextmanager
def served_pages(service: Service) -> Iterator[str]:
    """The pages in a thread of this process; their address. Streams that are open at the end are ended."""
    app = pages_of(service)
    with served_here(guarded(app)) as address:
        try:
            yield address
        finally:
            app.state.ending.set()


def client_of(service: Service, role: Role | None = None) -> TestClient:
    """A browser that is signed in with a token of that role; None: nobody has to."""
    client = TestClient(
        guarded(pages_of(service)), base_url=ADDRESS, headers=OURS, raise_server_exceptions=False
    )
    if role is not None:
        secret = service.tokens.add(role, role)
        assert client.post("/login", json={"token": secret}).status_code == 204
    return client


def ended_job(
    service: Service,
    kind: str = "annotate",
    state: Ended = "finished",
    *,
    name: str | None = None,
    by: str = "ann",
    params: dict[str, Any] | None = None,
    images: Sequence[Sequence[dict[str, Any]]] | None = None,
    names: Sequence[str] = (),
    page: str | None = None,
    error: str | None = None,
    **progress: Any,
) -> Job:
    """A job that has ended: with a run of `images`, and a report that is `page`."""
    running = running_job(service, kind, name=name, by=by, params=params, **progress)
    folder = service.job_folder(running.id)
    if images is not None:
        make_run(folder / "run", images, names)
    if page is not None:
        (folder / "run").mkdir(parents=True, exist_ok=True)
        (folder / "run" / "report.html").write_text(page)
    assert service.jobs.end(running, state, exit_code=0, error=error)
    return service.jobs.get(running.id)


def running_job(
    service: Service,
    kind: str = "annotate",
    *,
    name: str | None = None,
    by: str = "ann",
    params: dict[str, Any] | None = None,
    **progress: Any,
) -> Job:
    """A job that a worker is at."""
    service.jobs.submit(kind, params or {"images": ["scenes"], "model": "demo"}, name=name, by=by)
    job = service.jobs.claim("worker", LEASE_S)
    assert job is not None
    if progress:
        service.jobs.beat(job, LEASE_S, JobProgress(**progress))
    return job
