"""Jobs over HTTP: submitting once, pages, what happens to them, and what they brought."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import orjson
import pytest
from sqlalchemy import Connection, event
from starlette.testclient import TestClient

from tests.service.api.conftest import ADDRESS, API, Site
from tests.service.made_jobs import ended_job
from tests.service.made_review import anomaly
from uncanny.service.answers import JobProgress
from uncanny.service.api.app import guarded, service_app
from uncanny.service.jobs import records
from uncanny.service.service import Service
from uncanny.wording import shown

NEW: dict[str, Any] = {"kind": "detect", "params": {"images": "scenes", "model": "demo"}}


def submit(client: TestClient, key: str | None = None, **changes: Any) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(f"{API}/jobs", json=NEW | changes, headers=headers)


def events(text: str) -> list[tuple[str, Any, str]]:
    found = []
    for block in text.strip().split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.split("\n") if not line.startswith(":"))
        if "event" in fields:
            found.append((fields["event"], orjson.loads(fields["data"]), fields["id"]))
    return found


def test_a_job_is_submitted_checked_and_seen(client: TestClient) -> None:
    answer = submit(client, name="Füße")
    assert answer.status_code == 201
    job = answer.json()
    assert (job["state"], job["name"], job["created_by"]) == ("queued", "Füße", "local")
    assert client.get(f"{API}/jobs/{job['id']}").json() == job
    assert client.get(f"{API}/jobs?state=queued&kind=detect").json() == {"jobs": [job], "next": None}
    assert client.get(f"{API}/jobs?state=running").json()["jobs"] == []


def test_pages_of_jobs_have_each_once(client: TestClient) -> None:
    ids = [submit(client).json()["id"] for _ in range(5)]
    seen: list[str] = []
    before: dict[str, str] = {}
    while True:
        page = client.get(f"{API}/jobs", params={"limit": 2, **before}).json()
        seen += [job["id"] for job in page["jobs"]]
        if page["next"] is None:
            break
        before = {"before": page["next"]}
    assert seen == ids[::-1]


def test_the_same_key_is_the_same_job(client: TestClient) -> None:
    first = submit(client, "k")
    assert submit(client, "k").json() == first.json()
    other = submit(client, "k", name="other")
    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    assert len(client.get(f"{API}/jobs").json()["jobs"]) == 1
    assert submit(client).json()["id"] != first.json()["id"]
    # One line of the log: what came again changed nothing.
    assert len(client.get(f"{API}/audit").json()["lines"]) == 2


@pytest.mark.slow
def test_keys_outlive_a_restart_and_hold_when_all_come_at_once(
    open_service: Callable[[], Service], address: str | None
) -> None:
    service = open_service()

    def send(_: int) -> Any:
        with TestClient(guarded(service_app(service)), ADDRESS) as client:
            return submit(client, "k").json()

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    assert len({answer["id"] for answer in answers}) == 1
    assert len(service.jobs.page().jobs) == 1
    if address is None:
        service.close()
    service = open_service()
    assert send(0) == answers[0]


def test_keys_are_each_users_own(site: Site) -> None:
    ids = set()
    for name in ("ann", "bob"):
        with site.client(site.service.tokens.add(name, "operator")) as client:
            ids.add(submit(client, "k").json()["id"])
    assert len(ids) == 2


@pytest.mark.parametrize("key", ["", "x" * 201, "a b", "ü"])
def test_odd_keys_are_refused(shared_client: TestClient, key: str) -> None:
    answer = shared_client.post(f"{API}/jobs", json=NEW, headers={b"Idempotency-Key": key.encode()})
    assert answer.status_code == 422
    assert answer.json()["error"]["field"] == "idempotency-key"


PARAMS: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"images": "scenes", "model": "demo", "out": "/tmp/x"}, "out"),
    "the folder of results": ({"images": "scenes", "model": "demo", "run": "/tmp/x"}, "run"),
    "no model": ({"images": "scenes"}, "model"),
    "an option for a model": ({"images": "scenes", "model": "--help"}, "model"),
    "another scheme": ({"images": "file:///etc/passwd", "model": "demo"}, "images.0"),
    "an address": ({"images": "http://169.254.169.254/latest", "model": "demo"}, "images.0"),
    "an absolute path": ({"images": "/etc", "model": "demo"}, "images.0"),
    "a way up": ({"images": "../../..", "model": "demo"}, "images.0"),
    "a zero character": ({"images": "a\0b", "model": "demo"}, "images.0"),
    "no such upload": ({"images": f"upload:set_{'a' * 20}", "model": "demo"}, "images.0"),
    "a path for an upload": ({"images": "upload:../../x", "model": "demo"}, "images.0"),
    "no such job": ({"images": f"job:job_{'a' * 20}", "model": "demo"}, "images.0"),
    "a huge number": ({"images": "scenes", "model": "demo", "limit": 10**30}, "limit"),
    "below nothing": ({"images": "scenes", "model": "demo", "max_cost_usd": -1}, "max_cost_usd"),
    "many images": ({"images": ["scenes"] * 2000, "model": "demo"}, "images"),
}


@pytest.mark.parametrize("name", PARAMS)
def test_wrong_parameters_are_refused_by_their_field(shared_client: TestClient, name: str) -> None:
    params, field = PARAMS[name]
    answer = submit(shared_client, params=params)
    assert answer.status_code == 422, answer.text
    assert answer.json()["error"]["field"] == field
    assert shared_client.get(f"{API}/jobs?state=queued").json()["jobs"] == []


def test_a_wrong_parameter_is_named_as_json_has_it(shared_client: TestClient) -> None:
    answer = submit(shared_client, params={"images": "scenes", "model": "demo", "cache": "yes"})
    assert answer.json()["error"] == {
        "code": "invalid",
        "field": "cache",
        "message": "cache: must be true or false",
    }


def test_links_out_of_a_root_lead_nowhere(data: Path, tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    (root / "photos").mkdir(parents=True)
    outside.mkdir()
    (root / "link").symlink_to(outside)
    (root / "up").symlink_to("..")
    with (
        Service.open(data, roots=[root]) as service,
        TestClient(guarded(service_app(service)), ADDRESS) as client,
    ):
        for path in ("link", "up/outside", str(root / "link"), str(outside), "photos/../../outside"):
            answer = submit(client, params={"images": path, "model": "demo"})
            said = f"images.0: {shown(path)} is not there, or is not in an allowed folder"
            assert answer.json()["error"]["message"].startswith(said), path
        assert submit(client, params={"images": "photos", "model": "demo"}).status_code == 201


def test_an_image_by_its_address_is_never_fetched(client: TestClient) -> None:
    """A socket that listens sees nobody."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.5)
        port = listening.getsockname()[1]
        for text in (
            f"http://127.0.0.1:{port}/a.png",
            f"//127.0.0.1:{port}/a.png",
            f"ftp://127.0.0.1:{port}",
        ):
            assert submit(client, params={"images": text, "model": "demo"}).status_code == 422
        files = [("files", (f"http://127.0.0.1:{port}/a.png", f"http://127.0.0.1:{port}/a.png".encode()))]
        assert client.post(f"{API}/images", files=files).json()["images"] == []
        with pytest.raises(TimeoutError):
            listening.accept()


