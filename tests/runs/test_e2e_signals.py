"""Interrupts: once lets calls in flight come back, twice does not wait."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from tests.runs.e2e import (
    PROGRESS,
    Done,
    Run,
    Server,
    check_no_traceback,
    environment,
    finish,
    pictures,
    serving,
    start,
    uncanny_here,
)

CONCURRENCY = 4
WAITING = re.compile(r"Stopping: waiting for \d+ calls?\. Ctrl-C again to leave now\.")
# Calls for an image with three objects, and images so that there is much to interrupt.
AN_IMAGE = {"packed": 1 + 1 + 1, "paper": 3 + 6 * 3 + 1}
IMAGES = {"packed": 26, "paper": 6}
SCHEDULES = ("packed", "paper")


def started(
    server: Server, images: Path, run: Run, requests: int, schedule: str = "paper"
) -> tuple[list[object], subprocess.Popen[bytes]]:
    """A run that has made at least so many requests."""
    options = ("-o", run.path, "--concurrency", str(CONCURRENCY), "--schedule", schedule)
    arguments = ["annotate", images, *server.asked(), *options]
    process = start(*arguments)
    while server.requests() < requests:
        assert process.poll() is None
        time.sleep(0.005)
    return arguments, process


def check_interrupted(done: Done, run: Run) -> None:
    check_no_traceback(done)
    assert done.code == 130
    *waiting, last = done.told.splitlines()
    assert "Interrupted" in last
    assert "same command" in last
    # Said at once, where there was something to wait for.
    assert len(waiting) <= 1
    assert all(map(WAITING.fullmatch, waiting))
    assert run.manifest()["state"] == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_one_interrupt_keeps_what_is_in_flight(
    schedule: str, number: signal.Signals, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", IMAGES[schedule])
    with serving(objects=3, latency_ms=60) as server:
        arguments, process = started(server, images, run, 40, schedule)
        before = server.requests()
        process.send_signal(number)
        check_interrupted(finish(process), run)
        # Some may have been sent before the signal came through; images begun would have asked for more.
        assert server.requests() - before <= 3 * CONCURRENCY
        assert len(run.records()) < IMAGES[schedule]
        done = uncanny_here(*arguments)
        assert done.code == 0
        needed = IMAGES[schedule] * AN_IMAGE[schedule]
        assert server.requests() == needed, "an answer that was in flight was lost"
    assert run.statuses() == {"ok": IMAGES[schedule]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "number", "an_image"), [("packed", 120, 1 + 1 + 2 * 2 + 2), ("paper", 24, 3 + 6 * 8 + 1)]
)
def test_most_of_what_was_asked_before_an_interrupt_belongs_to_finished_images(
    schedule: str, number: int, an_image: int, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", number)
    with serving(objects=8, latency_ms=50) as server:
        options = ("--concurrency", "40", "-o", run.path, "--schedule", schedule)
        process = start("annotate", images, *server.asked(), *options)
        while server.requests() < number * an_image // 3:
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        check_interrupted(finish(process), run)
        asked = server.requests()
    assert asked < number * an_image / 2
    assert len(run.records()) >= asked / an_image / 2


def interrupted_at(module: str, *arguments: object) -> tuple[int, list[str]]:
    """Exit code and standard error of a command that is interrupted once it has imported `module`."""
    command = [sys.executable, "-X", "importtime", "-m", "uncanny", *map(str, arguments)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.rpartition("|")[2].strip() == module:
                break
        process.send_signal(signal.SIGINT)
        told = [line for line in process.stderr if not line.startswith("import time:")]
    return process.returncode, told


@pytest.mark.slow
@pytest.mark.parametrize("module", ["click", "uncanny.cli", "pydantic", "openai", "langgraph"])
def test_an_interrupt_while_modules_are_imported_is_one_line(
    module: str, tmp_path: Path, run: Run, httpserver: HTTPServer
) -> None:
    images = pictures(tmp_path / "in", 1)
    model = ("--model", "openai/any", "--base-url", httpserver.url_for("/v1"))
    code, told = interrupted_at(module, "annotate", images, *model, "-o", run.path)
    lines = [line for line in told if not PROGRESS.match(line)]
    # Modules that are imported while the run is going on end it as any interrupt does.
    assert lines in (
        ["Interrupted.\n"],
        ["Interrupted, 1 image not done. Run the same command again to resume.\n"],
    )
    # Where the signal came within `exec`, as of a data class, Python ends by it in spite of the exit code.
    # To a shell both are 130.
    assert code in (130, -signal.SIGINT)


@pytest.mark.slow
def test_an_interrupt_while_the_server_wants_a_pause(
    tmp_path: Path, run: Run, httpserver: HTTPServer
) -> None:
    httpserver.expect_request("/v1/chat/completions").respond_with_data(
        "{}", status=429, headers={"Retry-After": "100"}
    )
    images = pictures(tmp_path / "in", 2)
    model = ("--model", "openai/any", "--base-url", httpserver.url_for("/v1"))
    process = start("annotate", images, *model, "-o", run.path)
    while not httpserver.log:
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    check_interrupted(finish(process, timeout_s=50), run)


@pytest.mark.slow
def test_a_second_interrupt_does_not_wait(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 3)
    with serving(objects=3, faults={"hang": 1.0}) as server:
        arguments, process = started(server, images, run, 3)
        process.send_signal(signal.SIGINT)
        time.sleep(1)
        assert process.poll() is None, "it did not wait for the calls in flight"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        done = finish(process)
        assert time.monotonic() - began < 10  # the servers hang for minutes, calls for 120 s
    check_interrupted(done, run)
    assert run.records() == []
    with serving(objects=3, port=server.port):
        assert uncanny_here(*arguments, "-q").code == 0
    assert run.statuses() == {"ok": 3}
