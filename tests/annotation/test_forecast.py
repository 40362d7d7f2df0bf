"""What a run would ask, without asking."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from PIL import Image

import uncanny
from tests.runs.e2e import pictures, serving
from uncanny.agents.common.annotate_context import answer_schema
from uncanny.agents.common.context import schema_of
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import JUDGE, LOOK, LOOKS, SCHEDULES, InView, ScheduleName, Size
from uncanny.annotation.forecast import forecast_task
from uncanny.annotation.run import AnnotateTask
from uncanny.annotation.usage import Contents
from uncanny.answers.forms import OBJECTS
from uncanny.answers.packed import PART_FAULTS
from uncanny.demo.scenes import scenes
from uncanny.errors import UsageError
from uncanny.images.encode import PixelPolicy
from uncanny.models.registry import ModelOptions, parse_model
from uncanny.models.tokens import least_cached
from uncanny.records.run_folder import RunFolder
from uncanny.runs.parameters import RunOptions, RunParameters
from uncanny.runs.run import run_with
from uncanny.schema import Annotation

# Of all kinds, and with and without faults: all of them take three times as long.
SCENES = [scene.image_path for scene in scenes()[::3]]
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


@pytest.mark.parametrize(
    ("schedule", "concurrency", "least"),
    [("single", 32, 32), ("packed", 32, 32), ("packed", 64, 64), ("paper", 64, 16)],
)
def test_enough_images_are_worked_on_for_all_calls_at_once(
    schedule: str, concurrency: int, least: int, tmp_path: Path
) -> None:
    """About one call at a time for an image, several with `paper`."""
    options = RunOptions(concurrency=concurrency)
    assert annotation(tmp_path, options=options, schedule=schedule).inputs_at_once > least


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    pictures(tmp_path / "in", 4)
    return tmp_path


def large_pictures(folder: Path, size: tuple[int, int] = (1024, 768)) -> None:
    for path in (folder / "in").iterdir():
        Image.new("RGB", size).save(path)


@pytest.mark.parametrize(
    ("schedule", "usual", "least", "most"),
    # A look, a second draft, two batches of five parts, relations, the integrator; at most the formatter.
    [("packed", 2 + 2 + 1 + 1, 2, 2 + 3 + 1 + 2), ("paper", *(2 + 1 + 6 * 5 + 1, 3, 2 + 1 + 6 * 5 + 1))],
)
def test_calls_are_counted_by_the_plan_and_nothing_is_made(
    schedule: ScheduleName, usual: int, least: int, most: int, folder: Path
) -> None:
    forecast = forecast_task(annotation(folder, repeats=2, scene_scans=1, max_objects=5, schedule=schedule))
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
    assert forecast.calls_usual == 4 * usual
    assert forecast.calls_least == 4 * least
    assert forecast.calls_most == 4 * most
    assert not (folder / "run").exists()


@pytest.mark.parametrize("schedule", ["packed", "paper"])
def test_the_usual_image_has_eight_objects(schedule: ScheduleName, folder: Path) -> None:
    forecast = forecast_task(annotation(folder, schedule=schedule))
    config = AnnotateConfig(schedule=schedule)
    assert forecast.calls_usual == 4 * config.calls(8)
    assert forecast.calls_most == 4 * {"packed": 7, "paper": 3 + 6 * 12 + 1}[schedule]
    assert forecast.calls_least < forecast.calls_usual <= forecast.calls_most


def test_cost_is_below_that_without_a_prefix_cache(folder: Path) -> None:
    large_pictures(folder)
    # Few calls of the packed schedule begin alike.
    packed = forecast_task(annotation(folder))
    assert packed.cost_usd == packed.cost_usd_uncached
    forecast = forecast_task(annotation(folder, schedule="paper"))
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
    # The look; eight parts in two batches, each with the whole; that and two parts, twice.
    assert forecast.usage.images_uncounted == 4 * (1 + 8 + 2 + 3 + 3)
    assert (known.usage.images_uncounted, known.image_tokens_unknown) == (0, [])
    assert forecast.image_tokens_unknown == ["openai-compatible/any"]


def test_models_without_known_image_tokens_leave_those_of_others_counted(folder: Path) -> None:
    mixed = ModelOptions(GPT.model, roles={"attributes": parse_model("vllm/any")})
    forecast = forecast_task(annotation(folder, mixed))
    assert forecast.input_tokens is None
    assert forecast.usage.images_uncounted == 4 * (8 + 2)
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
    assert (
        asyncio.run(run_with(annotation(folder, noop, RunOptions(limit=3)), RunParameters())).reason is None
    )
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


def test_what_is_filled_in_grows_with_objects_findings_and_drafts() -> None:
    size = Size(10, subject=30, object=5, finding=70, redraft=12)
    assert size.tokens(InView(subjects=1, objects=4, findings=0, drafts=1)) == 10 + 30 + 4 * 5
    assert size.tokens(InView(1, 4, 2, drafts=3)) == 10 + (30 + 24) + 4 * (5 + 24) + 2 * 70
    # What a call is not about adds nothing, however many drafts there are.
    assert Size(10, subject=30, redraft=12).tokens(InView(1, 4, 2, drafts=3)) == 10 + 30 + 24


@pytest.mark.parametrize(
    ("schedule", "contents", "calls"),
    [
        ("packed", Contents(0, 0), 1),
        ("packed", Contents(8, 0), 1 + 2 + 1),
        ("packed", Contents(8, 1), 1 + 2 + 1 + 1),
        ("packed", Contents(8, 1, parts=9, related=False), 1 + 3 + 1),
        ("packed", Contents(4, 3), 1 + 1 + 1 + 1),
        ("packed", Contents(4, 3, parts=0), 1 + 1),
        ("paper", Contents(5, 0), 3 + 4 * 5),
        ("paper", Contents(5, 2), 3 + 4 * 5 + 2 * 2 + 1),
        ("paper", Contents(5, 9), 3 + 6 * 5 + 1),
        ("single", Contents(5, 2), 1),
    ],
)
def test_a_clean_image_needs_no_one_who_brings_findings_together(
    schedule: ScheduleName, contents: Contents, calls: int, folder: Path
) -> None:
    assert forecast_task(annotation(folder, schedule=schedule), {contents: 1}).calls_usual == 4 * calls
    half = {contents: 1, Contents(0, 0): 1}
    clean = AnnotateConfig(schedule=schedule).least_calls()
    assert forecast_task(annotation(folder, schedule=schedule), half).calls_usual == 2 * (calls + clean)


def test_a_schema_is_billed_where_it_is_rendered_into_the_prompt(folder: Path) -> None:
    def text(model: str, schedule: ScheduleName) -> int:
        models = ModelOptions(parse_model(model))
        return forecast_task(annotation(folder, models, schedule=schedule)).usage.text_tokens

    def length(schema: dict[str, Any]) -> int:
        return -(-len(orjson.dumps(schema)) // 4)

    # Of 52 calls of the paper's schedule 28 are constrained; of packed ones all, each by its own schema.
    shared = length(schema_of(OBJECTS).shared)
    assert text("openai/gpt-4o", "paper") - text("vllm/any", "paper") == 4 * 28 * shared
    attributes, relations = (step for step in LOOKS if step.form is PART_FAULTS)
    schemas = [
        answer_schema(step, "openai/gpt-4o", AnnotateConfig())
        for step in (LOOK, attributes, attributes, relations, JUDGE)
    ]
    packed = text("openai/gpt-4o", "packed") - text("vllm/any", "packed")
    assert packed == 4 * sum(length(schema.shared) for schema in schemas if schema is not None)
    assert text("openai/gpt-4o", "single") == text("vllm/any", "single")


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("openai/gpt-4o", 1024),
        ("anthropic/claude-sonnet-4-5", 1024),
        ("anthropic/claude-haiku-4-5-20251001", 4096),
        ("anthropic/claude-opus-4-7", 2048),
        ("anthropic/claude-opus-5", 512),
        ("vllm/any", 0),
    ],
)
def test_the_shortest_prefix_that_is_kept(model: str, least: int) -> None:
    assert least_cached(model) == least


def test_a_prefix_too_short_to_be_kept_saves_nothing_and_is_not_paid_for_twice(folder: Path) -> None:
    large_pictures(folder)
    models = ModelOptions(parse_model("anthropic/claude-haiku-4-5"))
    haiku = forecast_task(annotation(folder, models, schedule="paper"))
    assert haiku.cost_usd == haiku.cost_usd_uncached
    sonnet = ModelOptions(parse_model("anthropic/claude-sonnet-4-5"))
    paper = forecast_task(annotation(folder, sonnet, schedule="paper"))
    assert paper.cost_usd is not None
    assert paper.cost_usd_uncached is not None
    assert paper.cost_usd < paper.cost_usd_uncached
    # Nobody would read what a single call has written, or one that no other begins like: nothing is.
    for schedule in ("single", "packed"):
        alone = forecast_task(annotation(folder, sonnet, schedule=schedule))
        assert alone.cost_usd is not None
        assert alone.cost_usd == alone.cost_usd_uncached


def test_images_are_counted_as_they_are_sent(folder: Path) -> None:
    large_pictures(folder)
    smaller = annotation(folder)
    smaller.policy = PixelPolicy(max_side=512)
    sent, whole = (forecast_task(task).usage.image_tokens for task in (smaller, annotation(folder)))
    # Whole in three calls and no larger than 640 in two, with twelve enlarged parts in all.
    assert (sent, whole) == (4 * (5 * 255 + 12 * 425), 4 * (3 * 765 + 2 * 425 + 12 * 425))


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, ScheduleName], AnnotateTask]:
    """Bundled scenes annotated over HTTP by models and schedules; the tasks of their runs."""
    folder = tmp_path_factory.mktemp("bundled")

    def task(model: str, schedule: ScheduleName) -> AnnotateTask:
        out = folder / model.replace("/", "-") / schedule
        with serving() as server, pytest.MonkeyPatch.context() as patched:
            patched.setenv("OPENAI_API_KEY", "any")
            patched.setenv("ANTHROPIC_API_KEY", "any")
            uncanny.annotate(SCENES, model=model, base_url=server.v1, out=out, schedule=schedule)
        models, config = ModelOptions(parse_model(model)), AnnotateConfig(schedule=schedule)
        return AnnotateTask(folder=RunFolder(out), paths=SCENES, models=models, config=config)

    return task


def contents_of(record: Annotation, calls: Sequence[Mapping[str, Any]]) -> Contents:
    of_packed = record.model_extra or {}
    asked = Counter(call["agent"] for call in calls if call["image"] == record.image)
    found = len(of_packed.get("candidates", ())) if "AnomalyIntegrator" in asked else 0
    return Contents(
        len(record.objects),
        max(found, len(record.anomalies)),
        # Reflections and shadows are only compared.
        min(len(of_packed.get("regions", ())), 4 * asked["AttributeAnalyzer"]),
        "RelationReasoner" in asked,
    )


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(
    "model",
    # Prefixes are kept from 1,024 tokens on, and for Haiku from 4,096.
    [
        "openai/gpt-4o",
        pytest.param("anthropic/claude-sonnet-4-5-demo", marks=pytest.mark.slow),
        pytest.param("anthropic/claude-haiku-4-5-demo", marks=pytest.mark.slow),
    ],
)
def test_with_what_the_images_hold_it_comes_true(
    model: str, schedule: ScheduleName, bundled: Callable[[str, ScheduleName], AnnotateTask]
) -> None:
    task = bundled(model, schedule)
    records = list(task.records().load())
    calls = [orjson.loads(line) for line in (task.folder.path / "calls.jsonl").read_bytes().splitlines()]
    manifest = task.folder.read_manifest()
    assert manifest is not None
    assert manifest.totals is not None
    totals = manifest.totals
    before = replace(task, folder=RunFolder(task.folder.path.with_name("unbegun")))
    forecast = forecast_task(before, Counter(contents_of(record, calls) for record in records))
    assert forecast.calls_usual == totals.calls
    assert forecast.input_tokens == pytest.approx(totals.input_tokens, rel=0.15)
    assert forecast.output_tokens == pytest.approx(totals.output_tokens, rel=0.15)
    assert forecast.cost_usd == pytest.approx(totals.cost_usd, rel=0.15)
