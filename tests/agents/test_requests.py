"""What each agent puts to the model: the picture first, the same bytes first, and nothing without need."""

from __future__ import annotations

import orjson
import pytest

from tests.agents.specialists import Specialists, listed, scene_object, user_parts
from tests.client.scripted import picture, texts
from uncanny.agents.anomaly_formatter import format_anomalies
from uncanny.agents.anomaly_integrator import integrate
from uncanny.agents.attribute_analyzer import analyze_attributes
from uncanny.agents.common.annotate_context import AnnotateState, ObjectState
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.object_perceiver import perceive
from uncanny.agents.relation_reasoner import reason_relations
from uncanny.agents.scene_scanner import scan_scene
from uncanny.agents.steps import PERCEIVE, ROLES
from uncanny.answers.forms import AttributeFinding, Finding, RelationFinding
from uncanny.graphs.annotate import annotate_graph
from uncanny.models.base import ModelRequest, Sampling, SentImage

CUP, TABLE = scene_object("cup", "It is blue."), scene_object("table", "It has $5 legs.")
CRACKED = AttributeFinding(name="crack", observed="a crack <of light>", explanation="x")
FLOATS = RelationFinding(objects=("cup", "table"), observed="the cup floats", reasoning="x")
FINDING = Finding(object="cup", phenomenon="it floats", explanation="x")
IMAGE = picture(b"one")


def found(*findings: Finding) -> AnnotateState:
    return {"examined": [{"order": 0, "findings": list(findings), "error": None}]}


async def whole_walk() -> Specialists:
    """Every agent's work on one image, once."""
    specialists = Specialists("cup", "table")
    image = specialists.context(AnnotateConfig(schedule="paper", scene_scans=2), IMAGE)
    cup: ObjectState = {"subject": CUP, "objects": [CUP, TABLE]}
    await perceive({}, image)
    await analyze_attributes(cup, image)
    await reason_relations({**cup, "attributes": [CRACKED]}, image)
    await integrate({**cup, "attributes": [CRACKED], "relations": [FLOATS]}, image)
    await scan_scene({"order": 0}, image)
    await scan_scene({"order": 1}, image)
    await format_anomalies(found(FINDING), image)
    return specialists


async def test_every_agent_there_is_asks() -> None:
    specialists = await whole_walk()
    assert {request.agent for request in specialists.model.requests} == set(ROLES.values())
    steps = [(request.agent, request.step) for request in specialists.model.requests]
    assert steps == [
        *3 * [("ObjectPerceiver", 1)],
        ("AttributeAnalyzer", 1),
        ("AttributeAnalyzer", 2),
        ("RelationReasoner", 1),
        ("RelationReasoner", 2),
        ("AnomalyIntegrator", 1),
        ("AnomalyIntegrator", 2),
        *2 * [("SceneScanner", 1)],
        ("AnomalyFormatter", 1),
    ]


def images(request: ModelRequest) -> list[SentImage]:
    return [part for turn in request.messages for part in turn.parts if isinstance(part, SentImage)]


async def test_all_see_the_picture_but_the_integrator() -> None:
    for request in (await whole_walk()).model.requests:
        assert images(request) == ([] if request.agent == "AnomalyIntegrator" else [IMAGE])


async def test_all_who_see_it_begin_with_the_same_system_text_and_the_picture() -> None:
    requests = (await whole_walk()).model.requests
    assert len({request.messages[0] for request in requests}) == 1
    for request in requests:
        system, user = request.messages
        assert (system.role, user.role) == ("system", "user")
        if request.agent != "AnomalyIntegrator":
            assert user.parts[0] is IMAGE
            assert user.shared >= 1
        assert all(isinstance(part, str) for part in user.parts[1:])


async def test_what_counts_as_shared_is_the_same_in_all_requests_of_a_kind() -> None:
    specialists = await whole_walk()
    relations = specialists.requests("RelationReasoner")
    prefixes = [user_parts(request)[: request.messages[1].shared] for request in relations]
    assert len(prefixes[0]) == 2
    assert prefixes[0] == prefixes[1]
    other = Specialists()
    table: ObjectState = {"subject": TABLE, "objects": [CUP, TABLE], "attributes": []}
    await reason_relations(table, other.context(image=IMAGE))
    assert [user_parts(request)[:2] for request in other.model.requests] == prefixes


async def test_drafts_of_the_object_list_are_worded_differently_and_kept_apart() -> None:
    specialists = Specialists("cup")
    await perceive({}, specialists.context(AnnotateConfig(schedule="paper", repeats=PERCEIVE.wordings + 1)))
    drafts = specialists.requests("ObjectPerceiver")
    assert [request.sample for request in drafts] == [0, 1, 2, 3]
    words = [texts(request, "user")[0] for request in drafts]
    assert len(set(words)) == PERCEIVE.wordings
    assert words[0] == words[PERCEIVE.wordings]


