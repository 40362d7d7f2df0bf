"""Who is asked for objects and who for faults of the whole image: at once, or apart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.agents.packed_specialists import PackedSpecialists
from tests.client.scripted import Line, ScriptedProvider, guarded, text_response
from uncanny.client.client import ModelClient
from uncanny.models.base import ModelRequest

DRAFTS = [
    [("cup", [0, 0, 100, 100]), ("table", [0, 500, 1000, 1000])],
    [("The Cup", [5, 5, 100, 100]), ("desk", [0, 510, 1000, 1000]), ("lamp", [])],
]


async def test_drafts_are_merged_by_name_and_by_place() -> None:
    def draft(request: ModelRequest) -> Line | None:
        if request.agent != "ObjectPerceiver":
            return None
        assert request.schema is not None
        number = "findings" not in request.schema.lists
        items = [
            {"name": name, "description": "there", "sort": "thing", "bbox_2d": box}
            for name, box in DRAFTS[number]
        ]
        return text_response(str({"findings": [], "inventory": items}).replace("'", '"'))

    state = await PackedSpecialists(override=draft).run(repeats=2)
    assert [(each.name, each.box is None) for each in state["objects"]] == [
        ("cup", False), ("table", False), ("lamp", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("config", "drafts", "looks", "scans"),
    [
        ({}, 0, 1, 0),
        ({"repeats": 3}, 2, 1, 0),
        ({"scene_scans": 3}, 0, 1, 2),
        ({"repeats": 3, "scene_scans": 3}, 2, 1, 2),
        ({"scene_scans": 0}, 1, 0, 0),
        ({"scene_scans": 0, "repeats": 3}, 3, 0, 0),
    ],
)
async def test_drafts_and_scans_beyond_the_first_are_asked_for_apart(
    config: dict[str, Any], drafts: int, looks: int, scans: int
) -> None:
    specialists = PackedSpecialists(["cup"], scene=["odd"])
    state = await specialists.run(**config)
    assert kinds_of(specialists.model) == {"inventory": drafts, "look": looks, "findings": scans}
    assert [each.phenomenon for each in state["candidates"]] == ["odd"] * (looks + scans)
    # Each is a call of its own: repeats are told apart.
    samples = [
        (request.schema.lists, request.sample)
        for request in specialists.model.requests
        if request.agent in ("ObjectPerceiver", "SceneScanner") and request.schema is not None
    ]
    assert len({*samples}) == drafts + looks + scans


def kinds_of(model: ScriptedProvider) -> dict[str, int]:
    """How often objects, faults or both were asked for in the whole image."""
    lists = [
        request.schema.lists
        for request in model.requests
        if request.agent in ("ObjectPerceiver", "SceneScanner") and request.schema is not None
    ]
    return {
        "inventory": lists.count(("inventory",)),
        "look": sum(len(each) == 2 for each in lists),
        "findings": lists.count(("findings",)),
    }


@pytest.mark.parametrize("apart", ["ObjectPerceiver", "SceneScanner"])
@pytest.mark.parametrize("scans", [0, 1, 3])
async def test_perceiver_and_scanner_with_models_of_their_own_are_asked_apart(apart: str, scans: int) -> None:
    specialists = PackedSpecialists(["cup"], scene=["odd"])
    other = ScriptedProvider(specialists.answer, name="script/two")
    specialists.others = {apart: other}
    state = await specialists.run(scene_scans=scans)
    perceiver, scanner = (other, specialists.model)[:: 1 if apart == "ObjectPerceiver" else -1]
    assert kinds_of(perceiver) == {"inventory": 1, "look": 0, "findings": 0}
    assert kinds_of(scanner) == {"inventory": 0, "look": 0, "findings": scans}
    assert [(each.phenomenon, each.found_by) for each in state["candidates"]] == [
        ("odd", "SceneScanner")
    ] * scans


async def test_with_one_model_under_two_roles_both_are_asked_at_once() -> None:
    specialists = PackedSpecialists(["cup"])
    context = specialists.context()
    endpoint = guarded(specialists.model)
    client = ModelClient({"": [endpoint], "ObjectPerceiver": [endpoint], "SceneScanner": [endpoint]})
    await specialists.run(context=replace(context, model_client=client))
    assert kinds_of(specialists.model) == {"inventory": 0, "look": 1, "findings": 0}
