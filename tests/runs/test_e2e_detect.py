"""Detection over real protocols: two turns, one prefix, servers that misbehave, going on after a kill."""

from __future__ import annotations

import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bundled_runs import BundledRuns
from tests.runs.e2e import (
    COMPATIBLE,
    IN_ORDER,
    VLLM,
    Run,
    Server,
    check_no_traceback,
    check_record,
    finish,
    pictures,
    serving,
    serving_process,
    start,
    uncanny,
    uncanny_here,
)
from tests.verdicts import source_of
from uncanny.answers.forms import ANOMALIES
from uncanny.answers.lists import read_list
from uncanny.demo.data.mistakes import DETECT_MISTAKES
from uncanny.demo.scenes import scenes
from uncanny.demo.server.app import FaultName
from uncanny.schema import Detection

PROTOCOLS = ["openai", "anthropic"]
FAULTS: tuple[FaultName, ...] = ("429", "500", "hang", "malformed", "refusal")


def detections(run: Run) -> list[Detection]:
    """The records, checked: what they say hangs together."""
    lines = (run.path / "annotations.jsonl").read_bytes().splitlines()
    found = [Detection.model_validate_json(line) for line in lines]
    for record in found:
        check_record(record)
        check_detection(record)
    return found


def check_detection(record: Detection) -> None:
    assert (record.verdict is None) == (record.status in ("failed", "unreadable"))
    assert not (record.refused and record.source)
    if record.verdict is not None and not record.refused:
        assert record.source == source_of(record.verdict)
    assert (record.listing is not None) == (record.source == "generated" and record.status == "ok")
    assert (record.description is not None) == (record.source == "real" and record.status == "ok")
    if record.listing is not None:
        assert record.anomalies == read_list(record.listing, ANOMALIES)
    else:
        assert record.anomalies == ()


def content(run: Run) -> dict[str, Any]:
    return {
        # A stamp is kept only of files that did not change just before they were read.
        Path(record.image).name: record.model_dump(exclude={"image", "usage", "model", "file_stamp"})
        for record in detections(run)
    }


@pytest.fixture(scope="module")
def demo(bundled_run: BundledRuns) -> Run:
    return Run(bundled_run("detect").path)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


def test_the_bundled_scenes_are_told_apart_but_for_the_listed_mistakes(demo: Run) -> None:
    right = {scene.id: "generated" if scene.role == "anomalous" else "real" for scene in scenes()}
    expected = right | {scene: source_of(given) for scene, given in DETECT_MISTAKES.items()}
    assert {Path(record.image).stem: record.source for record in detections(demo)} == expected
    assert demo.statuses() == {"ok": len(right)}
    assert sum(len(record.anomalies) for record in detections(demo)) == 17
    assert demo.manifest()["totals"]["calls"] == 68  # one verdict was asked for once more


@pytest.mark.parametrize("provider", [*PROTOCOLS, VLLM, COMPATIBLE])
def test_over_a_server_the_same_comes_back(provider: str, demo: Run, server: Server, run: Run) -> None:
    options = ("-o", run.path, "-q", "--limit", "10", "--no-report")
    done = uncanny_here("detect", "scenes", *server.asked(provider, "demo"), *options)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(content(run)) == 10
    assert content(run).items() <= content(demo).items()
    assert run.manifest()["task"] == "detect"


@pytest.mark.parametrize("provider", [*PROTOCOLS, VLLM])
def test_both_turns_share_one_prefix(provider: str, run: Run) -> None:
    with serving() as server:
        options = ("-o", run.path, "-q", "--limit", "6", "--no-report")
        assert uncanny_here("detect", "scenes", *server.asked(provider), *options).code == 0
        assert server.stats()["unique_prefixes"] == 6
    for call in run.calls():
        assert bool(call["cached_tokens"]) == (not call["prompt"].startswith("source@"))


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_servers_that_misbehave_cost_nothing_but_what_they_spoil(
    provider: str, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 40)
    with serving(objects=2, faults=dict.fromkeys(FAULTS, 0.07), seed=5) as server:
        command = ("detect", images, *server.asked(provider), "-o", run.path, "--timeout", "1", "--no-report")
        done = uncanny_here(*command, "--json")
        stats = server.stats()
    check_no_traceback(done)
    assert all(number > 0 for number in stats["faults"].values()), "make it longer: not all faults struck"
    found = detections(run)
    assert len(found) == 40
    # Which image a fault strikes is chance: a refused or blank verdict is asked for once more.
    assert all(record.source is None or record.verdict for record in found)
    assert sum(record.source is not None for record in found) > 20
    totals = run.manifest()["totals"]
    assert totals["calls"] == stats["requests"]
    assert totals["outcomes"]["refused"] == stats["faults"]["refusal"]
    assert totals["outcomes"]["error"] == sum(stats["faults"][name] for name in ("429", "500", "hang"))
    told = done.json()["verdicts"]
    assert told == {
        "generated": sum(record.source == "generated" for record in found),
        "real": sum(record.source == "real" for record in found),
        "unparseable": sum(record.source is None for record in found),
    }
    assert done.code == (1 if any(record.errors for record in found) else 0)


