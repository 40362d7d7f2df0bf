"""A run that is opened again: what it took, how far it is, and why it stopped, from what is on disk."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.runs.e2e import environment, pictures, serving_process, start, uncanny_here
from uncanny.demo.scenes import scenes

IMAGES = [scene.image_path for scene in scenes()[:4]]
KILLED = """
import os, sys
import uncanny
from uncanny.records.answer_cache import AnswerCache

put, left = AnswerCache.put, int(sys.argv[1])

async def last(self, key, value):
    global left
    await put(self, key, value)
    left -= 1
    if not left:
        os._exit(9)  # as a kill: nothing is written down any more

AnswerCache.put = last
uncanny.annotate(sys.argv[3:], model="demo", out=sys.argv[2], schedule="paper", concurrency=1)
"""


def kill(out: Path, answers: int) -> None:
    """A run whose process ends right after an answer is kept, with no other call under way."""
    command = [sys.executable, "-c", KILLED, str(answers), str(out), *map(str, IMAGES)]
    assert subprocess.run(command, env=environment(), check=False, timeout=60).returncode == 9


@pytest.mark.slow
def test_of_a_killed_run_calls_costs_and_records_are_known(tmp_path: Path) -> None:
    kill(tmp_path, 15)
    assert orjson.loads((tmp_path / "run.json").read_bytes())["totals"]["calls"] == 0
    run = uncanny.AnnotateRun(tmp_path)
    summary, records = run.summary, list(run.annotations)
    assert summary.state == "running"
    assert summary.calls == 15
    assert summary.cost_usd == 0
    assert summary.output_tokens is not None
    assert summary.output_tokens > 0
    assert (sum(summary.statuses.values()), summary.pending) == (len(records), len(IMAGES) - len(records))
    totals = run.to_json()["totals"]
    assert (totals["calls"], totals["pending"]) == (15, summary.pending)
    assert ">15<" in run.report().read_text(encoding="utf-8").replace("\n", "").replace(" ", "")
    resumed = uncanny.annotate(IMAGES, model="demo", out=tmp_path)
    assert resumed.summary.calls == sum(record.usage.calls for record in resumed.annotations)
    assert uncanny.AnnotateRun(tmp_path).summary == resumed.summary


@pytest.mark.slow
def test_after_several_kills_totals_are_those_of_the_records(tmp_path: Path) -> None:
    for answers in (3, 1, 7, 2):
        kill(tmp_path, answers)
    resumed = uncanny.annotate(IMAGES, model="demo", out=tmp_path).summary
    records = uncanny.AnnotateRun(tmp_path).annotations
    for name in ("calls", "input_tokens", "output_tokens"):
        assert getattr(resumed, name) == sum(getattr(record.usage, name) for record in records)


def as_killed(out: Path, totals: dict[str, Any] | None = None) -> uncanny.AnnotateRun:
    """The run in `out` as a kill would leave it after its last record."""
    file = out / "run.json"
    content = orjson.loads(file.read_bytes())
    content |= {"state": "running", "totals": totals or {"images": 4, "ok": 0, "pending": 4, "anomalies": 0}}
    file.write_bytes(orjson.dumps(content))
    return uncanny.AnnotateRun(out)


def test_what_no_file_says_is_none(tmp_path: Path) -> None:
    finished = uncanny.annotate(IMAGES, model="demo", out=tmp_path)
    run = as_killed(tmp_path)
    assert run.summary.statuses == finished.summary.statuses
    assert (run.summary.pending, run.summary.calls, run.summary.cost_usd) == (0, None, None)
    assert run.to_json()["totals"]["anomalies"] is None
    (tmp_path / "annotations.jsonl").write_bytes(b'{"image": "a"}\n')
    assert (run.summary.statuses, run.summary.pending) == ({"ok": 0}, 4)  # as it stands in run.json
    (tmp_path / "run.json").unlink()
    assert (run.summary.state, run.summary.calls, run.summary.statuses) == ("unknown", None, {})


@pytest.mark.parametrize("kind", ["mcq", "realism", "edits"])
def test_records_of_other_protocols_are_counted_as_they_count_them(kind: str, tmp_path: Path) -> None:
    match kind:
        case "mcq":
            made: Any = uncanny.mcq.run("scenes", model="demo", out=tmp_path, limit=2)
        case "realism":
            made = uncanny.realism.run("scenes", model="demo", out=tmp_path, limit=2)
        case _:
            made = uncanny.edits.perturb("scenes", model="demo", out=tmp_path, limit=2)
    file = tmp_path / "run.json"
    content = orjson.loads(file.read_bytes())
    totals = content["totals"]
    unit = next(name for name in ("questions", "pairs", "texts") if name in totals)
    zeros = dict.fromkeys(made.summary.statuses, 0)
    file.write_bytes(
        orjson.dumps(content | {"state": "running", "totals": {unit: totals[unit], "pending": 9, **zeros}})
    )
    killed = type(made)(tmp_path).summary
    assert killed.statuses == made.summary.statuses
    assert killed.pending == 0


def test_why_a_run_stopped_and_what_it_warned_of_is_known_when_it_is_reopened(tmp_path: Path) -> None:
    stopped = uncanny.annotate(IMAGES, model="demo", out=tmp_path, max_tokens_total=12_000, concurrency=1)
    assert stopped.summary.state == "budget"
    again = uncanny.AnnotateRun(tmp_path)
    assert "does not cover another call" in str(again.summary.error)
    assert again.summary == stopped.summary
    assert "Ended early: The budget does not cover another call" in str(again)
    assert again.to_json()["error"] == stopped.to_json()["error"] == again.summary.error
    assert again.to_json()["warnings"] == stopped.to_json()["warnings"]
    finished = uncanny.annotate(IMAGES, model="demo", out=tmp_path)
    assert finished.summary.error is None
    assert uncanny.AnnotateRun(tmp_path).summary == finished.summary
    assert "error" not in orjson.loads((tmp_path / "run.json").read_bytes())


@pytest.mark.parametrize("kind", ["mcq", "realism", "artifacts", "detect"])
def test_every_kind_of_run_says_as_json_why_it_stopped_when_it_is_reopened(kind: str, tmp_path: Path) -> None:
    protocols: dict[str, Any] = {
        "mcq": uncanny.mcq.run,
        "realism": uncanny.realism.run,
        "artifacts": uncanny.artifacts.run,
        "detect": uncanny.detect,
    }
    source: Any = "scenes"
    if kind in ("artifacts", "detect"):
        source = tmp_path / "in"
        source.mkdir()
        shutil.copy(IMAGES[0], source)
        (source / "notes.txt").touch()
    run = protocols[kind]
    stopped = run(source, model="demo", out=tmp_path / "out", max_tokens_total=900, concurrency=1)
    again = type(stopped)(tmp_path / "out").to_json()
    assert again.get("skipped") == stopped.to_json().get("skipped")
    assert (again.get("skipped") == {"other_file": 1}) == (source != "scenes")
    assert "does not cover another call" in again["error"]
    assert (again["error"], again["warnings"]) == tuple(
        stopped.to_json()[key] for key in ("error", "warnings")
    )
    assert again["totals"] == stopped.to_json()["totals"]


@pytest.mark.slow
def test_after_a_kill_by_the_system_and_a_resume_calls_tokens_and_cost_agree_with_the_files(
    tmp_path: Path,
) -> None:
    number, out, prices = 6, tmp_path / "run", tmp_path / "prices.json"
    prices.write_text('[{"model": "openai/any", "input": 2, "output": 8}]')
    images = pictures(tmp_path / "in", number)
    with serving_process("--latency-ms", "40") as server:
        options = ("--prices", prices, "--concurrency", 4, "-q", "--no-report")
        arguments = ("annotate", images, *server.asked(), *options, "-o", out)
        with start(*arguments) as process:
            while server.requests() < 15:
                assert process.poll() is None
                time.sleep(0.005)
            process.kill()
            assert process.wait(30) == -9
        killed = uncanny.AnnotateRun(out)
        summary, records = killed.summary, list(killed.annotations)
        assert summary.state == "running"
        assert summary.calls is not None
        assert server.requests() - 4 <= summary.calls <= server.requests()
        assert sum(summary.statuses.values()) == len(records) == number - (summary.pending or 0)
        check_cost(summary)
        assert uncanny_here(*arguments).code == 0
    resumed = uncanny.AnnotateRun(out)
    records, summary = list(resumed.annotations), resumed.summary
    assert (summary.state, summary.pending, len(records)) == ("finished", 0, number)
    # A call whose answer was counted and not kept is asked again: only those are above the records' sum.
    again = (summary.calls or 0) - sum(record.usage.calls for record in records)
    assert 0 <= again <= 4
    check_cost(summary)
    if not again:
        for name in ("input_tokens", "output_tokens"):
            assert getattr(summary, name) == sum(getattr(record.usage, name) for record in records)
        assert summary.cost_usd == pytest.approx(sum(record.usage.cost_usd or 0 for record in records))


def check_cost(summary: uncanny.RunSummary) -> None:
    assert summary.input_tokens is not None
    assert summary.output_tokens is not None
    assert summary.cost_usd == pytest.approx((2 * summary.input_tokens + 8 * summary.output_tokens) / 1e6)
