"""Full disks and folders that vanish: a run stops with a sentence, and goes on when there is room again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image

from tests.runs.e2e import (
    Done,
    Run,
    Server,
    check_no_traceback,
    finish,
    pictures,
    serving,
    start,
    uncanny,
    uncanny_here,
)
from uncanny.runs import run as run_module

pytestmark = pytest.mark.slow

CONCURRENCY = 4
AN_IMAGE = 3 + 6 * 3 + 1
IMAGES = 6

posix = pytest.mark.skipif(sys.platform == "win32", reason="needs limits on file sizes")


def command(images: Path, server: Server, run: Path, schedule: str = "paper") -> list[object]:
    # With the paper's many calls an image much happens between two records.
    options = ("-o", run, "--concurrency", str(CONCURRENCY), "--schedule", schedule)
    return ["annotate", images, *server.asked(), *options]


def started(arguments: list[object], server: Server, requests: int) -> subprocess.Popen[bytes]:
    process = start(*arguments)
    while server.requests() < requests:
        assert process.poll() is None
        time.sleep(0.005)
    return process


def check_stopped(done: Done, *words: str) -> None:
    check_no_traceback(done)
    assert done.code == 1, done.err
    (line,) = [line for line in done.told.splitlines() if line.startswith("Stopped, ")]
    assert "run the same again" in line.lower()
    for word in words:
        assert word in line


@posix
@pytest.mark.parametrize(
    ("schedule", "number", "an_image"), [("packed", 24, 1 + 1 + 1), ("paper", IMAGES, AN_IMAGE)]
)
@pytest.mark.parametrize("limit_kib", [150, 300])
def test_a_disk_that_fills_up_midway_stops_the_run_and_it_goes_on_later(
    limit_kib: int, schedule: str, number: int, an_image: int, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", number)
    with serving(objects=3, latency_ms=5) as server:
        arguments = command(images, server, run.path, schedule)
        done = uncanny(*arguments, file_limit_kib=limit_kib)
        check_stopped(done, "cannot be written")
        assert "Images" in done.out, "no summary"
        asked = server.requests()
        assert asked < number * an_image
        assert uncanny_here(*arguments).code == 0
        assert server.requests() <= number * an_image + CONCURRENCY
        assert run.manifest()["totals"]["calls"] == server.requests()
    assert run.statuses() == {"ok": number}
    assert run.manifest()["state"] == "finished"
    assert not (run.path / "spending.jsonl").exists()


@posix
def test_a_disk_that_is_full_from_the_start_is_wrong_use(tmp_path: Path, run: Run) -> None:
    with serving(objects=3) as server:
        done = uncanny(*command(pictures(tmp_path / "in", 1), server, run.path), file_limit_kib=1)
        assert server.requests() == 0
    check_no_traceback(done)
    assert (done.code, len(done.told.splitlines())) == (2, 1)
    assert "space" in done.told


def scenes_run(protocol: str, out: Path, server: Server) -> list[object]:
    tail = [*server.asked(), "-o", out, "--concurrency", "2"]
    return [*protocol.split(), "scenes", *tail]


@posix
@pytest.mark.parametrize("protocol", ["mcq run", "realism run", "detect"])
def test_so_do_the_other_protocols(protocol: str, tmp_path: Path) -> None:
    with serving() as server:
        arguments = scenes_run(protocol, tmp_path / "run", server)
        arguments = [*arguments, "--no-cache"]
        # The bundled pictures are copied while there is room.
        assert uncanny_here(*arguments, "--limit", "1").code == 0
        check_stopped(uncanny(*arguments, file_limit_kib=16), "cannot be written")
        done = uncanny_here(*arguments)
    assert done.code == 0, done.err


@posix
@pytest.mark.parametrize("failing", [False, True])
def test_a_page_that_finds_no_room_costs_neither_records_nor_summary(
    failing: bool, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 1)
    for number in range(2):  # of noise, which does not get smaller in a page
        Image.effect_noise((900, 900), 90).save(images / f"noise{number}.png")
    with serving(objects=1, faults={"refusal": 1.0} if failing else {}) as server:
        arguments = [*command(images, server, run.path), "--no-cache"]
        done = uncanny(*arguments, file_limit_kib=400)
        check_no_traceback(done)
        assert done.code == 1
        assert done.told == (
            f"Warning: {run.path / 'report.html'} could not be written: File too large; "
            f"`uncanny report {run.path}` writes it again\n"
        )
        assert f"3 {'failed' if failing else 'ok'}" in done.out
        assert "Report " not in done.out
        assert run.statuses() == {"failed" if failing else "ok": 3}
        assert run.manifest()["state"] == "finished"
        as_json = uncanny(*arguments, "--keep-failed", "--json", file_limit_kib=400)
        assert as_json.code == 1
        assert as_json.json()["report"] is None
        assert "report.html could not be written" in as_json.json()["warnings"][0]
    assert uncanny_here("report", run.path).code == 0
    assert (run.path / "report.html").stat().st_size > 400 * 1024


def test_a_run_folder_that_is_deleted_stops_the_run_and_is_put_back(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with serving(objects=3, latency_ms=30) as server:
        arguments = command(images, server, run.path)
        process = started(arguments, server, 3 * AN_IMAGE)
        shutil.rmtree(run.path)
        asked = server.requests()
        done = finish(process)
        check_stopped(done, f"{run.path} was deleted during the run")
        assert f"Warning: {run.path} was deleted; what was done by then was put back there" in done.told
        assert server.requests() - asked <= 4 * CONCURRENCY
        kept = run.records()
        assert 0 < len(kept) < IMAGES
        assert run.calls()
        assert run.manifest()["totals"]["calls"] == server.requests()
        assert (run.path / "report.html").exists()
        assert uncanny_here(*arguments).code == 0
        assert server.requests() <= IMAGES * AN_IMAGE + CONCURRENCY
    assert run.statuses() == {"ok": IMAGES}


def test_a_folder_that_took_the_place_of_a_deleted_one_is_left_alone(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with serving(objects=3, latency_ms=30) as server:
        process = started(command(images, server, run.path), server, 3 * AN_IMAGE)
        shutil.rmtree(run.path)
        run.path.mkdir()
        (run.path / "annotations.jsonl").write_text("another run's")
        done = finish(process)
    check_stopped(done, f"{run.path} was deleted during the run")
    assert (run.path / "annotations.jsonl").read_text() == "another run's"
    # Answers fit wherever they are asked for.
    assert {path.name for path in run.path.iterdir()} <= {"annotations.jsonl", "answers"}


def test_a_run_folder_that_is_moved_stops_the_run_and_goes_on_at_its_new_place(
    tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", IMAGES)
    with serving(objects=3, latency_ms=600) as server:
        process = started(command(images, server, run.path), server, 2 * AN_IMAGE)
        run.path.rename(tmp_path / "moved")
        done = finish(process)
        check_stopped(done, f"{run.path} was deleted or moved")
        assert not run.path.exists()
        asked = server.requests()
    with serving(objects=3, port=server.port) as server:
        assert uncanny_here(*command(images, server, tmp_path / "moved")).code == 0
        assert asked + server.requests() <= IMAGES * AN_IMAGE + CONCURRENCY
    assert Run(tmp_path / "moved").statuses() == {"ok": IMAGES}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


class Blocked:
    """Keeps this process from replacing `run.json` while it runs, as a full disk would."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.way = run.path / f".run.json.{os.getpid()}.tmp"

    def calls(self) -> int:
        try:
            return int(self.run.manifest()["totals"]["calls"])
        except (OSError, KeyError, orjson.JSONDecodeError):
            return 0

    def block(self) -> None:
        until(lambda: self.calls() > 0)
        while True:  # between two writes
            try:
                self.way.mkdir()
            except FileExistsError:
                continue
            return