def test_cancelling_retrying_and_deleting(site: Site, client: TestClient) -> None:
    job = submit(client).json()["id"]
    assert client.delete(f"{API}/jobs/{job}").status_code == 409
    assert client.post(f"{API}/jobs/{job}/retry").status_code == 409
    assert client.post(f"{API}/jobs/{job}/cancel").json()["state"] == "cancelled"
    assert client.post(f"{API}/jobs/{job}/retry").json()["state"] == "queued"
    assert client.post(f"{API}/jobs/{job}/cancel").json()["state"] == "cancelled"
    assert client.delete(f"{API}/jobs/{job}").status_code == 204
    assert client.get(f"{API}/jobs/{job}").status_code == 404
    made = site.ended_job()
    assert client.delete(f"{API}/jobs/{made.id}").status_code == 204
    assert not site.service.job_folder(made.id).exists()


def test_events_of_a_job_that_has_ended(site: Site, client: TestClient) -> None:
    job = site.ended_job()
    answer = client.get(f"{API}/jobs/{job.id}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    heard = events(answer.text)
    assert [name for name, _, _ in heard] == ["record", "record", "progress", "state"]
    assert [data["image"] for _, data, _ in heard[:2]] == ["images/000.png", "images/001.png"]
    assert heard[2][1]["total"] == 2
    assert (heard[3][1]["state"], heard[3][1]["id"]) == ("finished", job.id)
    # Whoever comes again goes on where it broke off, and is told when there is nothing more.
    again = client.get(f"{API}/jobs/{job.id}/events", headers={"Last-Event-ID": heard[0][2]})
    assert [name for name, _, _ in events(again.text)] == ["record", "progress", "state"]
    end = client.get(f"{API}/jobs/{job.id}/events", headers={"Last-Event-ID": heard[3][2]})
    assert (end.status_code, end.content) == (204, b"")
    odd = client.get(f"{API}/jobs/{job.id}/events", headers={"Last-Event-ID": "7-x"})
    assert len(events(odd.text)) == 4
    quiet = client.get(f"{API}/jobs/{job.id}/events?records=false")
    assert [name for name, _, _ in events(quiet.text)] == ["progress", "state"]


def test_one_person_leaves_streams_to_others(site: Site) -> None:
    job = site.ended_job()
    ann, bob = (site.service.tokens.add(name, "reader") for name in ("ann", "bob"))
    site.app.state.streams["ann"] = 100
    with site.client(ann) as client:
        answer = client.get(f"{API}/jobs/{job.id}/events")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    with site.client(bob) as client:
        assert client.get(f"{API}/jobs/{job.id}/events").status_code == 200
    assert site.app.state.streams.total() == 100


def test_events_come_while_a_job_runs(site: Site) -> None:
    job = site.service.submit("detect", NEW["params"], by="ann")
    taken = site.service.jobs.claim("worker", 60)
    assert taken is not None
    run = site.service.job_folder(job.id) / "run"
    heard: list[str] = []

    def work() -> None:
        run.mkdir(parents=True)
        with (run / "annotations.jsonl").open("ab", 0) as file:
            file.write(b'{"image": "a"}\n{"image": ')
            site.service.jobs.beat(taken, 60, JobProgress(total=2, done=1))
            file.write(b'"b"}\n')
        # In the end a run puts its records in order: another file under the name.
        (run / "new").write_bytes(b'{"image": "a"}\n{"image": "b"}\n')
        (run / "new").replace(run / "annotations.jsonl")
        site.service.jobs.end(taken, "incomplete", exit_code=1)

    worker = threading.Thread(target=work)
    worker.start()
    with site.client() as client:
        heard = [
            data["image"] if name == "record" else data.get("state", name)
            for name, data, _ in events(client.get(f"{API}/jobs/{job.id}/events").text)
        ]
    worker.join()
    assert heard[-1] == "incomplete"
    assert [each for each in heard if each in ("a", "b")] == ["a", "b"]


def test_records_page_by_page(site: Site, client: TestClient) -> None:
    job = site.ended_job([[anomaly(f"n{n}")] for n in range(5)])
    seen: list[str] = []
    after: dict[str, str] = {}
    while True:
        page = client.get(f"{API}/jobs/{job.id}/records", params={"limit": 2, **after}).json()
        seen += [record["image"] for record in page["records"]]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert seen == [f"images/{n:03d}.png" for n in range(5)]
    file = site.service.job_folder(job.id) / "run" / "annotations.jsonl"
    with file.open("ab") as more:
        more.write(b'{"image": "late"}\n{"image": "half')
    page = client.get(f"{API}/jobs/{job.id}/records", params={"after": page["end"]}).json()
    assert ([record["image"] for record in page["records"]], page["next"]) == (["late"], None)
    file.with_name("new").write_bytes(file.read_bytes())
    file.with_name("new").replace(file)
    moved = client.get(f"{API}/jobs/{job.id}/records", params={"after": page["end"]})
    assert (moved.status_code, moved.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize("offset", ["1000000", "9" * 18])
def test_a_place_behind_the_end_of_a_file_has_no_records(site: Site, client: TestClient, offset: str) -> None:
    """Also one that no file system can seek to."""
    job = site.ended_job()
    for inode in (0, (site.service.run_folder(job.id) / "annotations.jsonl").stat().st_ino):
        answer = client.get(f"{API}/jobs/{job.id}/records", params={"after": f"{inode}.{offset}"})
        assert (answer.status_code, answer.json()["records"]) == (200, [])
        events = client.get(f"{API}/jobs/{job.id}/events", params={"after": f"{inode}.{offset}"})
        assert (events.status_code, "event: record" in events.text) == (200, False)


def test_a_page_of_a_long_file_reads_a_page(
    site: Site, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes before is passed over, and what comes behind is left: of 100,000 lines eleven are parsed."""
    job = site.ended_job()
    lines = [b'{"image": "%06d"}\n' % n for n in range(100_000)]
    (site.service.job_folder(job.id) / "run" / "annotations.jsonl").write_bytes(b"".join(lines))
    inode = (site.service.job_folder(job.id) / "run" / "annotations.jsonl").stat().st_ino
    parsed: list[bytes] = []
    as_record = records.as_record

    def counted(line: bytes) -> dict[str, Any] | None:
        parsed.append(line)
        return as_record(line)

    monkeypatch.setattr(records, "as_record", counted)
    after = f"{inode}.{len(lines[0]) * 50_000}"
    page = client.get(f"{API}/jobs/{job.id}/records", params={"after": after, "limit": 10}).json()
    assert [record["image"] for record in page["records"]] == [f"{50_000 + n:06d}" for n in range(10)]
    assert len(parsed) == 11


def test_what_is_no_record_is_left_out(site: Site, client: TestClient) -> None:
    job = site.ended_job()
    file = site.service.job_folder(job.id) / "run" / "annotations.jsonl"
    file.write_bytes(
        b'{"image": "a"}\n\nrubbish\n[1]\n{"x": NaN}\n{"x": "\\ud800"}\n{"image": "'
        + b"x" * 5_000_000
        + b'"}\n{"image": "b"}\n'
    )
    page = client.get(f"{API}/jobs/{job.id}/records").json()
    assert [record["image"] for record in page["records"]] == ["a", "b"]


def test_files_are_listed_and_saved(site: Site, client: TestClient) -> None:
    job = site.ended_job(names=["<script>alert(1)</script>.png"[:30].replace("/", "_")])
    folder = site.service.job_folder(job.id)
    (folder / "run" / "report.html").write_text("<script>alert(1)</script>")
    listed = client.get(f"{API}/jobs/{job.id}/files").json()["files"]
    assert {"result.json", "run/annotations.jsonl", "run/report.html"} <= {each["path"] for each in listed}
    for each in listed:
        answer = client.get(f"{API}/jobs/{job.id}/files/{each['path']}")
        assert (answer.status_code, len(answer.content)) == (200, each["size"])
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; sandbox")
        assert answer.headers["x-content-type-options"] == "nosniff"
    part = client.get(f"{API}/jobs/{job.id}/files/result.json", headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content) == (206, (folder / "result.json").read_bytes()[2:5])
    assert (
        client.get(f"{API}/jobs/{job.id}/files/result.json", headers={"Range": "bytes=999-"}).status_code
        == 416
    )


def test_all_files_come_as_one_zip(site: Site, client: TestClient) -> None:
    job = site.ended_job()
    folder = site.service.job_folder(job.id)
    (folder / "out" / "pictures").mkdir(parents=True)
    (folder / "out" / "data.jsonl").write_text("{}\n" * 1000)
    (folder / "out" / "pictures" / "ä b.png").write_bytes(b"\x89PNG" * 1000)
    os.utime(folder / "out" / "data.jsonl", (0, 0))
    (folder / "out" / "link").symlink_to(site.service.data / "service.id")
    (folder / "out" / ".hidden").write_text("")
    (folder / "run" / "answers").mkdir()
    (folder / "run" / "answers" / "answers.db").write_text("")
    answer = client.get(f"{API}/jobs/{job.id}/archive?under=out")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/zip"
    assert answer.headers["content-disposition"] == f'attachment; filename="{job.id}.zip"'
    with ZipFile(BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["data.jsonl", "pictures/ä b.png"]
        assert archive.read("data.jsonl") == b"{}\n" * 1000
    assert len(answer.content) < 6000
    with ZipFile(BytesIO(client.get(f"{API}/jobs/{job.id}/archive").content)) as archive:
        assert {"result.json", "run/annotations.jsonl", "out/data.jsonl"} <= set(archive.namelist())
        assert "run/answers/answers.db" not in archive.namelist()
    assert client.get(f"{API}/jobs/{job.id}/archive?under=..").status_code == 422
    waiting = site.service.submit("detect", {"images": ["scenes"], "model": "demo"}, by="ann")
    assert client.get(f"{API}/jobs/{waiting.id}/archive").json()["error"]["code"] == "no_files"


@pytest.mark.parametrize(
    "path",
    [
        "../../service.db",
        "..%2f..%2fservice.db",
        "run/../../../service.db",
        "%2e%2e/%2e%2e/service.db",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        "run/link",
        "run/up/service.db",
        "run",
        "run/",
        "run%00.json",
        "run%5c..%5cresult.json",
        ".hidden",
        "run/pipe",
        "C:%5cwindows",
        "result.json%ff",
        "result.json::$DATA",
        "a" * 999,
    ],
)
def test_no_other_file_is_given_out(shared_site: Site, shared_client: TestClient, path: str) -> None:
    job = shared_site.ended_job()
    folder = shared_site.service.job_folder(job.id)
    (folder / "run" / "link").symlink_to("/etc/passwd")
    (folder / "run" / "up").symlink_to(shared_site.service.data)
    (folder / ".hidden").write_text("x")
    os.mkfifo(folder / "run" / "pipe")
    answer = shared_client.get(f"{API}/jobs/{job.id}/files/{path}")
    assert answer.status_code in (404, 422), answer.text
    names = {each["path"] for each in shared_client.get(f"{API}/jobs/{job.id}/files").json()["files"]}
    assert not names & {"run/link", ".hidden", "run/pipe", "run/up/service.db"}


def test_result_and_log(site: Site, client: TestClient) -> None:
    job = site.ended_job()
    assert client.get(f"{API}/jobs/{job.id}/result").json() == {"images": 2}
    waiting = submit(client).json()["id"]
    assert client.get(f"{API}/jobs/{waiting}/result").json()["error"]["code"] == "not_ended"
    assert client.get(f"{API}/jobs/{waiting}/log").text == ""
    (site.service.job_folder(job.id) / "result.json").write_text('{"half')
    assert client.get(f"{API}/jobs/{job.id}/result").json()["error"]["code"] == "no_result"
    failed = ended_job(site.service, state="failed", error="Error: OPENAI_API_KEY is not set")
    said = client.get(f"{API}/jobs/{failed.id}/result").json()["error"]["message"]
    assert said == "The job is failed and has no result: Error: OPENAI_API_KEY is not set"
    log = "refused <script>\n"
    (site.service.job_folder(job.id) / "stderr.log").write_text(log)
    answer = client.get(f"{API}/jobs/{job.id}/log")
    assert answer.text == log
    assert answer.headers["content-type"].startswith("text/plain")
    assert client.get(f"{API}/jobs/{job.id}/log?tail=4").text == "pt>\n"


def test_a_full_disk_is_named_as_what_it_is(site: Site, client: TestClient) -> None:
    @event.listens_for(site.service.database.writing, "begin")
    def _full(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count = 1")  # SQLite takes it as: not one page more

    answers = [submit(client, name="n" * 100) for _ in range(100)]
    full = next(each for each in answers if each.status_code != 201)
    assert (full.status_code, full.json()["error"]["code"]) == (507, "storage")
    assert "full" in full.json()["error"]["message"]
    assert client.get(f"{API}/jobs").status_code == 200
