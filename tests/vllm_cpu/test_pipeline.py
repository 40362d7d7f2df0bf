"""`uncanny annotate` from files to records on a real server: the bundled scenes, noise for answers."""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from tests.runs.e2e import PROGRESS, Done, Run, check_no_traceback, finish, start, uncanny
from uncanny.demo.scenes import scenes
from uncanny.models.vllm.server import COMMAND_VARIABLE, VllmServer

pytestmark = pytest.mark.vllm

PATIENCE_S = 400.0
FREE = {("AttributeAnalyzer", 1), ("RelationReasoner", 1), ("AnomalyIntegrator", 1)}
"""Agents and steps that are asked for free text; all others must answer with a list in JSON."""
LISTS = {
    "ObjectPerceiver": "objects",
    "AttributeAnalyzer": "attributes",
    "RelationReasoner": "relations",
    "AnomalyIntegrator": "findings",
    "AnomalyFormatter": "anomalies",
    "SceneScanner": "findings",
}


def counters(server: VllmServer) -> dict[str, int]:
    """What the server itself counted since it was started."""
    with urllib.request.urlopen(server.base_url.removesuffix("/v1") + "/metrics", timeout=30) as reply:
        text = reply.read().decode()
    names = ("prefix_cache_queries", "prefix_cache_hits", "mm_cache_queries", "prompt_tokens")
    values = {name: re.findall(rf"^vllm:{name}_total{{.*}} (\S+)$", text, re.MULTILINE) for name in names}
    return {name: int(sum(map(float, found))) for name, found in values.items()}


def by_image(run: Run) -> dict[str, list[dict[str, Any]]]:
    """Calls of each image, in the order in which they were sent."""
    found: dict[str, list[dict[str, Any]]] = {}
    for call in sorted(run.calls(), key=lambda call: str(call["started"])):
        found.setdefault(call["image"], []).append(call)
    return found


@dataclass(frozen=True, slots=True)
class Whole:
    """A finished run. `used` is how far the server's counters rose meanwhile."""

    run: Run
    done: Done
    used: Mapping[str, int]


