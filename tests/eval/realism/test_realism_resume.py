"""A realism run that is stopped, killed, taken up again, or finds its pairs changed or unusable."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.eval.mcq.recording import recording
from tests.eval.realism.realism_run import RealismRun, small_pairs
from tests.runs.e2e import Server, check_no_traceback, finish, serving, start, uncanny, uncanny_here

CONCURRENCY = 4


@pytest.fixture
def run(tmp_path: Path) -> RealismRun:
    return RealismRun(tmp_path / "run")


def command(pairs: Path, server: Server, run: RealismRun, provider: str = "openai") -> list[object]:
    at_once = ("--concurrency", str(CONCURRENCY))
    return ["realism", "run", pairs, *server.asked(provider), *at_once, "-o", run.path, "--quiet"]


def started(arguments: list[object], server: Server, requests: int) -> subprocess.Popen[bytes]:
    """A process of the run, once the server has had so many requests."""
    process = start(*arguments)
    while server.requests() < requests:
        assert process.poll() is None
        time.sleep(0.005)
    return process


def rewritten(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(orjson.dumps(row | change(row)) + b"\n" for row in rows))


def asked_once(run: RealismRun) -> int:
    """How many questions were asked; each stands in the calls once."""
    calls = Counter((call["image"], call["object"], call["attempt"], call["repair"]) for call in run.calls())
    assert set(calls.values()) == {1}
    return len(calls)


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_killed_several_times_and_started_again(provider: str, tmp_path: Path, run: RealismRun) -> None:
    pairs, kills = small_pairs(tmp_path / "set", 12), 2
    with serving(latency_ms=60) as server:
        calm = RealismRun(tmp_path / "calm")
        assert uncanny_here(*command(pairs, server, calm, provider)).code == 0
        whole = before = server.requests()
        for number in range(1, kills + 1):
            process = started(command(pairs, server, run, provider), server, before + number * 6)
            process.kill()
            assert finish(process).code == -signal.SIGKILL
        assert server.requests() < 2 * whole
        done = uncanny(*command(pairs, server, run, provider))
        assert (done.code, done.out, done.err) == (0, "", "")
        assert 2 * whole <= server.requests() <= 2 * whole + kills * CONCURRENCY
        asked = server.requests()
        assert uncanny_here(*command(pairs, server, run, provider)).code == 0
        assert server.requests() == asked
    assert run.answers() == calm.answers()
    assert asked_once(run) == whole
    assert run.manifest()["state"] == "finished"


@pytest.mark.slow
def test_an_interrupt_lets_calls_come_back_and_none_is_asked_twice(tmp_path: Path, run: RealismRun) -> None:
    pairs = small_pairs(tmp_path / "set", 10)
    with serving(latency_ms=100) as server:
        process = started(command(pairs, server, run), server, 6)
        process.send_signal(signal.SIGINT)
        done = finish(process)
        assert (done.code, "Run the same command again to resume" in done.err) == (130, True)
        assert "pairs not done" in done.err
        assert "Traceback" not in done.err
        assert uncanny(*command(pairs, server, run)).code == 0
        assert server.requests() == asked_once(run)
    assert len(run.verdicts()) == 10


def test_a_finished_run_asks_nothing_and_changes_nothing(tmp_path: Path, run: RealismRun) -> None:
    pairs = small_pairs(tmp_path / "set", 3)
    with serving() as server:
        assert uncanny_here(*command(pairs, server, run)).code == 0
        before, requests = run.file.read_bytes(), server.requests()
        assert uncanny_here(*command(pairs, server, run)).code == 0
        assert (run.file.read_bytes(), server.requests()) == (before, requests)


def test_a_budget_stops_it_and_a_higher_one_goes_on(tmp_path: Path, run: RealismRun) -> None:
    pairs = small_pairs(tmp_path / "set", 10)
    with serving() as server:
        arguments = [*command(pairs, server, run)[:-1]]
        done = uncanny_here(*arguments, "--max-tokens-total", "15000")
        assert (done.code, "Stopped" in done.err) == (3, True)
        assert len(run.verdicts()) < 10
        assert uncanny_here(*arguments).code == 0
        assert server.requests() == asked_once(run)
    assert len(run.verdicts()) == 10


def test_another_group_is_written_without_asking_and_another_file_is_asked_about(
    tmp_path: Path, run: RealismRun
) -> None:
    pairs = small_pairs(tmp_path / "set", 4)
    with serving() as server:
        assert uncanny_here(*command(pairs, server, run)).code == 0
        before, requests = run.verdicts(), server.requests()
        rewritten(pairs, lambda _: {"group": "all"})
        assert uncanny_here(*command(pairs, server, run)).code == 0
        assert server.requests() == requests
        assert {verdict.group for verdict in run.verdicts().values()} == {"all"}
        assert {n: v.label for n, v in run.verdicts().items()} == {n: v.label for n, v in before.items()}
        # Older than the run, and with other bytes.
        changed = pairs.parent / "edited" / "p102.png"
        changed.write_bytes((pairs.parent / "original" / "p03.png").read_bytes())
        os.utime(changed, (1.0, 1.0))
        assert uncanny_here(*command(pairs, server, run)).code == 0
        assert server.requests() > requests
    after = run.verdicts()
    assert {name for name in before if before[name].edited != after[name].edited} == {"i02"}


@pytest.mark.parametrize("more", [("--temperature", "0.7"), ("--top-p", "0.5"), ("--max-output-tokens", "9")])
def test_another_protocol_is_another_run(more: tuple[str, ...], tmp_path: Path, run: RealismRun) -> None:
    pairs = small_pairs(tmp_path / "set", 1)
    with serving() as server:
        assert uncanny_here(*command(pairs, server, run)).code == 0
        asked = server.requests()
        done = uncanny_here(*command(pairs, server, run), *more)
        assert (done.code, done.out, server.requests()) == (2, "", asked)
        check_no_traceback(done)


def test_pairs_that_cannot_be_judged_are_recorded_and_the_others_go_on(
    tmp_path: Path, run: RealismRun
) -> None:
    pairs = small_pairs(tmp_path / "set", 6)
    original, edited = pairs.parent / "original", pairs.parent / "edited"
    (edited / "p100.png").write_bytes((original / "p00.png").read_bytes())
    (original / "p01.png").unlink()
    good = (edited / "p102.png").read_bytes()
    (edited / "p102.png").write_bytes(b"no picture")
    (original / "p03.png").write_bytes(b"")
    with recording() as server:
        done = uncanny_here(*command(pairs, server, run)[:-1], "--json")
        assert done.code == 1
        verdicts = run.verdicts()
        kinds = {name: [error.kind for error in verdict.errors] for name, verdict in verdicts.items()}
        assert kinds == {
            "i00": ["same_bytes"],
            "i01": ["missing"],
            "i02": ["not_an_image"],
            "i03": ["empty"],
            "i04": [],
            "i05": [],
        }
        assert {failure["id"]: failure["outcome"] for failure in done.json()["failures"]} == dict.fromkeys(
            ["i00", "i01", "i02", "i03"], "unusable"
        )
        assert {call["image"] for call in run.calls()} == {"i04", "i05"}
        assert verdicts["i01"].edited is not None
        assert verdicts["i01"].edited.sha256
        (edited / "p102.png").write_bytes(good)
        assert uncanny_here(*command(pairs, server, run)).code == 1
    assert run.verdicts()["i02"].outcome == "judged"


def test_two_sizes_are_compared_as_they_are_and_noted(tmp_path: Path, run: RealismRun) -> None:
    from PIL import Image

    pairs = small_pairs(tmp_path / "set", 2)
    Image.new("RGB", (64, 48), "teal").save(pairs.parent / "edited" / "p100.png")
    with recording() as server:
        assert uncanny_here(*command(pairs, server, run)).code == 0
        sent = {picture for each in server.sent() for picture in each.pictures}
    assert (pairs.parent / "edited" / "p100.png").read_bytes() in sent
    notes = {name: verdict.notes for name, verdict in run.verdicts().items()}
    assert notes == {"i00": ("two sizes: original 32x24, edited 64x48; compared as they are",), "i01": ()}


def test_further_keys_of_a_pair_go_into_its_verdict_without_a_call(tmp_path: Path, run: RealismRun) -> None:
    pairs = small_pairs(tmp_path / "set", 2)
    with serving() as server:
        assert uncanny_here(*command(pairs, server, run), "--no-cache").code == 0
        requests = server.requests()
        assert all("columns" not in (each.model_extra or {}) for each in run.verdicts().values())
        rewritten(pairs, lambda _: {"source": "coco", "seed": 3, "tags": ["a"]})
        assert uncanny_here(*command(pairs, server, run), "--no-cache").code == 0
        assert server.requests() == requests
        rewritten(pairs, lambda _: {"seed": 4})
        assert uncanny_here(*command(pairs, server, run), "--no-cache").code == 0
        assert server.requests() == requests
    columns = [(each.model_extra or {})["columns"] for each in run.verdicts().values()]
    assert columns == [{"source": "coco", "seed": 4}] * 2
