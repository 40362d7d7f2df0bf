"""What a run would ask, without asking."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.runs.e2e import pictures
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import ScheduleName
from uncanny.errors import UsageError
from uncanny.eval.annotate.forecast import forecast_task
from uncanny.eval.annotate.run import AnnotateTask
from uncanny.models.registry import parse_model
from uncanny.records.run_folder import RunFolder
from uncanny.runs.config import ModelOptions, RunOptions
from uncanny.runs.run import run_with

GPT = ModelOptions(parse_model("openai/gpt-4o"))


def annotation(
    folder: Path, models: ModelOptions = GPT, options: RunOptions | None = None, **config: Any
) -> AnnotateTask:
    return AnnotateTask(
        folder=RunFolder(folder / "run"),
        paths=[folder / "in"],
        models=models,
        config=AnnotateConfig(**config),
        options=options or RunOptions(),
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pictures(tmp_path / "in", 4)
    return tmp_path


def large_pictures(folder: Path, size: tuple[int, int] = (1024, 768)) -> None:
    for path in (folder / "in").iterdir():
        Image.new("RGB", size).save(path)


@pytest.mark.parametrize(
    ("schedule", "usual", "least"),
    # Without objects packed images still have a scan that may find something, to be judged and written up.
    [("packed", 2 + 1 + 2 * 2 + 2, 3), ("paper", 2 + 1 + 6 * 5 + 1, 3)],
)
def test_calls_are_counted_by_the_plan_and_nothing_is_made(
    schedule: str, usual: int, least: int, folder: Path
) -> None:
    config: dict[str, Any] = {"schedule": schedule, "batch_objects": 3}
    forecast = forecast_task(annotation(folder, repeats=2, scene_scans=1, max_objects=5, **config))
    assert (
        forecast.inputs,
        forecast.pending,
        forecast.unreadable,
        forecast.objects_per_image,
    ) == (
        4,
        4,
        0,
        5,
    )
    assert forecast.calls_usual == forecast.calls_most == 4 * usual
    assert forecast.calls_least == 4 * least
    assert not (folder / "run").exists()


@pytest.mark.parametrize("schedule", ["packed", "paper"])
def test_the_usual_image_has_eight_objects(schedule: ScheduleName, folder: Path) -> None:
    forecast = forecast_task(annotation(folder, schedule=schedule))
    config = AnnotateConfig(schedule=schedule)
    assert forecast.calls_usual == 4 * config.calls(8)
    assert forecast.calls_most == 4 * config.calls(config.max_objects)
    assert forecast.calls_least < forecast.calls_usual <= forecast.calls_most


def test_cost_is_below_that_without_a_prefix_cache(folder: Path) -> None:
    small = forecast_task(annotation(folder))
    assert small.cost_usd == small.cost_usd_uncached  # fewer than the 1,024 tokens that OpenAI keeps
    large_pictures(folder)
    forecast = forecast_task(annotation(folder))
    assert forecast.cost_usd is not None
    assert forecast.cost_usd_uncached is not None
    assert 0 < forecast.cost_usd < forecast.cost_usd_uncached
    assert forecast.usage.input_tokens_known > forecast.output_tokens > 0


def test_twice_the_images_are_twice_the_cost(folder: Path) -> None:
    half = forecast_task(annotation(folder, options=RunOptions(limit=2)))
    whole = forecast_task(annotation(folder))
    for name in ("calls_usual", "input_tokens", "output_tokens", "cost_usd", "cost_usd_uncached"):
        assert getattr(whole, name) == pytest.approx(2 * getattr(half, name), rel=1e-4)


def test_what_is_not_known_is_none_and_not_nought(folder: Path) -> None:
    forecast = forecast_task(annotation(folder, ModelOptions(parse_model("openai-compatible/any"))))
    assert (forecast.input_tokens, forecast.cost_usd, forecast.cost_usd_uncached) == (
        None,
        None,
        None,
    )
    assert forecast.calls_usual > 0
    assert forecast.output_tokens > 0
    known = forecast_task(annotation(folder))
    assert known.input_tokens == known.usage.input_tokens_known
    assert 0 < forecast.usage.input_tokens_known < known.usage.input_tokens_known
    assert forecast.usage.images_uncounted == 4 * (1 + 1 + 2 * 2 + 1 + 1)  # the last is an enlarged part
    assert (known.usage.images_uncounted, known.image_tokens_unknown) == (0, [])
    assert forecast.image_tokens_unknown == ["openai-compatible/any"]


def test_models_without_known_image_tokens_leave_those_of_others_counted(folder: Path) -> None:
    mixed = ModelOptions(GPT.model, roles={"attributes": parse_model("vllm/any")})
    forecast = forecast_task(annotation(folder, mixed))
    assert forecast.input_tokens is None
    assert forecast.usage.images_uncounted == 4 * 2
    assert forecast.image_tokens_unknown == ["vllm/any"]


def test_an_address_that_is_missing_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_COMPATIBLE_BASE_URL", raising=False)
    model = parse_model("openai-compatible/any")
    (missing,) = forecast_task(annotation(folder, ModelOptions(GPT.model, fallback=model))).missing
    assert "`base_url` or set OPENAI_COMPATIBLE_BASE_URL" in missing
    there = ModelOptions(model, base_urls={"openai-compatible": "http://gpu/v1"})
    assert forecast_task(annotation(folder, there)).missing == ()
    monkeypatch.setenv("OPENAI_COMPATIBLE_BASE_URL", "http://gpu/v1")
    assert forecast_task(annotation(folder, ModelOptions(model))).missing == ()


def test_a_model_for_one_role_changes_the_cost(folder: Path) -> None:
    cheap = ModelOptions(GPT.model, roles={"attributes": parse_model("openai/gpt-4.1-nano")})
    cost, usual_cost = (
        forecast_task(annotation(folder, cheap)).cost_usd,
        forecast_task(annotation(folder)).cost_usd,
    )
    assert cost is not None
    assert usual_cost is not None
    assert cost < usual_cost


def test_broken_images_are_not_asked_about(folder: Path) -> None:
    (folder / "in" / "broken.png").write_bytes(b"no picture")
    forecast = forecast_task(annotation(folder))
    assert (forecast.inputs, forecast.unreadable) == (5, 1)
    assert forecast.calls_usual == 4 * AnnotateConfig().calls(8)


def test_of_a_run_half_done_only_the_rest_counts(folder: Path) -> None:
    noop = ModelOptions(parse_model("noop"))
    assert asyncio.run(run_with(annotation(folder, noop, RunOptions(limit=3)), {})).reason is None
    before = (folder / "run" / "annotations.jsonl").stat()
    forecast = forecast_task(annotation(folder, noop))
    assert (forecast.inputs, forecast.pending) == (4, 1)
    after = (folder / "run" / "annotations.jsonl").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_no_images_is_an_error(folder: Path) -> None:
    (folder / "in").rename(folder / "other")
    (folder / "in").mkdir()
    with pytest.raises(UsageError, match="No images"):
        forecast_task(annotation(folder))