@pytest.mark.slow
@pytest.mark.parametrize("provider", PROTOCOLS)
def test_a_refusal_of_the_second_turn_is_partial_and_asked_again(
    provider: str, tmp_path: Path, run: Run
) -> None:
    images = pictures(tmp_path / "in", 12)
    with serving(objects=2, faults={"refusal": 0.3}, seed=1) as server:
        command = ("detect", images, *server.asked(provider), "-o", run.path, "--no-report")
        done = uncanny_here(*command, *IN_ORDER)
        assert done.code == 1
        partial = {record.image for record in detections(run) if record.status == "partial"}
        assert partial
        assert "SourceDetector 2:" in done.out
    with serving(objects=2) as server:
        again = uncanny_here("detect", images, *server.asked(provider), "-o", run.path, "-q", "--no-report")
    assert again.code == 0
    assert {record.status for record in detections(run)} == {"ok"}


def test_a_server_that_always_fails_leaves_no_verdict(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 2)
    with serving(faults={"length": 1.0}) as server:
        done = uncanny_here("detect", images, *server.asked(), "-o", run.path)
        assert server.requests() == 8
    assert done.code == 1
    assert run.statuses() == {"failed": 2}
    for record in detections(run):
        assert [(error.step, error.kind) for error in record.errors] == [(1, "truncated")]
    assert "0 generated, 0 real, 0 unparseable" in done.out


def test_a_wrong_list_is_asked_for_again_and_then_fails(tmp_path: Path, run: Run) -> None:
    # An empty first answer has no second turn, an empty second one is repaired.
    images = pictures(tmp_path / "in", 12)
    with serving(objects=2, faults={"malformed": 0.4}, seed=3) as server:
        command = ("detect", images, *server.asked(), "-o", run.path, "-q", "--no-report")
        uncanny_here(*command, *IN_ORDER)
    repairs = [call for call in run.calls() if call["repair"]]
    assert repairs
    assert {call["step"] for call in repairs} == {2}
    detections(run)


def test_odd_files_and_copies(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 3)
    shutil.copy(images / "p00.png", images / "copy.png")
    (images / "broken.png").write_bytes(b"no picture")
    with serving() as server:
        done = uncanny_here("detect", images, *server.asked(), "-o", run.path)
        calls = server.requests()
    assert done.code == 1
    assert run.statuses() == {"ok": 4, "unreadable": 1}
    assert "broken.png" in done.out
    found = {Path(record.image).name: record for record in detections(run)}
    copies = [record for record in found.values() if "duplicate_of" in (record.model_extra or {})]
    assert len(copies) == 1
    same = {"source", "verdict", "listing", "description", "anomalies", "refused"}
    assert found["copy.png"].model_dump(include=same) == found["p00.png"].model_dump(include=same)
    assert sum(record.usage.calls for record in found.values()) == calls <= 6


@pytest.mark.slow
def test_killed_several_times_and_started_again(tmp_path: Path, run: Run) -> None:
    images, number, at_once, kills = pictures(tmp_path / "in", 24), 24, 4, 3
    with serving_process("--latency-ms", "40") as server:
        whole = Run(tmp_path / "whole")
        command = ["detect", images, *server.asked(), "--concurrency", at_once, "-q", "--no-report"]
        assert uncanny(*command, "-o", whole.path).code == 0
        needed = server.requests()
        for kill in range(1, kills + 1):
            with start(*command, "-o", run.path) as process:
                while server.requests() < needed + 10 * kill:
                    assert process.poll() is None
                    time.sleep(0.005)
                process.kill()
                assert finish(process).code == -9
        done = uncanny(*command, "-o", run.path)
        assert (done.code, done.out, done.err) == (0, "", "")
        assert needed <= server.requests() - needed <= needed + kills * at_once
        asked = server.requests()
        assert uncanny_here(*command, "-o", run.path).code == 0
        assert server.requests() == asked
    assert content(run) == content(whole)
    assert len(detections(run)) == number
    keys = Counter((call["image"], call["prompt"], call["attempt"]) for call in run.calls())
    assert set(keys.values()) == {1}
    assert run.manifest()["state"] == "finished"


