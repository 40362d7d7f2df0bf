"""Tables whose rows say where the pictures are: paths, and URLs, as of a server that speaks S3."""

from __future__ import annotations

import gzip
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as arrow  # type: ignore[import-untyped]
import pyarrow.parquet as parquet  # type: ignore[import-untyped]
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

import uncanny
from tests.runs.e2e import check_no_traceback, pictures, uncanny_here
from uncanny.errors import ImageError, UsageError
from uncanny.images.remote import read_url
from uncanny.settings import settings


def table(path: Path, **columns: list[Any]) -> Path:
    parquet.write_table(arrow.table(columns), path)
    return path


def annotated(path: Path, out: Path, **options: Any) -> dict[str, Any]:
    """The records by their names."""
    run = uncanny.annotate(path, model="noop", schedule="single", out=out, **options)
    return {record.image.rpartition("manifest.parquet/")[2]: record for record in run.annotations}


def test_a_column_of_paths(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 2)
    paths = ["in/p00.png", str(images / "p01.png"), "in/missing.png", None, "manifest.parquet/file/000000"]
    manifest = table(tmp_path / "manifest.parquet", file=paths, prompt=["a", "b", "c", "d", "e"])
    records = annotated(manifest, tmp_path / "run", image_column="file")
    assert list(records) == [f"file/{row:06d}" for row in range(5)]
    assert [record.status for record in records.values()] == ["ok"] * 2 + ["unreadable"] * 3
    assert records["file/000001"].model_extra["row"] == 1
    assert records["file/000001"].model_extra["columns"] == {"file": paths[1], "prompt": "b"}
    messages = [record.errors[0].message for record in records.values() if record.errors]
    assert "the file does not exist" in messages[0]
    assert "row 3 of" in messages[1]
    assert "is not the path of a file" in messages[2]
    again = uncanny.annotate(
        manifest,
        model="noop",
        schedule="single",
        out=tmp_path / "run",
        image_column="file",
        retry_failed=False,
    )
    assert (again.summary.calls, again.summary.statuses["ok"]) == (2, 2)


def test_a_table_of_paths_needs_the_name_of_the_column(tmp_path: Path) -> None:
    manifest = table(tmp_path / "manifest.parquet", file=["in/p00.png"])
    with pytest.raises(
        UsageError, match=r"has no column of pictures.*Name a column of paths or URLs with `image_column`"
    ):
        annotated(manifest, tmp_path / "run")
    with pytest.raises(UsageError, match="the column 'url' is not there"):
        annotated(manifest, tmp_path / "run", image_column="url")


def test_a_url_by_itself_is_refused_with_the_way_to_give_it(tmp_path: Path) -> None:
    done = uncanny_here("annotate", "s3://bucket/a.png", "-m", "noop", "-o", tmp_path / "run")
    assert done.code == 2
    assert "s3://bucket/a.png: images are not read from a URL that is given by itself" in done.err
    assert "--image-column" in done.err


def test_where_folders_are_named_no_url_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNCANNY_FOLDERS", str(tmp_path))
    settings.cache_clear()
    try:
        manifest = table(tmp_path / "manifest.parquet", url=["http://127.0.0.1:9/a.png", "/etc/passwd"])
        records = annotated(manifest, tmp_path / "run", image_column="url")
    finally:
        monkeypatch.undo()
        settings.cache_clear()
    assert [record.errors[0].kind for record in records.values()] == ["permission", "permission"]