@pytest.mark.parametrize("to_the_end", [False, True])
def test_run_json_is_tried_again_until_it_can_be_written(
    to_the_end: bool, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "MANIFEST_EVERY_S", 0.01)
    images = pictures(tmp_path / "in", 4)
    blocked = Blocked(run)
    seen: dict[str, Any] = {}
    with serving(objects=3, latency_ms=10) as server:

        def meddle() -> None:
            blocked.block()
            before, asked = blocked.calls(), server.requests()
            until(lambda: server.requests() >= min(asked + 8, 4 * AN_IMAGE))
            seen["stood"] = blocked.calls() == before
            if not to_the_end:
                blocked.way.rmdir()

        meddler = threading.Thread(target=meddle)
        meddler.start()
        done = uncanny_here(*command(images, server, run.path))
        meddler.join()
        check_no_traceback(done)
        assert seen["stood"]
        warnings = [line for line in done.told.splitlines() if line.startswith("Warning: ")]
        assert f"{run.path / 'run.json'} could not be written: " in warnings[0]
        assert "4 ok" in done.out
        if not to_the_end:
            assert (done.code, len(warnings)) == (0, 1)
            assert run.manifest()["state"] == "finished"
            assert run.manifest()["totals"]["calls"] == 4 * AN_IMAGE
            return
        assert (done.code, len(warnings)) == (1, 2)
        assert run.manifest()["state"] == "running"
        blocked.way.rmdir()
        assert uncanny_here(*command(images, server, run.path)).code == 0
        assert server.requests() == 4 * AN_IMAGE
    assert run.manifest()["totals"]["calls"] == 4 * AN_IMAGE
    assert run.manifest()["state"] == "finished"


@posix
@pytest.mark.parametrize("protocol", ["mcq run", "realism run"])
def test_bundled_sets_that_find_no_room_are_said_with_what_to_do(protocol: str, run: Run) -> None:
    done = uncanny(*protocol.split(), "scenes", "-m", "demo", "-o", run.path, file_limit_kib=16)
    check_no_traceback(done)
    words = " ".join(done.err.split())
    assert words.startswith(f"Error: {run.path}/")
    assert words.endswith(
        "cannot be written: File too large. Pass a path that you can write to, or free some disk space."
    )
    assert done.code == 2
