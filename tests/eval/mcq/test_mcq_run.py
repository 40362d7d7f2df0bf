"""`uncanny.mcq.run`: runs from Python, of one model and of several."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.bundled_runs import some_items
from tests.eval.mcq.test_run_resume import small_set
from tests.runs.e2e import serving, uncanny_here
from uncanny import mcq
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.eval.mcq.parameters import McqConfig
from uncanny.eval.mcq.task import McqTask
from uncanny.models.registry import ModelId, ModelOptions
from uncanny.records.run_folder import RunFolder
from uncanny.runs.stop import Stop


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any-key")


def test_a_run_goes_on_where_it_stopped_and_has_its_answers(tmp_path: Path) -> None:
    seen: list[mcq.Answer] = []
    items = some_items(tmp_path / "set", 8)
    run = mcq.run(items, model="demo", out=tmp_path / "run", limit=4, on_record=seen.append)
    asked = sum(len(item.questions()) for item in mcq.load(items)[:4])
    assert (run.summary.state, run.summary.statuses["ok"], len(seen)) == ("finished", asked, asked)
    assert len(run.answers) == asked
    run = mcq.run(items, model="demo", out=tmp_path / "run", on_record=seen.append)
    assert len(run.answers) == len(seen) == 31
    scores = run.score(resamples=0)
    assert scores == mcq.score(items, run, resamples=0)
    assert scores == mcq.McqRun(tmp_path / "run").score(resamples=0)
    assert run.report() == tmp_path / "run" / "report.html"
    assert "refused" in str(run).splitlines()[0]


def test_its_json_is_that_of_the_command(tmp_path: Path) -> None:
    run = tmp_path / "run"
    content = uncanny_here("mcq", "run", "scenes", "-m", "demo", "-o", run, "--json", "--limit", "3").json()
    assert mcq.McqRun(run).to_json() == content
    again = mcq.run("scenes", model="demo", out=run, limit=3).to_json()
    assert again["totals"].pop("seconds") >= content["totals"].pop("seconds")
    assert again == content


def test_the_bundled_set_is_kept_in_the_run_and_found_there(tmp_path: Path) -> None:
    mcq.run(mcq.load("scenes")[:2], model="demo", out=tmp_path / "run")
    moved = (tmp_path / "run").rename(tmp_path / "moved")
    run = mcq.McqRun(moved)
    assert run.items.file.resolve() == (moved / "items" / "items.jsonl").resolve()
    assert run.score(resamples=0)["demo"].asked == 129


def test_items_of_a_program_are_asked(tmp_path: Path) -> None:
    items = mcq.load(small_set(tmp_path / "set", 2))
    with serving() as server:
        run = mcq.run(items, model="openai/any", out=tmp_path / "run", base_url=server.v1, control=True)
        assert server.requests() == len(run.answers) == 10
        mcq.run(items[:1], model="openai/any", out=tmp_path / "run", base_url=server.v1, control=True)
        assert server.requests() == 10
    assert run.score(resamples=0).controls["openai/any"].n == 2
    frame = run.to_pandas()
    assert list(frame.columns) == ["id", "question", "raw", "outcome", "error", "model", "sha256"]
    assert list(frame["id"]) == [answer.id for answer in run.answers]


def test_progress_and_budget_know_the_control(tmp_path: Path) -> None:
    items = mcq.load(small_set(tmp_path / "set", 2))
    expected: list[int] = []
    for control in (False, True):
        task = McqTask(
            folder=RunFolder(tmp_path / "none"),
            items=items,
            models=ModelOptions(ModelId("openai", "any")),
            config=McqConfig(control=control),
        )
        assert task.calls_per_input == (5 if control else 4)
    with serving() as server:
        for control, out in ((False, "plain"), (True, "control")):
            mcq.run(
                items,
                model="openai/any",
                out=tmp_path / out,
                base_url=server.v1,
                control=control,
                on_start=lambda progress: expected.append(progress.calls_expected),
            )
        mcq.run(items, model="openai/any", out=tmp_path / "part", base_url=server.v1, limit=1)
        mcq.run(
            items,
            model="openai/any",
            out=tmp_path / "part",
            base_url=server.v1,
            on_start=lambda progress: expected.append(progress.calls_expected),
        )
    assert expected == [8, 10, 4]


def test_several_models_have_a_run_each_and_are_scored_together(tmp_path: Path) -> None:
    with serving() as server:
        servers = {"openai": server.v1}
        runs = mcq.run_each("scenes", models=["demo", "openai/a"], out=tmp_path, base_url=servers, limit=5)
        assert {name: run.path for name, run in runs.items()} == {
            "demo": tmp_path / "demo",
            "openai/a": tmp_path / "openai_a",
        }
        command = ("mcq", "run", "scenes", "-m", "demo", "-m", "openai/a", "-o", tmp_path, "--limit", 5)
        content = uncanny_here(*command, "--base-url", f"openai={server.v1}", "--json").json()
    items = mcq.load("scenes")[:5]
    scores = mcq.score(items, tmp_path)
    assert content["scores"] == scores.to_json() == mcq.score(items, runs).to_json()
    assert {name: run.to_json()["answers"] for name, run in runs.items()} == {
        name: each["answers"] for name, each in content["models"].items()
    }


def test_a_model_that_cannot_be_asked_keeps_no_other_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelUnusableError, match="OPENAI_API_KEY is not set"):
        mcq.run_each("scenes", models=["openai/a", "demo"], out=tmp_path, limit=1)
    assert len(mcq.McqRun(tmp_path / "demo").answers) == 4
    assert not (tmp_path / "openai_a" / "answers.jsonl").exists()


def test_wrong_use_starts_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`temperature` must be at most 2"):
        mcq.run("scenes", model="demo", out=tmp_path / "run", temperature=3)
    with pytest.raises(UsageError, match="cannot be read"):
        mcq.run(tmp_path / "none.jsonl", model="demo", out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"no answers\.jsonl"):
        mcq.McqRun(tmp_path)
    assert not (tmp_path / "run").exists()


async def test_runs_go_on_side_by_side_in_a_program_with_a_loop(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    runs = await asyncio.gather(
        *(mcq.run_async("scenes", model="demo", out=folder, limit=2) for folder in folders)
    )
    assert [run.summary.state for run in runs] == ["finished", "finished"]
    # The plain function works where a loop is running, as in a notebook.
    assert len(mcq.run("scenes", model="demo", out=tmp_path / "a", limit=3).answers) == 12


def test_a_requested_stop_asks_no_further_model(tmp_path: Path) -> None:
    stop = Stop()
    runs = mcq.run_each(
        "scenes", models=["demo", "noop"], out=tmp_path, stop=stop, on_start=lambda _progress: stop.request()
    )
    assert [run.summary.state for run in runs.values()] == ["interrupted"]
