"""A client at addresses that are no service of its kind, and at servers that mean harm."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tests.secure_server import secure_server
from uncanny.errors import AccessError, ServiceError, StorageError, UncannyError, UsageError
from uncanny.service.client import Client, ClientJob
from uncanny.service.client import connection as connection_module

TOKEN = "unc_" + "s3cret" * 6
JOB = "job_" + "a" * 20
RECORD = {
    "id": JOB,
    "kind": "annotate",
    "params": {},
    "state": "finished",
    "created_at": "2026-01-01T00:00:00Z",
    "created_by": "ann",
}


@pytest.fixture
def client(httpserver: HTTPServer) -> Iterator[Client]:
    with Client(httpserver.url_for(""), TOKEN, patience_s=0.2) as client:
        yield client


def answer(httpserver: HTTPServer, path: str, content: object, status: int = 200) -> None:
    httpserver.expect_request(f"/api/v1/{path}").respond_with_data(
        json.dumps(content), status, {"uncanny-version": "9.9"}, "application/json"
    )


def job_with(httpserver: HTTPServer, client: Client, files: dict[str, bytes]) -> ClientJob:
    """A finished job whose files have any names."""
    listed = [
        {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for path, data in files.items()
    ]
    answer(httpserver, f"jobs/{JOB}", RECORD)
    answer(httpserver, f"jobs/{JOB}/files", {"files": listed, "next": None})
    for path, data in files.items():
        httpserver.expect_request(f"/api/v1/jobs/{JOB}/files/{path}").respond_with_data(data)
    return client.job(JOB)


def is_said(error: UncannyError) -> bool:
    """One line, with what to do, and without the token."""
    text = f"{error} {error!r}"
    return "s3cret" not in text and "\n" not in str(error)


# Addresses of something else.


def test_a_web_page_is_no_service(httpserver: HTTPServer, client: Client) -> None:
    httpserver.expect_request("/api/v1/me").respond_with_data("<html><title>Shop</title></html>")
    with pytest.raises(UsageError, match="is not an uncanny service") as error:
        client.me()
    assert is_said(error.value)


@pytest.mark.parametrize("status", [200, 400, 404, 405, 418])
def test_another_service_is_none(httpserver: HTTPServer, client: Client, status: int) -> None:
    httpserver.expect_request("/api/v1/me").respond_with_json({"detail": "Not Found"}, status)
    with pytest.raises(UsageError, match="is not an uncanny service"):
        client.me()


def test_a_proxy_before_it_is_told_from_it(httpserver: HTTPServer, client: Client) -> None:
    httpserver.expect_ordered_request("/api/v1/me").respond_with_data("<h1>Sign in</h1>", 401)
    with pytest.raises(AccessError, match="Something before"):
        client.me()
    httpserver.expect_ordered_request("/api/v1/me").respond_with_data("<h1>Too large</h1>", 413)
    with pytest.raises(UsageError, match="so large"):
        client.me()


def test_a_server_of_another_version_is_told(httpserver: HTTPServer, client: Client) -> None:
    answer(httpserver, "me", {"user": "ann"})
    with pytest.raises(ServiceError, match=r"runs uncanny 9\.9") as error:
        client.me()
    assert "same version" in str(error.value)
    answer(httpserver, f"jobs/{JOB}", RECORD | {"state": "resting"})
    with pytest.raises(ServiceError, match="state"):
        client.job(JOB)


def test_new_keys_of_a_later_version_are_passed_over(httpserver: HTTPServer, client: Client) -> None:
    answer(httpserver, "me", {"name": "ann", "role": "admin", "mood": "good"})
    assert client.me().role == "admin"


def test_https_on_http_and_http_on_https_are_told(httpserver: HTTPServer, tmp_path: Path) -> None:
    address = httpserver.url_for("").replace("http://", "https://")
    with Client(address, patience_s=0) as client, pytest.raises(UsageError, match="does not speak https"):
        client.me()
    with secure_server(tmp_path) as secure:
        address = secure.url_for("")
        with Client(address, patience_s=0) as client, pytest.raises(UsageError, match="certificate"):
            client.me()
        plain = address.replace("https://", "http://")
        with Client(plain, patience_s=0) as client, pytest.raises(UncannyError) as error:
            client.me()
        assert is_said(error.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8765",
        "ftp://localhost",
        "http://",
        "http://ann:s3cret@localhost",
        "http://h/?key=s3cret",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError) as error:
        Client(url)
    assert is_said(error.value)


def test_the_path_of_the_interface_may_be_given_too(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/behind/api/v1/me").respond_with_json({"name": "ann", "role": "reader"})
    for end in ("behind", "behind/", "behind/api/v1"):
        with Client(httpserver.url_for(f"/{end}"), TOKEN) as client:
            assert client.me().name == "ann"
            assert client.url == httpserver.url_for("/behind")


# Servers that mean harm.


def test_a_redirect_is_not_followed(httpserver: HTTPServer, client: Client) -> None:
    with HTTPServer() as elsewhere:
        elsewhere.expect_request("/").respond_with_data("caught")
        target = elsewhere.url_for(f"/?{TOKEN}")
        httpserver.expect_request("/api/v1/me").respond_with_data("", 307, {"Location": target})
        with pytest.raises(UsageError, match="redirects to") as error:
            client.me()
        assert is_said(error.value)
        assert not elsewhere.log


def test_what_a_server_repeats_of_the_token_is_hidden(httpserver: HTTPServer, client: Client) -> None:
    for status, code in ((422, "invalid"), (403, "forbidden"), (409, "conflict"), (500, "internal")):
        error = {"error": {"code": code, "message": f"no: Bearer {TOKEN}\x1b[2J\nx", "field": TOKEN}}
        httpserver.expect_ordered_request("/api/v1/me").respond_with_json(error, status)
        with pytest.raises(UncannyError) as raised:
            client.me()
        assert is_said(raised.value)
        assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "../x",
            "/etc/x",
            "a/../../x",
            "..",
            ".",
            "",
            "a//b",
            "C:/x",
            "..\\x",
            "a\\b",
            "a\nb",
            "x\0",
            "con",
            "a/nul.txt",
        ),
        *("a" * 300, "/".join("a" * 30), "x.", "a /b", "x.part"),
    ],
)
def test_no_name_leads_out_of_the_folder(
    httpserver: HTTPServer, client: Client, tmp_path: Path, name: str
) -> None:
    job = job_with(httpserver, client, {"good.txt": b"good", name: b"bad"} if name else {"": b"bad"})
    with pytest.raises(ServiceError, match="names a file"):
        job.download(tmp_path / "in" / "home")
    assert [each for each in tmp_path.rglob("*") if each.is_file()] == []


def test_nothing_is_written_through_a_link(httpserver: HTTPServer, client: Client, tmp_path: Path) -> None:
    outside, home = tmp_path / "outside", tmp_path / "home"
    outside.mkdir()
    home.mkdir()
    (outside / "x").write_text("mine")
    (home / "a").symlink_to(outside)
    (home / "b").symlink_to(outside / "x")
    (home / ".c.part").symlink_to(outside / "x")
    for name, error in (("a/x", UsageError), ("b", UsageError), ("c", StorageError)):
        httpserver.clear()
        with pytest.raises(error):
            job_with(httpserver, client, {name: b"bad"}).download(home)
    assert (outside / "x").read_text() == "mine"
    assert list(outside.iterdir()) == [outside / "x"]


def test_what_does_not_arrive_as_listed_is_not_kept(
    httpserver: HTTPServer, client: Client, tmp_path: Path
) -> None:
    job = job_with(httpserver, client, {"a": b"as listed"})
    for data, words in (
        (b"as listeD", "does not arrive"),
        (b"as listed, and more", "longer"),
        (b"as", "early"),
    ):
        httpserver.clear()
        job_with(httpserver, client, {"a": b"as listed"})
        httpserver.clear_all_handlers()
        answer(httpserver, f"jobs/{JOB}/files", {"files": [_listed("a", b"as listed")], "next": None})
        httpserver.expect_request(f"/api/v1/jobs/{JOB}/files/a").respond_with_data(data)
        with pytest.raises(ServiceError, match=words):
            job.download(tmp_path / "home")
        assert not (tmp_path / "home" / "a").exists()
    httpserver.clear_all_handlers()
    answer(httpserver, f"jobs/{JOB}/files", {"files": [_listed("a", b"as listed")], "next": None})
    httpserver.expect_request(f"/api/v1/jobs/{JOB}/files/a").respond_with_data(b"as listed")
    assert [place.read_bytes() for place in job.download(tmp_path / "home")] == [b"as listed"]


def _listed(path: str, data: bytes) -> dict[str, Any]:
    return {"path": path, "size": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def test_a_download_goes_on_where_it_broke_off(
    httpserver: HTTPServer, client: Client, tmp_path: Path
) -> None:
    data = bytes(range(256)) * 40
    ranges: list[str | None] = []

    def serve(request: Request) -> Response:
        asked = request.headers.get("Range")
        ranges.append(asked)
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
        return Response(data[start : start + 4096], 206 if asked else 200)

    answer(httpserver, f"jobs/{JOB}", RECORD)
    answer(httpserver, f"jobs/{JOB}/files", {"files": [_listed("a", data)], "next": None})
    httpserver.expect_request(f"/api/v1/jobs/{JOB}/files/a").respond_with_handler(serve)
    (place,) = client.job(JOB).download(tmp_path / "home")
    assert place.read_bytes() == data
    assert ranges == [None, "bytes=4096-", "bytes=8192-"]
    client.job(JOB).download(tmp_path / "home")
    assert len(ranges) == 3
    assert {each.name for each in (tmp_path / "home").iterdir()} == {"a", ".uncanny-job"}


def test_huge_answers_are_bounded(
    httpserver: HTTPServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_module, "LARGEST_ANSWER", 10_000)
    sent = []

    def endless(_: Request) -> Response:
        def chunks() -> Iterator[bytes]:
            while True:
                sent.append(1)
                yield b" " * 1000

        return Response(chunks())

    httpserver.expect_request("/api/v1/me").respond_with_handler(endless)
    with pytest.raises(ServiceError, match="more than 10,000 bytes"):
        client.me()
    assert len(sent) < 10_000


def test_a_packed_answer_is_refused(httpserver: HTTPServer, client: Client) -> None:
    httpserver.expect_request("/api/v1/me").respond_with_data(
        b"\x1f\x8b", headers={"Content-Encoding": "gzip"}
    )
    with pytest.raises(ServiceError, match="gzip"):
        client.me()


@pytest.mark.slow
def test_an_endless_event_ends_and_the_job_is_asked_for(httpserver: HTTPServer, client: Client) -> None:
    answers = iter(["running", "finished"])

    def state(_: Request) -> Response:
        return Response(json.dumps(RECORD | {"state": next(answers)}), content_type="application/json")

    def endless(_: Request) -> Response:
        def chunks() -> Iterator[bytes]:
            while True:
                yield b"data: " + b"x" * 100_000

        return Response(chunks(), content_type="text/event-stream")

    httpserver.expect_ordered_request(f"/api/v1/jobs/{JOB}").respond_with_json(RECORD | {"state": "queued"})
    httpserver.expect_request(f"/api/v1/jobs/{JOB}").respond_with_handler(state)
    httpserver.expect_request(f"/api/v1/jobs/{JOB}/events").respond_with_handler(endless)
    assert client.job(JOB).wait().state == "finished"


# What is asked again, and what is not.


@contextmanager
def cutting(replies: Callable[[int], bytes | None]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that reads a request and answers what `replies` says to each, None cutting it off."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            while True:
                try:
                    connected, _ = listening.accept()
                except OSError:
                    return
                with connected:
                    data = b""
                    while b"\r\n\r\n" not in data:
                        more = connected.recv(65536)
                        if not more:
                            break
                        data += more
                    seen.append(data)
                    reply = replies(len(seen))
                    if reply is not None:
                        connected.sendall(reply)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", seen
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def _http(content: object, status: str = "200 OK", *headers: str) -> bytes:
    body = json.dumps(content).encode()
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def test_reads_are_asked_again_and_bodies_that_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "_FIRST_WAIT_S", 0.01)
    whole = _http({"name": "ann", "role": "reader"})
    replies = [None, whole[:-5], _http({}, "503 Busy", "Retry-After: 0"), whole]
    with (
        cutting(lambda number: replies[number - 1]) as (address, seen),
        Client(address, patience_s=20) as client,
    ):
        assert client.me().name == "ann"
        assert len(seen) == 4


def test_a_start_is_sent_again_with_its_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "_FIRST_WAIT_S", 0.01)
    replies = [None, None, _http(RECORD | {"state": "queued"}, "201 Created")]
    with (
        cutting(lambda number: replies[number - 1]) as (address, seen),
        Client(address, patience_s=20) as client,
    ):
        assert client.submit("annotate", {}).id == JOB
    keys = {
        line
        for request in seen
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"idempotency-key")
    }
    assert (len(seen), len(keys)) == (3, 1)


def test_what_must_not_be_said_twice_is_said_once() -> None:
    with cutting(lambda _: None) as (address, seen), Client(address, patience_s=5) as client:
        with pytest.raises(ServiceError, match="broke"):
            client.connection.write("POST", "x", None, content={}, again=False)
        assert len(seen) == 1


def test_an_error_that_stays_is_not_asked_for_again(httpserver: HTTPServer) -> None:
    with Client(httpserver.url_for(""), patience_s=30) as client:
        for status in (400, 401, 403, 404, 409, 422, 500):
            httpserver.clear()
            answer(httpserver, "me", {"error": {"code": "x", "message": "no"}}, status)
            with pytest.raises(UncannyError):
                client.me()
            assert len(httpserver.log) == 1


def test_a_closed_client_says_so(httpserver: HTTPServer) -> None:
    client = Client(httpserver.url_for(""))
    client.close()
    with pytest.raises(UsageError, match="closed"):
        client.me()
