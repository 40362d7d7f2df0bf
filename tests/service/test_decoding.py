"""Pictures that pages show are decoded in processes that can be killed, and nothing else waits for them."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx2
import orjson
import psutil  # type: ignore[import-untyped]
import pytest
from fastapi import FastAPI
from PIL import Image

from tests.images.bombs import jpeg_of_scans
from tests.images.odd_files import encoded, picture
from tests.models.vllm.processes import title
from tests.service.made_jobs import ended_job, pages_of
from tests.service.made_review import anomaly
from tests.service.running import running, served_here
from uncanny.errors import ImageError
from uncanny.images import prepared
from uncanny.images.file_bytes import read_image_file
from uncanny.service import decoding
from uncanny.service.api.app import guarded
from uncanny.service.decoding import Asked, BusyError, Decoders, Made, measure
from uncanny.service.decoding_child import answer
from uncanny.service.pictures import BUSY, Picture, Pictures, Shown, Viewer, serve_pictures
from uncanny.service.service import Service
from uncanny.service.web.records import picture_key

pytestmark = pytest.mark.slow

# By the clock: no process starts that fast. Of the processor: decoding takes longer.
TOO_SHORT_S = 0.01


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "folder" / "a.png"
    path.parent.mkdir()
    path.write_bytes(encoded(picture(64, 48), "PNG"))
    return path.resolve()


def _decoders_of(pid: int) -> set[psutil.Process]:
    return {
        each for each in psutil.Process(pid).children() if "uncanny.service.decoding_child" in title(each)
    }


def test_what_is_made_of_a_file(file: Path) -> None:
    decoders, digest = Decoders(), hashlib.sha256(file.read_bytes()).hexdigest()
    assert decoders.ask(Asked("size", str(file))).result().head["width"] == 64
    for make, kind in (("thumbnail", "image/webp"), ("preview", "image/png"), ("copy", "image/jpeg")):
        made = decoders.ask(Asked(make, str(file), digest, (str(file.parent),))).result()  # type: ignore[arg-type]
        assert made.head["media_type"] == kind
        assert made.data
        for other in (Asked(make, str(file), "0" * 64), Asked(make, f"{file}x")):  # type: ignore[arg-type]
            assert decoders.ask(other).result() == ({"bytes": 0}, b"")


def test_a_process_that_ended_while_idle_is_no_fault_of_the_next_picture(file: Path) -> None:
    decoders, before = Decoders(processes=1), _decoders_of(os.getpid())
    assert decoders.ask(Asked("size", str(file))).result().head["width"] == 64
    (child,) = _decoders_of(os.getpid()) - before
    child.kill()
    psutil.wait_procs([child], 10)
    assert decoders.ask(Asked("size", str(file))).result().head["width"] == 64


def test_without_a_thread_it_is_said_and_asked_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoders = Decoders(processes=1)

    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        with pytest.raises(OSError, match="no thread could be started"):
            decoders.ask(Asked("size", str(file))).result(10)
    assert decoders.ask(Asked("size", str(file))).result(30).head["width"] == 64


def test_a_file_outside_is_not_shown(file: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside.png"
    outside.write_bytes(file.read_bytes())
    (file.parent / "link.png").symlink_to(outside)
    decoders = Decoders()
    for name in ("link.png", "../outside.png"):
        asked = Asked("thumbnail", f"{file.parent}/{name}", None, (str(file.parent),))
        assert decoders.ask(asked).result() == ({"bytes": 0}, b"")
        shown = asyncio.run(Pictures([file.parent]).full(Picture(file.parent / name, None)))
        assert shown is None
    assert asyncio.run(Pictures([file.parent]).full(Picture(file, None))) is not None


def test_names_that_are_not_text_are_asked_for(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))
    path.write_bytes(encoded(picture(64, 48), "PNG"))
    assert measure(path)[:2] == (64, 48)


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"text")
    with pytest.raises(ImageError, match="not an image"):
        measure(tmp_path / "a.png")
    with pytest.raises(ImageError, match="does not exist"):
        measure(tmp_path / "b.png")


def test_size_and_digest_are_of_the_same_bytes(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def then_swapped(*asked: Any) -> bytes:
        data = read_image_file(*asked)
        file.write_bytes(encoded(picture(32, 16), "PNG"))
        return data

    monkeypatch.setattr(prepared, "read_image_file", then_swapped)
    head, _ = answer(Asked("size", str(file)))
    with Image.open(BytesIO(before)) as image:
        assert head == {
            "width": image.width,
            "height": image.height,
            "sha256": hashlib.sha256(before).hexdigest(),
        }


def test_equal_requests_are_one(file: Path) -> None:
    decoders = Decoders(processes=1)
    asked = [Asked("size", str(file)), Asked("thumbnail", str(file))]
    first, second = map(decoders.ask, asked)
    assert decoders.ask(asked[0]) is first
    assert decoders.ask(asked[1]) is second
    assert second.result().data
    assert decoders.ask(asked[1]) is not second


def test_one_that_takes_too_long_is_killed_and_the_next_is_made(file: Path) -> None:
    before = _decoders_of(os.getpid())
    file.write_bytes(encoded(picture(3000, 3000), "PNG"))
    decoders = Decoders(processes=1)
    for limit in ("wait_s", "seconds"):
        usual = getattr(decoders, limit)
        setattr(decoders, limit, TOO_SHORT_S)
        with pytest.raises(ImageError, match="takes too long") as error:
            decoders.ask(Asked("size", str(file))).result()
        assert error.value.kind == "bomb"
        assert _decoders_of(os.getpid()) <= before
        setattr(decoders, limit, usual)
    assert decoders.ask(Asked("size", str(file))).result().head["height"] == 3000


def test_one_whose_process_dies_is_not_waited_for(file: Path) -> None:
    before = _decoders_of(os.getpid())
    decoders = Decoders(processes=1)
    asked = decoders.ask(Asked("size", str(file)))
    while not (children := _decoders_of(os.getpid()) - before):
        assert not asked.done()
    (child,) = children
    child.kill()  # long before it has imported what it needs to answer
    with pytest.raises(OSError, match="ended"):
        asked.result()
    assert decoders.ask(Asked("thumbnail", str(file))).result().data


def test_the_processes_have_no_keys(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    before = _decoders_of(os.getpid())
    Decoders(processes=1).ask(Asked("size", str(file))).result()
    (child,) = _decoders_of(os.getpid()) - before
    assert "PATH" in child.environ()
    assert "OPENAI_API_KEY" not in child.environ()


class _Counting(Decoders):
    """Counts what it is asked for."""

    asked = 0

    def ask(self, asked: Asked, party: str = "") -> Future[Made]:
        self.asked += 1
        return super().ask(asked, party)


def test_what_was_made_or_refused_is_remembered_while_the_file_stays_as_it_is(file: Path) -> None:
    for decoders, is_shown in ((_Counting(), True), (_Counting(wait_s=TOO_SHORT_S), False)):
        pictures = Pictures(decoders=decoders)
        for _ in range(3):
            assert (asyncio.run(pictures.thumbnail(Picture(file, None))) is not None) is is_shown
        assert decoders.asked == 1
        file.write_bytes(encoded(picture(32, 32), "PNG") + b"\0" * decoders.asked * (1 + is_shown))
        asyncio.run(pictures.thumbnail(Picture(file, None)))
        assert decoders.asked == 2


def test_a_picture_whose_process_was_killed_is_shown_the_next_time(file: Path) -> None:
    decoders, before = _Counting(processes=1), _decoders_of(os.getpid())
    pictures = Pictures(decoders=decoders)

    def kill() -> None:
        while not (children := _decoders_of(os.getpid()) - before):
            pass
        children.pop().kill()  # as where memory is short, long before it can answer

    async def killed() -> Shown | None:
        shown = asyncio.create_task(pictures.thumbnail(Picture(file, None)))
        await asyncio.to_thread(kill)
        return await shown

    assert asyncio.run(killed()) is None
    assert asyncio.run(pictures.thumbnail(Picture(file, None))) is not None
    assert decoders.asked == 2


def test_a_timer_that_cannot_be_started_is_no_fault_of_the_picture(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pictures = Pictures(decoders=Decoders(processes=1))

    def refused(_: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Timer, "start", refused, raising=False)
        assert asyncio.run(pictures.thumbnail(Picture(file, None))) is None
        with pytest.raises(OSError, match="no thread could be started"):
            Decoders(processes=1).ask(Asked("size", str(file))).result(30)
    assert asyncio.run(pictures.thumbnail(Picture(file, None))) is not None


class _Held(Decoders):
    """Begins nothing before it is told to."""

    def __init__(self) -> None:
        super().__init__(processes=1)
        self.free = threading.Event()
        self.order: list[str] = []

    def _next(self) -> Asked | None:
        self.free.wait(60)
        asked = super()._next()
        if asked is not None:
            self.order.append(Path(asked.path).name)
        return asked


def test_parties_are_served_in_turn(tmp_path: Path) -> None:
    decoders = _Held()
    asked = [("a", 0), ("a", 1), ("a", 2), ("b", 3), ("c", 4), ("b", 5)]
    futures = [decoders.ask(Asked("size", str(tmp_path / str(n))), party) for party, n in asked]
    decoders.free.set()
    for future in futures:
        assert future.result(60).head["kind"] == "missing"
    assert decoders.order == ["0", "3", "4", "1", "5", "2"]


def test_what_nobody_waits_for_any_more_is_not_made(tmp_path: Path, file: Path) -> None:
    decoders = _Held()
    pictures = Pictures(decoders=decoders)
    alone, shared = (Picture(tmp_path / name, None) for name in ("alone", "shared"))
    present = threading.Event()

    async def gone() -> bool:
        return True

    async def here() -> bool:
        present.set()
        return False

    async def look() -> list[Shown | None]:
        stays = asyncio.create_task(pictures.thumbnail(shared, Viewer("b", here)))
        left = [asyncio.create_task(pictures.thumbnail(each, Viewer("a", gone))) for each in (alone, shared)]
        stopped = asyncio.create_task(pictures.thumbnail(Picture(tmp_path / "stopped", None)))
        await asyncio.wait(left)
        stopped.cancel()
        await asyncio.wait([stopped])
        decoders.free.set()
        return [await stays, await pictures.thumbnail(Picture(file, None))]

    nothing, something = asyncio.run(look())
    assert nothing is None
    assert something is not None
    assert present.is_set()
    assert decoders.order == ["shared", "a.png"]


def test_a_queue_that_is_full_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "MOST_OF_A_PARTY", 2)
    monkeypatch.setattr(decoding, "MOST_WAITING", 3)
    decoders = _Held()
    asked = [Asked("thumbnail", str(tmp_path / str(n))) for n in range(4)]
    futures = [decoders.ask(each, "a") for each in asked[:2]]
    assert decoders.ask(asked[1], "a") is futures[1]  # which takes no place
    with pytest.raises(BusyError):
        decoders.ask(asked[2], "a")
    futures.append(decoders.ask(asked[2], "b"))
    with pytest.raises(BusyError):
        decoders.ask(asked[3], "c")

    app = FastAPI()
    serve_pictures(app, "/{n}", lambda _: Picture(tmp_path / "3", None), pictures=Pictures(decoders=decoders))
    with served_here(app) as address:
        answer = httpx2.get(f"{address}/preview/3", timeout=30)
        assert (answer.status_code, answer.json()) == (503, {"detail": BUSY})
        assert int(answer.headers["Retry-After"]) > 0
        decoders.free.set()
        for future in futures:
            future.result(60)
        assert httpx2.get(f"{address}/preview/3", timeout=30).status_code == 404


def test_a_browser_that_goes_away_is_noticed(tmp_path: Path) -> None:
    decoders = _Held()
    app = FastAPI()
    serve_pictures(app, "/{n}", lambda _: Picture(tmp_path / "a", None), pictures=Pictures(decoders=decoders))
    with served_here(guarded(app)) as address:
        with pytest.raises(httpx2.ReadTimeout):
            httpx2.get(f"{address}/preview/1", timeout=0.2)
        end = time.monotonic() + 30
        while decoders._waiting and time.monotonic() < end:
            time.sleep(0.05)
        assert not decoders._waiting
        assert not decoders._turns
    decoders.free.set()


def test_whether_it_is_well_is_told_while_all_shared_threads_are_busy(service: Service) -> None:
    app: FastAPI = pages_of(service)
    free, busy = threading.Event(), threading.Semaphore(0)

    @app.get("/busy")
    def wait() -> None:
        busy.release()
        free.wait(60)

    with served_here(guarded(app)) as address, ThreadPoolExecutor(60) as others:
        try:
            answers = [others.submit(httpx2.get, f"{address}/busy", timeout=120) for _ in range(60)]
            for _ in range(40):  # as many threads as the server has for all requests
                assert busy.acquire(timeout=60)
            assert httpx2.get(f"{address}/healthz", timeout=30).status_code == 200
            assert not any(each.done() for each in answers)
        finally:
            free.set()


# `uncanny` with less time for a picture than one of 100 megapixels takes.
IMPATIENT = (
    "-c",
    "import runpy\n"
    "from uncanny.service.decoding import DECODERS\n"
    "DECODERS.seconds = 1.0\n"
    "runpy.run_module('uncanny', run_name='__main__')",
)
PATIENT = ("-m", "uncanny")
NONE, SHOWN = "image/svg+xml", "image/webp"  # the first one says that there is no picture


@contextmanager
def _job_of(data: Path, picture: bytes, program: Sequence[str]) -> Iterator[str]:
    """The address of a service's thumbnail of a picture that a job has examined."""
    with Service.open(data) as service:
        job = ended_job(service, images=[[anomaly()]], names=["a.jpg"])
        run = service.run_folder(job.id)
        (run / "images" / "a.jpg").write_bytes(picture)
        record = orjson.loads((run / "annotations.jsonl").read_bytes())
        record["sha256"] = hashlib.sha256(picture).hexdigest()
        (run / "annotations.jsonl").write_bytes(orjson.dumps(record) + b"\n")
    with running(data, "--jobs", "0", program=program) as served:
        yield f"{served.address}/jobs/{job.id}/thumb/{picture_key('images/a.jpg')}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("scans", "size", "program", "kinds"),
    [
        pytest.param(3000, (2000, 2000), PATIENT, {NONE}, id="refused"),
        pytest.param(100, (9990, 9990), PATIENT, {NONE, SHOWN}, id="slow"),
        pytest.param(100, (9990, 9990), IMPATIENT, {NONE}, id="too slow"),
    ],
)
def test_sixty_requests_for_a_picture_that_takes_long_keep_nobody_waiting(
    tmp_path: Path, scans: int, size: tuple[int, int], program: Sequence[str], kinds: set[str]
) -> None:
    data = jpeg_of_scans(scans, size)
    with _job_of(tmp_path / "data", data, program) as address, ThreadPoolExecutor(60) as others:
        healthz = f"{address.partition('/jobs')[0]}/healthz"
        assert httpx2.get(healthz, timeout=30).status_code == 200
        answers = [others.submit(httpx2.get, address, timeout=120) for _ in range(60)]
        longest, looks = 0.0, 0
        while not all(each.done() for each in answers) or not looks:
            begun = time.monotonic()
            assert httpx2.get(healthz, timeout=30).status_code == 200
            longest, looks = max(longest, time.monotonic() - begun), looks + 1
            time.sleep(0.05)
        assert longest < 1
        (kind,) = {each.result().headers["content-type"] for each in answers}
        assert kind in kinds
        begun = time.monotonic()
        assert httpx2.get(address, timeout=30).headers["content-type"] == kind
        assert time.monotonic() - begun < 1
        print(f"looked {looks} times, longest {longest:.3f} s")
