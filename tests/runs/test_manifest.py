"""`run.json`: what a run is made with and how far it is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from uncanny.agents.config import AnnotateConfig
from uncanny.errors import RunMismatchError
from uncanny.images.discover import SkippedInputs
from uncanny.images.encode import PixelPolicy
from uncanny.models.registry import ModelOptions, parse_model
from uncanny.prompts import prompt_set
from uncanny.records.annotation_table import LINES
from uncanny.records.run_folder import RunFolder, check_same_protocol
from uncanny.records.run_manifest import RunManifest, RunSettings
from uncanny.runs.manifest import Manifest, run_settings
from uncanny.runs.progress import Progress

ANNOTATE = prompt_set("annotate")
MODELS = ModelOptions(
    parse_model("openai/a"),
    roles={"formatter": parse_model("openai/b")},
    fallback=parse_model("vllm/c"),
)


def protocol(models: ModelOptions = MODELS, policy: PixelPolicy | None = None, **config: Any) -> RunSettings:
    configured = AnnotateConfig(**config).model_dump()
    return run_settings("annotate", models, configured, ANNOTATE, policy or PixelPolicy(), None)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    (tmp_path / "run").mkdir()
    return RunFolder(tmp_path / "run")


def written(folder: RunFolder) -> dict[str, Any]:
    content = folder.read_manifest()
    assert content is not None
    return content.written()


def test_everything_a_reader_needs_is_in_it(folder: RunFolder) -> None:
    manifest = Manifest(folder, protocol(), None, record_file=LINES)
    manifest.sent(MODELS, {"openai/a": {"temperature": 0.3}})
    progress = Progress(total=7, items="anomalies")
    progress.statuses.update(ok=3, partial=1, unreadable=1)
    progress.items_found, progress.duplicates = 9, 2
    progress.pixel_changes["downscale"] = 4
    manifest.write("interrupted", progress)
    content = written(folder)
    assert (content["task"], content["state"], content["format"]) == ("annotate", "interrupted", 2)
    assert (content["model"], content["fallback"]) == ("openai/a", "vllm/c")
    assert content["roles"] == {"formatter": "openai/b"}
    assert content["plan"] == AnnotateConfig().model_dump()
    assert content["parameters"] == {"openai/a": {"temperature": 0.3}}
    prompts = prompt_set("annotate")
    assert content["prompts"]["id"] == prompts.id
    assert content["prompts"]["files"] == prompts.hashes()
    assert content["pixels"]["changed"] == {"downscale": 4}
    assert content["pixels"]["policy"]["max_pixels"] == PixelPolicy().max_pixels
    assert content["libraries"]["pydantic"]
    totals = content["totals"]
    assert {
        name: totals[name] for name in ("images", "ok", "partial", "failed", "unreadable", "pending")
    } == {
        "images": 7,
        "ok": 3,
        "partial": 1,
        "failed": 0,
        "unreadable": 1,
        "pending": 2,
    }
    assert (totals["anomalies"], totals["duplicates"]) == (9, 2)


def test_a_later_session_keeps_the_start_and_adds_up_time_and_calls(folder: RunFolder) -> None:
    before = {
        "started": "2026-01-02T03:04:05+00:00",
        "parameters": {"openai/a": {"top_p": 1}},
        "fallback": "vllm/c",
        "totals": {"seconds": 100.0, "calls": 12, "sums": {"input_tokens": 5}},
    }
    manifest = Manifest(folder, protocol(), RunManifest.model_validate(before), record_file=LINES)
    assert manifest.started == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC).timestamp()
    manifest.write("finished", Progress(spending=manifest.spending))
    content = written(folder)
    assert content["started"] == before["started"]
    assert content["updated"] > content["started"]
    assert content["totals"]["seconds"] >= 100.0
    assert (content["totals"]["calls"], content["totals"]["input_tokens"]) == (12, 5)
    assert (content["parameters"], content["fallback"]) == ({"openai/a": {"top_p": 1}}, "vllm/c")


@pytest.mark.parametrize(
    ("now", "named"),
    [
        (protocol(ModelOptions(parse_model("openai/z"), MODELS.roles)), "model"),
        (protocol(ModelOptions(MODELS.model)), "roles"),
        (protocol(repeats=4), "repeats"),
        (protocol(policy=PixelPolicy(max_side=512)), "max_side"),
        (
            run_settings(
                "annotate", MODELS, AnnotateConfig().model_dump(), ANNOTATE, PixelPolicy(), Path("/data")
            ),
            "root",
        ),
    ],
)
def test_whatever_changes_answers_belongs_to_the_protocol(
    folder: RunFolder, now: RunSettings, named: str
) -> None:
    with pytest.raises(RunMismatchError, match=named):
        check_same_protocol(folder, protocol().comparable(), now.comparable())


def test_a_fallback_and_the_order_of_roles_do_not() -> None:
    roles = {"scanner": parse_model("demo"), "formatter": parse_model("openai/b")}
    turned = dict(reversed(roles.items()))
    assert protocol(ModelOptions(MODELS.model, roles)) == protocol(
        ModelOptions(MODELS.model, turned, fallback=parse_model("demo"))
    )
    assert list(protocol(ModelOptions(MODELS.model, roles)).roles) == ["formatter", "scanner"]


def test_keys_stand_in_one_order_whoever_writes_them(folder: RunFolder) -> None:
    settings = protocol().model_copy(update={"pairs": "pairs.jsonl"})
    manifest = Manifest(folder, settings, None, record_file="verdicts.jsonl")
    progress = Progress(unit="pairs", kinds=("ok", "refused", "unusable"), total=3)
    progress.skipped = SkippedInputs()
    manifest.sent(MODELS, {})
    manifest.write("finished", progress)
    content = orjson.loads(folder.manifest.read_bytes())
    assert list(content) == [
        *("format", "uncanny", "python", "libraries", "state", "started", "updated"),
        *("task", "model", "roles", "plan", "prompts", "pixels", "root", "pairs"),
        *("record_file", "fallback", "parameters", "totals"),
        *("served_as", "served_unnamed", "skipped", "skipped_counts"),
    ]
    assert list(content["totals"]) == [
        *("pairs", "ok", "refused", "unusable", "pending", "calls", "replayed"),
        *("input_tokens", "cached_tokens", "output_tokens", "cost_usd"),
        *("unmeasured", "outcomes", "sums", "seconds"),
    ]
    assert orjson.loads(orjson.dumps(manifest.content)) == content