@pytest.mark.slow
def test_an_interrupt_lets_calls_come_back_and_none_is_asked_twice(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 12)
    with serving_process("--latency-ms", "100") as server:
        command = ["detect", images, *server.asked(), "--concurrency", 3, "-q", "--no-report", "-o", run.path]
        with start(*command) as process:
            while server.requests() < 6:
                assert process.poll() is None
                time.sleep(0.005)
            process.send_signal(signal.SIGINT)
            done = finish(process)
        assert done.code == 130
        assert "Run the same command again to resume" in done.err
        check_no_traceback(done)
        assert run.manifest()["state"] == "interrupted"
        assert uncanny(*command).code == 0
        assert server.requests() == len(run.calls())
    assert {record.status for record in detections(run)} == {"ok"}


def test_a_budget_stops_it_and_a_higher_one_goes_on(tmp_path: Path, run: Run) -> None:
    images = pictures(tmp_path / "in", 6)
    with serving() as server:
        command = ("detect", images, *server.asked(), "-o", run.path, "-q", "--no-report")
        small = ("--max-output-tokens", "500", "--concurrency", "1")
        done = uncanny_here(*command, *small, "--max-tokens-total", "6000")
        assert done.code == 3
        assert "The budget does not cover" in done.err
        assert run.manifest()["state"] == "budget"
        assert 0 < server.requests() < 12
        assert uncanny_here(*command, *small).code == 0
        assert len(detections(run)) == 6
        assert len(run.calls()) == server.requests()


def test_files_are_json_lines_with_the_promised_keys(demo: Run) -> None:
    for line in (demo.path / "annotations.jsonl").read_bytes().splitlines():
        record = orjson.loads(line)
        assert {"image", "source", "verdict", "refused", "listing", "description", "anomalies"} <= set(record)


def test_independent_calls_are_two_an_image_and_say_so(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    images = pictures(tmp_path / "in", 4)
    options = ("--protocol", "independent", "--no-report")
    with serving() as server:
        command = ("detect", images, *server.asked(), "-o", run.path, *options)
        forecast = uncanny_here(*command, "--dry-run", "--json").json()
        done = uncanny_here(*command)
        assert done.code == 0
        assert "by two independent calls an image" in done.out
        assert server.requests() == forecast["calls_least"] == forecast["calls_most"] == 8
    assert run.manifest()["plan"]["protocol"] == "independent"
    lines = (run.path / "annotations.jsonl").read_bytes().splitlines()
    for record in map(Detection.model_validate_json, lines):
        assert (record.status, record.description) == ("ok", None)
        assert record.listing is not None
        assert record.anomalies == read_list(record.listing, ANOMALIES)
    assert {call["step"] for call in run.calls()} == {1, 2}
    # The other protocol is another run.
    other = uncanny_here("detect", images, "--model", "openai/any", "-o", run.path)
    assert other.code == 2
    assert "--protocol: 'independent' before, 'conversation' now" in other.err


def test_both_protocols_are_scored_alike(tmp_path: Path) -> None:
    scores = {}
    for protocol in ("conversation", "independent"):
        run = tmp_path / protocol
        done = uncanny_here(
            "detect", "scenes", "-m", "demo", "-o", run, "--protocol", protocol, "--json", "--no-report"
        )
        content = done.json()
        assert content["protocol"] == protocol
        scores[protocol] = content["scores"]
        semantic = uncanny_here(
            "semantic", run, "--truth", "scenes", "--similarity", "chrf", "--json", "-", "--resamples", "0"
        )
        assert semantic.code == 0
    assert scores["conversation"] == scores["independent"]


def test_a_page_says_by_which_protocol(tmp_path: Path) -> None:
    for protocol, words in (
        ("conversation", "conversation: the verdict"),
        ("independent", "two independent"),
    ):
        run = tmp_path / protocol
        options = ("--protocol", protocol, "--limit", "1", "-q")
        assert uncanny_here("detect", "scenes", "-m", "demo", "-o", run, *options).code == 0
        assert words in (run / "report.html").read_text(encoding="utf-8")
