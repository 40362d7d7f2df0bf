"""The packed schedule: what becomes of every finding, kept, merged, or dropped with a reason."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.packed_specialists import TWELVE, PackedSpecialists, Rows, fates, keep_all, write_all
from tests.agents.specialists import listed
from tests.client.scripted import Line, text_response
from uncanny.agents.common.annotate_context import PackedState
from uncanny.errors import RequestRejectedError
from uncanny.graphs.packed import packed_graph
from uncanny.models.base import ModelRequest

faults = st.lists(st.sampled_from("abcdefgh"), max_size=3)

ids = st.lists(st.integers(0, 20), min_size=1, max_size=4)
judged = st.lists(st.tuples(ids, st.sampled_from(["keep", "correct", "drop", "?"])), max_size=10)


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
    assert fates(state) == [("a", "corrected", 0), ("b", "dropped", None), ("c", "merged", 0)]
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
    assert fates(state) == [("a", "dropped", None), ("b", "dropped", None)]
    assert state["anomalies"] == []
    assert not specialists.requests("AnomalyFormatter")


async def test_a_missing_number_is_asked_for_by_name_and_then_kept_as_it_stands() -> None:
    specialists = PackedSpecialists(["cup"], {"cup": ["a", "b", "c"]}, judge=lambda rows: keep_all(rows[:1]))
    state = await specialists.run()
    requests = specialists.requests("AnomalyIntegrator")
    assert len(requests) == 3
    assert "these numbers stand in no entry: 2, 3" in str(requests[1].messages[-1].parts[0])
    assert fates(state) == [("a", "kept", 0), ("b", "unchecked", 1), ("c", "unchecked", 2)]
    assert state["errors"] == []


async def test_where_the_integrator_fails_all_stand_and_the_failure_is_recorded() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        return RequestRejectedError("no") if request.agent == "AnomalyIntegrator" else None

    state = await PackedSpecialists(["cup"], {"cup": ["a", "b"]}, override=refuse).run()
    assert fates(state) == [("a", "unchecked", 0), ("b", "unchecked", 1)]
    assert [(each.agent, each.step, each.kind) for each in state["errors"]] == [
        ("AnomalyIntegrator", 1, "rejected")
    ]


async def test_a_fault_without_a_text_is_an_error_and_no_severity_is_made_up() -> None:
    specialists = PackedSpecialists(["cup"], {"cup": ["a", "b"]}, write=lambda rows: write_all(rows[1:]))
    state = await specialists.run()
    assert len(specialists.requests("AnomalyFormatter")) == 3
    assert [each.phenomenon for each in state["anomalies"]] == ["b"]
    assert fates(state) == [("a", "kept", None), ("b", "kept", 0)]
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
    assert fates(state) == [("a", "kept", None)]


async def test_an_integrator_of_ones_own_need_not_give_candidates() -> None:
    async def some(_state: PackedState, _image: object) -> PackedState:
        return {"faults": [{"numbers": (1,), "phenomenon": "p", "reasoning": "r", "box": None}]}

    state = await PackedSpecialists(["cup"], {"cup": ["a"]}).run({"integrate": some})
    assert [(each.phenomenon, each.found_by) for each in state["anomalies"]] == [("p", None)]
    assert state["candidates"] == []


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
    assert fates(state) == [("a", "kept", 0), ("b", "unchecked", 1)]
    assert [(each.agent, each.kind) for each in state["errors"]] == [("AnomalyIntegrator", "rejected")]
