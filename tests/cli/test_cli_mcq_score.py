"""`uncanny mcq score`: models side by side, missing answers, predictions, and files that are no answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import orjson
import pytest

from tests.bundled_runs import BundledRuns
from tests.cli.complaints import BAD_ITEMS, one_line, problems
from tests.eval.mcq.recording import McqRun, recording, rewritten
from tests.runs.e2e import uncanny_here
from uncanny.eval.mcq.data.items import Item


@pytest.fixture(scope="module")
def demo(bundled_run: BundledRuns, tmp_path_factory: pytest.TempPathFactory) -> McqRun:
    return McqRun(bundled_run("mcq").copy(tmp_path_factory.mktemp("demo") / "run"))


def unwrapped(text: str) -> str:
    """Notes as they are, without the line breaks of the layout."""
    return " ".join(text.split())


def test_run_then_score(demo: McqRun) -> None:
    done = uncanny_here("mcq", "score", "scenes", demo.file, "--resamples", "50", "--no-report")
    assert (done.code, done.err) == (0, "")
    _, heads, line, *_ = done.out.splitlines()
    assert "Q1 recall" in heads
    assert line.startswith("demo ")
    # Two wrong presences of 16 artifact images: what docs/demo.md says of the demo's mistakes.
    assert line.split()[1] == "87.5"


def test_a_run_in_the_place_of_items_is_told(demo: McqRun) -> None:
    swapped = uncanny_here("mcq", "score", demo.path, "scenes", "--no-report")
    one_line(swapped, "is a run, not an item file", f"uncanny mcq score ITEMS {demo.path}")


def other_model(demo: McqRun, path: Path, drop: int = 0) -> Path:
    """The demo's answers under another name, without the last `drop`."""
    lines = demo.file.read_bytes().splitlines()
    records = [orjson.loads(line) | {"model": "other"} for line in lines[: len(lines) - drop]]
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


@pytest.mark.slow
def test_who_pipes_scores_on_gets_the_page_that_is_named_and_no_other(tmp_path: Path, demo: McqRun) -> None:
    command = ("mcq", "score", "scenes", demo.path, "--resamples", "0", "--json", "-")
    before = set(demo.path.iterdir())
    assert list(uncanny_here(*command).json()["splits"])
    assert set(demo.path.iterdir()) == before
    assert list(uncanny_here(*command, "--report", tmp_path / "page.html").json()["splits"])
    assert "<html" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_several_models_side_by_side(tmp_path: Path, demo: McqRun) -> None:
    other = other_model(demo, tmp_path / "other.jsonl")
    command = ("mcq", "score", "scenes", demo.path, other, "--baselines", "--resamples", "50")
    done = uncanny_here(*command, "--json", "-")
    assert (done.code, done.err) == (0, "")
    assert {"demo", "other", "baseline/random", "baseline/always-E/no"} == set(done.json()["models"])
    shown = uncanny_here(*command, "--json", tmp_path / "scores.json", "--published")
    assert shown.code == 0
    written = json.loads((tmp_path / "scores.json").read_bytes())
    assert written.pop("published")["by_route"]
    assert written == done.json()
    assert "published:" in shown.out
    caveat = "Asked with uncanny's own prompts; published models were asked with the released prompts"
    assert caveat in unwrapped(shown.out)
    assert "released prompts" not in unwrapped(uncanny_here(*command).out)
    assert "At least one model" in shown.out


@pytest.mark.slow
def test_missing_answers_are_said_and_an_error_where_all_are_wanted(tmp_path: Path, demo: McqRun) -> None:
    short = other_model(demo, tmp_path / "short.jsonl", drop=5)
    done = uncanny_here("mcq", "score", "scenes", short, "--resamples", "0")
    assert done.code == 0
    assert "Missing answers, not counted: other 5 of 129 (5 not answered)" in done.out
    wanted = ("mcq", "score", "scenes", "--resamples", "0", "--require-complete")
    one_line(uncanny_here(*wanted, short), "5 of 129", "other", "--require-complete")
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