async def test_the_drafts_are_merged() -> None:
    specialists = Specialists()
    names = [["The Cat", "mat"], ["cat", "dog"], []]
    specialists.answers["ObjectPerceiver", 1, None] = lambda request: listed(
        "objects", *(scene_object(name).model_dump() for name in names[request.sample])
    )
    state = await perceive({}, specialists.context())
    assert [each.name for each in state["objects"]] == ["The Cat", "mat", "dog"]


def data(request: ModelRequest, tag: str) -> str:
    """What stands in the last block of that name in the user turn."""
    text = texts(request, "user")[0]
    return text[text.rindex(f"<{tag}>") + len(tag) + 2 : text.rindex(f"</{tag}>")]


async def test_the_analyzer_is_given_the_object_and_then_its_own_notes() -> None:
    look, verify = (await whole_walk()).requests("AttributeAnalyzer")
    assert orjson.loads(data(look, "object")) == CUP.model_dump(exclude_none=True)
    assert orjson.loads(data(verify, "object")) == CUP.model_dump(exclude_none=True)
    assert data(verify, "notes") == "Notes on cup."
    assert (look.schema, verify.schema and verify.schema.name) == (None, "attributes")
    assert "table" not in texts(look, "user")[0]


async def test_the_reasoner_is_given_all_objects_and_what_was_found_about_this_one() -> None:
    look, verify = (await whole_walk()).requests("RelationReasoner")
    for request in (look, verify):
        assert orjson.loads(data(request, "objects")) == [
            CUP.model_dump(exclude_none=True),
            TABLE.model_dump(exclude_none=True),
        ]
        assert orjson.loads(data(request, "object")) == CUP.model_dump(exclude_none=True)
        assert orjson.loads(data(request, "attributes")) == [CRACKED.model_dump()]
    assert data(verify, "notes") == "Notes on cup."


async def test_the_integrator_is_given_both_lists_and_then_its_own_text() -> None:
    merge, listing = (await whole_walk()).requests("AnomalyIntegrator")
    assert orjson.loads(data(merge, "attributes")) == [CRACKED.model_dump()]
    assert orjson.loads(data(merge, "relations")) == [FLOATS.model_dump(mode="json")]
    assert data(listing, "notes") == "Notes on cup."


async def test_the_formatter_is_given_all_findings_in_order() -> None:
    specialists = Specialists()
    findings = [FINDING, FINDING.model_copy(update={"object": "table"}), FINDING]
    await format_anomalies(found(*findings), specialists.context())
    (request,) = specialists.model.requests
    assert orjson.loads(data(request, "findings")) == [each.model_dump() for each in findings]


async def test_without_findings_nobody_is_asked() -> None:
    specialists = Specialists("cup")
    image = specialists.context()
    cup: ObjectState = {"subject": CUP, "attributes": [], "relations": []}
    assert await integrate(cup, image) == {"findings": []}
    assert await format_anomalies({}, image) == {"anomalies": []}
    assert specialists.model.requests == []
    await integrate({**cup, "attributes": [CRACKED]}, image)
    await integrate({**cup, "relations": [FLOATS]}, image)
    assert len(specialists.model.requests) == 4


async def test_parameters_are_those_of_the_plan_and_the_formatter_gets_more_room() -> None:
    specialists = Specialists("cup")
    config = AnnotateConfig(
        schedule="paper", temperature=None, top_p=0.5, max_output_tokens=700, formatter_output_tokens=900
    )
    image = specialists.context(config)
    await perceive({}, image)
    await format_anomalies(found(FINDING), image)
    assert {request.sampling for request in specialists.requests("ObjectPerceiver")} == {
        Sampling(None, 0.5, 700)
    }
    assert {request.sampling for request in specialists.requests("AnomalyFormatter")} == {
        Sampling(None, 0.5, 900)
    }


async def test_text_in_answers_cannot_pass_for_a_variable() -> None:
    specialists = Specialists()
    specialists.answers["AttributeAnalyzer", 1, None] = lambda _: listed("objects", "$object ${notes} $$ \\1")
    await analyze_attributes({"subject": scene_object("cup", "$notes")}, specialists.context())
    verify = specialists.requests("AttributeAnalyzer", 2)[0]
    assert "$object ${notes} $$" in data(verify, "notes")
    assert orjson.loads(data(verify, "object"))["description"] == "$notes"


@pytest.mark.parametrize("objects", [0, 1, 8, 12, 40])
async def test_the_plan_foretells_the_number_of_calls(objects: int) -> None:
    specialists = Specialists(*(f"thing {n}" for n in range(objects)))
    config = AnnotateConfig(schedule="paper", repeats=2, scene_scans=1)
    await annotate_graph().ainvoke({"image": "a.png"}, context=specialists.context(config))
    assert len(specialists.model.requests) == config.calls(objects)
