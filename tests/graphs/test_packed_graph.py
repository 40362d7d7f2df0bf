"""The packed schedule: calls, batches, and what becomes of every finding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.packed_specialists import PackedSpecialists, Rows, block, keep_all, write_all
from tests.agents.specialists import listed
from tests.client.scripted import Line, ScriptedProvider, guarded, text_response
from tests.growth import check_linear
from uncanny.agents.anomaly_integrator import MOST_PARTS, crowded_places
from uncanny.agents.object_perceiver import merge_located
from uncanny.agents.state import BatchFinding, PackedState
from uncanny.agents.steps import SCHEDULES, ScheduleName
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, RequestRejectedError, UsageError
from uncanny.graphs.packed import packed_graph, schedule_graph
from uncanny.models.anthropic import messages_body
from uncanny.models.base import ModelRequest, ModelResponse
from uncanny.prompts import prompt_set
from uncanny.schema import SceneObject

TWELVE = [f"thing {number}" for number in range(1, 13)]


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


async def test_more_findings_than_one_list_accounts_for_stay_candidates() -> None:
    faults = {name: [f"{name} odd {number}" for number in range(260)] for name in ("cup", "table")}
    specialists = PackedSpecialists(["cup", "table"], faults)
    context = specialists.context(batch_objects=1)
    state = await packed_graph().ainvoke({"image": "a.png"}, context=context)
    assert dict(context.left_out) == {"findings": 20}
    assert [each.number for each in state["candidates"]] == list(range(1, 521))
    assert {each.fate for each in state["candidates"][:500]} == {"kept"}
    assert {(each.fate, each.anomaly) for each in state["candidates"][500:]} == {("left_out", None)}
    assert (len(state["anomalies"]), state["errors"]) == (500, [])


def told(state: PackedState) -> list[tuple[str, str, int | None]]:
    return [(each.phenomenon, each.fate, each.anomaly) for each in state["candidates"]]


async def test_findings_are_numbered_in_order_of_batches_and_then_of_scans() -> None:
    specialists = PackedSpecialists(
        TWELVE, {"thing 7": ["b"], "thing 1": ["a"]}, {"thing 1": ["c"]}, scene=["d"]
    )
    state = await specialists.run()
    assert [(each.number, each.phenomenon, each.found_by) for each in state["candidates"]] == [
        (1, "a", "AttributeAnalyzer"),
        (2, "c", "RelationReasoner"),
        (3, "b", "AttributeAnalyzer"),
        (4, "d", "SceneScanner"),
    ]
    assert [each.found_by for each in state["anomalies"]] == [
        ("AttributeAnalyzer",),
        ("RelationReasoner",),
        ("AttributeAnalyzer",),
        ("SceneScanner",),
    ]
    assert [each.objects for each in state["anomalies"]] == [
        ("thing 1",),
        ("thing 1",),
        ("thing 7",),
        ("scene",),
    ]


async def test_the_integrator_merges_corrects_and_drops_with_a_reason() -> None:
    def judge(_rows: Rows) -> list[dict[str, Any]]:
        whole = {"phenomenon": "both", "reasoning": "r"}
        return [
            {"ids": [1, 3], "why": "one fault", "decision": "correct", **whole},
            {"ids": [2], "why": "not there", "decision": "drop", "phenomenon": "", "reasoning": ""},
        ]

    specialists = PackedSpecialists(["cup"], {"cup": ["a", "b"]}, {"cup": ["c"]}, judge=judge)
    state = await specialists.run()
    assert told(state) == [("a", "corrected", 0), ("b", "dropped", None), ("c", "merged", 0)]
    assert [each.why for each in state["candidates"]] == ["one fault", "not there", "one fault"]
    (anomaly,) = state["anomalies"]
    assert (anomaly.phenomenon, anomaly.severity, anomaly.kind) == ("both", 10, "count")
    assert anomaly.found_by == ("AttributeAnalyzer", "RelationReasoner")
    (request,) = specialists.requests("AnomalyFormatter")
    assert request.first_image() is None


async def test_where_all_are_dropped_nothing_is_written() -> None:
    def judge(rows: Rows) -> list[dict[str, Any]]:
        return [{"ids": [row["id"] for row in rows], "why": "no", "decision": "drop"}]

    specialists = PackedSpecialists(["cup"], {"cup": ["a", "b"]}, judge=judge)
    state = await specialists.run()
    assert told(state) == [("a", "dropped", None), ("b", "dropped", None)]
    assert state["anomalies"] == []
    assert not specialists.requests("AnomalyFormatter")


async def test_a_missing_number_is_asked_for_by_name_and_then_kept_as_it_stands() -> None:
    specialists = PackedSpecialists(["cup"], {"cup": ["a", "b", "c"]}, judge=lambda rows: keep_all(rows[:1]))
    state = await specialists.run()
    requests = specialists.requests("AnomalyIntegrator")
    assert len(requests) == 3
    assert "these numbers stand in no entry: 2, 3" in str(requests[1].messages[-1].parts[0])
    assert told(state) == [("a", "kept", 0), ("b", "unchecked", 1), ("c", "unchecked", 2)]
    assert state["errors"] == []


async def test_where_the_integrator_fails_all_stand_and_the_failure_is_recorded() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        return RequestRejectedError("no") if request.agent == "AnomalyIntegrator" else None

    state = await PackedSpecialists(["cup"], {"cup": ["a", "b"]}, override=refuse).run()
    assert told(state) == [("a", "unchecked", 0), ("b", "unchecked", 1)]
    assert [(each.agent, each.step, each.kind) for each in state["errors"]] == [
        ("AnomalyIntegrator", 1, "rejected")
    ]


async def test_a_fault_without_a_text_is_an_error_and_no_severity_is_made_up() -> None:
    specialists = PackedSpecialists(["cup"], {"cup": ["a", "b"]}, write=lambda rows: write_all(rows[1:]))
    state = await specialists.run()
    assert len(specialists.requests("AnomalyFormatter")) == 3
    assert [each.phenomenon for each in state["anomalies"]] == ["b"]
    assert told(state) == [("a", "kept", None), ("b", "kept", 0)]
    (error,) = state["errors"]
    assert (error.agent, error.kind) == ("AnomalyFormatter", "unparseable")
    assert "these numbers stand in no entry: 1" in error.message


async def test_a_spoilt_entry_beside_a_whole_account_is_no_loss() -> None:
    specialists = PackedSpecialists(
        ["cup"], {"cup": ["a", "b"]}, write=lambda rows: [*write_all(rows), {"ids": [1], "name": ""}]
    )
    state = await specialists.run()
    assert [each.phenomenon for each in state["anomalies"]] == ["a", "b"]
    assert state["errors"] == []


async def test_without_any_text_the_image_failed_and_its_findings_are_kept() -> None:
    def hang_up(request: ModelRequest) -> Line | None:
        return text_response("No.") if request.agent == "AnomalyFormatter" else None

    state = await PackedSpecialists(["cup"], {"cup": ["a"]}, override=hang_up).run()
    assert state["failure"] is not None
    assert state["failure"].agent == "AnomalyFormatter"
    assert told(state) == [("a", "kept", None)]


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
    assert told(spoiled) == told(whole) == [("a", "kept", 0), ("b", "kept", 1), ("c", "kept", 2)]


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


async def test_an_integrator_of_ones_own_need_not_give_candidates() -> None:
    async def some(_state: PackedState, _image: object) -> PackedState:
        return {"faults": [{"numbers": (1,), "phenomenon": "p", "reasoning": "r", "box": None}]}

    state = await PackedSpecialists(["cup"], {"cup": ["a"]}).run({"integrate": some})
    assert [(each.phenomenon, each.found_by) for each in state["anomalies"]] == [("p", None)]
    assert state["candidates"] == []


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


def repeating(size: int) -> list[BatchFinding]:
    """A place of its own for each of `size` findings."""
    return [
        {"found_by": "AB"[n % 2], "objects": ("cup",), "phenomenon": "p", "reasoning": "r", "box": box}
        for n in range(size)
        for box in [(n // 2, 0, n // 2 + 5, 5)]
    ]


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


faults = st.lists(st.sampled_from("abcdefgh"), max_size=3)
ids = st.lists(st.integers(0, 20), min_size=1, max_size=4)
judged = st.lists(st.tuples(ids, st.sampled_from(["keep", "correct", "drop", "?"])), max_size=10)


@settings(max_examples=40)
@given(
    st.lists(faults, min_size=1, max_size=8),
    st.lists(faults, min_size=1, max_size=8),
    faults,
    judged,
    st.sampled_from([0, 1, 2]),
)
async def test_every_number_ends_kept_merged_or_dropped_with_a_reason(
    attributes: list[list[str]],
    relations: list[list[str]],
    scene: list[str],
    judgements: list[tuple[list[int], str]],
    unwritten: int,
) -> None:
    def judge(_rows: Rows) -> list[dict[str, Any]]:
        return [
            {"ids": numbers, "why": "w", "decision": decision, "phenomenon": "p", "reasoning": "r"}
            for numbers, decision in judgements
        ]

    names = [f"thing {number}" for number in range(8)]
    specialists = PackedSpecialists(
        names,
        dict(zip(names, attributes, strict=False)),
        dict(zip(names, relations, strict=False)),
        scene,
        judge=judge,
        write=lambda rows: write_all(rows[unwritten:]),
    )
    state = await specialists.run()
    # Equal findings about one object are one; whatever was seen has a number.
    seen = [*(set(each) for each in attributes), *(set(each) for each in relations), set(scene)]
    candidates = state.get("candidates", [])
    assert [each.number for each in candidates] == list(range(1, sum(map(len, seen)) + 1))
    anomalies = state.get("anomalies", [])
    for each in candidates:
        if each.fate == "dropped":
            assert (each.anomaly, each.why) == (None, "w")
        elif each.anomaly is None:
            assert state.get("failure") or state["errors"], "a fault without a text is an error"
        else:
            assert each.found_by in (anomalies[each.anomaly].found_by or ())
    assert {each.anomaly for each in candidates} - {None} == set(range(len(anomalies)))


async def test_a_judgement_without_texts_keeps_those_of_its_first_finding() -> None:
    def judge(_rows: Rows) -> list[dict[str, Any]]:
        return [{"ids": [2, 1], "why": "seen", "decision": "keep", "phenomenon": "", "reasoning": ""}]

    state = await PackedSpecialists(["cup"], {"cup": ["a", "b"]}, judge=judge).run()
    assert [each.phenomenon for each in state["anomalies"]] == ["b"]


async def test_an_account_that_a_failed_call_left_incomplete_is_asked_for_again() -> None:
    answers = iter([listed("entries", *keep_all([{"id": 1, "phenomenon": "a", "reasoning": "x"}]))])

    def fail(request: ModelRequest) -> Line | None:
        if request.agent != "AnomalyIntegrator":
            return None
        return next(answers, RequestRejectedError("no"))

    state = await PackedSpecialists(["cup"], {"cup": ["a", "b"]}, override=fail).run()
    assert told(state) == [("a", "kept", 0), ("b", "unchecked", 1)]
    assert [(each.agent, each.kind) for each in state["errors"]] == [("AnomalyIntegrator", "rejected")]


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