def without_first_choice(item: Item) -> dict[str, object]:
    """The item with another option B in Q2, and a corrected right answer to Q4."""
    assert item.q2 is not None
    assert item.q4 is not None
    options = {**item.q2.options, "B": "another place altogether"}
    right = "A" if item.q4.answer != "A" else "B"
    return {
        "q2": {"options": options, "answer": item.q2.answer},
        "q4": {"options": item.q4.options, "answer": right},
    }


@pytest.fixture
def edited(tmp_path: Path, demo: McqRun) -> Path:
    """The bundled items, of which the first was changed after the demo model had answered."""
    items = tmp_path / "items" / "items.jsonl"
    shutil.copytree(demo.path / "items", items.parent)
    first = orjson.loads(items.read_bytes().splitlines()[0])["id"]
    rewritten(items, lambda item: without_first_choice(item) if item.id == first else {})
    return items


def test_answers_to_questions_that_were_changed_are_left_out_and_named(edited: Path, demo: McqRun) -> None:
    first = orjson.loads(edited.read_bytes().splitlines()[0])["id"]
    command = ("mcq", "score", edited, demo.file, "--resamples", "0", "--no-report")
    figures = uncanny_here(*command, "--json", "-").json()
    assert figures["changed"] == [{"id": first, "question": "q2"}]
    assert (figures["missing"], figures["missing_by"]) == (1, {"question changed since": 1})
    # A corrected key is no other question: the answer counts, and is wrong now.
    assert figures["scored"]["artifact"]["q4"] == 16
    shown = uncanny_here(*command)
    assert shown.code == 0
    note = f"demo: 1 answer was given before the question was changed, and left out ({first} q2)"
    assert note in unwrapped(shown.out)
    assert "Start the same run again" in unwrapped(shown.out)
    one_line(uncanny_here(*command, "--require-complete"), "question changed since: 1")


@pytest.mark.slow
def test_a_resumed_run_answers_the_changed_question_anew(tmp_path: Path, edited: Path, demo: McqRun) -> None:
    run = McqRun(tmp_path / "run")
    assert uncanny_here("mcq", "run", demo.path / "items/items.jsonl", "-m", "demo", "-o", run.path).code == 0
    before = run.file.read_bytes()
    shutil.rmtree(run.path / "items", ignore_errors=True)
    again = tmp_path / "again"
    assert uncanny_here("mcq", "run", edited, "-m", "demo", "-o", again, "-q").code == 0
    # As a kill while resuming leaves it: the old answers and, after them, the new ones.
    (again / "answers.jsonl").write_bytes(before + (again / "answers.jsonl").read_bytes())
    figures = uncanny_here(
        "mcq", "score", edited, again, "--resamples", "0", "--json", "-", "--no-report"
    ).json()
    assert (figures["missing"], figures["changed"]) == (0, [])


def test_the_control_of_a_set_that_asks_for_json_is_read_in_either_form(tmp_path: Path, demo: McqRun) -> None:
    items = tmp_path / "items" / "items.jsonl"
    shutil.copytree(demo.path / "items", items.parent)
    own = dict.fromkeys(("q1", "q2", "q3", "q4"), 'Answer as {"answer": …}.')
    rewritten(items, lambda item: {"answer_form": "json", "prompts": {q: own[q] for q in item.questions()}})
    run = McqRun(tmp_path / "run")
    with recording() as server:
        command = ("mcq", "run", items, *server.asked(), "-o", run.path, "--control", "--limit", 6, "-q")
        assert uncanny_here(*command).code == 0
    controls = [answer for answer in run.answers().values() if answer.question == "q4_no_image"]
    json_form = [answer.model_copy(update={"raw": '{"answer": "F"}', "model": "json"}) for answer in controls]
    other = tmp_path / "other.jsonl"
    lines = [answer.model_dump_json() for answer in run.answers().values() if answer.question == "q1"]
    other.write_text(
        "\n".join([*lines, *(answer.model_dump_json() for answer in json_form)]).replace("openai/any", "json")
    )
    done = uncanny_here(
        "mcq", "score", items, run.path, other, "--resamples", "0", "--json", "-", "--no-report"
    )
    figures = done.json()["models"]
    assert {figures[model]["no_image"]["invalid"] for model in ("openai/any", "json")} == {0}
    assert figures["json"]["no_image"]["f_rate"] == 1.0