def test_urls_that_nothing_can_read(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    urls = ["nowhere://a/b.png", "memory://gone.png", "zip://a.png::memory://b.zip"]
    manifest = table(tmp_path / "manifest.parquet", url=urls)
    done = uncanny_here(
        "annotate", manifest, "-m", "noop", "-o", tmp_path / "run", "--image-column", "url", "--json"
    )
    assert done.code == 1
    check_no_traceback(done)
    records = annotated(manifest, tmp_path / "run", image_column="url", retry_failed=False)
    kinds = [record.errors[0].kind for record in records.values()]
    assert kinds == ["unsupported", "missing", "unsupported"]


def test_a_key_that_storage_repeats_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    fsspec = pytest.importorskip("fsspec")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session/token+of+mine")

    class Repeating(fsspec.AbstractFileSystem):  # type: ignore[misc, name-defined]
        protocol = "repeating"

        def cat_file(self, *_: Any, **__: Any) -> bytes:
            raise OSError("InvalidToken: session/token+of+mine")

    fsspec.register_implementation("repeating", Repeating, clobber=True)
    with pytest.raises(ImageError, match=r"cannot be read: InvalidToken: …$"):
        read_url("repeating://bucket/a.png", 100)


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that speaks S3, on this machine."""
    pytest.importorskip("s3fs")
    pytest.importorskip("moto.server")
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    log = tmp_path_factory.mktemp("s3") / "log"
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as server:
        try:
            address = ""
            while not address:
                assert server.poll() is None, log.read_text()
                time.sleep(0.1)
                address = next(
                    (each for each in log.read_text().split() if each.startswith("http://127")), ""
                )
            yield address
        finally:
            server.terminate()
            server.wait(30)


@pytest.mark.slow
def test_images_of_a_bucket(s3: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec  # type: ignore[import-untyped]

    for name, value in (
        ("ACCESS_KEY_ID", "any"),
        ("SECRET_ACCESS_KEY", "any"),
        ("DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    bucket = fsspec.filesystem("s3")
    bucket.mkdir("pictures")
    images = sorted(pictures(tmp_path / "in", 3).iterdir())
    for image in images:
        bucket.pipe_file(f"pictures/a/{image.name}", image.read_bytes())
    urls = [f"s3://pictures/a/{image.name}" for image in images] + [
        "s3://pictures/a/gone.png",
        "s3://none/a.png",
    ]
    manifest = table(tmp_path / "manifest.parquet", url=urls)
    records = annotated(manifest, tmp_path / "run", image_column="url")
    assert [record.status for record in records.values()] == ["ok"] * 3 + ["unreadable"] * 2
    local = uncanny.annotate(tmp_path / "in", model="noop", schedule="single", out=tmp_path / "local")
    assert [record.sha256 for record in local.annotations] == [each.sha256 for each in records.values()][:3]
    assert [each.errors[0].kind for each in records.values() if each.errors] == ["missing", "missing"]
    with urllib.request.urlopen(s3, timeout=10) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("told", [None, 2**40])
def test_storage_does_not_fill_the_memory(
    told: int | None, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where it ignores the range, nor where it tells another size."""
    s3fs = pytest.importorskip("s3fs")
    s3fs.S3FileSystem.clear_instance_cache()  # it keeps the address
    sent = 0

    def endless(_: Request) -> Response:
        def chunks() -> Iterator[bytes]:
            nonlocal sent
            for _ in range(2**10):
                sent += 2**20
                yield bytes(2**20)

        headers = {} if told is None else {"Content-Length": str(told)}
        return Response(chunks(), headers=headers, mimetype="image/png")

    httpserver.expect_request("/pictures/endless.png").respond_with_handler(endless)
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "any")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{httpserver.port}")
    assert len(read_url("s3://pictures/endless.png", 2**20)) == 2**20 + 1
    assert sent < 2**26


SIGNATURE = "0123456789abcdef-signature"


@pytest.fixture
def web(httpserver: HTTPServer, tmp_path: Path) -> HTTPServer:
    """A web server with a picture, and others that answer all kinds of things."""
    pytest.importorskip("fsspec")
    picture = next(pictures(tmp_path / "in", 1).iterdir()).read_bytes()

    def endless(_: Request) -> Response:
        return Response((b"\x89PNG" + bytes(2**20) for _ in range(2**20)), mimetype="image/png")

    httpserver.expect_request("/a.png").respond_with_data(picture)
    httpserver.expect_request("/endless.png").respond_with_handler(endless)
    bomb = {"Content-Encoding": "gzip"}
    httpserver.expect_request("/bomb.png").respond_with_data(gzip.compress(bytes(2**28)), headers=bomb)
    httpserver.expect_request("/page.png").respond_with_data("<html>log in</html>")
    httpserver.expect_request("/gone.png").respond_with_data("no", status=404)
    httpserver.expect_request("/secret.png").respond_with_data("no", status=403)
    httpserver.expect_request("/away").respond_with_data("", 302, headers={"Location": "file:///etc/passwd"})
    return httpserver


