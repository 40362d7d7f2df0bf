"""What readers get of jobs says nowhere where things lie on the machine of the service."""

from __future__ import annotations

import io
import re
import shutil
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson
import pytest
from starlette.testclient import TestClient

from tests.service.api.conftest import API
from tests.service.jobs.working import ended, working
from tests.service.made_jobs import client_of, pages_of
from tests.service.test_roles_first import routes_of
from uncanny.demo.scenes import DATA as SCENES
from uncanny.errors import ParamsError
from uncanny.service.answers import Job
from uncanny.service.folders import ROOTS, listing
from uncanny.service.jobs.kinds import KINDS, check_params, values_of
from uncanny.service.review.run import ReviewRun
from uncanny.service.service import Service

# Looked for are letters only, which stay as they are in an address, in LaTeX and behind a backslash.
DATA, ROOT = "the serversdata", "the serversroot"
SECRETS = (b"serversdata", b"serversroot", str(SCENES.parents[1]).strip("/").encode())
SHOWN = ("c01-ball-on-thread.jpg", "d01-six-fingers.png", "c02-ball-of-two-colours.webp")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / ROOT / "my photos"
    for name in ("in", "edited"):
        (folder / name).mkdir(parents=True)
        for shown in SHOWN:
            shutil.copy(SCENES / "images" / shown, folder / name)
    return folder


@pytest.fixture
def opened(tmp_path: Path, root: Path) -> Iterator[Service]:
    with Service.open(tmp_path / DATA, roots=[root]) as service:
        yield service


def made(service: Service, kind: str, **params: Any) -> Job:
    return service.submit(kind, params, by="ann")


@pytest.mark.parametrize("named", ["my photos/in", "in", "{root}/in", "{root}/edited/../in", "{root}/link"])
def test_a_path_is_kept_from_the_name_of_its_root_on(opened: Service, root: Path, named: str) -> None:
    (root / "link").symlink_to("in")
    job = made(opened, "audit", generators={"a": named.format(root=root)}, root=str(root), model="demo")
    assert job.params == {"generators": {"a": "my photos/in"}, "root": "my photos", "model": "demo"}
    asked = values_of(opened, job, opened.job_folder(job.id))
    assert asked["generators"] == {"a": f"../../{ROOTS}/my photos/in"}
    assert asked["root"] == f"../../{ROOTS}/my photos"
    with client_of(opened, "reader") as client:
        assert client.get(f"{API}/jobs/{job.id}").json()["params"] == job.params
        assert "serversroot" not in client.get(f"/jobs/{job.id}").text


def test_a_root_keeps_its_name_and_gives_it_to_no_other(tmp_path: Path) -> None:
    folders = [tmp_path / name / "photos" for name in "abc"]
    for folder in folders:
        folder.mkdir(parents=True)
    a, b, c = folders

    def names(*roots: Path) -> dict[str, Path]:
        with Service.open(tmp_path / DATA, roots=roots) as service:
            assert dict(service.roots) == {each: service.roots.real(each) for each in service.roots}
            return dict(service.roots)

    assert names(a, b) == {"photos": a, "photos-2": b}
    assert names(c, b) == {"photos-3": c, "photos-2": b}
    assert names(b) == {"photos-2": b}
    with Service.open(tmp_path / DATA, roots=[b]) as service, pytest.raises(ParamsError):
        # Given no more: its link alone lets nobody in.
        check_params(service, "annotate", {"images": "photos", "model": "demo"})


@pytest.mark.parametrize("name", ["scenes", "real", "generated", "upload:x", "a\nb"])
def test_no_name_of_a_root_means_something_else(tmp_path: Path, name: str) -> None:
    root = tmp_path / ROOT / name.replace(":", "_")
    root.mkdir(parents=True)
    (root / "a.png").touch()
    with Service.open(tmp_path / DATA, roots=[root]) as service:
        chosen = listing(service.roots, None).path
        kept = check_params(service, "detect", {"images": chosen, "model": "demo"})
        if name.isprintable():
            assert check_params(service, "detect", {"images": str(root), "model": "demo"}) == kept
        assert kept["images"][0] not in ("scenes", "real", "generated")
        assert check_params(service, "detect", kept) == kept
        (asked,) = values_of(service, Job.model_construct(kind="detect", params=kept))["images"]
        assert Path(asked).resolve() == root
        assert chosen == kept["images"][0]


def test_a_folder_within_another_root_has_one_name(tmp_path: Path) -> None:
    inner = tmp_path / "outer" / "inner"
    inner.mkdir(parents=True)
    with Service.open(tmp_path / DATA, roots=[tmp_path / "outer", inner]) as service:
        assert check_params(service, "annotate", {"images": "outer/inner", "model": "demo"})["images"] == [
            "inner"
        ]
        kept = Job.model_construct(kind="annotate", params={"images": ["outer/inner"], "model": "demo"})
        # As it was kept before the inner one was given: records go by that.
        assert values_of(service, kept)["images"] == [str(tmp_path / DATA / ROOTS / "outer/inner")]


def texts_of(name: str, body: bytes) -> Iterator[bytes]:
    """What a body says: as it is, with escapes of addresses undone, and what is packed in it."""
    yield body
    yield unquote(body, "latin-1").encode("latin-1", "replace")
    if name.endswith(".parquet"):
        pq = import_module("pyarrow.parquet")
        yield repr(pq.read_table(io.BytesIO(body)).to_pylist()).encode()
        yield repr(pq.read_schema(io.BytesIO(body)).metadata).encode()
    if body.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(body)) as archive:
            for each in archive.namelist():
                yield each.encode()
                yield from texts_of(each, archive.read(each))


