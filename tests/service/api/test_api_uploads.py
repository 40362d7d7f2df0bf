"""Uploads: what is kept, under which name, and what is refused in words."""

from __future__ import annotations

import io
import os
import struct
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.images.bombs import jpeg_of_scans
from tests.service.api.conftest import API, Site, png
from uncanny.images.columns import METADATA_LINES
from uncanny.service.service import Service
from uncanny.service.store.names import image_name
from uncanny.service.store.uploads import UploadLimits, UploadStore

SCRIPT = "<script>alert(1)</script>"


def send(client: TestClient, *images: tuple[str, bytes], **headers: str) -> Any:
    files = [("files", (name, data, "image/png")) for name, data in images]
    return client.post(f"{API}/images", files=files, headers=headers)


def names(site: Site, set_id: str) -> list[str]:
    folder = site.service.uploads.images_folder(set_id)
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return sorted(files - {METADATA_LINES})


def bomb(width: int = 60_000, height: int = 60_000) -> bytes:
    """A PNG of a few hundred bytes that declares 3.6 gigapixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", b"\0" * 10_000_000)
    return file.getvalue()


def test_images_are_kept_with_what_was_found_in_them(site: Site, client: TestClient) -> None:
    answer = send(client, ("a/cat.png", png()), ("b/cat.png", png("blue")), ("notes.txt", b"hello"))
    assert answer.status_code == 201
    body = answer.json()
    assert [(each["name"], each["width"], each["height"], each["duplicate"]) for each in body["images"]] == [
        ("a/cat.png", 40, 30, False),
        ("b/cat.png", 40, 30, False),
    ]
    assert [(each["name"], each["code"]) for each in body["refused"]] == [("notes.txt", "not_an_image")]
    assert (body["count"], body["size"]) == (2, len(png()) + len(png("blue")))
    assert names(site, body["id"]) == ["a/cat.png", "b/cat.png"]
    page = client.get(f"{API}/images/{body['id']}?limit=1").json()
    assert ([each["name"] for each in page["images"]], page["next"]) == (["a/cat.png"], "a/cat.png")
    page = client.get(f"{API}/images/{body['id']}", params={"limit": 1, "after": page["next"]}).json()
    assert ([each["name"] for each in page["images"]], page["next"]) == (["b/cat.png"], None)
    assert list((site.service.data / "incoming").iterdir()) == []


def test_the_same_bytes_are_told_as_a_duplicate(site: Site, client: TestClient) -> None:
    first = send(client, ("a.png", png()), ("b.png", png())).json()
    assert [(each["name"], each["duplicate"]) for each in first["images"]] == [
        ("a.png", False),
        ("a.png", True),
    ]
    again = client.post(f"{API}/images/{first['id']}", files=[("files", ("c.png", png()))]).json()
    assert [(each["name"], each["sent_as"], each["duplicate"]) for each in again["images"]] == [
        ("a.png", "c.png", True)
    ]
    assert (again["count"], names(site, first["id"])) == (1, ["a.png"])


def test_other_bytes_of_the_same_name_get_another_one(site: Site, client: TestClient) -> None:
    body = send(client, ("a.png", png()), ("a.png", png("blue")), ("a.png/x.png", png("lime"))).json()
    kept = [each["name"] for each in body["images"]]
    assert kept[:2] == ["a.png", "a-2.png"]
    assert names(site, body["id"]) == sorted(kept)
    assert len(set(kept)) == 3


NAMES = {
    "../../../etc/passwd": "etc/passwd.png",
    "/etc/cron.d/x.png": "etc/cron.d/x.png",
    "..\\..\\windows\\x.png": "windows/x.png",
    "C:/autoexec.png": "C_/autoexec.png",
    "a\x00b.png": "a_b.png",
    "a\nb.png": "a_b.png",
    "CON": "_CON.png",
    "nul.tar.png": "_nul.tar.png",
    "COM¹.png": "_COM¹.png",
    ".hidden.png": "_.hidden.png",
    "-rf.png": "_-rf.png",
    "name. ": "name.png",
    "photo\u202egnp.exe": "photo_gnp.exe.png",
    "e\u0301.png": "é.png",
    "": "image.png",
    "...": "image.png",
    "picture.svg": "picture.svg.png",
    "picture.dng": "picture.dng.png",
    f"{SCRIPT}.png": "_script_alert(1)_/script_.png",
}


@pytest.mark.parametrize("name", NAMES)
def test_names_are_made_safe(name: str) -> None:
    assert image_name(name, "PNG") == NAMES[name]


@pytest.mark.parametrize("name", [name for name in NAMES if name.isprintable() and name])
def test_nothing_is_written_outside_the_set(shared_site: Site, shared_client: TestClient, name: str) -> None:
    before = set(shared_site.service.data.parent.rglob("*"))
    body = send(shared_client, (name, png())).json()
    new = set(shared_site.service.data.parent.rglob("*")) - before
    folder = shared_site.service.uploads.images_folder(body["id"])
    assert all(
        path.is_relative_to(folder) or path.name.startswith(("service.db", "incoming")) for path in new
    )
    assert len(names(shared_site, body["id"])) == 1


def test_long_names_are_cut_at_a_character(site: Site, client: TestClient) -> None:
    body = send(
        client, ("ü" * 500 + ".png", png()), ("/".join("a" * 100 for _ in range(30)), png("blue"))
    ).json()
    for each in body["images"]:
        assert len(each["name"]) <= 200
        assert all(len(part.encode()) <= 160 for part in each["name"].split("/"))
    assert len(names(site, body["id"])) == 2


def test_bombs_are_refused_and_not_decoded(client: TestClient) -> None:
    body = send(
        client,
        ("bomb.png", bomb()),
        ("scans.jpg", jpeg_of_scans(3000)),
        ("zip.png", zipped()),
        ("empty.png", b""),
        ("cut.png", png()[:20]),
    ).json()
    assert [(each["name"], each["code"]) for each in body["refused"]] == [
        ("bomb.png", "bomb"),
        ("scans.jpg", "bomb"),
        ("zip.png", "not_an_image"),
        ("empty.png", "empty"),
        ("cut.png", "truncated"),
    ]
    assert body["images"] == []


@pytest.fixture
def small(site: Site) -> Site:
    limits = UploadLimits(
        request_images=3,
        request_bytes=4000,
        set_images=4,
        image_bytes=1000,
        image_pixels=2000,
        file_bytes=1000,
    )
    site.service.uploads = UploadStore(site.service.database, site.service.data, limits)
    return site


def test_limits_hold_while_it_comes_in(small: Site) -> None:
    with small.client() as client:
        body = send(
            client, ("large.png", png() + b"\0" * 1500), ("many.png", png(size=(100, 100))), ("a.png", png())
        )
        assert [each["code"] for each in body.json()["refused"]] == ["too_large", "bomb"]
        many = send(client, *((f"{n}.png", png(size=(n + 1, 1))) for n in range(4)))
        assert (many.status_code, many.json()["error"]["code"]) == (413, "too_large")
        assert send(client, ("a.png", b"\0" * 5000)).status_code == 413
        set_id = body.json()["id"]
        for n in range(3):
            assert (
                client.post(
                    f"{API}/images/{set_id}", files=[("files", (f"{n}.png", png(size=(9, n + 1))))]
                ).status_code
                == 201
            )
        full = client.post(f"{API}/images/{set_id}", files=[("files", ("x.png", png("lime")))])
        assert full.status_code == 413
        assert client.post(f"{API}/files", files=[("file", ("a.jsonl", b"x" * 1001))]).status_code == 413
        # Of what failed nothing stays but the set that was there.
        assert [each["id"] for each in client.get(f"{API}/images").json()["sets"]] == [set_id]
    assert [path.name for path in (small.service.data / "images").iterdir()] == [set_id]
    assert list((small.service.data / "incoming").iterdir()) == []
    assert list((small.service.data / "files").iterdir()) == []


def test_an_upload_to_a_nearly_full_set_is_resumed(small: Site) -> None:
    """What the set has already counts once, however often it is sent again, also when the set is full."""
    images = [(f"{n}.png", png(size=(9, n + 1))) for n in range(5)]

    def add(client: TestClient, set_id: str, *wanted: tuple[str, bytes]) -> Any:
        return client.post(f"{API}/images/{set_id}", files=[("files", each) for each in wanted])

    with small.client() as client:
        set_id = send(client, *images[:3]).json()["id"]
        for _ in range(2):
            again = add(client, set_id, *images[1:4])
            assert again.status_code == 201
            assert (again.json()["count"], len(again.json()["images"])) == (4, 3)
        assert add(client, set_id, *images[:3]).status_code == 201
        assert add(client, set_id, images[0], images[4]).status_code == 413
        listed = client.get(f"{API}/images/{set_id}").json()
    assert (listed["count"], len(listed["images"])) == (4, 4)
    assert listed["size"] == sum(len(content) for _, content in images[:4])


def test_an_endless_body_ends_at_the_limit(small: Site) -> None:
    """What says no length is counted: no more is read than the limit and a piece."""
    read = 0

    def body() -> Any:
        nonlocal read
        yield b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\n'
        for _ in range(1000):
            read += 1000
            yield b"\0" * 1000

    with small.client() as client:
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        assert client.post(f"{API}/images", content=body(), headers=headers).status_code == 413


BODIES: dict[str, tuple[str, bytes, int]] = {
    "no form": ("application/json", b"{}", 415),
    "no boundary": ("multipart/form-data", b"", 415),
    "a long boundary": (f"multipart/form-data; boundary={'b' * 300}", b"", 400),
    "nothing": ("multipart/form-data; boundary=b", b"", 400),
    "no parts": ("multipart/form-data; boundary=b", b"--b--\r\n", 422),
    "rubbish": ("multipart/form-data; boundary=b", b"rubbish", 400),
    "cut off": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.png"\r\n\r\nabc',
        400,
    ),
    "a field": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="files"\r\n\r\nabc\r\n--b--\r\n',
        422,
    ),
    "another field": (
        "multipart/form-data; boundary=b",
        b'--b\r\nContent-Disposition: form-data; name="x"; filename="a.png"\r\n\r\nabc\r\n--b--\r\n',
        422,
    ),
    "no disposition": ("multipart/form-data; boundary=b", b"--b\r\nX: y\r\n\r\nabc\r\n--b--\r\n", 422),
    "many headers": ("multipart/form-data; boundary=b", b"--b\r\n" + b"X: y\r\n" * 100, 400),
    "a long header": ("multipart/form-data; boundary=b", b"--b\r\nX: " + b"y" * 100_000, 400),
}


@pytest.mark.parametrize("name", BODIES)
def test_odd_forms_are_refused_in_words(shared_site: Site, shared_client: TestClient, name: str) -> None:
    before = list((shared_site.service.data / "images").iterdir())
    kind, body, status = BODIES[name]
    for path in ("images", "files"):
        answer = shared_client.post(f"{API}/{path}", content=body, headers={"Content-Type": kind})
        assert answer.status_code in (status, 422), answer.text
        assert answer.status_code == status or path == "files"
        assert answer.json()["error"]["message"]
    assert list((shared_site.service.data / "images").iterdir()) == before
    assert (
        shared_client.post(
            f"{API}/images",
            content=b"x",
            headers={"Content-Type": "multipart/form-data; boundary=b", "Content-Encoding": "gzip"},
        ).status_code
        == 415
    )


def test_a_set_sent_again_under_its_key_is_the_same(site: Site, client: TestClient) -> None:
    key = {"Idempotency-Key": "k1"}
    first = send(client, ("a.png", png()), **key)
    again = send(client, ("a.png", png()), **key)
    assert (again.status_code, again.json()) == (201, first.json())
    other = send(client, ("a.png", png("blue")), **key)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "conflict")
    assert len(list((site.service.data / "images").iterdir())) == 1
    file = [
        client.post(f"{API}/files", files=[("file", ("a.csv", b"a\n1\n"))], headers=key)
        for key in [{"Idempotency-Key": "k2"}] * 2
    ]
    assert file[0].json() == file[1].json()
    assert len(list((site.service.data / "files").iterdir())) == 1


def test_files_of_records(site: Site, client: TestClient) -> None:
    body = client.post(f"{API}/files", files=[("file", ("../x/items.jsonl", b"{}\n"))]).json()
    assert (body["name"], body["size"]) == ("items.jsonl", 3)
    assert site.service.uploads.file_path(body["id"]).read_bytes() == b"{}\n"
    assert client.get(f"{API}/files/{body['id']}").json() == body
    for name in ("run.sh", "page.html", "data.pkl", "noname"):
        assert client.post(f"{API}/files", files=[("file", (name, b"x"))]).status_code == 422
    assert client.delete(f"{API}/files/{body['id']}").status_code == 204
    assert client.get(f"{API}/files/{body['id']}").status_code == 404
    assert list((site.service.data / "files").iterdir()) == []


def test_what_a_job_uses_stays_until_it_has_ended(site: Site, client: TestClient) -> None:
    set_id = send(client, ("a.png", png())).json()["id"]
    job = site.service.submit("annotate", {"images": f"upload:{set_id}", "model": "demo"}, by="ann")
    assert client.delete(f"{API}/images/{set_id}").status_code == 409
    site.service.jobs.cancel(job.id)
    assert client.delete(f"{API}/images/{set_id}").status_code == 204
    assert not site.service.uploads.images_folder(set_id).exists()


def test_sweeping_removes_what_a_kill_left(data: Path) -> None:
    with Service.open(data) as service:
        kept = service.uploads.new_set(name=None, by="ann")
        folder = service.uploads.images_folder(kept.id)
        with service.uploads.receive(10_000) as incoming:
            incoming.write(png())
            service.uploads.keep_image(kept.id, incoming, "a.png")
        lost = [
            data / "incoming" / "lost",
            folder / "lost.png",
            data / "images" / ("set_" + "b" * 20) / "x.png",
            data / "files" / ("file_" + "b" * 20) / "x.csv",
        ]
        for path in lost:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x")
        service.uploads.sweep()
        assert all(path.exists() for path in lost)  # they may be somebody's who is at it
        # Half of it is as old as files get, half of a time when the clock was a year ahead.
        ahead = time.time() + 365 * 86_400
        for number, path in enumerate((*lost, folder / "a.png", folder, *(each.parent for each in lost))):
            os.utime(path, (ahead, ahead) if number % 2 else (0, 0))
        service.uploads.sweep()
        assert not any(path.exists() for path in lost)
        assert (folder / "a.png").exists()


def test_a_set_that_cannot_be_begun_is_a_matter_of_storage(site: Site, client: TestClient) -> None:
    folder = site.service.data / "images"
    folder.rmdir()
    folder.write_bytes(b"")
    answer = send(client, ("x.png", png()))
    assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage")
