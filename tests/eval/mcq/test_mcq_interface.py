"""`uncanny.mcq` from Python: the same work, names and results as the commands."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bundled_runs import BundledRuns, some_items
from tests.eval.mcq.made_sets import answered, made_item, made_set
from tests.eval.mcq.recording import McqRun
from tests.exports.made_runs import judge, usual_run
from tests.runs.e2e import uncanny_here
from uncanny import mcq
from uncanny.errors import UsageError

ITEMS = made_set({"art_dg": 4, "ref_real": 2})
GOOD = answered(ITEMS, ["1111"] * 6, "good")
POOR = answered(ITEMS, ["1110"] * 4 + ["0111"] * 2, "poor")


def test_every_public_name_is_there_and_nothing_is_imported_before_it_is_used() -> None:
    for name in mcq.__all__:
        assert getattr(mcq, name).__doc__, name
    assert dir(mcq) == sorted(mcq.__all__)
    with pytest.raises(AttributeError, match="no attribute 'scores'"):
        mcq.scores  # noqa: B018
    loaded = "import sys, uncanny.mcq; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True)
    assert not {"numpy", "pydantic", "PIL", "langgraph"} & set(done.stdout.split())


def test_scores_are_a_mapping_with_figures_as_attributes() -> None:
    scores = mcq.score(ITEMS, [*GOOD, *POOR], resamples=0)
    assert isinstance(scores, Mapping)
    assert list(scores) == ["good", "poor"]
    assert len(scores) == 2
    artifact, overall = scores["poor"].splits["artifact"], scores["poor"].splits["overall"]
    assert (artifact.q1, artifact.q4, artifact.all_q1_4, artifact.all_q2_4) == (1.0, 0.0, 0.0, 0.0)
    assert (overall.q1, overall.q2, overall.all_q1_4) == (4 / 6, None, 0.0)
    assert scores["poor"].splits["ref_pg"].all_q2_4 is None
    share = scores["poor"].share("ref_real", "q2")
    assert share is not None
    assert (share.value, share.counts, share.out_of) == (1.0, 2, 2)
    assert scores["good"].share("nowhere", "q2") is None
    with pytest.raises(KeyError):
        scores["unknown"]


def test_scores_show_themselves_as_the_table_of_the_command(demo: McqRun) -> None:
    scores = mcq.score("scenes", demo.path)
    shown = uncanny_here("mcq", "score", "scenes", demo.path, "--no-report").out
    assert str(scores) + "\n" == shown
    assert "<table>" in scores._repr_html_()
    published = uncanny_here("mcq", "score", "scenes", demo.path, "--no-report", "--published").out
    assert published.startswith(mcq.score("scenes", demo.path, published=True).table().text())


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ((), {}),
        (("--baselines", "--seed", "3"), {"baselines": True, "seed": 3}),
        (("--parser", "lenient", "--resamples", "0"), {"parser": "lenient", "resamples": 0}),
    ],
)
def test_json_is_that_of_the_command(demo: McqRun, flags: tuple[str, ...], options: dict[str, Any]) -> None:
    content = uncanny_here("mcq", "score", "scenes", demo.path, "--json", "-", *flags).json()
    scores = mcq.score("scenes", demo.path, **options)
    assert orjson.loads(orjson.dumps(scores.to_json())) == content


def test_people_are_averaged_as_by_the_command(demo: McqRun, tmp_path: Path) -> None:
    files = [tmp_path / "ann.jsonl", tmp_path / "ben.jsonl"]
    for file in files:
        file.write_bytes(demo.file.read_bytes())
    flags = [word for file in files for word in ("--people", file)]
    command = ("mcq", "score", "scenes", demo.path, "--resamples", 0, "--json", "-")
    content = uncanny_here(*command, *flags).json()
    scores = mcq.score("scenes", demo.path, people=files, resamples=0)
    assert orjson.loads(orjson.dumps(scores.to_json())) == content
    assert scores["human"].raters == 2
    named = uncanny_here(*command, "--people", f"ann={files[0]}", "--people", f"ben={files[0]}").json()
    people = mcq.score("scenes", demo.path, people={"ann": files[0], "ben": files[0]}, resamples=0)
    assert people["human"].raters == 2
    assert named == content == orjson.loads(orjson.dumps(people.to_json()))
    twice = uncanny_here(*command, "--people", f"ann={files[0]}", "--people", f"ann={files[1]}")
    assert "two people are called 'ann'" in twice.err


def test_answers_come_in_many_forms(demo: McqRun, tmp_path: Path) -> None:
    once = mcq.score("scenes", demo.path, resamples=0)
    assert mcq.score(mcq.load("scenes"), [demo.file], resamples=0) == once
    renamed = mcq.score("scenes", {"first": demo.path, "second": demo.answers_list()}, resamples=0)
    assert list(renamed) == ["first", "second"]
    assert renamed["first"].splits == renamed["second"].splits == once["demo"].splits
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        lines = [answer.model_copy(update={"model": name}) for answer in demo.answers_list()]
        content = "".join(f"{answer.model_dump_json()}\n" for answer in lines)
        (tmp_path / name / "answers.jsonl").write_text(content)
    assert list(mcq.score("scenes", tmp_path, resamples=0)) == ["a", "b"]
    content = uncanny_here("mcq", "score", "scenes", tmp_path, "--resamples", 0, "--json", "-").json()
    assert list(content["models"]) == ["a", "b"]
    with pytest.raises(UsageError, match="'both' come from 2 models: a, b"):
        mcq.score("scenes", {"both": tmp_path})


def test_wrong_use_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(UsageError, match="no answers"):
        mcq.score(ITEMS, [])
    with pytest.raises(UsageError, match="`parser` must be 'exact' or 'lenient', not 'exakt'"):
        mcq.score(ITEMS, GOOD, parser="exakt")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="missing"):
        mcq.score(ITEMS, GOOD[:-1], require_complete=True)


def test_scores_as_a_data_frame() -> None:
    frame = mcq.score(ITEMS, [*GOOD, *POOR]).to_pandas()
    assert list(frame.columns) == ["model", "split", "score", "value", "low", "high", "counts", "out_of"]
    row = frame[(frame.model == "poor") & (frame.split == "overall") & (frame.score == "q1")].iloc[0]
    assert (row.value, row.counts, row.out_of) == (4 / 6, 4, 6)
    assert row.low < row.value < row.high
    unasked = frame[(frame.model == "good") & (frame.split == "ref_pg") & (frame.score == "q1")].iloc[0]
    assert unasked[["value", "low", "high"]].isna().all()
    assert unasked.out_of == 0


@pytest.mark.slow
def test_the_page_is_that_of_the_command(demo: McqRun, tmp_path: Path) -> None:
    out = mcq.score("scenes", demo.path, resamples=50).report(tmp_path / "mcq.html")
    assert out == tmp_path / "mcq.html"
    assert "<bdi>demo</bdi>" in out.read_text(encoding="utf-8")


@pytest.mark.slow
def test_sets_are_checked_drawn_and_stored_as_by_the_commands(tmp_path: Path) -> None:
    items = mcq.load("scenes")
    assert len(items) == 34
    assert items[0].id == items[:3][0].id
    assert mcq.check("scenes") == mcq.check(items) == ()
    (problem,) = mcq.check([made_item("a", "art_dg", kind="count")], images=False)[:1]
    assert problem.item == "a"
    some = some_items(tmp_path / "set", 5)
    drawn = mcq.overlay(some, out=tmp_path / "python")
    assert uncanny_here("mcq", "overlay", some, "-o", tmp_path / "command").code == 0
    assert drawn.file.read_bytes() == (tmp_path / "command" / "items.jsonl").read_bytes()
    with pytest.raises(UsageError, match="is the item file itself"):
        mcq.overlay(drawn.file, out=drawn.file.parent)
    table = mcq.export_table(drawn, out=tmp_path / "python.csv")
    assert uncanny_here("mcq", "export", drawn.file, "-o", tmp_path / "command.csv").code == 0
    assert table.read_bytes().replace(b"python_images", b"command_images") == (
        (tmp_path / "command.csv").read_bytes()
    )
    again = mcq.import_table(table, out=tmp_path / "again")
    assert [item.id for item in again] == [item.id for item in items[:5]]


@pytest.mark.slow
def test_drafts_are_those_of_the_command_and_never_replaced(tmp_path: Path, bundled_run: BundledRuns) -> None:
    run = bundled_run("annotate").path
    drafts = mcq.build(run, out=tmp_path / "python.jsonl", seed=5)
    command = ("mcq", "build", run, "-o", tmp_path / "command.jsonl", "--seed", "5")
    assert uncanny_here(*command).code == 0
    assert drafts.file.read_bytes() == (tmp_path / "command.jsonl").read_bytes()
    assert mcq.load(drafts.file).items == drafts.items
    drafts.file.write_text("worked on\n")
    with pytest.raises(UsageError, match="contains more than these drafts"):
        mcq.build(run, out=drafts.file, seed=5)
    assert drafts.file.read_text() == "worked on\n"
    mcq.build(run, out=drafts.file, seed=5, force=True)
    assert mcq.load(drafts.file).items == drafts.items


def test_drafts_may_need_all_three_reviewers(tmp_path: Path) -> None:
    record, *_ = usual_run(tmp_path)
    judge(tmp_path, record, "bob", None, "accept")
    # Eve rejects the first anomaly, and all three accept the second.
    by_majority = mcq.build(tmp_path, out=tmp_path / "some.jsonl")
    by_all = mcq.build(tmp_path, out=tmp_path / "all.jsonl", agree="all", least_verdicts=3)
    assert [len(by_majority), len(by_all)] == [2, 1]
    (item,) = by_all
    assert "HYPERLINK" in item.model_dump_json()
    assert "Six fingers is seen" not in item.model_dump_json()
    out = tmp_path / "none.jsonl"
    done = uncanny_here("mcq", "build", tmp_path, "-o", out, "--least-verdicts", "50")
    assert (done.code, out.exists()) == (2, False)
    assert "no finding that is accepted by most of its reviewers, with 50 verdicts or more" in done.told


def test_items_that_can_be_gone_through_once_are_asked(tmp_path: Path) -> None:
    items = mcq.load("scenes")[:2]
    places = (item.model_copy(update={"image": str(items.image_path(item))}) for item in items)
    run = mcq.run(places, model="demo", out=tmp_path)  # type: ignore[arg-type]
    assert len(run.answers) == 8
