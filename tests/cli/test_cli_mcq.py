"""`uncanny mcq …`: every command on the bundled set, and what it says to bad input."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bundled_runs import BundledRuns, some_items
from tests.cli.complaints import BAD_ITEMS, one_line, problems
from tests.eval.mcq.recording import McqRun
from tests.runs.e2e import check_no_traceback, serving, uncanny_here
from uncanny.eval.mcq.data.items import Item
from uncanny.eval.mcq.data.load import copy_scenes, load

QUESTIONS = 129


@pytest.fixture(scope="module")
def demo(bundled_run: BundledRuns, tmp_path_factory: pytest.TempPathFactory) -> McqRun:
    return McqRun(bundled_run("mcq").copy(tmp_path_factory.mktemp("demo") / "run"))


def test_the_run_tells_where_its_answers_are_and_how_to_score(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = uncanny_here("mcq", "run", "scenes", "--model", "demo", "-o", run, "--limit", "2")
    assert (done.code, done.told) == (0, "")
    assert f"uncanny mcq score scenes {run / 'answers.jsonl'}" in done.out


def test_json_of_a_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = uncanny_here("mcq", "run", "scenes", "--model", "demo", "-o", run, "--limit", "2", "--json")
    content = done.json()
    assert (done.code, content["state"], content["failures"], content["error"]) == (0, "finished", [], None)
    assert content["totals"]["questions"] == content["totals"]["ok"] == content["totals"]["calls"]
    assert Path(content["answers"]) == run / "answers.jsonl"


def test_a_dry_run_needs_no_key_asks_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with serving() as server:
        command = ("mcq", "run", "scenes", *server.asked("openai", "gpt-4o"), "--dry-run")
        done = uncanny_here(*command, env={"OPENAI_API_KEY": None})
        assert (done.code, done.err) == (0, "")
        assert f"{QUESTIONS} questions" in done.out
        content = uncanny_here(*command, "-o", run, "--json", env={"OPENAI_API_KEY": None}).json()
        assert server.requests() == 0
    assert (content["items"], content["calls"]) == (34, QUESTIONS)
    assert content["input_tokens"] > 0
    assert content["cost_usd"] > 0
    assert not run.exists()


def test_a_dry_run_counts_what_is_left(tmp_path: Path) -> None:
    command = ("mcq", "run", "scenes", "--model", "demo", "-o", tmp_path / "run")
    assert uncanny_here(*command, "--limit", "3", "-q").code == 0
    done = len(McqRun(tmp_path / "run").answers())
    assert uncanny_here(*command, "--dry-run", "--json").json()["calls"] == QUESTIONS - done


@pytest.mark.slow
def test_the_bundled_set_leaves_nothing_in_temporary_folders(
    tmp_path: Path, demo: McqRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.runs.e2e import uncanny

    done = uncanny("mcq", "score", "scenes", demo.file, "--resamples", "0", env={"TMPDIR": str(tmp_path)})
    assert done.code == 0
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    drawn = uncanny_here("mcq", "overlay", "scenes", "-o", tmp_path / "drawn")
    assert drawn.code == 0
    for item in load(tmp_path / "drawn" / "items.jsonl"):
        assert (tmp_path / "drawn" / item.image).resolve().is_relative_to((tmp_path / "drawn").resolve())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--temperature", "3"], ["temperature", "3"]),
        (["--top-p", "0"], ["top-p", "0"]),
        (["--max-output-tokens", "0"], ["max-output-tokens", "0"]),
        (["--limit", "0"], ["--limit"]),
        (["--role", "perceiver=demo"], ["perceiver", "answerer"]),
        (["--fallback", "gpt-4o"], ["gpt-4o"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_wrong_use_of_run_is_one_line(options: list[str], words: list[str], tmp_path: Path) -> None:
    done = uncanny_here("mcq", "run", "scenes", "--model", "demo", "-o", tmp_path / "run", *options)
    one_line(done, *words)
    assert not (tmp_path / "run" / "answers.jsonl").exists()


def test_a_run_needs_a_folder_and_a_key(tmp_path: Path) -> None:
    one_line(uncanny_here("mcq", "run", "scenes", "--model", "demo"), "-o runs/NAME")
    command = ("mcq", "run", "scenes", "--model", "openai/gpt-4o", "-o", tmp_path / "run")
    one_line(uncanny_here(*command, env={"OPENAI_API_KEY": None}), "OPENAI_API_KEY")


@pytest.mark.parametrize(
    "command",
    [
        ["run", "{}", "--model", "demo", "-o", "run"],
        ["score", "{}", "answers.jsonl"],
        ["overlay", "{}", "-o", "out"],
        ["export", "{}", "-o", "out.parquet"],
    ],
    ids=lambda command: str(command[0]),
)
def test_bad_items_are_listed_and_missing_ones_named(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.jsonl").write_text(BAD_ITEMS)
    done = uncanny_here("mcq", *(part.format("bad.jsonl") for part in command))
    problems(done, "3 problems", "line 1, item 'a', field split", "line 2: not valid JSON")
    one_line(uncanny_here("mcq", *(part.format("nowhere.jsonl") for part in command)), "nowhere.jsonl")


def test_check_finds_everything_at_once(tmp_path: Path) -> None:
    done = uncanny_here("mcq", "check", "scenes")
    assert (done.code, done.out, done.err) == (0, "0 errors, 0 warnings\n", "")
    done = uncanny_here("mcq", "check", "scenes", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    (tmp_path / "bad.jsonl").write_text(BAD_ITEMS)
    done = uncanny_here("mcq", "check", tmp_path / "bad.jsonl")
    check_no_traceback(done)
    assert (done.code, len(done.out.splitlines()), done.err) == (2, 3, "3 errors, 0 warnings\n")
    quiet = uncanny_here("mcq", "check", tmp_path / "bad.jsonl", "-q")
    assert (quiet.code, quiet.out, quiet.err) == (2, done.out, "")
    one_line(uncanny_here("mcq", "check", tmp_path / "nowhere.jsonl"), "nowhere.jsonl")


def test_check_counts_what_is_alike(tmp_path: Path) -> None:
    items_file = copy_scenes(tmp_path)
    lines = [orjson.loads(line) for line in items_file.read_bytes().splitlines()]
    items_file.write_bytes(b"".join(orjson.dumps({**line, "draft": True}) + b"\n" for line in lines))
    done = uncanny_here("mcq", "check", items_file, "--no-images")
    first, second, third = (f"line {n}, item '{line['id']}'" for n, line in enumerate(lines[:3], 1))
    assert done.code == 0
    assert done.out.splitlines() == [
        "field draft: warning: still a draft; check its options and boxes, then take the key away "
        f"({len(lines)} times: {first}; {second}; {third}; …)",
        f"0 errors, {len(lines)} warnings",
    ]


def test_check_opens_images_unless_told_not_to(tmp_path: Path) -> None:
    items_file = copy_scenes(tmp_path)
    first = load(items_file)[0]
    (tmp_path / first.image).write_bytes(b"no picture")
    done = uncanny_here("mcq", "check", items_file)
    assert done.code == 2
    assert first.id in done.out
    assert uncanny_here("mcq", "check", items_file, "--no-images").code == 0


def test_export_and_import_give_the_same_questions(tmp_path: Path) -> None:
    table, out = tmp_path / "table.parquet", tmp_path / "imported"
    items = some_items(tmp_path / "set", 6)
    done = uncanny_here("mcq", "export", items, "-o", table)
    assert (done.code, done.out, done.err) == (0, f"{table}\n", "")
    done = uncanny_here("mcq", "import", table, "-o", out)
    assert (done.code, done.out, done.err) == (0, f"{out / 'items.jsonl'}\n", "")
    before = {item.id: item for item in load(items)}
    after = {item.id: item for item in load(out / "items.jsonl")}
    assert before.keys() == after.keys()
    for name, item in after.items():
        assert keys(item) == keys(before[name])
        assert item.overlay


def keys(item: Item) -> dict[str, Any]:
    return {question: item.right(question) for question in item.questions()}


def test_bad_tables(tmp_path: Path) -> None:
    one_line(uncanny_here("mcq", "import", tmp_path / "no.parquet", "-o", tmp_path / "o"), "no.parquet")
    (tmp_path / "bad.parquet").write_bytes(b"no table")
    done = uncanny_here("mcq", "import", tmp_path / "bad.parquet", "-o", tmp_path / "o")
    problems(done, "bad.parquet")
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n")
    problems(uncanny_here("mcq", "import", tmp_path / "bad.csv", "-o", tmp_path / "o"), "row_id")
    one_line(uncanny_here("mcq", "export", "scenes", "-o", tmp_path / "t.xyz"), ".parquet")
    one_line(uncanny_here("mcq", "export", "scenes", "-o", tmp_path / "bad.csv" / "x.csv"), "is not a folder")


def test_build_drafts_from_a_run(tmp_path: Path, bundled_run: BundledRuns) -> None:
    done = uncanny_here("mcq", "build", bundled_run("annotate").path, "-o", tmp_path / "drafts.jsonl")
    assert (done.code, done.err) == (0, "")
    assert "drafts from 34 annotations" in done.out
    # `mcq check` would refuse these as they are: the annotations have no boxes to take over.
    assert "lack boxes of Q3 that the annotations do not have. Draw them: uncanny mcq author" in done.out
    drafts = load(tmp_path / "drafts.jsonl")
    assert all((item.model_extra or {})["draft"] is True for item in drafts)
    assert all((tmp_path / item.image).is_file() for item in drafts)
    one_line(uncanny_here("mcq", "build", tmp_path / "no", "-o", tmp_path / "x.jsonl"), "annotations.jsonl")
