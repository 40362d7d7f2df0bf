"""A run of questions that is stopped, killed, taken up again, or finds its items changed."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.mcq.recording import McqRun, recording, rewritten
from tests.runs.e2e import Server, finish, pictures, serving, serving_process, start, uncanny, uncanny_here
from uncanny.eval.mcq.data.items import Item

CONCURRENCY = 4


def small_set(folder: Path, number: int) -> Path:
    """Items with all four questions about small pictures, no two alike."""
    pictures(folder, number)
    lines = []
    for index in range(number):
        texts = {letter: f"thing {letter} of {index}" for letter in "ABCD"}
        boxes = {letter: (6 * n, 2, 6 * n + 5, 20) for n, letter in enumerate("ABCD")}
        item: dict[str, Any] = {"id": f"i{index:02d}", "image": f"p{index:02d}.png", "split": "ref_real"}
        item |= {"q1": {"answer": "no"}, "q2": {"options": texts, "answer": "E"}}
        item |= {"q3": {"boxes": boxes, "answer": "E"}, "q4": {"options": texts, "answer": "E"}}
        lines.append(orjson.dumps(item))
    path = folder / "items.jsonl"
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.fixture
def run(tmp_path: Path) -> McqRun:
    return McqRun(tmp_path / "run")


def command(items_file: Path, server: Server, run: McqRun) -> list[object]:
    at_once = ("--concurrency", str(CONCURRENCY))
    return ["mcq", "run", items_file, *server.asked(), *at_once, "-o", run.path, "--quiet"]


def started(arguments: list[object], server: Server, requests: int) -> subprocess.Popen[bytes]:
    """A process of the run, once the server has had so many requests."""
    process = start(*arguments)
    while server.requests() < requests:
        assert process.poll() is None
        time.sleep(0.005)
    return process


def check_complete(run: McqRun, items: int) -> None:
    answers = run.answers()
    assert set(answers) == {f"i{index:02d}/q{q}" for index in range(items) for q in range(1, 5)}
    assert {answer.outcome for answer in answers.values()} == {"answered"}
    keys = ("image", "object", "attempt", "repair")
    calls = Counter(tuple(call[key] for key in keys) for call in run.calls())
    assert set(calls.values()) == {1}
    assert len(calls) == 4 * items


@pytest.mark.slow
def test_killed_several_times_and_started_again(tmp_path: Path, run: McqRun) -> None:
    items, kills = 10, 2
    items_file = small_set(tmp_path / "set", items)
    with serving(latency_ms=40) as server:
        arguments = command(items_file, server, run)
        for number in range(1, kills + 1):
            process = started(arguments, server, number * 10)
            process.kill()
            assert finish(process).code == -9
        assert server.requests() < 4 * items
        done = uncanny(*arguments)
        assert (done.code, done.out, done.err) == (0, "", "")
        assert 4 * items <= server.requests() <= 4 * items + kills * CONCURRENCY
        asked = server.requests()
        assert uncanny_here(*arguments).code == 0
        assert server.requests() == asked
    check_complete(run, items)
    assert run.manifest()["state"] == "finished"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_kills_lose_nothing(tmp_path: Path, run: McqRun) -> None:
    items, kills = 60, 20
    items_file = small_set(tmp_path / "set", items)
    dice = random.Random(20)
    most_again = 0
    with serving_process("--latency-ms", "40") as server:
        arguments = command(items_file, server, run)
        for _ in range(kills):
            before = server.requests()
            process = started(arguments, server, before + 1)
            time.sleep(dice.uniform(0, 0.15))
            process.kill()
            assert finish(process).code == -9, "the run ended before it was killed"
            most_again += min(CONCURRENCY, server.requests() - before)
        assert uncanny(*arguments).code == 0
        assert 0 <= server.requests() - 4 * items <= most_again
    check_complete(run, items)


@pytest.mark.slow
def test_an_interrupt_lets_calls_come_back_and_none_is_asked_twice(tmp_path: Path, run: McqRun) -> None:
    items = 8
    items_file = small_set(tmp_path / "set", items)
    with serving(latency_ms=100) as server:
        arguments = command(items_file, server, run)
        process = started(arguments, server, 10)
        process.send_signal(signal.SIGINT)
        done = finish(process)
        assert done.code == 130
        assert "Run the same command again to resume" in done.err
        assert "Traceback" not in done.err
        assert run.manifest()["state"] == "interrupted"
        assert server.requests() < 4 * items
        assert uncanny(*arguments).code == 0
        assert server.requests() == 4 * items
    check_complete(run, items)


def test_a_finished_run_asks_nothing_and_changes_nothing(tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 2)
    with recording() as server:
        assert uncanny_here(*command(items_file, server, run)).code == 0
        before, requests = run.file.read_bytes(), server.requests()
        assert uncanny_here(*command(items_file, server, run)).code == 0
        assert (run.file.read_bytes(), server.requests()) == (before, requests)


def test_a_changed_question_is_asked_again_and_no_other(tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 3)

    def changed(item: Item) -> dict[str, Any]:
        assert item.q2 is not None
        options = {**item.q2.options, "D": "something else"}
        return {"q2": {"options": options, "answer": "E"}} if item.id == "i01" else {}

    with recording() as server:
        assert uncanny_here(*command(items_file, server, run)).code == 0
        before = run.answers()
        rewritten(items_file, changed)
        assert uncanny_here(*command(items_file, server, run)).code == 0
        (again,) = server.sent()[12:]
        assert "something else" in again.text
    after = run.answers()
    assert {key for key in before if before[key] != after[key]} == {"i01/q2"}


@pytest.mark.parametrize("stored", [False, True])
def test_a_picture_that_changed_is_asked_about_again_however_old_it_looks(
    stored: bool, tmp_path: Path, run: McqRun
) -> None:
    items_file = small_set(tmp_path / "set", 3)
    if stored:
        rewritten(items_file, lambda item: {"overlay": "p02.png"} if item.id == "i01" else {})
    with recording() as server:
        assert uncanny_here(*command(items_file, server, run)).code == 0
        assert server.requests() == 12
        changed = items_file.parent / ("p02.png" if stored else "p01.png")
        shutil.copy(pictures(tmp_path / "other", 1, first=77) / "p77.png", changed)
        os.utime(changed, (1.0, 1.0))
        assert uncanny_here(*command(items_file, server, run)).code == 0
        again = {(sent.text, sent.pictures) for sent in server.sent()[12:]}
        # All four of the item whose image it is, and the one question that it is the overlay of.
        assert len(again) == (4 + 1 if stored else 4)
        assert uncanny_here(*command(items_file, server, run)).code == 0
        assert server.requests() == 12 + len(again)
    assert {answer.outcome for answer in run.answers().values()} == {"answered"}


def test_answers_without_a_digest_stand(tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 2)
    with recording() as server:
        assert uncanny_here(*command(items_file, server, run)).code == 0
        rows = [orjson.loads(line) for line in run.file.read_bytes().splitlines()]
        for row in rows:
            del row["sha256"], row["file_stamp"]
        run.file.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        assert uncanny_here(*command(items_file, server, run)).code == 0
        assert server.requests() == 8


def test_another_key_asks_nothing_again(tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 2)
    with recording() as server:
        assert uncanny_here(*command(items_file, server, run)).code == 0
        rewritten(items_file, lambda _: {"q1": {"answer": "yes"}, "split": "art_dg"})
        assert uncanny_here(*command(items_file, server, run)).code == 0
        assert server.requests() == 8


def test_new_items_and_the_control_are_added(tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 3)
    with recording() as server:
        assert uncanny_here(*command(items_file, server, run), "--limit", "2").code == 0
        assert (server.requests(), len(run.answers())) == (8, 8)
        assert uncanny_here(*command(items_file, server, run)).code == 0
        assert (server.requests(), len(run.answers())) == (12, 12)


@pytest.mark.parametrize(
    "more", [("--temperature", "0.7"), ("--control",), ("--blind",), ("--max-output-tokens", "9")]
)
def test_another_protocol_is_another_run(more: tuple[str, ...], tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 1)
    with recording() as server:
        assert uncanny_here(*command(items_file, server, run)).code == 0
        done = uncanny_here(*command(items_file, server, run), *more)
        assert (done.code, done.out) == (2, "")
        assert "Traceback" not in done.err
        assert server.requests() == 4


def test_a_picture_that_cannot_be_read_costs_its_own_questions(tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 3)
    place = items_file.parent / "p01.png"
    good = place.read_bytes()
    place.write_bytes(b"no picture")
    with recording() as server:
        done = uncanny_here(*command(items_file, server, run)[:-1], "--json")
        assert done.code == 1
        assert {failure["id"] for failure in done.json()["failures"]} == {"i01"}
        answers = run.answers()
        assert len(answers) == 12
        for key, answer in answers.items():
            assert (answer.outcome == "error") == key.startswith("i01/"), key
            assert (answer.error or "image: ").startswith("image: ")
        assert server.requests() == 8
        place.write_bytes(good)
        assert uncanny_here(*command(items_file, server, run)).code == 0
        assert server.requests() == 12
    check_complete(run, 3)


def test_a_missing_overlay_costs_q3_alone(tmp_path: Path, run: McqRun) -> None:
    items_file = small_set(tmp_path / "set", 2)
    rewritten(items_file, lambda item: {"overlay": "nowhere.png"} if item.id == "i00" else {})
    with recording() as server:
        assert uncanny_here(*command(items_file, server, run)).code == 1
        assert server.requests() == 7
    failed = {key: answer for key, answer in run.answers().items() if answer.outcome == "error"}
    assert set(failed) == {"i00/q3"}
    assert "nowhere.png" in str(failed["i00/q3"].error)
