"""`uncanny.realism.run`: runs from Python, of one model and of several."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.eval.realism.realism_run import small_pairs
from tests.runs.e2e import serving, uncanny_here
from uncanny import realism
from uncanny.errors import ModelUnusableError, UsageError
from uncanny.eval.realism.verdicts import Verdict
from uncanny.runs.stop import Stop


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any-key")


def test_a_run_goes_on_where_it_stopped_and_has_its_verdicts(tmp_path: Path) -> None:
    seen: list[Verdict] = []
    run = realism.run("scenes", model="demo", out=tmp_path / "run", limit=4, on_record=seen.append)
    assert (run.summary.state, run.summary.statuses["ok"], len(seen)) == ("finished", 4, 4)
    assert [verdict.id for verdict in run.verdicts] == sorted(verdict.id for verdict in seen)
    seen.clear()
    run = realism.run("scenes", model="demo", out=tmp_path / "run", on_record=seen.append)
    assert (len(seen), len(run.verdicts)) == (12, 16)
    assert run.labels() == {"deceiving": 4, "intermediate": 3, "non_deceiving": 8, "undetermined": 1}
    assert run.score(resamples=0).to_json() == realism.score(run, resamples=0).to_json()
    assert run.report() == tmp_path / "run" / "realism.html"
    assert "undetermined" in str(run).splitlines()[0]


def test_its_json_is_that_of_the_command(tmp_path: Path) -> None:
    run = tmp_path / "run"
    content = uncanny_here("realism", "run", "scenes", "-m", "demo", "-o", run, "--json").json()
    assert realism.RealismRun(run).to_json() == content
    again = realism.run("scenes", model="demo", out=run).to_json()
    assert again["totals"].pop("seconds") >= content["totals"].pop("seconds")
    assert again == content


def test_pairs_of_a_program_are_judged_and_known_again(tmp_path: Path) -> None:
    pairs = list(realism.load(small_pairs(tmp_path / "set", 3)))
    with serving() as server:
        run = realism.run(pairs, model="openai/any", out=tmp_path / "run", base_url=server.v1)
        requests = server.requests()
        assert [verdict.id for verdict in run.verdicts] == ["i00", "i01", "i02"]
        assert {verdict.group for verdict in run.verdicts} == {"even", "odd"}
        realism.run(pairs[:2], model="openai/any", out=tmp_path / "run", base_url=server.v1)
        assert server.requests() == requests
    assert run.manifest.written()["pairs"] == "program"


def test_a_data_frame_has_a_row_a_verdict(tmp_path: Path) -> None:
    frame = realism.run("scenes", model="demo", out=tmp_path).to_pandas()
    assert list(frame["id"]) == [verdict.id for verdict in realism.RealismRun(tmp_path).verdicts]
    assert frame["label"].value_counts()["deceiving"] == 4


def test_several_models_have_a_run_each_and_are_scored_together(tmp_path: Path) -> None:
    with serving() as server:
        servers = {"openai": server.v1}
        runs = realism.run_each(
            "scenes", models=["demo", "openai/a"], out=tmp_path, limit=3, base_url=servers
        )
        assert {name: run.path for name, run in runs.items()} == {
            "demo": tmp_path / "demo",
            "openai/a": tmp_path / "openai_a",
        }
        command = ("realism", "run", "scenes", "-m", "demo", "-m", "openai/a", "-o", tmp_path, "--limit", 3)
        content = uncanny_here(*command, "--base-url", f"openai={server.v1}", "--json").json()
    scores = realism.score(tmp_path)
    assert content["scores"] == scores.to_json() == realism.score(runs).to_json()
    assert {name: run.to_json()["labels"] for name, run in runs.items()} == {
        name: each["labels"] for name, each in content["models"].items()
    }


def test_a_model_that_cannot_be_asked_keeps_no_other_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ModelUnusableError, match="OPENAI_API_KEY is not set"):
        realism.run_each("scenes", models=["openai/a", "demo"], out=tmp_path, limit=1)
    assert len(realism.RealismRun(tmp_path / "demo").verdicts) == 1
    assert not (tmp_path / "openai_a" / "verdicts.jsonl").exists()


def test_models_and_folders_that_do_not_go_together(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`models` must have at least 1"):
        realism.run_each("scenes", models=[], out=tmp_path)
    with pytest.raises(UsageError, match="would share the folder"):
        realism.run_each("scenes", models=["demo", "demo"], out=tmp_path)
    both = ["openai/a", "anthropic/b"]
    with pytest.raises(UsageError, match="`base_url` is for one provider"):
        realism.run_each("scenes", models=both, out=tmp_path, base_url="http://127.0.0.1:1/v1")
    realism.run("scenes", model="demo", out=tmp_path / "one", limit=1)
    with pytest.raises(UsageError, match="contains a run of one model"):
        realism.run_each("scenes", models=["demo", "noop"], out=tmp_path / "one")
    with pytest.raises(UsageError, match="`temperature` must be at most 2"):
        realism.run("scenes", model="demo", out=tmp_path / "two", temperature=3)
    assert not (tmp_path / "two").exists()


async def test_runs_go_on_side_by_side_in_a_program_with_a_loop(tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("a", "b")]
    runs = await asyncio.gather(
        *(realism.run_async("scenes", model="demo", out=folder, limit=2) for folder in folders)
    )
    assert [len(run.verdicts) for run in runs] == [2, 2]
    # The plain function works where a loop is running, as in a notebook.
    assert len(realism.run("scenes", model="demo", out=tmp_path / "a").verdicts) == 16


def test_a_requested_stop_asks_no_further_model(tmp_path: Path) -> None:
    stop = Stop()
    runs = realism.run_each(
        "scenes", models=["demo", "noop"], out=tmp_path, stop=stop, on_start=lambda _progress: stop.request()
    )
    assert [run.summary.state for run in runs.values()] == ["interrupted"]
    assert not (tmp_path / "noop").exists()