@pytest.fixture(scope="module")
def whole(tiny_vllm: VllmServer, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """All bundled scenes, annotated once for the tests that look at it."""
    run = Run(tmp_path_factory.mktemp("pipeline") / "run")
    before = counters(tiny_vllm)
    done = uncanny(
        "annotate",
        *(scene.image_path for scene in scenes()),
        *("-o", run.path, "--schedule", "paper", "--max-objects", "3", "--scene-scans", "1", "--json"),
        *("--model", f"vllm/{tiny_vllm.model}", "--base-url", tiny_vllm.base_url),
        timeout_s=PATIENCE_S,
    )
    after = counters(tiny_vllm)
    return Whole(run, done, {name: after[name] - before[name] for name in after})


def test_every_scene_gets_a_record_and_noise_gets_through(whole: Whole) -> None:
    check_no_traceback(whole.done)
    records = whole.run.records()
    assert {Path(record.image).name for record in records} == {scene.image_path.name for scene in scenes()}
    statuses = whole.run.statuses()
    assert set(statuses) <= {"ok", "partial", "failed"}
    assert statuses["ok"] >= len(records) // 2
    assert any(record.anomalies for record in records)
    assert all(len(record.objects) <= 3 for record in records)
    manifest = whole.run.manifest()
    assert manifest["state"] == "finished"
    assert manifest["parameters"][manifest["model"]] == {
        "temperature": 0.3,
        "top_p": 0.95,
        "max_tokens": 2000,
    }
    assert whole.done.code == (0 if statuses["ok"] == len(records) else 1)


def test_the_server_got_an_image_with_every_question_that_shows_one(whole: Whole) -> None:
    calls = whole.run.calls()
    seeing = sum(call["sees_image"] for call in calls if not call["replayed"])
    assert 0 < seeing < len(calls)
    assert whole.used["mm_cache_queries"] == seeing


def test_lists_are_constrained(whole: Whole) -> None:
    steps = {(call["agent"], call["step"]) for call in whole.run.calls()}
    assert steps >= FREE
    assert {agent for agent, _ in steps - FREE} == set(LISTS)
    for call in whole.run.calls():
        if (call["agent"], call["step"]) in FREE or (call["detail"] or "").startswith("cut off"):
            continue
        # Random weights never spell JSON unless a grammar holds their hand.
        assert list(json.loads(call["answer"])["answer"]) == [LISTS[call["agent"]]], call


def test_tokens_are_counted_as_the_server_counts_them(whole: Whole) -> None:
    asked = [call for call in whole.run.calls() if not call["replayed"]]
    assert all(call["input_tokens"] > 0 and call["output_tokens"] > 0 for call in asked)
    assert all(call["cached_tokens"] is not None for call in asked)
    assert sum(call["input_tokens"] for call in asked) == whole.used["prompt_tokens"]
    assert sum(call["cached_tokens"] for call in asked) == whole.used["prefix_cache_hits"]
    totals = whole.run.manifest()["totals"]
    assert totals["input_tokens"] == whole.used["prompt_tokens"]
    assert totals["cached_tokens"] == whole.used["prefix_cache_hits"]
    assert totals["unmeasured"] == {"cost_usd": totals["calls"]}


def test_from_its_second_question_on_an_image_is_found_in_the_cache(whole: Whole) -> None:
    for image, calls in by_image(whole.run).items():
        first, *others = (call for call in calls if not call["replayed"])
        assert all(call["cached_tokens"] > 0 for call in others), image
        # More than any image has in common with the one before it: the image itself was found as well.
        seeing = [call["cached_tokens"] for call in others if call["sees_image"]]
        assert min(seeing) > first["cached_tokens"], image
    assert whole.used["prefix_cache_hits"] > whole.used["prefix_cache_queries"] // 2


def begin(run: Run, model: Path, vllm_command: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """`uncanny annotate` that has to start its own server."""
    images = [scene.image_path for scene in scenes()[:8]]
    config = ("--repeats", "1", "--max-objects", "1", "--concurrency", "4", "--json")
    own_server = {COMMAND_VARIABLE: shlex.join(vllm_command)}
    return start(
        *("annotate", *images, "-o", run.path, "-m", f"vllm/{model}", "--schedule", "paper"),
        *config,
        env=own_server,
    )


def wait_for_a_record(run: Run, process: subprocess.Popen[bytes]) -> None:
    records = run.path / "annotations.jsonl"
    deadline = time.monotonic() + PATIENCE_S
    while not (records.exists() and records.stat().st_size):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def log(run: Run) -> str:
    return (run.path / "vllm.log").read_text()


def ports(run: Run) -> list[str]:
    """Those of all servers that the run has started."""
    return re.findall(r"Starting vLLM server on http://127\.0\.0\.1:(\d+)", log(run))


def asked(run: Run) -> int:
    """Questions that reached a server, by its own account."""
    return log(run).count('"POST /v1/chat/completions HTTP/1.1" 200')


@pytest.mark.slow
def test_a_run_starts_and_ends_its_own_server_and_asks_nothing_twice(
    tiny_model: Path, vllm_command: tuple[str, ...], tmp_path: Path
) -> None:
    run = Run(tmp_path / "run")
    with begin(run, tiny_model, vllm_command) as process:
        wait_for_a_record(run, process)
        started = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGINT)
        done = finish(process, PATIENCE_S)
    check_no_traceback(done)
    assert done.code == 130, done.err
    assert len(started) >= 3, "not even a watcher, a server and its engine"
    assert [each for each in started if each.is_running()] == []
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{ports(run)[0]}/health", timeout=5)
    # Random weights may have given the images that were not finished no answer that validates.
    recorded = sum(call["outcome"] == "answered" and not call["replayed"] for call in run.calls())
    kept = run.manifest()["totals"]["outcomes"]["answered"] - recorded

    with begin(run, tiny_model, vllm_command) as process:
        done = finish(process, PATIENCE_S)
    check_no_traceback(done)
    assert done.code in (0, 1)
    totals = run.manifest()["totals"]
    assert totals["pending"] == 0
    assert totals["calls"] == asked(run)
    assert totals["replayed"] >= kept >= 0

    finished = {record.image: record for record in run.records() if record.status == "ok"}
    assert finished
    (run.path / "annotations.jsonl").unlink()
    with begin(run, tiny_model, vllm_command) as process:
        done = finish(process, PATIENCE_S)
    check_no_traceback(done)
    assert done.code in (0, 1)
    assert len(set(ports(run))) == 3
    assert all(call["replayed"] for call in run.calls() if call["image"] in finished)
    assert finished.items() <= {record.image: record for record in run.records()}.items()
    if len(finished) == totals["images"]:
        assert asked(run) == totals["calls"]


def test_a_wrong_name_is_told_in_one_line_with_the_right_one(tiny_vllm: VllmServer, tmp_path: Path) -> None:
    image = scenes()[0].image_path
    address = ("--base-url", tiny_vllm.base_url)
    done = uncanny("annotate", image, "-o", tmp_path / "run", "-m", "vllm/no-such-model", *address)
    check_no_traceback(done)
    assert done.code == 2
    assert done.out == ""
    complaints = [line for line in done.err.splitlines(keepends=True) if not PROGRESS.match(line)]
    assert len(complaints) == 1
    assert "no-such-model" in complaints[0]
    assert f"vllm/{tiny_vllm.model}" in complaints[0]
