"""Several models in one command: a run each, one table, the worst exit code."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import orjson
import pytest

from tests.cli.complaints import one_line
from tests.runs.e2e import finish, pictures, serving, start, uncanny_here

TASKS = {
    "mcq run": ("mcq", "run", "scenes"),
    "realism run": ("realism", "run", "scenes"),
    "detect": ("detect", "scenes"),
}
MODELS = ("-m", "demo", "-m", "openai/a", "-m", "openai/b/c")
FOLDERS = ("demo", "openai_a", "openai_b_c")


def states(folder: Path) -> dict[str, str]:
    """The state of each run in a folder."""
    return {
        file.parent.name: orjson.loads(file.read_bytes())["state"]
        for file in sorted(folder.glob("*/run.json"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_each_model_has_a_run_and_one_table_shows_all(task: str, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    with serving() as server:
        command = (*TASKS[task], *MODELS, "--base-url", f"openai={server.v1}", "-o", out)
        done = uncanny_here(*command)
        asked = server.requests()
        assert (done.code, asked > 0) == (0, True)
        assert states(out) == dict.fromkeys(FOLDERS, "finished")
        # Each folder is a run as one model alone makes it, and the same command has nothing left to ask.
        again = uncanny_here(*command, "--json")
        assert (again.code, server.requests()) == (0, asked)
    table = done.out[done.out.rindex("Time ") :]
    rows = [line.split()[0] for line in table.splitlines() if line.startswith(("demo ", "openai/"))]
    names = ["demo", "openai/a", "openai/b/c"]
    if task == "realism run":
        assert rows[:3] == names
        # A column with its count and one with its share for each model.
        head = [word for name in names for word in (name, "n", name)]
        assert any(line.split() == head for line in table.splitlines())
    else:
        # Sorted by their scores, which differ.
        assert sorted(rows[:3]) == sorted(rows[3:6]) == names
    assert str(out / "openai_b_c") in table
    if task == "mcq run":  # one folder stands for the runs in it
        assert f"Score    uncanny mcq score scenes {out}\n" in table
    found = again.json()
    assert list(found["models"]) == names
    assert {found["models"][name]["state"] for name in names} == {"finished"}
    scores = found["scores"] if task == "detect" else found["scores"]["models"]
    assert list(scores) == names


@pytest.mark.parametrize("task", TASKS)
def test_a_model_that_fails_keeps_no_other_from_running(task: str, tmp_path: Path) -> None:
    out = tmp_path / "runs"
    command = (*TASKS[task], "-m", "anthropic/x", "-m", "demo", "-o", out, "--limit", 3)
    done = uncanny_here(*command, env={"ANTHROPIC_API_KEY": None})
    assert done.code == 2
    assert "anthropic/x: anthropic/x needs a key and ANTHROPIC_API_KEY is not set" in done.err
    assert "anthropic/x  not started" in done.out
    assert states(out) == {"demo": "finished"}
    found = uncanny_here(*command, "--json", env={"ANTHROPIC_API_KEY": None}).json()
    assert "needs a key" in found["models"]["anthropic/x"]["error"]
    assert found["models"]["demo"]["error"] is None


def test_the_worst_exit_code_is_that_of_the_command(tmp_path: Path) -> None:
    images = pictures(tmp_path / "in", 2)
    # The demo model rejects images that are not its own.
    command = ("detect", images, "-m", "noop", "-m", "demo", "-o", tmp_path / "runs")
    assert uncanny_here(*command, "-q").code == 1
    command = ("detect", images, "-m", "demo", "-m", "noop", "-o", tmp_path / "more")
    assert uncanny_here(*command, "-q").code == 1


@pytest.mark.slow
def test_limits_hold_for_all_models_together(tmp_path: Path) -> None:
    with serving() as server:
        prices = tmp_path / "prices.json"
        each = {"input": 10.0, "cached_input": 10.0, "output": 10.0}
        prices.write_bytes(orjson.dumps([{"model": f"openai/{name}", **each} for name in "ab"]))
        command = ("mcq", "run", "scenes", "--base-url", server.v1, "--prices", prices)
        alone = tmp_path / "alone"
        assert uncanny_here(*command, "-m", "openai/a", "-o", alone, "-q").code == 0
        spent = orjson.loads((alone / "run.json").read_bytes())["totals"]["cost_usd"]
        both = (
            "-m",
            "openai/a",
            "-m",
            "openai/b",
            "-o",
            tmp_path / "both",
            "--max-cost-usd",
            str(1.5 * spent),
        )
        done = uncanny_here(*command, *both, "--json")
    assert done.code == 3
    totals = [one["totals"]["cost_usd"] for one in done.json()["models"].values()]
    assert totals[0] == pytest.approx(spent)
    assert 0 < totals[1] < spent
    assert sum(totals) <= 1.5 * spent


@pytest.mark.parametrize("task", TASKS)
def test_a_dry_run_forecasts_each(task: str, tmp_path: Path) -> None:
    command = (*TASKS[task], "-m", "openai/gpt-4o", "-m", "demo", "--dry-run")
    done = uncanny_here(*command)
    assert done.code == 0
    assert done.out.count("Nothing was asked") == 2
    assert {"openai/gpt-4o", "demo"} <= set(done.out.splitlines())
    forecasts = uncanny_here(*command, "--json").json()
    assert list(forecasts["models"]) == ["openai/gpt-4o", "demo"]
    total, each = forecasts["total"], forecasts["models"].values()
    assert total["output_tokens"] > 0
    # The demo model costs nothing. Of realism checks, whose calls depend on answers, it is the most.
    most = "" if "cost_usd" in next(iter(each)) else "_most"
    # To a millionth: a total is rounded.
    assert total["cost_usd"] == pytest.approx(next(iter(each))[f"cost_usd{most}"], abs=1e-6)
    assert total["cost_usd"] > 0
    for name in (f"output_tokens{most}", f"input_tokens_known{most}"):
        assert total[name.removesuffix("_most")] == sum(forecast[name] for forecast in each)
    together = done.out.split("All 2 models together\n")[1]
    assert f"Calls    {'up to ' if most else ''}{total['calls']:,}\n" in together
    unpriced = uncanny_here(*TASKS[task], "-m", "openai/gpt-4o", "-m", "vllm/some", "--dry-run").out
    priced = f"{'up to ' if most else ''}${total['cost_usd']:.4f}"
    assert unpriced.endswith(f"Cost     {priced}, and on top what vllm/some costs\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-m", "demo", "-m", "gpt-4o"], ["gpt-4o", "openai/gpt-4o"]),
        (["-m", "demo", "-m", "demo"], ["demo and demo would share the folder"]),
        (["-m", "vllm/x/y", "-m", "vllm/x_y"], ["would share the folder"]),
        (["-m", "demo,openai/b"], ["2 models", "-m demo -m openai/b"]),
        (["-m", "openai/a, anthropic/b"], ["2 models", "-m openai/a -m anthropic/b"]),
        (["-m", "demo", "--fallback", "openai/a,openai/b"], ["2 models"]),
        (["-m", "openai/a", "-m", "anthropic/b", "--base-url", "http://h/v1"], ["--base-url PROVIDER=URL"]),
        (
            ["-m", "openai/a", "--base-url", "http://h/v1", "--base-url", "http://i/v1"],
            ["openai has 2 addresses, but only servers of your own can be several"],
        ),
    ],
    ids=lambda value: " ".join(value),
)
def test_names_that_are_not_clear_start_nothing(
    task: str, options: list[str], words: list[str], tmp_path: Path
) -> None:
    one_line(uncanny_here(*TASKS[task], *options, "-o", tmp_path / "runs"), *words)
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_an_interruption_ends_the_command(tmp_path: Path) -> None:
    with serving(latency_ms=60_000.0) as server:
        asked = ("-m", "openai/a", "-m", "openai/b", "--base-url", server.v1)
        process = start("mcq", "run", "scenes", *asked, "-o", tmp_path / "runs")
        assert process.stderr is not None
        while not process.stderr.readline().startswith(b"129 questions"):
            pass
        while not server.requests():
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        done = finish(process)
    assert done.code == 130
    assert "Interrupted" in done.err
    assert "openai/b" not in done.err
    assert list(states(tmp_path / "runs")) == ["openai_a"]


def test_commas_belong_to_names_that_are_no_providers(tmp_path: Path) -> None:
    with serving() as server:
        command = (
            "mcq",
            "run",
            "scenes",
            "-m",
            "openai/a,b",
            "--base-url",
            server.v1,
            "-o",
            tmp_path / "run",
        )
        assert uncanny_here(*command, "-q", "--limit", "1").code == 0
    one_line(uncanny_here("annotate", tmp_path, "-m", "demo,noop", "-o", tmp_path / "x"), "2 models")


def test_one_run_and_several_do_not_share_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "runs"
    both = ("mcq", "run", "scenes", "-m", "demo", "-m", "noop", "--limit", "1", "-o", out, "-q")
    uncanny_here(*both)
    alone = ("mcq", "run", "scenes", "-m", "demo", "--limit", "1", "-q", "-o")
    one_line(uncanny_here(*alone, out), "contains runs of several models", str(out / "demo"))
    assert uncanny_here(*alone, out / "demo").code == 0
    assert uncanny_here(*alone, tmp_path / "one").code == 0
    one_line(uncanny_here(*both[:-2], tmp_path / "one"), "contains a run of one model")