def check_says_nothing(name: str, body: bytes) -> None:
    for text in texts_of(name, body):
        for secret in SECRETS:
            at = text.find(secret)
            assert at < 0, f"{name}: …{text[max(0, at - 100) : at + 60]!r}…"


def check_job(client: TestClient, job: Job, routes: set[str]) -> int:
    """All a reader gets of it; how many pictures were among that."""
    names = {"job_id": job.id, "kind": job.kind, "key": "0" * 16}
    answered = 0
    for route in sorted(routes):
        answer = client.get(route.format_map(names))
        check_says_nothing(route, answer.content)
        answered += answer.status_code == 200
    assert answered > 8
    for file in client.get(f"{API}/jobs/{job.id}/files").json()["files"]:
        answer = client.get(f"{API}/jobs/{job.id}/files/{file['path']}")
        assert len(answer.content) == file["size"]
        check_says_nothing(file["path"], answer.content)
    pictures = re.findall(r'src="([^"]*/thumb/[^"]*)"', client.get(f"/jobs/{job.id}/cards").text)
    for frame in re.findall(r'<iframe[^>]*src="([^"]+)"', client.get(f"/jobs/{job.id}/report").text):
        page = client.get(frame)
        assert page.status_code == 200
        check_says_nothing("report", page.content)
        links = re.findall(r'"src": ?"(picture/[0-9]+)"', page.text)
        pictures += [frame.removesuffix("page") + link for link in links]
    for picture in pictures:
        answer = client.get(picture)
        assert answer.status_code == 200, picture
        assert answer.headers["content-type"] in ("image/png", "image/jpeg", "image/webp"), picture
    return len(pictures)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_job_tells_readers_where_things_lie(opened: Service, root: Path) -> None:
    service = opened
    pairs = [{"id": name[:3], "original": f"in/{name}", "edited": f"edited/{name}"} for name in SHOWN]
    (root / "pairs.jsonl").write_bytes(b"".join(orjson.dumps(pair) + b"\n" for pair in pairs))
    with working(service, jobs=3):

        def done(*asked: tuple[str, dict[str, Any]]) -> list[Job]:
            jobs = [made(service, kind, **params) for kind, params in asked]
            return [ended(service, job) for job in jobs]

        images, both = {"images": str(root / "in")}, {"original": str(root / "in"), "edited": "edited"}
        pairs_file, demo = {"pairs": str(root / "pairs.jsonl")}, {"model": "demo"}
        jobs = done(
            ("annotate", images | demo | {"format": "parquet"}),
            ("detect", images | demo),
            ("annotate", {"images": [str(root / "edited")]} | demo),
            ("mcq", {"items": "scenes", "limit": 2} | demo),
            ("realism", both | demo),
            ("artifacts", images | demo | {"limit": 2, "categories": ["color"]}),
            ("audit", {"generators": {"a": "in", "b": "edited"}, "resamples": 100} | demo),
            ("edits_measure", both),
            ("edits_measure", pairs_file),
            ("edits_measure", {"pairs": "scenes"}),
            ("pairs_make", images | {"inpainter": "demo", "attempts": 1}),
        )
        run, other = f"job:{jobs[0].id}", f"job:{jobs[2].id}"
        everything = ["jsonl", "csv", "parquet", "hf", "coco", "labelstudio", "labelme", "cvat", "sft"]
        jobs += done(
            ("semantic", {"predictions": {"one": run}, "truth": run, "similarity": "chrf"}),
            ("compare", {"runs": {"a": run, "b": other}, "resamples": 100}),
            ("merge", {"runs": {"a": run, "b": f"job:{jobs[1].id}"}}),
            ("export", {"run": run, "to": [*everything, "sft-detect", "agents"], "all": True}),
            ("export", {"run": run, "to": everything, "all": True, "copy_pictures": True}),
            ("pairs_screen", {"pairs": f"job:{jobs[-1].id}"} | demo),
        )
        candidates, seen = f"job:{jobs[-7].id}", f"job:{jobs[-1].id}"
        jobs += done(("pairs_items", {"pairs": candidates, "screened": seen, "unreviewed": True}))
        # Training needs an extra that not every machine has, and more time than a test.
        assert {job.kind for job in jobs} == {name for name in KINDS if not name.startswith("learn_")}
        assert {job.state for job in jobs} <= {"finished", "incomplete"}, jobs
        review = ReviewRun.open(service.run_folder(jobs[0].id))
        routes = {
            path
            for method, path, role in routes_of(pages_of(service), review)
            if method == "GET"
            and role is not None
            and not set(re.findall(r"{(\w+)", path)) - {"job_id", "kind", "key"}
        }
        with client_of(service, "operator") as client:
            shown = {job.id: check_job(client, job, routes) for job in jobs}
        with client_of(service, "reader") as client:
            check_job(client, jobs[0], routes)
        assert all(shown[job.id] >= len(SHOWN) for job in jobs[:3]), shown
        for job in jobs:
            assert orjson.loads((service.job_folder(job.id) / "result.json").read_bytes())
        # It goes on with what it has: no image is new, and nothing is asked again.
        records = {job.id: (service.run_folder(job.id) / "calls.jsonl").read_bytes() for job in jobs[:2]}
        for job in jobs[:2]:
            again = ended(service, service.jobs.retry(job.id))
            assert again.state == "finished", again.error
            assert (service.run_folder(job.id) / "calls.jsonl").read_bytes() == records[job.id]
            lines = (service.run_folder(job.id) / "annotations.jsonl").read_bytes().splitlines()
            recorded = [orjson.loads(line)["image"] for line in lines]
            assert sorted(Path(image).name for image in recorded) == sorted(SHOWN)
            assert all(image.startswith(f"../../../{ROOTS}/my photos/") for image in recorded)
