"""What is seen of a run while it goes."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from tests.bundled_runs import BundledRuns
from tests.runs.e2e import pictures, serving, start, uncanny, uncanny_here
from uncanny.runs.display import SILENT_S, line_parts
from uncanny.runs.progress import Progress


@pytest.mark.slow
def test_a_log_says_at_once_what_is_starting(tmp_path: Path) -> None:
    images, run = pictures(tmp_path / "in", 3), tmp_path / "run"
    # No answer comes while the first line is read.
    with serving(latency_ms=60_000.0) as server:
        process = start("annotate", images, *server.asked(), "-o", run)
        try:
            assert process.stderr is not None
            first = process.stderr.readline().decode()
            assert first == f"3 images · openai/any · {run} · about 15 calls\n"
            assert server.requests() <= 3
        finally:
            process.kill()
            process.communicate(timeout=30)


def test_what_was_done_before_is_said_at_the_start(tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert uncanny_here("mcq", "run", "scenes", "-m", "demo", "-o", run, "--limit", "2", "-q").code == 0
    command = ("mcq", "run", "scenes", "-m", "demo", "-o", run, "--limit", "8")
    done = uncanny_here(*command)
    # A question is a call, and an original of a pair has three.
    assert done.err.splitlines()[0] == f"31 questions · demo · {run} · 8 done before · about 23 calls"
    assert uncanny_here(*command, "-q").err == ""


def test_one_input_and_one_call_are_not_called_several(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = uncanny_here(
        "annotate", pictures(tmp_path / "in", 1), "-m", "noop", "--schedule", "single", "-o", run
    )
    assert done.err.splitlines()[0] == f"1 image · noop · {run} · about 1 call"


def test_calls_are_shown_of_those_expected() -> None:
    progress = Progress(total=4, calls_expected=208, calls_now=37)
    assert "37/~208 calls" in line_parts(progress).rest
    progress.calls_now = 300
    assert "300/~300 calls" in line_parts(progress).rest


def test_a_call_without_figures_leaves_those_of_the_others(tmp_path: Path) -> None:
    progress = Progress(total=4)
    progress.spending.sums |= {
        "input_tokens": 9_000,
        "cached_tokens": 900,
        "output_tokens": 1_000,
        "cost_usd": 1.5,
    }
    progress.spending.unmeasured.update(("input_tokens", "cached_tokens", "output_tokens", "cost_usd"))
    rest = line_parts(replace(progress, calls_now=8)).rest
    assert {"at least 10.0k tokens", "10 % cached", "at least $1.50"} <= set(rest)
    with serving(faults={"blocked": 0.3}) as server:
        done = uncanny_here(
            "annotate", pictures(tmp_path / "in", 3), *server.asked(name="gpt-4o"), "-o", tmp_path / "run"
        )
    assert re.search(r"^Tokens   at least \S+ in \(.*\), at least \S+ out$", done.out, re.MULTILINE)
    assert re.search(r"^Cost     at least \$\S+, as \d+ calls? did not say ", done.out, re.MULTILINE)


def test_of_a_line_the_first_things_stay_however_narrow_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 4_000.0)
    progress = Progress(total=30_000, began=0.0, calls_now=98_765, calls_expected=240_000)
    progress.note_finished()
    progress.statuses.update(ok=12_340, failed=5)
    progress.spending.sums |= {
        "input_tokens": 9e7,
        "cached_tokens": 9e6,
        "output_tokens": 1e6,
        "cost_usd": 12.5,
    }
    parts = line_parts(progress)
    head = "12,345/30,000 images · 24.7 calls/s · 1 h 35 min to go"
    shown = {width: parts.fitted(width) for width in (39, 79, 99, 199)}
    assert shown == {
        39: "12,345/30,000 24.7/s 1 h 35 min to go",
        79: f"{head} · 5 failed · $12.50",
        99: f"{head} · 5 failed · $12.50 · 98,765/~240,000 calls",
        199: parts.whole(),
    }
    assert parts.whole().endswith("calls · 91.0M tokens · 10 % cached")
    assert parts.fitted(5) == "12,34"


def test_a_call_that_hangs_does_not_make_the_time_to_go_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: float = 0
    monkeypatch.setattr("time.monotonic", lambda: clock)
    progress = Progress(total=10, calls_expected=10, began=0.0)
    for clock in range(2, 18, 2):
        progress.statuses["ok"] += 1
        progress.calls_now += 1
        progress.answered_at = float(clock)
        progress.note_finished()

    def left(moment: float) -> str:
        nonlocal clock
        clock = moment
        return line_parts(progress).heads[-1].partition(" ")[2]

    assert [left(moment) for moment in (16.0, 18.0, 19.9, 20.1, 30.0, 16.0 + SILENT_S, 136.0)] == [
        *("4 s to go", "2 s to go", "0 s to go"),
        *("? to go", "? to go", "no answer for 20 s", "no answer for 2 min 0 s"),
    ]
    clock = 200.0
    progress.statuses["ok"] += 2
    progress.note_finished()
    assert progress.eta_s() == 0


@pytest.mark.slow
def test_programs_get_progress_as_lines_of_json(tmp_path: Path) -> None:
    images, run = pictures(tmp_path / "in", 3), tmp_path / "run"
    with serving() as server:
        asked = ("annotate", images, *server.asked(), "-o", run, "--schedule", "single", "--json")
        done = uncanny(*asked, env={"UNCANNY_PROGRESS": "jsonl"})
        quiet = uncanny(*asked, "--quiet", env={"UNCANNY_PROGRESS": "jsonl"})
    assert done.code == 0, done.err
    lines = [orjson.loads(line)["progress"] for line in done.err.splitlines()]
    first, last = lines[0], lines[-1]
    assert (first["total"], first["done"], first["calls"], first["eta_s"]) == (3, 0, 0, None)
    assert (last["total"], last["done"], last["failed"], last["resumed"], last["unit"]) == (
        3,
        3,
        0,
        0,
        "images",
    )
    assert last["calls"] == last["answered"] == 3
    totals = done.json()["totals"]
    assert (last["input_tokens"], last["output_tokens"]) == (totals["input_tokens"], totals["output_tokens"])
    assert last["cost_usd"] is None
    assert [each["done"] for each in lines] == sorted(each["done"] for each in lines)
    assert quiet.err == ""


@pytest.mark.slow
def test_scorers_count_for_programs_too(tmp_path: Path, bundled_run: BundledRuns) -> None:
    scored = ("semantic", bundled_run("annotate").path, "--truth", "scenes", "--similarity", "chrf")
    for command in ((*scored, "--no-report"), ("edits", "measure", "scenes", "-o", tmp_path / "edits.jsonl")):
        done = uncanny(*command, env={"UNCANNY_PROGRESS": "jsonl"})
        assert done.code == 0, done.err
        lines = [orjson.loads(line)["progress"] for line in done.err.splitlines()]
        assert lines[0]["done"] == 0
        assert lines[-1]["done"] == lines[-1]["total"] > 0
        assert uncanny(*command, "--quiet", env={"UNCANNY_PROGRESS": "jsonl"}).err == ""
