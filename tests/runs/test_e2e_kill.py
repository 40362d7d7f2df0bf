"""A run that is killed again and again loses nothing, doubles nothing, and asks almost nothing twice."""

from __future__ import annotations

import random
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.runs.e2e import Run, Server, pictures, serving, serving_process, start, uncanny, uncanny_here

CONCURRENCY = 8
LATENCY_MS = 40
# A kill this long after the first request of its process, at most. All of them together leave the run
# unfinished: 50 × 0.15 s × 8 calls each 40 ms are 1,500 of 2,080 calls, 20 of them 600 of 960.
LONGEST_S = 0.3


def command(images: Path, server: Server, run: Path, schedule: str) -> list[object]:
    options: list[object] = ["--concurrency", str(CONCURRENCY), "-q", "--no-report", "--schedule", schedule]
    return ["annotate", images, *server.asked(), *options, "-o", run]


def kill_once(arguments: list[object], server: Server, dice: random.Random) -> int:
    """Kill a process of the run at a random moment. Returns the requests it had made."""
    before = server.requests()
    while_starting = dice.random() < 0.1
    delay = dice.uniform(0.2, 1.0) if while_starting else dice.uniform(0.0, LONGEST_S)
    with start(*arguments) as process:
        while not while_starting and process.poll() is None and server.requests() == before:
            time.sleep(0.005)
        time.sleep(delay)
        assert process.poll() is None, "the run ended before it was killed"
        process.kill()
        assert process.wait(30) == -9
    return server.requests() - before


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("schedule", "number", "kills"), [("paper", 40, 50), ("packed", 120, 20)])
def test_many_kills_lose_nothing(
    schedule: str, number: int, kills: int, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    images = pictures(tmp_path / "in", number)
    latency = ("--latency-ms", str(LATENCY_MS))
    with serving_process(*latency) as server:
        undisturbed = uncanny(*command(images, server, tmp_path / "undisturbed", schedule))
        assert (undisturbed.code, undisturbed.err) == (0, "")
        needed = server.requests()
    dice = random.Random(kills)
    with serving_process(*latency) as server:
        arguments = command(images, server, run.path, schedule)
        most_in_flight = 0
        for _ in range(kills):
            most_in_flight += min(CONCURRENCY, kill_once(arguments, server, dice))
        finished = len((run.path / "annotations.jsonl").read_bytes().splitlines())
        assert finished < number, "all was done before the last kill"
        done = uncanny(*arguments)
        assert (done.code, done.out, done.err) == (0, "", "")
        asked = server.requests()
    with capsys.disabled():
        again = f"{asked - needed} of {needed} calls asked again, {most_in_flight} allowed"
        print(f"\n{schedule}, {kills} kills: {again}")
    assert 0 <= asked - needed <= most_in_flight <= CONCURRENCY * kills
    check_same(run, Run(tmp_path / "undisturbed"), number)
    check_calls(run)
    assert run.manifest()["state"] == "finished"
    # What was paid for is counted, but for calls whose answer no process lived to see.
    assert asked - most_in_flight <= run.manifest()["totals"]["calls"] <= asked
    # Every answer was paid for once. Two images may share a few questions that show neither of them.
    assert needed <= run.manifest()["totals"]["calls"]


def check_same(run: Run, other: Run, number: int) -> None:
    left = [record.model_dump(exclude={"usage", "file_stamp"}) for record in run.records()]
    right = [record.model_dump(exclude={"usage", "file_stamp"}) for record in other.records()]
    assert left == right
    assert len(left) == number
    assert {record["status"] for record in left} == {"ok"}


def check_calls(run: Run) -> None:
    """Each question of each image once, asked by the process that wrote it or replayed."""
    calls = run.calls()
    keys = ("image", "agent", "step", "object", "sample", "attempt", "repair")
    found = Counter((*(call[key] for key in keys), *call.get("objects", ())) for call in calls)
    assert set(found.values()) == {1}
    assert all(call["outcome"] == "answered" and call["answer"] for call in calls)
    assert {record.image: record.usage.calls for record in run.records()} == Counter(
        call["image"] for call in calls
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "an_image", "asked"),
    [("packed", 1 + 1 + 1, 10), pytest.param("paper", 3 + 6 * 3 + 1, 30, marks=pytest.mark.slow)],
)
def test_killed_once_and_started_again(
    schedule: str, an_image: int, asked: int, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 4)
    with serving(latency_ms=30, objects=3) as server:
        arguments = command(images, server, run.path, schedule)
        with start(*arguments) as process:
            while server.requests() < asked:
                assert process.poll() is None
                time.sleep(0.005)
            process.kill()
        assert uncanny_here(*arguments).code == 0
        needed = 4 * an_image
        assert needed <= server.requests() <= needed + CONCURRENCY
    assert run.statuses() == {"ok": 4}
    assert len(run.calls()) == needed
    assert any(call["replayed"] for call in run.calls())
