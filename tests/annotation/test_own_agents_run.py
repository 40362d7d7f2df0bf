"""Runs with agents, nodes and graphs of the user's own: what they cost, how they resume, what ends them."""

from __future__ import annotations

import shutil
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
import pytest

import uncanny
from uncanny.agents.common.annotate_context import Context, ScanState, Sighting, as_findings
from uncanny.agents.common.own_agent import OwnAgent
from uncanny.agents.steps import ListStep
from uncanny.answers.packed import FAULTS
from uncanny.demo.scenes import scenes
from uncanny.errors import ExtensionError, RunMismatchError, UsageError
from uncanny.graphs.annotate import annotate_graph
from uncanny.graphs.packed import packed_graph
from uncanny.models import registry

PHOTOS = [scene.image_path for scene in scenes()[:4]]
SHADOWS = OwnAgent(name="ShadowReader", prompt="Which shadows are wrong?")
HANDS = OwnAgent(name="HandCounter", prompt="$listed Count the fingers.", per="batch")


class Observer:
    """Names one object, and finds a fault wherever it is asked for some."""

    capabilities = uncanny.Capabilities()

    def __init__(self, model: str) -> None:
        self.name = f"observer/{model}"

    async def generate(self, request: uncanny.ModelRequest) -> uncanny.ModelResponse:
        asked = request.schema.lists if request.schema else ("notes",)
        finding = {"objects": ["1"], "observed": request.agent, "explanation": "x", "kind": "light"}
        texts = {"name": "fault", "phenomenon": request.agent, "reasoning": "x", "realism": 9}
        rows: dict[str, list[Any]] = {
            "inventory": [{"name": "cup", "description": "white"}],
            "findings": [finding],
            "entries": [{"ids": [*range(1, 100)], "decision": "keep", **texts}],
        }
        return uncanny.ModelResponse(orjson.dumps({each: rows[each] for each in asked}).decode())


@pytest.fixture(autouse=True)
def observer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {"observer": Observer})


def test_agents_are_asked_recorded_forecast_and_resumed(tmp_path: Path) -> None:
    agents = [SHADOWS, HANDS]
    run = uncanny.annotate(
        PHOTOS[:2], model="observer/any", out=tmp_path / "run", agents=agents, roles={"ShadowReader": "noop"}
    )
    (first, _) = run.annotations
    assert first.status == "ok", first.errors
    candidates = (first.model_extra or {})["candidates"]
    assert {each["found_by"] for each in candidates} == {
        "AttributeAnalyzer",
        "RelationReasoner",
        "HandCounter",
        "SceneScanner",
        "ShadowReader",
    }
    lines = [orjson.loads(line) for line in (run.path / "calls.jsonl").read_bytes().splitlines()]
    asked = {
        (each["agent"], each["model"]) for each in lines if each["agent"] in ("ShadowReader", "HandCounter")
    }
    assert asked == {("ShadowReader", "noop"), ("HandCounter", "observer/any")}
    assert {each["prompt"].partition("@")[0] for each in lines if each["agent"] == "HandCounter"} == {
        "HandCounter"
    }
    assert run.manifest.forecast is not None
    plain = uncanny.annotate_forecast(PHOTOS[:2], model="openai/gpt-4o")
    more = uncanny.annotate_forecast(PHOTOS[:2], model="openai/gpt-4o", agents=agents)
    # Eight enlarged parts are usual, two batches; at most twelve, three batches, and at least none.
    assert run.manifest.forecast.calls == more.calls_usual == plain.calls_usual + 2 * (1 + 2)
    assert (more.calls_least, more.calls_most) == (plain.calls_least + 2, plain.calls_most + 2 * (1 + 3))
    assert plain.cost_usd is not None
    assert more.cost_usd is not None
    assert more.cost_usd > plain.cost_usd
    assert run.manifest.plan["graph"]["ShadowReader"]["text"] == SHADOWS.prompt
    roles: Any = {"roles": {"ShadowReader": "noop"}}
    again = uncanny.annotate(PHOTOS[:2], model="observer/any", out=run.path, agents=agents, **roles)
    assert again.summary.calls == run.summary.calls
    other = OwnAgent(name="ShadowReader", prompt="Look at the shadows.")
    with pytest.raises(RunMismatchError, match="node ShadowReader/prompt of the graph"):
        uncanny.annotate(PHOTOS[:2], model="observer/any", out=run.path, agents=[other, HANDS], **roles)
    with pytest.raises(RunMismatchError, match="node HandCounter"):
        uncanny.annotate(PHOTOS[:2], model="observer/any", out=run.path, agents=[SHADOWS], **roles)
    calls: list[uncanny.CallRecord] = []
    alone = uncanny.annotate_image(
        PHOTOS[0], model="observer/any", agents=agents, on_call=calls.append, **roles
    )
    assert {call.model for call in calls if call.agent == "ShadowReader"} == {"noop"}
    assert [each.phenomenon for each in alone.anomalies] == ["AnomalyIntegrator"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"agents": [SHADOWS], "schedule": "paper"}, "cannot be added to the schedule `paper`"),
        ({"agents": [SHADOWS], "schedule": "single"}, "cannot be added to the schedule `single`"),
        ({"agents": [SHADOWS], "graph": packed_graph()}, "Both agents and a graph"),
        ({"agents": [SHADOWS, SHADOWS]}, "Two agents"),
        ({"agents": SHADOWS}, "`agents` must be a list"),
        ({"roles": {"ShadowReader": "noop"}}, "There is no role 'ShadowReader'"),
        (
            {"graph": annotate_graph()},
            r"The graph was made for the schedule `paper`, and the run has the schedule `packed`. "
            r"Give `schedule='paper'`",
        ),
        ({"graph": packed_graph(), "schedule": "paper"}, "made for the schedule `packed`, and the run has"),
        ({"nodes": {"scan": packed_graph}, "schedule": "single"}, "has no nodes to replace"),
    ],
    ids=lambda value: None if isinstance(value, str) else "-".join(value),
)
def test_what_cannot_work_is_refused_before_the_first_call(
    given: dict[str, Any], words: str, tmp_path: Path
) -> None:
    calls: list[uncanny.CallRecord] = []
    with pytest.raises(UsageError, match=words):
        uncanny.annotate(PHOTOS, model="observer/any", out=tmp_path / "run", on_call=calls.append, **given)
    assert not calls
    assert not (tmp_path / "run" / "annotations.jsonl").exists()


