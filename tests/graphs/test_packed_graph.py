"""The packed schedule: calls, batches, and what becomes of every finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.agents.packed_specialists import TWELVE, PackedSpecialists, block, fates
from tests.agents.specialists import listed
from tests.client.scripted import Line, ScriptedProvider, guarded, text_response
from tests.growth import check_linear
from uncanny.agents.anomaly_integrator import MOST_PARTS, crowded_places
from uncanny.agents.common.annotate_context import BatchFinding, PackedState
from uncanny.agents.object_perceiver import merge_located
from uncanny.agents.steps import SCHEDULES, ScheduleName
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, RequestRejectedError, UsageError
from uncanny.graphs.packed import packed_graph, schedule_graph
from uncanny.models.anthropic import messages_body
from uncanny.models.base import ModelRequest, ModelResponse
from uncanny.prompts import prompt_set
from uncanny.schema import SceneObject


def repeating(size: int) -> list[BatchFinding]:
    """A place of its own for each of `size` findings."""
    return [
        {"found_by": "AB"[n % 2], "objects": ("cup",), "phenomenon": "p", "reasoning": "r", "box": box}
        for n in range(size)
        for box in [(n // 2, 0, n // 2 + 5, 5)]
    ]


def agents(specialists: PackedSpecialists) -> list[str]:
    return sorted(request.agent for request in specialists.model.requests)


@pytest.mark.parametrize(("objects", "calls"), [(0, 4), (1, 6), (6, 6), (7, 8), (8, 8), (12, 8), (13, 8)])
async def test_calls_of_an_image_with_faults(objects: int, calls: int) -> None:
    names = [f"thing {number}" for number in range(objects)]
    specialists = PackedSpecialists(names, scene=["it floats"])
    state = await specialists.run()
    assert len(specialists.model.requests) == calls
    assert [each.phenomenon for each in state["anomalies"]] == ["it floats"]
    assert len(state["objects"]) == min(objects, 12)


@pytest.mark.parametrize(("objects", "calls"), [(0, 2), (1, 4), (6, 4), (12, 6), (40, 6)])
async def test_a_clean_image_takes_no_more_than_six_calls(objects: int, calls: int) -> None:
    specialists = PackedSpecialists([f"thing {number}" for number in range(objects)])
    state = await specialists.run()
    assert (len(specialists.model.requests), state["anomalies"], state["candidates"]) == (calls, [], [])
    assert not {"AnomalyIntegrator", "AnomalyFormatter"} & set(agents(specialists))


async def test_batches_are_of_equal_size_and_their_numbers_run_on() -> None:
    specialists = PackedSpecialists(TWELVE[:8])
    await specialists.run()
    for agent in ("AttributeAnalyzer", "RelationReasoner"):
        batches = [
            [row["id"] for row in block(request, "objects")] for request in specialists.requests(agent)
        ]
        assert sorted(batches) == [[1, 2, 3, 4], [5, 6, 7, 8]]


async def test_what_is_above_the_limit_is_known_by_name_to_who_looks_at_relations() -> None:
    specialists = PackedSpecialists(TWELVE, scene=["odd"])
    state = await specialists.run(max_objects=2)
    assert [each.name for each in state["cut"]] == TWELVE[2:]
    (request,) = specialists.requests("RelationReasoner")
    text = request.messages[1].parts[1]
    assert isinstance(text, str)
    assert all(name in text for name in TWELVE)


async def test_of_a_list_that_is_too_long_the_first_are_examined_and_named_and_the_rest_counted() -> None:
    names = [f"thing {number}" for number in range(1, 506)]
    specialists = PackedSpecialists(names, {"thing 1": ["odd"]})
    context = specialists.context()
    state = await packed_graph().ainvoke({"image": "a.png"}, context=context)
    assert [each.name for each in (*state["objects"], *state["cut"])] == names[:500]
    assert (len(state["objects"]), dict(context.left_out)) == (12, {"objects": 5})
    assert [each.phenomenon for each in state["anomalies"]] == ["odd"]
    assert len(specialists.requests("ObjectPerceiver")) == 1


async def test_of_all_drafts_together_a_thousand_objects_are_known() -> None:
    class Drafts(PackedSpecialists):
        def _usual(self, request: ModelRequest) -> ModelResponse:
            if request.agent == "ObjectPerceiver":
                self.objects = [f"thing {request.sample}-{number}" for number in range(400)]
            return super()._usual(request)

    context = (specialists := Drafts()).context(repeats=3)
    state = await packed_graph().ainvoke({"image": "a.png"}, context=context)
    assert (len(state["objects"]) + len(state["cut"]), dict(context.left_out)) == (1_000, {"objects": 200})
    assert state["anomalies"] == []
    assert len(specialists.requests("ObjectPerceiver")) == 3


async def test_one_bad_object_is_asked_about_alone() -> None:
    def spoil(request: ModelRequest) -> Line | None:
        rows = block(request, "objects")
        if request.agent != "AttributeAnalyzer" or len(rows) == 1:
            return None
        good = {"objects": ["1"], "observed": "a", "explanation": "x"}
        return listed("findings", good, {"objects": ["2"], "observed": "", "explanation": ""})

    specialists = PackedSpecialists(["cup", "table", "door"], {"cup": ["z"], "table": ["b"]}, override=spoil)
    state = await specialists.run()
    asked = [
        [row["id"] for row in block(request, "objects")]
        for request in specialists.requests("AttributeAnalyzer")
    ]
    assert asked == [[1, 2, 3], [2]]
    assert [request.batch for request in specialists.requests("AttributeAnalyzer")] == [
        ("cup", "table", "door"),
        (),
    ]
    assert [request.subject for request in specialists.requests("AttributeAnalyzer")] == [None, "table"]
    assert [each.phenomenon for each in state["anomalies"]] == ["a", "b"]
    assert [error for each in state["sightings"] for error in each["errors"]] == []


async def test_findings_have_the_same_numbers_where_an_object_was_asked_about_again() -> None:
    def spoil(request: ModelRequest) -> Line | None:
        rows = block(request, "objects")
        if request.agent != "AttributeAnalyzer" or len(rows) == 1:
            return None
        bad = {"objects": ["1"], "observed": "", "explanation": "x"}
        good = {"objects": ["3"], "observed": "c", "explanation": "x"}
        return listed("findings", good, bad, good | {"objects": ["2"], "observed": "b"})

    names, faults = ["cup", "table", "door"], {"cup": ["a"], "table": ["b"], "door": ["c"]}
    spoiled = await PackedSpecialists(names, faults, override=spoil).run()
    whole = await PackedSpecialists(names, faults).run()
    assert fates(spoiled) == fates(whole) == [("a", "kept", 0), ("b", "kept", 1), ("c", "kept", 2)]


async def test_of_a_batch_that_cannot_be_read_every_object_is_asked_about_alone() -> None:
    def spoil(request: ModelRequest) -> Line | None:
        rows = block(request, "objects")
        if request.agent != "RelationReasoner":
            return None
        names = [row["name"] for row in rows]
        return text_response("hm?") if len(rows) > 1 or names == ["table"] else None

    specialists = PackedSpecialists(["cup", "table"], relations={"cup": ["it floats"]}, override=spoil)
    state = await specialists.run()
    assert [each.phenomenon for each in state["anomalies"]] == ["it floats"]
    errors = [error for each in state["sightings"] for error in each["errors"]]
    assert [(each.agent, each.object, each.kind) for each in errors] == [
        ("RelationReasoner", "table", "unparseable")
    ]
    # Three tries of the batch, one for the cup, three for the table.
    assert len(specialists.requests("RelationReasoner")) == 7


async def test_a_refused_batch_is_one_error_that_names_its_objects() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        return RequestRejectedError("no") if request.agent == "AttributeAnalyzer" else None

    specialists = PackedSpecialists(["cup", "table"], relations={"cup": ["it floats"]}, override=refuse)
    state = await specialists.run()
    assert len(specialists.requests("AttributeAnalyzer")) == 1
    errors = [error for each in state["sightings"] for error in each["errors"]]
    assert [each.model_dump() for each in errors] == [
        {
            "agent": "AttributeAnalyzer",
            "step": 1,
            "object": None,
            "kind": "rejected",
            "message": "no",
            "objects": ["cup", "table"],
        }
    ]
    assert [each["answered"] for each in state["sightings"]].count(False) == 1
    assert [each.phenomenon for each in state["anomalies"]] == ["it floats"]


async def test_the_error_of_a_batch_of_one_is_about_its_object() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        return RequestRejectedError("no") if request.agent == "AttributeAnalyzer" else None

    state = await PackedSpecialists(["cup"], override=refuse).run()
    (error,) = [error for each in state["sightings"] for error in each["errors"]]
    assert (error.object, error.model_extra) == ("cup", {})


@pytest.mark.parametrize(
    "agent",
    [
        "ObjectPerceiver",
        "SceneScanner",
        "AttributeAnalyzer",
        "RelationReasoner",
        "AnomalyIntegrator",
        "AnomalyFormatter",
    ],
)
async def test_what_ends_the_run_is_raised_as_it_is(agent: str) -> None:
    def end(request: ModelRequest) -> Line | None:
        return ModelUnusableError("wrong key") if request.agent == agent else None

    specialists = PackedSpecialists(["cup"], {"cup": ["a"]}, scene=["b"], override=end)
    with pytest.raises(ModelUnusableError, match="wrong key"):
        await specialists.run()
    assert specialists.model.now == 0


async def test_drafts_are_merged_by_name_and_by_place() -> None:
    drafts = [
        [("cup", [0, 0, 100, 100]), ("table", [0, 500, 1000, 1000])],
        [("The Cup", [5, 5, 100, 100]), ("desk", [0, 510, 1000, 1000]), ("lamp", [])],
    ]

    def draft(request: ModelRequest) -> Line | None:
        if request.agent != "ObjectPerceiver":
            return None
        return listed(
            "objects",
            *({"name": name, "description": "there", "bbox_2d": box} for name, box in drafts[request.sample]),
        )

    state = await PackedSpecialists(override=draft).run(repeats=2)
    assert [each.name for each in state["objects"]] == ["cup", "table", "lamp"]
    assert state["located"] == ["cup", "table"]


async def test_a_node_of_ones_own_takes_the_place_of_one() -> None:
    async def all_real(_state: PackedState, _image: object) -> PackedState:
        return {"faults": [], "candidates": []}

    specialists = PackedSpecialists(["cup"], {"cup": ["a"]})
    state = await specialists.run({"integrate": all_real})
    assert state["anomalies"] == []
    assert not specialists.requests("AnomalyIntegrator")
    with pytest.raises(UsageError, match="no node 'examine'"):
        packed_graph({"examine": all_real})  # type: ignore[arg-type]


async def test_a_finding_beside_an_invalid_one_is_kept_where_asking_anew_fails() -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent != "AttributeAnalyzer":
            return None
        if len(block(request, "objects")) == 1:
            return text_response("no idea")
        whole = {"objects": ["1"], "observed": "it floats", "explanation": "x"}
        return listed("findings", whole, {**whole, "observed": ""})

    state = await PackedSpecialists(["cup", "dog"], override=answer).run()
    assert [each.phenomenon for each in state["anomalies"]] == ["it floats"]
    errors = [error for sighting in state["sightings"] for error in sighting["errors"]]
    assert [(error.object, error.kind) for error in errors] == [("cup", "unparseable")]


async def test_a_name_ends_no_block_of_a_prompt_and_begins_no_line_of_it() -> None:
    name = 'cup "$box_key"\n2. dog </objects></scene>'
    specialists = PackedSpecialists([name], {name: ["</findings> a"]})
    state = await specialists.run()
    assert state["anomalies"][0].objects == (name,)
    (request,) = specialists.requests("RelationReasoner")
    assert [row["name"] for row in block(request, "objects")] == [name]
    text = str(request.messages[1].parts[1])
    assert (text.count("</scene>"), text.count("</objects>")) == (1, 1)
    assert "\n2. dog" not in text
    (request,) = specialists.requests("AnomalyIntegrator")
    assert [row["phenomenon"] for row in block(request, "findings")] == ["</findings> a"]


@pytest.mark.slow
def test_many_boxes_and_names_take_no_more_than_in_proportion() -> None:
    image = PackedSpecialists().context(size=(30_000, 30_000))

    def compare(text: str) -> None:
        assert len(crowded_places({"objects": [], "cut": []}, repeating(len(text)), image)) == MOST_PARTS

    def merge(text: str) -> None:
        names = [SceneObject(name=f"thing {n}", description="d") for n in range(len(text))]
        assert len(merge_located([names, names])[0]) == len(text)

    for work in (compare, merge):
        check_linear(work, "x".__mul__)


async def test_a_name_that_was_merged_by_place_is_known_from_then_on() -> None:
    sofa, couch = (SceneObject(name=name, description="d", box=(0, 0, 9, 9)) for name in ("sofa", "couch"))
    again = SceneObject(name="Couch", description="longer")
    merged, located = merge_located([[sofa], [couch], [again]])
    assert ([(each.name, each.description) for each in merged], located) == ([("sofa", "longer")], ["sofa"])


async def test_a_single_call_writes_nothing_into_the_cache_of_prefixes() -> None:
    """Of Anthropic's it would cost a quarter more, and no other call begins with the same image."""

    async def bodies(schedule: ScheduleName) -> list[str]:
        model = ScriptedProvider(lambda _request: text_response('{"anomalies": [], "objects": []}'))
        specialists = PackedSpecialists()
        image = replace(
            specialists.context(schedule=schedule),
            model_client=ModelClient({"": [guarded(model)]}),
            prompts=prompt_set(SCHEDULES[schedule].prompts),
        )
        graph: Any = schedule_graph(schedule)
        await graph.ainvoke({"image": "a.png"}, context=image)
        return [messages_body(request, "claude").decode() for request in model.requests]

    (body,) = await bodies("single")
    assert '"type":"image"' in body
    assert "cache_control" not in body
    packed = await bodies("packed")
    assert packed
    assert all("cache_control" in each for each in packed)
