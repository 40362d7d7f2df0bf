"""The form for Studio and the form for bulk runs are one state machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.agents.specialists import Specialists
from tests.agents.specialists import image_context as context_of
from tests.client.scripted import guarded
from uncanny.agents.common.annotate_context import Context
from uncanny.agents.config import AnnotateConfig
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.demo.scenes import Scene, scenes
from uncanny.errors import ImageError, RequestRejectedError, UsageError
from uncanny.graphs import studio
from uncanny.graphs.annotate import annotate_graph
from uncanny.graphs.studio import StudioContext, image_context


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    studio._contexts.clear()
    studio._providers.clear()


def outcome(state: dict[str, Any]) -> dict[str, Any]:
    """All of a state, its branches in order."""
    return {**state, "examined": sorted(state.get("examined", []), key=lambda branch: branch["order"])}


async def in_studio(image: str, **context: Any) -> dict[str, Any]:
    return await studio.paper_graph.ainvoke({"image": image}, context=StudioContext(**context))


async def in_bulk(image: str, before: Context) -> dict[str, Any]:
    context = replace(before, scope=CallScope(image))
    return await annotate_graph().ainvoke({"image": image}, context=context)


@pytest.mark.parametrize("scene", scenes(), ids=[scene.id for scene in scenes()])
async def test_both_forms_agree_on_every_bundled_scene(scene: Scene) -> None:
    image = str(scene.image_path)
    state = await in_studio(image, scene_scans=1)
    bulk = await in_bulk(image, await image_context(image, StudioContext(scene_scans=1), schedule="paper"))
    assert outcome(state) == outcome(bulk)
    assert state["objects"]


FAILURES: list[tuple[str, int, str | None]] = [
    ("ObjectPerceiver", 1, None),
    ("AttributeAnalyzer", 1, "cup"),
    ("RelationReasoner", 2, None),
    ("AnomalyIntegrator", 2, "table"),
    ("SceneScanner", 1, None),
    ("AnomalyFormatter", 1, None),
]


@pytest.mark.parametrize(("agent", "step", "subject"), FAILURES)
async def test_both_forms_fail_alike(agent: str, step: int, subject: str | None) -> None:
    specialists = Specialists("cup", "table", "hand")
    specialists.answers[agent, step, subject] = lambda _: RequestRejectedError("no")
    config = AnnotateConfig(schedule="paper", scene_scans=2, max_objects=2)
    image = specialists.context(config)
    studio._contexts["a.png", StudioContext(), "paper"] = image
    state = await in_studio("a.png")
    other = context_of(ModelClient({"": [guarded(specialists.model)]}), config, image.image)
    assert outcome(state) == outcome(await in_bulk("a.png", other))


async def test_without_a_context_it_uses_the_demo_model() -> None:
    image = str(scenes()[0].image_path)
    state = await studio.paper_graph.ainvoke({"image": image})
    assert state["objects"]
    assert (image, StudioContext(), "paper") in studio._contexts


async def test_only_the_last_few_images_are_kept() -> None:
    images = [str(scene.image_path) for scene in scenes()[: studio.KEPT_IMAGES + 2]]
    for image in images:
        await image_context(image, None)
    assert [image for image, _, _ in studio._contexts] == images[2:]


async def test_a_file_that_is_no_image_and_a_model_that_is_none_are_explained(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="none"):
        await in_studio(str(tmp_path / "none.png"))
    with pytest.raises(UsageError, match="'gpt' does not name a provider"):
        await in_studio(str(scenes()[0].image_path), model="gpt")


def test_every_agent_has_a_node_to_look_at() -> None:
    for name in ("perceive", "attributes", "relations", "integrate", "scan", "format"):
        assert name in studio.graph.get_graph().draw_mermaid()
    drawn = studio.paper_graph.get_graph(xray=True).draw_mermaid()
    for name in ("AttributeAnalyzer", "RelationReasoner", "AnomalyIntegrator", "perceive", "scan", "format"):
        assert name in drawn


def test_the_configuration_of_langgraph_names_these_graphs() -> None:
    config = orjson.loads((Path(__file__).parents[2] / "langgraph.json").read_bytes())
    served = []
    for target in config["graphs"].values():
        module, _, name = target.rpartition(":")
        served.append(getattr(import_module(module), name))
    assert served == [studio.graph, studio.paper_graph]
    # Studio lists them by these.
    assert [each.name for each in served] == [*config["graphs"]]
