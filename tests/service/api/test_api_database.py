"""A database that cannot be used for a while: what is answered was done, and what was done is in the log."""

from __future__ import annotations

import sqlite3
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError
from starlette.testclient import TestClient

from tests.service.api.conftest import API, Site, png
from tests.service.postgres import Postgres
from uncanny.service.api.app import service_app
from uncanny.service.api.auth import Rates
from uncanny.service.service import Service
from uncanny.service.store import database

DEMO = {"kind": "detect", "params": {"images": "scenes", "model": "demo"}}
ANY = Rates(10**6, 10**6, 10**6)


def subjects(service: Service, action: str) -> Counter[str | None]:
    """What an action was done to, by the audit log."""
    page = service.audit.page(limit=1000)
    assert page.next is None
    return Counter(line.subject for line in page.lines if line.action == action)


@pytest.mark.slow
def test_without_connections_to_spare_every_answer_is_true(tmp_path: Path, postgres_server: Postgres) -> None:
    """60 submit at once where 3 connections are to be had: 201 is in the queue, 503 is not."""
    with Service.open(tmp_path, database=postgres_server.database_of_few(3)) as service:
        site = Site(service, service_app(service, rates=ANY))
        token = service.tokens.add("ann", "operator")

        def submit(number: int) -> tuple[str, int, str]:
            name = f"number {number}"
            with site.client(token) as client:
                answer = client.post(f"{API}/jobs", json=DEMO | {"name": name})
            return name, answer.status_code, answer.text

        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(submit, range(60)))
        statuses = Counter(status for _, status, _ in answers)
        assert set(statuses) == {201, 503}, answers
        assert all("nothing was changed" in text for _, status, text in answers if status == 503)
        with site.client() as client:
            health = client.get("/healthz")
            assert (health.status_code, health.json()["status"], health.json()["database"]) == (
                503,
                "degraded",
                True,
            )
        page = service.jobs.page(limit=200)
        assert page.next is None
        assert {job.name for job in page.jobs} == {name for name, status, _ in answers if status == 201}
        assert subjects(service, "submit") == Counter(job.id for job in page.jobs)


def test_a_commit_that_breaks_off_is_not_called_undone(
    tmp_path: Path, postgres_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the connection before it has answered to the commit: nobody knows."""
    with (
        Service.open(tmp_path, database=postgres_address) as service,
        psycopg.connect(postgres_address, autocommit=True) as other,
    ):

        def cut(connection: Connection) -> None:
            pid = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

        monkeypatch.setattr(service.jobs, "_tell", cut)
        monkeypatch.setattr(service.audit, "add", lambda *_, **__: None)
        with Site(service, service_app(service)).client() as client:
            answer = client.post(f"{API}/jobs", json=DEMO)
        assert (answer.status_code, "look whether the change was made" in answer.text) == (500, True)


@pytest.fixture
def locked_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_S", 0.2)


def changes(site: Site, client: TestClient) -> list[tuple[str, str, dict[str, Any]]]:
    """A request for everything that changes the database, by action."""
    ended = [site.ended_job(kind="detect").id for _ in range(4)]
    image_set = site.service.uploads.new_set(name=None, by="ann").id
    file = client.post(f"{API}/files", files={"file": ("a.jsonl", b"{}")}).json()["id"]
    files = {"files": ("a.png", png())}
    return [
        ("submit", f"POST {API}/jobs", {"json": DEMO}),
        ("cancel", f"POST {API}/jobs/{ended[0]}/cancel", {}),
        ("retry", f"POST {API}/jobs/{ended[1]}/retry", {}),
        ("limits", f"POST {API}/jobs/{ended[2]}/limits", {"json": {"limit": 3}}),
        ("delete", f"DELETE {API}/jobs/{ended[3]}", {}),
        ("upload_images", f"POST {API}/images", {"files": files}),
        ("delete_set", f"DELETE {API}/images/{image_set}", {}),
        ("upload_file", f"POST {API}/files", {"files": {"file": ("b.jsonl", b"{}")}}),
        ("delete_file", f"DELETE {API}/files/{file}", {}),
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("locked_soon")
def test_while_the_database_takes_nothing_nothing_is_half_done(tmp_path: Path) -> None:
    """SQLite's file is held by another program: no change is made, and each is made once afterwards."""
    with Service.open(tmp_path / "data") as service:
        site = Site(service, service_app(service, rates=ANY))
        with site.client() as client:
            wanted = changes(site, client)
            before = service.audit.page(limit=1000).lines
            holder = sqlite3.connect(service.data / "service.db", isolation_level=None)
            try:
                holder.execute("BEGIN IMMEDIATE")
                for action, request, content in wanted:
                    answer = client.request(*request.split(" "), **content)
                    assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "2"), action
                assert client.get("/healthz").json()["status"] == "degraded"
                assert service.audit.page(limit=1000).lines == before
            finally:
                holder.close()
            for action, request, content in wanted:
                answer = client.request(*request.split(" "), **content)
                assert answer.status_code in (200, 201, 204), (action, answer.text)
                assert service.audit.page(limit=1).lines[0].action == action
            assert len(service.audit.page(limit=1000).lines) == len(before) + len(wanted)


@pytest.mark.usefixtures("locked_soon")
def test_a_verdict_is_kept_while_the_database_takes_nothing(tmp_path: Path) -> None:
    """It stands in the run's own file; its line in the audit log follows when there is a chance."""
    with Service.open(tmp_path / "data") as service:
        site = Site(service, service_app(service, rates=ANY))
        job = site.ended_job()
        with site.client() as client:
            finding = client.get(f"{API}/jobs/{job.id}/findings").json()["findings"][0]
            verdict = {"finding": finding["id"], "text": finding["text"], "decision": "accept"}
            holder = sqlite3.connect(service.data / "service.db", isolation_level=None)
            try:
                holder.execute("BEGIN IMMEDIATE")
                before = time.time()
                assert client.post(f"{API}/jobs/{job.id}/verdicts", json=verdict).status_code == 201
            finally:
                holder.close()
            assert client.get(f"{API}/jobs/{job.id}/agreement").json()["accepted"] == 1
        lines = service.audit.page().lines
    assert [(line.action, line.subject) for line in lines] == [("judge", job.id)]
    assert before <= lines[0].at.timestamp() <= time.time()


def test_an_upload_that_breaks_off_is_noted_with_what_was_kept(site: Site, client: TestClient) -> None:
    image_set = site.service.uploads.new_set(name=None, by="ann").id
    head = b'--b\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n'
    body = head % b"a.png" + png() + b"\r\n" + head % b"b.png" + png("blue")[:20]
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = client.post(f"{API}/images/{image_set}", content=body, headers=headers)
    assert answer.status_code == 400
    (line,) = site.service.audit.page().lines
    assert (line.action, line.subject, line.details) == (
        "add_images",
        image_set,
        {"images": 1, "duplicates": 0, "refused": 0},
    )


def test_health_is_good_again_when_the_database_has_been_for_a_while(
    site: Site, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(OperationalError), site.service.database.read() as connection:
        connection.exec_driver_sql("SELECT * FROM nowhere")
    assert client.get("/healthz").json()["status"] == "degraded"
    monkeypatch.setattr(database, "AILING_S", 0.0)
    assert (client.get("/healthz").status_code, client.get("/healthz").json()["status"]) == (200, "ok")
