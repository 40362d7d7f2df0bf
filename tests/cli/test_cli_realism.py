"""`uncanny realism …`: both commands on the bundled pairs, and what they say to bad input."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.cli.complaints import one_line, problems
from tests.eval.realism.made_verdicts import hand_worked, written
from tests.eval.realism.realism_run import RealismRun, small_pairs
from tests.runs.e2e import check_no_traceback, serving, uncanny_here
from uncanny import realism


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> RealismRun:
    run = RealismRun(tmp_path_factory.mktemp("demo") / "run")
    assert uncanny_here("realism", "run", "scenes", "--model", "demo", "-o", run.path, "-q").code == 0
    return run


def test_the_run_tells_where_its_verdicts_are_and_how_to_score(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = uncanny_here("realism", "run", "scenes", "--model", "demo", "-o", run, "--limit", "2")
    assert (done.code, done.told) == (0, "")
    assert f"Verdicts {run / 'verdicts.jsonl'}" in done.out
    assert f"uncanny realism score {run}" in done.out


def test_json_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = uncanny_here("realism", "run", "scenes", "--model", "demo", "-o", run, "--limit", "2", "--json")
    content = done.json()
    assert (done.code, content["state"], content["failures"], content["error"]) == (0, "finished", [], None)
    assert content["totals"]["pairs"] == content["totals"]["ok"] == 2
    assert content["labels"] == {"deceiving": 0, "intermediate": 1, "non_deceiving": 1, "undetermined": 0}


def test_a_dry_run_tells_a_range_needs_no_key_and_leaves_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving() as server:
        command = ("realism", "run", "scenes", *server.asked("openai", "gpt-4o"), "--dry-run")
        done = uncanny_here(*command, env={"OPENAI_API_KEY": None})
        assert (done.code, done.err) == (0, "")
        assert "Calls    16 to 48" in done.out
        content = uncanny_here(*command, "-o", run, "--json", env={"OPENAI_API_KEY": None}).json()
        assert server.requests() == 0
    assert (content["pairs"], content["pending"], content["calls_least"], content["calls_most"]) == (
        16,
        16,
        16,
        48,
    )
    assert 0 < content["input_tokens_least"] < content["input_tokens_most"]
    assert 0 < content["cost_usd_least"] < content["cost_usd_most"]
    assert not run.exists()


def test_a_dry_run_counts_what_is_left_and_what_cannot_be_read(tmp_path: Path) -> None:
    command = ("realism", "run", "scenes", "--model", "demo", "-o", tmp_path / "run")
    assert uncanny_here(*command, "--limit", "4", "-q").code == 0
    assert uncanny_here(*command, "--dry-run", "--json").json()["pending"] == 12
    pairs = small_pairs(tmp_path / "set", 3)
    (pairs.parent / "original" / "p01.png").unlink()
    content = uncanny_here("realism", "run", pairs, "--model", "demo", "--dry-run", "--json").json()
    assert (content["unreadable"], content["calls_most"]) == (1, 6)


def test_pairs_from_two_folders_are_those_of_a_file(tmp_path: Path) -> None:
    folder = small_pairs(tmp_path / "set", 3).parent
    for index in range(3):
        (folder / "edited" / f"p{100 + index}.png").rename(folder / "edited" / f"p{index:02d}.png")
    with serving() as server:
        answers = []
        ways: list[list[object]] = [
            [folder],
            ["--original", folder / "original", "--edited", folder / "edited"],
        ]
        for number, source in enumerate(ways):
            run = RealismRun(tmp_path / f"run{number}")
            assert uncanny_here("realism", "run", *source, *server.asked(), "-o", run.path, "-q").code == 0
            answers.append(run.answers())
    assert answers[0] == answers[1]
    assert set(answers[0]) == {"p00", "p01", "p02"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--temperature", "3"], ["temperature", "3"]),
        (["--top-p", "0"], ["top-p", "0"]),
        (["--max-output-tokens", "0"], ["max-output-tokens", "0"]),
        (["--limit", "0"], ["--limit"]),
        (["--role", "perceiver=demo"], ["perceiver", "realism", "order"]),
        (["--fallback", "gpt-4o"], ["gpt-4o"]),
        (["--original", "a"], ["--original and --edited must be given together"]),
        (["--original", "a", "--edited", "b"], ["Pairs are given both as a source and as two folders"]),
        (["--root", "."], ["--root"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_wrong_use_of_run_is_one_line(options: list[str], words: list[str], tmp_path: Path) -> None:
    done = uncanny_here("realism", "run", "scenes", "--model", "demo", "-o", tmp_path / "run", *options)
    one_line(done, *words)
    assert not (tmp_path / "run" / "verdicts.jsonl").exists()


def test_a_run_needs_pairs_a_folder_and_a_key(tmp_path: Path) -> None:
    one_line(uncanny_here("realism", "run", "scenes", "--model", "demo"), "-o runs/NAME")
    one_line(uncanny_here("realism", "run", "--model", "demo", "-o", tmp_path / "run"), "No pairs are given")
    command = ("realism", "run", "scenes", "--model", "openai/gpt-4o", "-o", tmp_path / "run")
    one_line(uncanny_here(*command, env={"OPENAI_API_KEY": None}), "OPENAI_API_KEY")
    missing = ("realism", "run", tmp_path / "nowhere.jsonl", "--model", "demo", "-o", tmp_path / "run")
    one_line(uncanny_here(*missing), "nowhere.jsonl")


def test_bad_pairs_are_listed_and_nothing_is_started(tmp_path: Path) -> None:
    bad = written(tmp_path / "bad.jsonl", [b'{"id":"a"}', b"not json"])
    done = uncanny_here("realism", "run", bad, "--model", "demo", "-o", tmp_path / "run")
    problems(done, "3 problems", "line 1, item 'a', field original", "line 2: not valid JSON")
    assert not (tmp_path / "run").exists()


def test_roles_may_have_models_of_their_own(tmp_path: Path) -> None:
    run = RealismRun(tmp_path / "run")
    with serving() as server:
        asked = ("--role", "order=openai/any", "--base-url", f"openai={server.v1}")
        command = ("realism", "run", "scenes", "--model", "demo", *asked, "-o", run.path, "-q")
        assert uncanny_here(*command).code == 0
        assert server.requests() == 18  # eight pairs, two orders, one of them asked three times
    assert {call["model"] for call in run.calls()} == {"demo", "openai/any"}
    verdicts = run.verdicts()
    assert (verdicts["d04"].model_extra or {})["models"] == {"demo": 1, "openai/any": 2}
    assert not verdicts["d01"].model_extra


def test_score_shows_every_figure(demo: RealismRun, tmp_path: Path) -> None:
    done = uncanny_here("realism", "score", demo.path)
    assert (done.code, done.err) == (0, "")
    for words in ("deceiving", "intermediate", "two-way reading", "position bias", "saved by the early exit"):
        assert words in done.out
    for group in ("drawn", "rendered"):
        assert f"\n{group}" in done.out
    assert "1 undetermined" in done.out
    content = uncanny_here("realism", "score", demo.file, "--json", "-").json()
    assert content["labels"] == {"deceiving": 4, "intermediate": 3, "non_deceiving": 8, "undetermined": 1}
    assert content["calls"] == {"questions": 32, "saved": 16, "made": 34}
    assert (content["position_bias"]["first"], content["position_bias"]["second"]) == (8, 2)
    out, rows = tmp_path / "s.json", tmp_path / "s.csv"
    done = uncanny_here("realism", "score", demo.file, "--json", out, "--csv", rows)
    assert orjson.loads(out.read_bytes()) == content
    with rows.open(encoding="utf-8") as lines:
        assert {row["set"] for row in csv.DictReader(lines)} == {"demo"}
    piped = uncanny_here("realism", "score", demo.file, "--csv", "-")
    assert (piped.out, piped.err) == (rows.read_text(encoding="utf-8"), "")


def test_json_csv_and_table_are_those_of_the_function(demo: RealismRun, tmp_path: Path) -> None:
    other = written(tmp_path / "v.jsonl", hand_worked(model="m/other"))
    people = written(tmp_path / "people.jsonl", [b'{"id":"d04","said":"real"}'])
    more: dict[str, Any] = {"people": people, "published": True, "resamples": 50, "seed": 3}
    for files, options in (([demo.path], {}), ([demo.path, other], more)):
        scores = realism.score(files, **options)
        names = {"people": "--people", "resamples": "--resamples", "seed": "--seed"}
        values = [word for key, name in names.items() if key in options for word in (name, options[key])]
        command = ("realism", "score", *files, *values, *(["--published"] if "published" in options else []))
        assert uncanny_here(*command, "--json", "-").json() == scores.to_json()
        rows = tmp_path / f"{len(files)}.csv"
        shown = uncanny_here(*command, "--no-report", "--csv", rows).out
        assert rows.read_text(encoding="utf-8") == scores.to_csv()
        assert shown == f"{scores}\n"


def test_sets_side_by_side_with_people_and_the_published(demo: RealismRun, tmp_path: Path) -> None:
    other = written(tmp_path / "v.jsonl", hand_worked(model="m/other"))
    people = written(
        tmp_path / "people.jsonl", [b'{"id":"d04","said":"real"}', b'{"id":"p2","said":"edited"}']
    )
    options = ("--people", f"ann={people}", "--published")
    done = uncanny_here("realism", "score", demo.file, other, *options, "--resamples", "100")
    assert (done.code, done.err) == (0, "")
    head = done.out.splitlines()[0].split()
    assert head == ["demo", "n", "demo", "m/other", "n", "m/other"]
    assert "published" in done.out
    assert "35.2" in done.out
    words = " ".join(done.out.split())
    assert "asked with the authors' prompts" in words
    assert "demo: people's answers not counted because the pair has no verdict: 1 (p2)" in words
    content = uncanny_here("realism", "score", demo.file, other, *options[:2], "--json", "-").json()
    asked = content["models"]["demo"]["people"]
    deceiving = asked["accuracy"]["deceiving"]
    assert deceiving.pop("ci") == [0.0, pytest.approx(0.7935, abs=1e-4)]
    assert deceiving == {"value": 0.0, "count": 0, "out_of": 1}
    assert (asked["unused"], asked["iou"]["all"]["value"]) == (1, None)


def test_what_is_wrong_with_verdicts_is_told(tmp_path: Path) -> None:
    lines = hand_worked()
    lines[0] = lines[0].replace(b"non_deceiving", b"intermediate")
    done = uncanny_here("realism", "score", written(tmp_path / "v.jsonl", [*lines, b"{}"]))
    problems(done, "v.jsonl", "line 1, item 'p0', field label", "line 12, field first", "nothing was scored")
    one_line(uncanny_here("realism", "score", tmp_path / "none"), "none")
    one_line(uncanny_here("realism", "score", tmp_path), "verdicts.jsonl")
    check_no_traceback(uncanny_here("realism", "score"))
