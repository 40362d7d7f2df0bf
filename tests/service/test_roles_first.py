"""A role that is too low is told before anything of a request is read, whatever the route."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from starlette.routing import Mount
from starlette.types import Message

from tests.service.made_jobs import ADDRESS, ended_job, pages_of
from tests.service.made_review import anomaly
from uncanny.service import ROLES, Role
from uncanny.service.api.app import guarded
from uncanny.service.api.routes import GuardedRoute, roles_of
from uncanny.service.review.pages import ReviewSite, review_app
from uncanny.service.review.run import ReviewRun
from uncanny.service.service import Service

# Whoever has no token may see these, and no others: what signs people in, says that it is well and describes
# itself, and reports, which a signed address opens.
OPEN = {
    ("GET", "/healthz"),
    ("GET", "/openapi.json"),
    ("GET", "/login"),
    ("POST", "/login"),
    ("POST", "/logout"),
    ("GET", "/static/{name:path}"),
    ("GET", "/jobs/{job_id}/review"),
    ("GET", "/jobs/{job_id}/report/{signature}/page"),
    ("GET", "/jobs/{job_id}/report/{signature}/picture/{number}"),
}
SET, FILE = "set_" + "a" * 20, "file_" + "a" * 20


@dataclass
class Opened:
    """What this process opens, lists, changes or removes below a folder, while `below` is set."""

    below: Path | None = None
    paths: list[str] = field(default_factory=list)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.below is None or not (event == "open" or event.startswith(("os.", "shutil.", "tempfile."))):
            return
        paths = [str(each) for each in arguments if isinstance(each, str | bytes | Path)]
        # Nobody can say who asks without the database, and the file in which tokens wait for it.
        self.paths += [
            each
            for each in paths
            if str(self.below) in each and "service.db" not in each and "tokens" not in each
        ]


OPENED = Opened()
sys.addaudithook(OPENED)


def routes_of(app: FastAPI, run: ReviewRun) -> Iterator[tuple[str, str, Role | None]]:
    """Method, path and least role of all that is served, mounted applications included."""
    for context in iter_route_contexts(app.routes):
        path, route = context.path, getattr(context, "route", context)
        if isinstance(route, Mount) or getattr(context, "methods", None) is None:
            continue
        assert path is not None
        roles = roles_of(route) if isinstance(route, APIRoute) else []
        assert not roles or isinstance(route, GuardedRoute), path
        for method in sorted(set(context.methods or ()) - {"HEAD"}):
            yield method, path, roles[0] if roles else None
    mounts = [each for each in app.routes if isinstance(each, Mount)]
    assert [each.path for each in mounts] == ["/jobs/{job_id}/review"]
    for inner in iter_route_contexts(review_app(ReviewSite(run)).routes):
        for method in sorted(set(inner.methods or ()) - {"HEAD"}):
            least: Role = "reader" if method == "GET" else "reviewer"
            yield method, f"/jobs/{{job_id}}/review{inner.path}", least


def ask(app: Any, method: str, path: str, token: str | None) -> tuple[int, bool]:
    """The status of the answer, and whether anything of the body was asked for."""
    read = False
    started: list[int] = []

    async def receive() -> Message:
        nonlocal read
        read = True
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            started.append(message["status"])

    host = ADDRESS.removeprefix("http://")
    headers = [
        (b"host", host.encode()),
        (b"origin", ADDRESS.encode()),
        (b"content-type", b"application/json"),
        (b"content-length", b"2"),
    ]
    if token is not None:
        headers.append((b"authorization", f"Bearer {token}".encode()))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"unknown=1",
        "root_path": "",
        "headers": headers,
        "client": ("127.0.0.1", 4711),
        "server": ("127.0.0.1", 8000),
    }
    asyncio.run(app(scope, receive, send))
    return started[0], read


@pytest.mark.slow
def test_no_route_reads_a_body_or_a_file_before_it_knows_the_role(tmp_path: Path) -> None:
    with Service.open(tmp_path / "data", roots=[tmp_path]) as service:
        tokens: dict[Role | None, str | None] = {None: None}
        tokens |= {role: service.tokens.add(role, role) for role in ROLES}
        job = ended_job(service, images=[[anomaly("one")]], page="<p>report</p>")
        run = ReviewRun.open(service.run_folder(job.id))
        plain = pages_of(service)
        app = guarded(plain)
        names = {"job_id": job.id, "set_id": SET, "file_id": FILE, "kind": "annotate", "key": "0" * 16}
        names |= {"path": "run/annotations.jsonl", "name": "page.js"}
        walked: set[tuple[str, str]] = set()
        seen: set[str] = set()
        for method, path, wanted in routes_of(plain, run):
            walked.add((method, path))
            if wanted is None:
                assert (method, path) in OPEN
                continue
            address = path.replace(":path}", "}").format(**names)
            lower = [None, *ROLES[: ROLES.index(wanted)]]
            for role in lower:
                OPENED.below, OPENED.paths = tmp_path, []
                status, read = ask(app, method, address, tokens[role])
                OPENED.below = None
                assert (status, read, OPENED.paths) == (401 if role is None else 403, False, []), (
                    method,
                    address,
                    role,
                )
            OPENED.below = tmp_path
            status, read = ask(app, method, address, tokens[wanted])
            OPENED.below = None
            assert status not in (401, 403), (method, address)
            seen |= {"body"} if read else set()
            seen |= {"file"} if OPENED.paths else set()
        assert walked >= OPEN
        assert seen == {"body", "file"}  # what is looked for is found where it may be
        assert {method for method, _ in walked} == {"GET", "POST", "DELETE"}
