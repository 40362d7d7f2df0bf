"""`uncanny.detect` and `run.score()`: the truth is found, checked early, and scored as the command does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import uncanny
from tests.runs.e2e import uncanny_here
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError


def sorted_scenes(folder: Path, count: int = 6) -> Path:
    for scene in scenes()[:count]:
        place = folder / ("fake" if scene.role == "anomalous" else "real")
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(scene.image_path, place)
    return folder


def test_the_json_of_the_command_is_that_of_the_functions(tmp_path: Path) -> None:
    command = ("detect", "scenes", "-m", "demo", "-o", tmp_path / "run", "--json", "--no-report")
    content = uncanny_here(*command).json()
    run = uncanny.detect("scenes", model="demo", out=tmp_path / "run")
    own = run.to_json()
    assert own["totals"].pop("seconds") >= content["totals"].pop("seconds")
    assert own == content
    assert run.score().to_json() == content["scores"]
    assert uncanny.DetectRun(tmp_path / "run").score("scenes").to_json() == content["scores"]


def test_folders_are_the_truth_also_of_a_run_that_is_opened(tmp_path: Path) -> None:
    folder = sorted_scenes(tmp_path / "set")
    run = uncanny.detect(folder, model="demo", out=tmp_path / "run")
    opened = uncanny.DetectRun(tmp_path / "run")
    assert run.score().truth.origin == "folders"
    assert run.score().scored.images == 6
    assert opened.score().to_json() == run.score().to_json()
    assert opened.to_json()["scores"] == run.to_json()["scores"]


def test_a_wrong_truth_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    folder = sorted_scenes(tmp_path / "set", 2)
    for wrong in (tmp_path / "nowhere.jsonl", 3):
        with pytest.raises(UsageError, match=r"nowhere\.jsonl|The truth must be a file"):
            uncanny.detect(folder, model="demo", out=tmp_path / "run", truth=wrong)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=r"nowhere\.jsonl|The truth must be a file"):
            uncanny.detect_forecast(folder, model="demo", truth=wrong)  # type: ignore[arg-type]
    assert not (tmp_path / "run" / "annotations.jsonl").exists()
    flat = tmp_path / "flat.png"
    shutil.copy(scenes()[0].image_path, flat)
    run = uncanny.detect(flat, model="demo", out=tmp_path / "run")
    assert run.to_json()["scores"] is None
    with pytest.raises(UsageError, match="The folder names"):
        run.score()


def test_images_that_are_gone_are_not_of_the_run(tmp_path: Path) -> None:
    folder = sorted_scenes(tmp_path / "set")
    uncanny.detect(folder, model="demo", out=tmp_path / "run")
    for file in sorted(folder.rglob("*.png"))[:3]:
        file.unlink()
    run = uncanny.detect(folder, model="demo", out=tmp_path / "run")
    assert run.summary.statuses["ok"] == len(run.detections) == sum(run.verdicts().values()) == 3
    assert run.score().missing == 0
    limited = uncanny.detect(folder, model="demo", out=tmp_path / "run", limit=1)
    assert (len(limited.records), limited.score().missing) == (3, 0)
    assert uncanny.DetectRun(tmp_path / "run").score().missing == 0


def test_a_run_of_annotate_is_not_one_of_detect(tmp_path: Path) -> None:
    image = scenes()[0].image_path
    annotated = uncanny.annotate(image, model="noop", out=tmp_path / "annotate")
    detected = uncanny.detect(image, model="demo", out=tmp_path / "detect")
    with pytest.raises(UsageError, match="is a run of annotate, not of detect"):
        uncanny.DetectRun(annotated.path)
    with pytest.raises(UsageError, match="is a run of detect, not of annotate"):
        uncanny.AnnotateRun(detected.path)
    with pytest.raises(UsageError, match="but annotations"):
        uncanny.mcq.McqRun(detected)


def test_forecasts_take_what_the_runs_take() -> None:
    image = scenes()[0].image_path

    assert uncanny.annotate_forecast(image, model="demo", on_record=print, nodes={}, graph=None)
    assert uncanny.detect_forecast("scenes", model="demo", on_record=print).pending == 34
    with pytest.raises(UsageError, match="There is no option `nodes`"):
        uncanny.detect_forecast(image, model="demo", nodes={})  # type: ignore[call-arg]
