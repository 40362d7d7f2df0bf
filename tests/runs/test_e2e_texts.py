"""A run goes on with the texts it was begun with, whatever the package asks with by then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.bundled_runs import some_items
from tests.runs.e2e import Done, Run, check_no_traceback, pictures, serving, uncanny_here
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import ScheduleName
from uncanny.annotation.run import AnnotateTask
from uncanny.eval.mcq.data.load import load
from uncanny.eval.mcq.task import McqTask
from uncanny.models.registry import ModelOptions, parse_model
from uncanny.prompts import PromptSet, make_set, prompt_set
from uncanny.records.run_folder import RunFolder
from uncanny.runs.parameters import RunOptions, RunParameters
from uncanny.runs.run import run_with


def reworded(name: str) -> PromptSet:
    """The package's texts, each with a word more."""
    return make_set(name, {key: f"{text}\n\nThank you." for key, text in prompt_set(name).texts().items()})


@pytest.fixture
def images(tmp_path: Path) -> Path:
    return pictures(tmp_path / "in", 3)


def begun(images: Path, run: Run, prompts: PromptSet, schedule: ScheduleName = "packed") -> list[object]:
    """A run over one image of three with these texts; returns the command that goes on with it."""
    models = ModelOptions(parse_model("noop"))
    task = AnnotateTask(
        folder=RunFolder(run.path),
        paths=[images],
        models=models,
        config=AnnotateConfig(schedule=schedule),
        options=RunOptions(limit=1),
        prompts=prompts,
    )
    assert asyncio.run(run_with(task, RunParameters())).reason is None
    return ["annotate", images, "-m", "noop", "-o", run.path, "--no-report"]


def changed(run: Run, prompts: Mapping[str, Any]) -> None:
    manifest = run.manifest()
    manifest["prompts"] |= prompts
    (run.path / "run.json").write_bytes(orjson.dumps(manifest))


def check_refused(done: Done, run: Run, before: bytes) -> None:
    check_no_traceback(done)
    assert (done.code, done.out) == (2, "")
    assert "made with other settings (prompts:" in done.err
    assert (run.path / "calls.jsonl").read_bytes() == before


def test_a_new_run_keeps_its_texts(images: Path, run: Run) -> None:
    assert uncanny_here("annotate", images, "-m", "noop", "-o", run.path, "--no-report").code == 0
    own = prompt_set("packed")
    prompts = run.manifest()["prompts"]
    assert (prompts["id"], prompts["texts"]) == (own.id, own.texts())


@pytest.mark.parametrize(("schedule", "texts"), [("packed", "packed"), ("paper", "annotate")])
def test_a_run_goes_on_with_the_texts_it_keeps(
    schedule: ScheduleName, texts: str, images: Path, run: Run
) -> None:
    theirs = reworded(texts)
    done = uncanny_here(*begun(images, run, theirs, schedule))
    assert done.code == 0
    assert done.told == (
        f"Warning: {run.path} was started with the prompts {theirs.id} and resumes with them. "
        f"To use those of this version, {prompt_set(texts).id}, pass another run folder with -o.\n"
    )
    assert {record.prompts for record in run.records()} == {theirs.id}
    assert {call["prompt"] for call in run.calls()} <= {prompt.id for prompt in theirs.prompts.values()}
    assert all(call["asked"].endswith("Thank you.") for call in run.calls())
    assert run.manifest()["prompts"]["id"] == theirs.id
    # And once more, with nothing left to ask.
    again = uncanny_here("annotate", images, "-m", "noop", "-o", run.path, "--no-report")
    assert (again.code, again.told) == (0, "")


@pytest.mark.parametrize(
    "kept",
    [
        {"id": "packed@00000000"},
        {"id": "packed@00000000", "texts": {}},
        {"id": "../packed", "texts": {}},
        {"id": None},
    ],
    ids=["not those", "no texts", "a path", "no id"],
)
def test_texts_that_are_known_nowhere_end_it(kept: dict[str, Any], images: Path, run: Run) -> None:
    command = begun(images, run, reworded("packed"))
    changed(run, kept)
    before = (run.path / "calls.jsonl").read_bytes()
    check_refused(uncanny_here(*command), run, before)


def test_texts_that_this_version_cannot_ask_with_end_it(images: Path, run: Run) -> None:
    texts = prompt_set("packed").texts()
    fewer = make_set("packed", {name: text for name, text in texts.items() if name != "format"})
    command = begun(images, run, reworded("packed"))
    changed(run, {"id": fewer.id, "texts": fewer.texts()})
    before = (run.path / "calls.jsonl").read_bytes()
    check_refused(uncanny_here(*command), run, before)
    more = make_set("packed", texts | {"format": "Format $findings in $language."})
    changed(run, {"id": more.id, "texts": more.texts()})
    check_refused(uncanny_here(*command), run, before)


def test_an_mcq_run_goes_on_with_its_texts_and_asks_nothing_twice(tmp_path: Path) -> None:
    theirs, run, file = reworded("mcq"), Run(tmp_path / "run"), some_items(tmp_path / "set", 3)
    items = load(file)
    with serving() as server:
        models = ModelOptions(parse_model("vllm/any"), base_urls={"vllm": server.v1})
        task = McqTask(
            folder=RunFolder(run.path),
            items=items,
            models=models,
            options=RunOptions(limit=2),
            prompts=theirs,
        )
        assert asyncio.run(run_with(task, RunParameters())).reason is None
        asked = server.requests()
        arguments = ("mcq", "run", file, *server.asked("vllm"), "-o", run.path)
        forecast = uncanny_here(*arguments, "--dry-run", "--json").json()
        done = uncanny_here(*arguments)
        assert (done.code, server.requests() - asked) == (0, forecast["calls"])
    assert forecast["calls"] == len(items[2].questions())
    assert f"started with the prompts {theirs.id}" in done.told
    calls = [orjson.loads(line) for line in (run.path / "calls.jsonl").read_bytes().splitlines()]
    assert all(call["asked"].endswith("Thank you.") for call in calls)


def test_all_generators_of_an_audit_are_asked_with_the_same_texts(tmp_path: Path) -> None:
    theirs, out = reworded("packed"), tmp_path / "out"
    folders = {name: pictures(tmp_path / name, 2, first) for name, first in (("a", 0), ("b", 2))}
    begun(folders["b"], Run(out / "b"), theirs)
    done = uncanny_here(
        "audit", *(f"{name}={path}" for name, path in folders.items()), "-m", "noop", "-o", out, "--json", "-"
    )
    assert done.code == 0
    assert "b: Warning:" in done.err
    for name in folders:
        assert {record.prompts for record in Run(out / name).records()} == {theirs.id}