async def unfilled(_state: ScanState, image: Context) -> Sighting:
    step = ListStep("SceneScanner", 1, "scan", text="Look for $what.", form=FAULTS)
    return {"findings": as_findings("SceneScanner", await image.items(step), image)}


async def filled(_state: ScanState, image: Context) -> Sighting:
    step = ListStep("SceneScanner", 1, "scan", text="Look for $what.", form=FAULTS)
    return {"findings": as_findings("SceneScanner", await image.items(step, what="shadows"), image)}


@pytest.mark.slow
def test_a_prompt_that_cannot_be_filled_in_ends_the_run_and_is_raised(tmp_path: Path) -> None:
    words = r"The prompt 'scan' of the schedule `packed` has variables that were not filled in: \$what\. Pass"
    photos = tmp_path / "photos"
    photos.mkdir()
    for number in range(30):
        shutil.copy(PHOTOS[0], photos / f"{number:02}{PHOTOS[0].suffix}")
        (photos / f"{number:02}{PHOTOS[0].suffix}").open("ab").write(bytes([number]))
    out = tmp_path / "run"
    with pytest.raises(ExtensionError, match=words):
        uncanny.annotate(photos, model="observer/any", out=out, nodes={"scan": unfilled}, concurrency=1)
    run = uncanny.AnnotateRun(out)
    assert run.summary.state == "interrupted"
    assert not [record.image for record in run.annotations]
    assert run.summary.calls is not None
    assert run.summary.calls < 30
    with pytest.raises(ExtensionError, match=words):
        uncanny.annotate_image(PHOTOS[0], model="observer/any", nodes={"scan": unfilled})
    done = uncanny.annotate(photos, model="observer/any", out=tmp_path / "b", nodes={"scan": filled})
    assert done.summary.state == "finished"
    assert {record.status for record in done.annotations} == {"ok"}


def test_comparisons_name_agents_of_ones_own_by_the_hash_of_their_prompt(tmp_path: Path) -> None:
    for name, agents in (("a", [SHADOWS]), ("b", [])):
        uncanny.annotate(PHOTOS[:2], model="observer/any", out=tmp_path / name, agents=agents)
    compared = uncanny.compare(tmp_path / "a", tmp_path / "b", resamples=0).comparisons[0]
    (mismatch,) = compared.mismatches
    digest = sha256(str(SHADOWS.prompt).encode()).hexdigest()[:8]
    assert "node ShadowReader" in mismatch.what
    assert {value for values in mismatch.values.values() for value in values} == {
        f"image, ShadowReader@{digest}",
        "not set",
    }


def test_a_run_with_agents_of_ones_own_resumes_with_them_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    uncanny.annotate(PHOTOS[:1], model="observer/any", out=out, agents=[SHADOWS])
    with pytest.raises(RunMismatchError, match="graph"):
        uncanny.annotate(PHOTOS[:1], model="observer/any", out=out)
