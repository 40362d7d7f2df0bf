"""`--prompts`: every command that asks models can ask with a user's texts, which a run keeps to its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from tests.runs.e2e import Done, Run, check_no_traceback, pictures, serving, uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.errors import RunMismatchError, UsageError
from uncanny.prompts import prompt_set
from uncanny.prompts.folders import SCHEDULES, read_prompts
from uncanny.protocol import prompt_names

SYSTEM = "Look closely, and answer in English."
RUNS: dict[str, tuple[str, str]] = {
    # command: (protocol, file of records)
    "annotate": ("packed", "annotations.jsonl"),
    "detect": ("detect", "annotations.jsonl"),
    "mcq run": ("mcq", "answers.jsonl"),
    "realism run": ("realism", "verdicts.jsonl"),
    "artifacts run": ("artifacts", "artifacts.jsonl"),
    "edits perturb": ("edits", "perturbations.jsonl"),
    "edits prompts": ("edits", "prompts.jsonl"),
}


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """Texts whose only change the demo model does not mind."""
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "system.md").write_text(SYSTEM)
    return folder


def ask(command: str, run: Path, *more: object) -> Done:
    source = scenes()[0].image_path if " " not in command else "scenes"
    return uncanny_here(*command.split(), source, "-m", "demo", "-o", run, "--limit", "1", *more)


def lines(file: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNS)
def test_texts_are_asked_and_recorded(command: str, texts: Path, tmp_path: Path) -> None:
    protocol, file = RUNS[command]
    run = Run(tmp_path / "run")
    done = ask(command, run.path, "--prompts", texts)
    assert (done.code, done.told) == (0, "")
    mixed = read_prompts(protocol, texts)
    prompts = run.manifest()["prompts"]
    assert (prompts["id"], prompts["own"]) == (mixed.id, ["system"])
    assert prompts["texts"]["system"] == SYSTEM
    assert {record["prompts"] for record in lines(run.path / file)} == {mixed.id}
    assert mixed.id != prompt_set(protocol).id


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNS)
def test_a_run_of_ours_says_nothing_of_others(command: str, tmp_path: Path) -> None:
    protocol, file = RUNS[command]
    run = Run(tmp_path / "run")
    assert ask(command, run.path).code == 0
    assert "own" not in run.manifest()["prompts"]
    assert {record["prompts"] for record in lines(run.path / file)} == {prompt_set(protocol).id}


def test_an_audit_asks_all_generators_with_them(texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "audit"
    sources = ("drawn=scenes:drawn", "rendered=scenes:rendered")
    options = ("-m", "demo", "-o", out, "--limit", "1", "--prompts", texts, "--quiet")
    assert uncanny_here("audit", *sources, *options).code == 0
    mixed = read_prompts("packed", texts)
    for name in ("drawn", "rendered"):
        run = Run(out / name)
        assert run.manifest()["prompts"]["own"] == ["system"]
        assert {record.prompts for record in run.records()} == {mixed.id}


def test_the_texts_reach_the_model(texts: Path, tmp_path: Path) -> None:
    (texts / "source.md").write_text("Yes or no: is it generated?")
    (texts / "anomalies.md").write_text("What in it cannot be?")
    run = Run(tmp_path / "run")
    with serving() as server:
        asked = server.asked()
        done = uncanny_here(
            "detect", pictures(tmp_path / "in", 1), *asked, "-o", run.path, "--prompts", texts, "--no-report"
        )
    assert done.code in (0, 1)
    assert run.calls()[0]["asked"].endswith("Yes or no: is it generated?")
    assert run.calls()[0]["prompt"] == read_prompts("detect", texts)["source"].id


@pytest.mark.slow
@pytest.mark.parametrize("command", RUNS)
def test_a_run_goes_on_with_the_users_texts_without_being_told(
    command: str, texts: Path, tmp_path: Path
) -> None:
    protocol, file = RUNS[command]
    run = Run(tmp_path / "run")
    mixed = read_prompts(protocol, texts)
    assert ask(command, run.path, "--prompts", texts).code == 0
    (texts / "system.md").unlink()
    source = "scenes" if " " in command else scenes()[0].image_path.parent
    arguments = (*command.split(), source, "-m", "demo", "-o", run.path, "--limit", "3")
    done = uncanny_here(*arguments)
    assert f"started with the prompts {mixed.id} and resumes with them" in done.told
    prompts = run.manifest()["prompts"]
    assert (prompts["id"], prompts["own"]) == (mixed.id, ["system"])
    assert {record["prompts"] for record in lines(run.path / file)} == {mixed.id}


def test_a_run_that_is_asked_with_the_same_texts_again_goes_on_in_silence(
    texts: Path, tmp_path: Path
) -> None:
    folder = scenes()[0].image_path.parent
    for limit in ("1", "2"):
        arguments = ("-m", "demo", "-o", tmp_path / "run", "--prompts", texts, "--limit", limit)
        done = uncanny_here("detect", folder, *arguments)
        assert (done.code, done.told) == (0, "")


@pytest.mark.parametrize("begun_with_ours", [True, False])
def test_other_texts_are_refused_by_name(begun_with_ours: bool, texts: Path, tmp_path: Path) -> None:
    begun = () if begun_with_ours else ("--prompts", texts)
    assert ask("realism run", tmp_path / "run", *begun).code == 0
    before = (tmp_path / "run" / "run.json").read_bytes()
    (texts / "system.md").write_text("Look away.")
    done = ask("realism run", tmp_path / "run", "--prompts", texts)
    check_no_traceback(done)
    assert (done.code, done.out) == (2, "")
    assert "made with other settings (prompts:" in done.err
    assert "it was started with another system.md. Remove --prompts to resume with its own" in done.err
    assert (tmp_path / "run" / "run.json").read_bytes() == before


def test_texts_that_are_lost_are_named(texts: Path, tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    assert ask("realism run", run.path, "--prompts", texts).code == 0
    manifest = run.manifest()
    kept = manifest["prompts"].pop("texts")
    (run.path / "run.json").write_bytes(orjson.dumps(manifest))
    done = ask("realism run", run.path)
    assert done.code == 2
    assert f"its prompts, {manifest['prompts']['id']}, are not kept in it. Pass the folder of its" in done.err
    for name, text in kept.items():
        (texts / f"{name}.md").write_text(text)
    assert ask("realism run", run.path, "--prompts", texts).code == 0


@pytest.mark.parametrize("command", RUNS)
def test_bad_texts_are_refused_before_anything_is_written(command: str, texts: Path, tmp_path: Path) -> None:
    (texts / "system.md").write_text("Is it $odd?")
    for more in ((), ("--dry-run",)):
        done = ask(command, tmp_path / "run", "--prompts", texts, *more)
        check_no_traceback(done)
        assert (done.code, done.out) == (2, "")
        assert f"{texts / 'system.md'}, line 1: there is no variable $odd in this prompt" in done.err
    assert not (tmp_path / "run").exists()


def test_a_forecast_counts_the_texts_that_are_asked(texts: Path, tmp_path: Path) -> None:
    image = pictures(tmp_path / "in", 1)
    forecasts = {
        uncanny.annotate_forecast: (image, {}),
        uncanny.detect_forecast: (image, {}),
        uncanny.mcq.forecast: ("scenes", {"limit": 1}),
        uncanny.realism.forecast: ("scenes", {"limit": 1}),
    }
    (texts / "system.md").write_text("Look closely. " * 5_000)
    for forecast, (source, options) in forecasts.items():
        ours = forecast(source, model="openai/gpt-4o", **options)  # type: ignore[operator]
        theirs = forecast(source, model="openai/gpt-4o", prompts=texts, **options)  # type: ignore[operator]
        assert theirs.input_tokens > ours.input_tokens + 10_000 * theirs.calls_least


def test_from_python(texts: Path, tmp_path: Path) -> None:
    image = scenes()[0].image_path
    mixed = read_prompts("packed", texts)
    assert uncanny.annotate_image(image, model="demo", prompts=texts).prompts == mixed.id
    run = uncanny.annotate(image, model="demo", out=tmp_path / "run", prompts=str(texts))
    assert [record.prompts for record in run.annotations] == [mixed.id]
    (texts / "system.md").write_text("Look away.")
    with pytest.raises(RunMismatchError, match=r"another system\.md\. Remove `prompts`"):
        uncanny.annotate(image, model="demo", out=tmp_path / "run", prompts=texts)
    for wrong in (7, "", b"texts"):
        with pytest.raises(UsageError, match="`prompts`"):
            uncanny.annotate(image, model="demo", out=tmp_path / "other", prompts=wrong)  # type: ignore[arg-type]


def test_items_with_texts_of_their_own_have_no_use_for_others(texts: Path, tmp_path: Path) -> None:
    item = {
        "id": "1",
        "image": str(scenes()[0].image_path),
        "split": "art_dg",
        "q1": {"answer": "yes"},
        "system": "Answer.",
        "prompts": {"q1": "Is it so? Yes or no."},
    }
    (tmp_path / "items.jsonl").write_bytes(orjson.dumps(item))
    done = uncanny_here(
        "mcq", "run", tmp_path / "items.jsonl", "-m", "demo", "-o", tmp_path / "run", "--prompts", texts
    )
    assert done.code == 2
    assert "have their own prompts, so --prompts has no effect" in done.err


@pytest.mark.parametrize(("protocol", "schedule"), SCHEDULES.items())
def test_each_schedule_is_asked_with_the_texts_that_were_written_out_for_it(
    protocol: str, schedule: str, tmp_path: Path
) -> None:
    texts, run = tmp_path / "texts", Run(tmp_path / "run")
    assert uncanny_here("prompts", protocol, "-o", texts).code == 0
    (texts / "system.md").write_text(SYSTEM)
    done = ask("annotate", run.path, "--prompts", texts, "--schedule", schedule)
    assert (done.code, done.told) == (0, "")
    assert run.manifest()["prompts"]["id"].startswith(f"{protocol}@")


def test_prompts_shows_texts_and_writes_them(tmp_path: Path) -> None:
    every = uncanny_here("prompts")
    assert every.code == 0
    assert all(prompt_set(name).id in every.out for name in prompt_names())
    one = uncanny_here("prompts", "detect")
    assert one.out.splitlines()[0] == prompt_set("detect").id
    done = uncanny_here("prompts", "detect", "-o", tmp_path / "detect")
    assert (done.code, done.told) == (0, "")
    assert read_prompts("detect", tmp_path / "detect").id == prompt_set("detect").id
    (tmp_path / "detect" / "source.md").write_text("Mine.")
    again = uncanny_here("prompts", "detect", "-o", tmp_path / "detect")
    assert (again.code, again.out) == (2, "")
    assert "source.md already exists with another prompt" in again.err
    assert uncanny_here("prompts", "-o", tmp_path / "all").code == 0
    assert {path.name for path in (tmp_path / "all").iterdir()} == set(prompt_names())