def faulty(httpserver: HTTPServer, *faults: Response | None) -> list[float]:
    """An image behind so many faults, None for a connection that is cut; when it was asked for."""
    pytest.importorskip("fsspec")
    asked: list[float] = []
    left = list(faults)

    def answer(_: Request) -> Response:
        asked.append(time.monotonic())
        if not left:
            return Response(b"picture")
        if (fault := left.pop(0)) is None:
            return Response(iter([b"pic"]), headers={"Content-Length": "7"})
        return fault

    httpserver.expect_request("/faulty.png").respond_with_handler(answer)
    return asked


@pytest.mark.slow
def test_a_fault_that_may_pass_costs_no_image(httpserver: HTTPServer) -> None:
    asked = faulty(httpserver, Response(status=503, headers={"Retry-After": "1"}), None)
    assert read_url(httpserver.url_for("/faulty.png"), 100) == b"picture"
    assert len(asked) == 3
    assert asked[1] - asked[0] >= 1


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        (Response(status=500), 3),
        (Response(status=429, headers={"Retry-After": "3600"}), 1),
        (Response(status=404), 1),
        (Response(status=403), 1),
        (Response(status=416), 1),
    ],
)
def test_an_image_is_asked_for_three_times_at_most(
    fault: Response, times: int, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uncanny.images.remote._PAUSES_S", (0.0, 0.0))
    asked = faulty(httpserver, *[fault] * 9)
    with pytest.raises(ImageError, match=f"the server answered {fault.status_code}"):
        read_url(httpserver.url_for("/faulty.png"), 100)
    assert len(asked) == times


@pytest.mark.slow
def test_answers_of_a_web_server(web: HTTPServer, tmp_path: Path) -> None:
    """Credentials in URLs are used, and kept nowhere; no answer fills the memory."""
    endless = read_url(web.url_for("/endless.png"), 2**20)
    assert len(endless) == 2**20 + 1
    web.clear_log()
    names = ["a.png", "bomb.png", "page.png", "secret.png", "gone.png", "away"]
    host = f"me:{SIGNATURE}@localhost:{web.port}"
    urls = [f"http://{host}/{name}?X-Amz-Signature={SIGNATURE}&X-Amz-Expires=60" for name in names]
    urls += [
        f"http://me:{SIGNATURE}@127.0.0.1:9/a.png?X-Amz-Signature={SIGNATURE}",
        f"http://me:{SIGNATURE}@[/a.png?X-Amz-Signature={SIGNATURE}",
        f"nowhere://me:{SIGNATURE}@a/b.png",
        "file:///dev/zero",
        "local:///etc/passwd",
    ]
    manifest = table(tmp_path / "manifest.parquet", url=urls)
    run = tmp_path / "run"
    records = annotated(manifest, run, image_column="url")
    kinds = [each.errors[0].kind if each.errors else each.status for each in records.values()]
    assert kinds[:3] == ["ok", "not_an_image", "not_an_image"]
    assert kinds[3:7] == ["permission", "missing", "io_error", "io_error"]
    assert kinds[7:] == ["unsupported"] * 4
    shown = f"http://…@localhost:{web.port}/a.png?…"
    assert records["url/000000"].model_extra["columns"] == {"url": shown}
    assert web.log[0][0].authorization is not None
    assert web.log[0][0].args["X-Amz-Signature"] == SIGNATURE
    for file in run.rglob("*"):
        assert not file.is_file() or SIGNATURE.encode() not in file.read_bytes(), file
