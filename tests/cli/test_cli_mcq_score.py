"""`uncanny mcq score`: models side by side, missing answers, predictions, and files that are no answers."""

from __future__ import annotations

import json
from pathlib import Path

import orjson
import pytest

from tests.cli.complaints import BAD_ITEMS, one_line, problems
from tests.eval.mcq.recording import McqRun
from tests.runs.e2e import uncanny_here


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> McqRun:
    run = McqRun(tmp_path_factory.mktemp("demo") / "run")
    assert uncanny_here("mcq", "run", "scenes", "--model", "demo", "-o", run.path, "-q").code == 0
    return run


def test_run_then_score(demo: McqRun) -> None:
    done = uncanny_here("mcq", "score", "scenes", demo.file, "--resamples", "50")
    assert (done.code, done.err) == (0, "")
    heads, line, *_ = done.out.splitlines()
    assert "Q1 recall" in heads
    assert line.startswith("demo ")
    # One wrong presence of ten artifact images: what docs/demo.md says of the demo's mistakes.
    assert line.split()[1] == "90.0"


def other_model(demo: McqRun, path: Path, drop: int = 0) -> Path:
    """The demo's answers under another name, without the last `drop`."""
    lines = demo.file.read_bytes().splitlines()
    records = [orjson.loads(line) | {"model": "other"} for line in lines[: len(lines) - drop]]
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def test_several_models_side_by_side(tmp_path: Path, demo: McqRun) -> None:
    other = other_model(demo, tmp_path / "other.jsonl")
    command = ("mcq", "score", "scenes", demo.path, other, "--baselines", "--resamples", "50")
    done = uncanny_here(*command, "--json", "-")
    assert (done.code, done.err) == (0, "")
    assert {"demo", "other", "baseline/random", "baseline/always-E/no"} == set(done.json()["models"])
    shown = uncanny_here(*command, "--json", tmp_path / "scores.json", "--published")
    assert shown.code == 0
    assert json.loads((tmp_path / "scores.json").read_bytes()) == done.json()
    assert "published:" in shown.out
    assert "At least one model" in shown.out


def test_missing_answers_are_said_and_an_error_where_all_are_wanted(tmp_path: Path, demo: McqRun) -> None:
    short = other_model(demo, tmp_path / "short.jsonl", drop=5)
    done = uncanny_here("mcq", "score", "scenes", short, "--resamples", "0")
    assert done.code == 0
    assert "other: 5 answers are missing" in done.out
    wanted = ("mcq", "score", "scenes", "--resamples", "0", "--require-complete")
    one_line(uncanny_here(*wanted, short), "5 of 76", "other", "--require-complete")
    assert uncanny_here(*wanted, demo.file).code == 0


def test_predictions_are_scored_like_answers(tmp_path: Path, demo: McqRun) -> None:
    rows: dict[str, dict[str, str | None]] = {}
    for answer in demo.answers().values():
        rows.setdefault(answer.id, {"row_id": answer.id})[answer.question] = answer.raw
    predictions = tmp_path / "theirs.jsonl"
    predictions.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows.values()))
    command = ("mcq", "score", "scenes", "--resamples", "0", "--json", "-")
    theirs = uncanny_here(*command, predictions).json()
    ours = uncanny_here(*command, demo.file).json()
    assert theirs["splits"] == ours["splits"]


def test_answers_that_cannot_be_scored(tmp_path: Path, demo: McqRun) -> None:
    (tmp_path / "bad.jsonl").write_text(BAD_ITEMS)
    one_line(uncanny_here("mcq", "score", "scenes", tmp_path / "nowhere.jsonl"), "nowhere.jsonl")
    problems(uncanny_here("mcq", "score", "scenes", tmp_path / "bad.jsonl"), "line 2: not valid JSON")
    (tmp_path / "empty.jsonl").write_text("")
    one_line(uncanny_here("mcq", "score", "scenes", tmp_path / "empty.jsonl"), "no answers")
    (tmp_path / "folder").mkdir()
    one_line(uncanny_here("mcq", "score", "scenes", tmp_path / "folder"), "answers.jsonl")
    for option in ("--resamples", "--seed"):
        problems(uncanny_here("mcq", "score", "scenes", demo.file, option, "-1"), option)
