"""What should not come and what should not go out: odd bodies, other sites, other hosts, secrets."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url
from starlette.testclient import TestClient

from tests.service.api.conftest import ADDRESS, API, Site, png
from uncanny.service.api.app import guarded, service_app
from uncanny.service.api.auth import COOKIE, Gate
from uncanny.service.api.routes import JSON_BYTES
from uncanny.service.safety import HEADERS
from uncanny.service.service import Service
from uncanny.service.web.pages import add_pages

JSON = {"Content-Type": "application/json"}
BODIES: dict[str, tuple[bytes, int]] = {
    "no JSON": (b"{", 400),
    "nothing": (b"", 422),
    "NaN": (b'{"kind": "detect", "params": {"limit": NaN}}', 400),
    "infinity": (b'{"kind": "detect", "params": {"timeout_s": Infinity}}', 400),
    "a lone surrogate": (b'{"kind": "detect", "params": {"model": "\\ud800"}}', 400),
    "no UTF-8": (b'{"kind": "\xff"}', 400),
    "UTF-16": ('{"kind": "detect"}'.encode("utf-16"), 400),
    "deep nesting": (b'{"kind": "detect", "params": ' + b'{"a":' * 5000 + b"1" + b"}" * 5001, 400),
    "less deep nesting": (b'{"kind": "detect", "params": ' + b'{"a":' * 500 + b"1" + b"}" * 501, 422),
    "many digits": (b'{"kind": "detect", "params": {"limit": ' + b"9" * 5000 + b"}}", 400),
    "a list": (b"[]", 422),
    "null": (b"null", 422),
    "a text": (b'"detect"', 422),
    "unknown keys": (b'{"kind": "detect", "params": {}, "id": "job_x"}', 422),
    "a zero character": (b'{"kind": "detect", "params": {}, "name": "a\\u0000b"}', 422),
    "a control character": (b'{"kind": "detect", "params": {}, "name": "a\\u001b[2J"}', 422),
    "an unknown kind": (b'{"kind": "shell", "params": {}}', 404),
    "a large body": (b'{"kind": "' + b"a" * JSON_BYTES + b'"}', 413),
}


@pytest.mark.parametrize("name", BODIES)
def test_odd_bodies_are_refused_and_not_repeated(shared_client: TestClient, name: str) -> None:
    body, status = BODIES[name]
    answer = shared_client.post(f"{API}/jobs", content=body, headers=JSON)
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert set(error) <= {"code", "message", "field"}
    assert len(error["message"]) < 700


def test_another_type_and_a_packed_body_are_refused(client: TestClient) -> None:
    for headers in ({"Content-Type": "text/plain"}, {}, {**JSON, "Content-Encoding": "gzip"}):
        assert client.post(f"{API}/jobs", content=b"{}", headers=headers).status_code == 415


def test_100_megabytes_of_json_are_not_read(site: Site) -> None:
    """Neither where the length is said, nor where it is not."""
    read = 0

    def body() -> Any:
        nonlocal read
        for _ in range(100):
            read += 1
            yield b" " * 1_000_000

    with site.client() as client:
        said = client.post(f"{API}/jobs", content=b" " * 10, headers={**JSON, "Content-Length": "100000000"})
        assert said.status_code == 413
        assert client.post(f"{API}/jobs", content=body(), headers=JSON).status_code == 413


QUERIES = [
    "limit=0",
    "limit=1e3",
    "limit=NaN",
    f"limit={'9' * 400}",
    "limit=-1",
    "before=x",
    "before=%00",
    "state=done",
    "kind=%ff",
    "limit",
    "unknown=1",
    "limit=1&unknown=1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_odd_queries_are_refused(shared_client: TestClient, query: str) -> None:
    answer = shared_client.get(f"{API}/jobs?{query}")
    assert (answer.status_code, answer.json()["error"]["code"][:7]) in ((422, "invalid"), (422, "unknown"))


@pytest.mark.parametrize(
    "path", ["jobs/x", "jobs/job_%00", "jobs/../me", "jobs/" + "a" * 5000, "images/set_", "files/%ff"]
)
def test_odd_ids_are_no_ids(shared_client: TestClient, path: str) -> None:
    assert shared_client.get(f"{API}/{path}").status_code in (200 if ".." in path else 422, 404)


def test_another_method_is_told_which_there_are(client: TestClient) -> None:
    answer = client.put(f"{API}/jobs")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, POST")
    assert client.request("TRACE", f"{API}/jobs/job_{'a' * 20}").headers["Allow"] == "DELETE, GET"


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:9999"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site", "Origin": ADDRESS},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_another_site_changes_nothing(site: Site, client: TestClient, headers: dict[str, str]) -> None:
    """Whether or not a browser has a session; a form, which needs no leave, is refused like the rest."""
    job = site.ended_job()
    calls: list[tuple[str, str, dict[str, Any]]] = [
        (
            "POST",
            f"{API}/jobs",
            {"json": {"kind": "detect", "params": {"images": "scenes", "model": "demo"}}},
        ),
        ("POST", f"{API}/jobs/{job.id}/retry", {}),
        ("DELETE", f"{API}/jobs/{job.id}", {}),
        ("POST", f"{API}/images", {"files": [("files", ("a.png", png()))]}),
    ]
    for method, path, content in calls:
        answer = client.request(method, path, headers=headers, **content)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    token = site.service.tokens.add("ann", "operator")
    session = site.service.tokens.open_session(token)
    client.cookies.set(COOKIE, session or "")
    for method, path, content in calls:
        assert client.request(method, path, headers=headers, **content).status_code == 403
        # A session counts only where the browser says that our own page asks.
        assert client.request(method, path, **content).status_code == 403
    assert site.service.jobs.get(job.id).state == "finished"
    assert client.post(f"{API}/jobs/{job.id}/retry", headers={"Origin": ADDRESS}).status_code == 200


def test_no_site_is_given_leave_to_read(client: TestClient) -> None:
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = client.options(f"{API}/jobs", headers=headers)
    assert answer.status_code in (403, 405)
    assert not [
        name
        for name in client.get(f"{API}/jobs", headers=headers).headers
        if name.startswith("access-control")
    ]


def test_a_name_that_was_bound_to_this_machine_gets_nothing(site: Site) -> None:
    with site.client() as client:
        for host in (
            "evil.example",
            "evil.example:8765",
            "127.0.0.1.evil.example",
            "10.0.0.1",
            "",
            "[::1].x",
        ):
            assert client.get("/healthz", headers={"Host": host}).status_code == 400
        for host in ("localhost:8765", "LOCALHOST", "127.0.0.1", "[::1]:8765"):
            assert client.get("/healthz", headers={"Host": host}).status_code == 200
    with site.client(host="0.0.0.0", names=["lab.example.org"]) as client:
        for host in ("evil.example", "lab.example.org.evil.example"):
            assert client.get("/healthz", headers={"Host": host}).status_code == 400
        for host in ("10.0.0.1:8765", "[fe80::1]:8765", "lab.example.org", "Lab.Example.org:443"):
            assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_every_answer_says_what_a_browser_may_do(site: Site, client: TestClient) -> None:
    job = site.ended_job()
    paths = ["/healthz", "/metrics", "/openapi.json", "/nothing", f"{API}/jobs", f"{API}/nothing"]
    paths += [
        f"{API}/jobs/{job.id}/{each}" for each in ("events", "result", "records", "log", "files/result.json")
    ]
    answers = [client.get(path) for path in paths]
    answers += [client.post(f"{API}/jobs", content=b"{"), client.get("/", headers={"Host": "evil"})]
    for answer in answers:
        for name in HEADERS:
            assert answer.headers[name], answer.request.url
        assert "unsafe" not in answer.headers["Content-Security-Policy"]
        assert answer.headers["uncanny-version"]
        assert "server" not in answer.headers
        assert "text/html" not in answer.headers.get("content-type", "")


def test_what_goes_wrong_here_is_told_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr(Gate, "who", broken)
    with site.client() as client:
        answer = client.get(f"{API}/me", headers={"Authorization": "Bearer unc_secret"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "hunter2" not in answer.text
    assert "unc_secret" not in caplog.text


def test_while_the_database_is_away_requests_are_put_off(tmp_path: Path, postgres_address: str) -> None:
    """And answered as soon as it is back. Of a change it is not said that nothing was done."""
    url = make_url(postgres_address)
    server = url.set(database="postgres").render_as_string(hide_password=False)
    with (
        Service.open(tmp_path, database=postgres_address) as service,
        psycopg.connect(server, autocommit=True) as other,
    ):
        app = service_app(service)
        add_pages(app, service)
        with Site(service, app).client(service.tokens.add("ann", "operator")) as client:
            assert client.get(f"{API}/jobs").status_code == 200
            name = str(url.database)
            other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false'.encode())
            other.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
            for path, accept in ((f"{API}/jobs", "*/*"), ("/", "text/html")):
                answer = client.get(path, headers={"Accept": accept})
                assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
                assert name not in answer.text
            new = {"kind": "detect", "params": {"images": "scenes", "model": "demo"}}
            answer = client.post(f"{API}/jobs", json=new)
            assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
            assert "nothing was changed" in answer.text
            other.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true'.encode())
            assert client.get(f"{API}/jobs").json() == {"jobs": [], "next": None}
            assert client.post(f"{API}/jobs", json=new).status_code == 201


def test_a_token_is_in_no_answer_file_log_or_trace(
    site: Site, data: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "httpx2")  # the test's own client, which writes down what it asks
    token = site.service.tokens.add("ann", "operator")
    session = site.service.tokens.open_session(token) or ""
    job = site.ended_job()
    texts: list[str] = []
    for secret, headers in (
        (token, {"Authorization": f"Bearer {token}"}),
        (session, {"Cookie": f"{COOKIE}={session}"}),
    ):
        assert len(secret) > 40
        headers = {**headers, "Origin": ADDRESS}
        with TestClient(guarded(site.app), ADDRESS, headers=headers) as client:
            paths = ["/healthz", "/metrics", "/openapi.json", f"{API}/me", f"{API}/audit", f"{API}/jobs"]
            paths += [
                f"{API}/jobs/{job.id}",
                f"{API}/jobs/{job.id}/log",
                f"{API}/nothing",
                f"{API}/jobs?x={secret}",
            ]
            for path in paths:
                answer = client.get(path)
                texts += [answer.text, str(answer.headers)]
            texts.append(client.post(f"{API}/jobs", json={"kind": secret, "params": {secret: secret}}).text)
            texts.append(client.post(f"{API}/jobs/{job.id}/cancel").text)
    site.service.database.close()
    texts += [path.read_bytes().decode("latin-1") for path in data.rglob("*") if path.is_file()]
    texts += [caplog.text, *capfd.readouterr()]
    for text in texts:
        assert token not in text
        assert session not in text
    with sqlite3.connect(data / "service.db") as database:
        ((hashed,),) = database.execute("SELECT hash FROM tokens").fetchall()
    assert len(hashed) == 64


def test_keys_of_providers_are_in_no_answer(
    site: Site, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HF_TOKEN"):
        monkeypatch.setenv(name, f"secret-of-{name}-0123456789")
    job = site.ended_job()
    paths = [
        "/healthz",
        "/metrics",
        "/openapi.json",
        f"{API}/me",
        f"{API}/kinds",
        f"{API}/audit",
        f"{API}/jobs",
    ]
    paths += [
        f"{API}/jobs/{job.id}/{each}" for each in ("events", "result", "records", "files", "log", "findings")
    ]
    for path in paths:
        assert "secret-of-" not in client.get(path).text


def test_every_change_is_in_the_audit_log(site: Site) -> None:
    token = site.service.tokens.add("ann", "operator")
    with site.client(token) as client:
        new = {"kind": "detect", "params": {"images": "scenes", "model": "demo"}}
        job = client.post(f"{API}/jobs", json=new).json()["id"]
        client.get(f"{API}/jobs/{job}")
        client.post(f"{API}/jobs", json={})
        client.post(f"{API}/jobs/{job}/cancel")
        images = client.post(f"{API}/images", files=[("files", ("a.png", png()))]).json()["id"]
        client.delete(f"{API}/images/{images}")
        client.delete(f"{API}/jobs/{job}")
        made = site.ended_job()
        finding = client.get(f"{API}/jobs/{made.id}/findings").json()["findings"][0]
        body = {"finding": finding["id"], "text": finding["text"], "decision": "accept"}
        client.post(f"{API}/jobs/{made.id}/verdicts", json=body)
        page = client.get(f"{API}/audit?limit=2").json()
        rest = client.get(f"{API}/audit", params={"before": page["next"]}).json()
    lines = (page["lines"] + rest["lines"])[::-1]
    assert [(line["action"], line["subject"]) for line in lines] == [
        ("submit", job),
        ("cancel", job),
        ("upload_images", images),
        ("delete_set", images),
        ("delete", job),
        ("judge", made.id),
    ]
    assert {(line["who"], line["role"], line["address"]) for line in lines} == {
        ("ann", "operator", "testclient")
    }
    assert lines[2]["details"] == {"images": 1, "duplicates": 0, "refused": 0}


def test_figures_name_routes_and_never_addresses(site: Site, client: TestClient) -> None:
    job = site.ended_job()
    client.get(f"{API}/jobs/{job.id}")
    client.get("/secret/address")
    text = client.get("/metrics").text
    assert 'uncanny_jobs{state="finished"} 1.0' in text
    assert f'uncanny_requests_total{{method="GET",route="{API}/jobs/{{job_id}}",status="200"}} 1.0' in text
    assert job.id not in text
    assert "secret" not in text


def test_health_says_what_is_not_well(site: Site) -> None:
    app = service_app(site.service, worker_alive=lambda: False)
    with Site(site.service, app).client() as client:
        answer = client.get("/healthz")
        assert (answer.status_code, answer.json()["status"], answer.json()["worker"]) == (
            503,
            "failing",
            False,
        )
