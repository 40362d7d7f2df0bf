"""The packed schedule: what becomes of every finding, kept, merged, or dropped with a reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.agents.packed_specialists import (
    LARGE,
    PackedSpecialists,
    Row,
    Rows,
    block,
    doubt,
    drop,
    errors,
    fates,
    fault,
    keep,
    keep_all,
    write_all,
)
from tests.agents.specialists import listed
from tests.client.scripted import Line, text_response
from uncanny.agents.common.annotate_context import PackedState
from uncanny.errors import RequestRejectedError
from uncanny.graphs.packed import packed_graph
from uncanny.models.base import ModelRequest

THING_ONE = [100, 100, 150, 150]


async def test_more_findings_than_one_list_accounts_for_stay_candidates() -> None:
    faults = {"cup": [f"cup odd {number}" for number in range(260)]}
    specialists = PackedSpecialists(["cup"], faults, scene=[f"scene odd {number}" for number in range(260)])
    context = specialists.context()
    state = await packed_graph().ainvoke({"image": "a.png"}, context=context)
    assert dict(context.left_out) == {"findings": 20}
    assert [each.number for each in state["candidates"]] == list(range(1, 521))
    assert {each.fate for each in state["candidates"][:500]} == {"kept"}
    assert {(each.fate, each.anomaly) for each in state["candidates"][500:]} == {("left_out", None)}
    assert (len(state["anomalies"]), state["errors"]) == (500, [])


async def test_findings_are_numbered_in_order_of_looks_and_then_of_parts() -> None:
    names = [f"thing {number}" for number in range(1, 9)]
    specialists = PackedSpecialists(
        names,
        {"thing 7": ["b"], "thing 1": ["a"]},
        {"thing 8": ["c"]},
        ["d"],
        boxes={"thing 8": LARGE},
        sorts={"thing 8": "reflection"},
    )
    state = await specialists.run(scene_scans=2)
    found = [(each.number, each.phenomenon, each.found_by, each.region) for each in state["candidates"]]
    assert found == [
        (1, "d", "SceneScanner", None),
        (2, "d", "SceneScanner", None),
        (3, "a", "AttributeAnalyzer", 1),
        (4, "c", "RelationReasoner", None),
        (5, "b", "AttributeAnalyzer", 7),
    ]
    by = [("SceneScanner",), ("SceneScanner",), ("AttributeAnalyzer",)]
    assert [each.found_by for each in state["anomalies"]] == [*by, ("RelationReasoner",), by[2]]
    objects = [each.objects for each in state["anomalies"]]
    assert objects == [("scene",), ("scene",), ("thing 1",), ("thing 8",), ("thing 7",)]


async def test_anomalies_are_ordered_by_severity_and_then_by_number() -> None:
    def judge(rows: Rows) -> list[dict[str, Any]]:
        return [keep(row, realism=realism) for row, realism in zip(rows, (30, 5, 30, 0), strict=True)]

    state = await PackedSpecialists(scene=["a", "b", "c", "d"], judge=judge).run()
    assert [(each.phenomenon, each.severity) for each in state["anomalies"]] == [
        ("d", 0), ("b", 5), ("a", 30), ("c", 30),
    ]  # fmt: skip
    assert [each.anomaly for each in state["candidates"]] == [2, 1, 3, 0]


async def test_the_integrator_merges_corrects_and_drops_with_a_reason() -> None:
    def judge(rows: Rows) -> list[dict[str, Any]]:
        whole = {"why": "one fault", "decision": "correct", "phenomenon": "both", "confidence": 70}
        return [keep(rows[0], ids=[1, 3], **whole), drop(2)]

    specialists = PackedSpecialists(["cup"], {"cup": ["c"]}, scene=["a", "b"], judge=judge)
    state = await specialists.run()
    assert fates(state) == [("a", "corrected", 0), ("b", "dropped", None), ("c", "merged", 0)]
    assert [each.why for each in state["candidates"]] == ["one fault", "not there", "one fault"]
    (anomaly,) = state["anomalies"]
    assert (anomaly.phenomenon, anomaly.severity, anomaly.kind) == ("both", 10, "count")
    assert (anomaly.found_by, anomaly.confidence) == (("SceneScanner", "AttributeAnalyzer"), 0.7)
    # Its texts are final: nobody else is asked.
    assert not specialists.requests("AnomalyFormatter")


async def test_the_integrator_may_add_a_fault_that_nobody_named() -> None:
    def judge(rows: Rows) -> list[dict[str, Any]]:
        row: Row = {"id": 0, "phenomenon": "new", "reasoning": "r", "objects": ["cup"]}
        added = keep(row, decision="add", part=1, bbox_2d=[0, 0, 500, 500], confidence=60)
        return [*keep_all(rows), added, {**added, "phenomenon": "newer", "part": 0, "bbox_2d": []}]

    specialists = PackedSpecialists(["cup"], scene=["a"], judge=judge)
    context = specialists.context()
    state = await specialists.run(context=context)
    assert fates(state) == [("a", "kept", 0), ("new", "kept", 1), ("newer", "kept", 2)]
    _, added, newer = state["candidates"]
    assert (added.number, added.found_by, added.confidence, added.region) == (2, "AnomalyIntegrator", 0.6, 1)
    x0, y0, x1, y1 = context.regions[1].box
    assert added.box == state["anomalies"][1].box == (x0, y0, (x0 + x1) // 2, (y0 + y1) // 2)
    assert (newer.number, newer.box, newer.region) == (3, None, None)
    assert state["anomalies"][1].found_by == ("AnomalyIntegrator",)


async def test_where_all_are_dropped_nothing_is_written() -> None:
    specialists = PackedSpecialists(scene=["a", "b"], judge=lambda _rows: [drop(1, 2)])
    state = await specialists.run()
    assert fates(state) == [("a", "dropped", None), ("b", "dropped", None)]
    assert state["anomalies"] == []
    assert not specialists.requests("AnomalyFormatter")


async def test_a_missing_number_is_asked_for_by_name_and_then_kept_as_it_stands() -> None:
    specialists = PackedSpecialists(scene=["a", "b", "c"], judge=lambda rows: keep_all(rows[:1]))
    state = await specialists.run()
    requests = specialists.requests("AnomalyIntegrator")
    assert len(requests) == 3
    assert "these numbers stand in no entry: 2, 3" in str(requests[1].messages[-1].parts[0])
    assert fates(state) == [("a", "kept", 0), ("b", "unchecked", 1), ("c", "unchecked", 2)]
    assert state["errors"] == []
    # Only of the others a text is asked for, and without the picture.
    (request,) = specialists.requests("AnomalyFormatter")
    assert [row["phenomenon"] for row in block(request, "faults")] == ["b", "c"]
    assert request.first_image() is None


async def test_where_the_integrator_fails_all_stand_and_the_failure_is_recorded() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        return RequestRejectedError("no") if request.agent == "AnomalyIntegrator" else None

    state = await PackedSpecialists(scene=["a", "b"], override=refuse).run()
    assert fates(state) == [("a", "unchecked", 0), ("b", "unchecked", 1)]
    assert errors(state) == [("AnomalyIntegrator", None, "rejected")]
    assert [each.confidence for each in state["anomalies"]] == [0.95, 0.95]


async def test_a_server_that_takes_one_image_a_call_is_asked_about_the_whole_alone() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        images = [part for part in request.messages[1].parts if not isinstance(part, str)]
        if request.agent == "AnomalyIntegrator" and len(images) > 1:
            return RequestRejectedError("one image at most")
        return None

    specialists = PackedSpecialists(["cup"], {"cup": ["a"]}, override=refuse)
    state = await specialists.run()
    assert (fates(state), state["errors"]) == ([("a", "kept", 0)], [])
    first, again = specialists.requests("AnomalyIntegrator")
    assert (len(block(first, "parts")), len(block(again, "parts"))) == (1, 0)


async def test_a_fault_without_a_text_is_an_error_and_no_severity_is_made_up() -> None:
    specialists = PackedSpecialists(
        scene=["a", "b"], judge=lambda _rows: [], write=lambda rows: write_all(rows[1:])
    )
    state = await specialists.run()
    assert len(specialists.requests("AnomalyFormatter")) == 3
    assert [each.phenomenon for each in state["anomalies"]] == ["b"]
    assert fates(state) == [("a", "unchecked", None), ("b", "unchecked", 0)]
    (error,) = [each for each in state["errors"] if each.agent == "AnomalyFormatter"]
    assert error.kind == "unparseable"
    assert "these numbers stand in no entry: 1" in error.message


async def test_a_spoilt_entry_beside_a_whole_account_is_no_loss() -> None:
    specialists = PackedSpecialists(
        scene=["a", "b"],
        judge=lambda rows: keep_all(rows[:1]),
        write=lambda rows: [*write_all(rows), {"ids": [1], "name": ""}],
    )
    state = await specialists.run()
    assert [each.phenomenon for each in state["anomalies"]] == ["a", "b"]
    assert state["errors"] == []


async def test_where_only_some_have_texts_and_the_formatter_fails_those_are_the_record() -> None:
    def hang_up(request: ModelRequest) -> Line | None:
        return text_response("No.") if request.agent == "AnomalyFormatter" else None

    specialists = PackedSpecialists(scene=["a", "b"], judge=lambda rows: keep_all(rows[:1]), override=hang_up)
    state = await specialists.run()
    assert state.get("failure") is None
    assert fates(state) == [("a", "kept", 0), ("b", "unchecked", None)]
    assert errors(state) == [("AnomalyFormatter", None, "unparseable")]


async def test_texts_in_another_language_are_written_anew_and_keep_their_severity() -> None:
    def write(rows: Rows) -> list[dict[str, Any]]:
        texts = {"name": "六根手指", "phenomenon": "手有六根手指", "reasoning": "人手有五根手指"}
        return [{"ids": [row["id"]], "realism": 99, "kind": "anatomy", "objects": []} | texts for row in rows]

    specialists = PackedSpecialists(["hand"], scene=["a sixth finger"], write=write)
    english = await specialists.run()
    assert not specialists.requests("AnomalyFormatter")
    chinese = await specialists.run(language="Chinese")
    assert len(specialists.requests("AnomalyFormatter")) == 1
    assert [each.phenomenon for each in chinese["anomalies"]] == ["手有六根手指"]
    assert [each.severity for each in chinese["anomalies"]] == [
        each.severity for each in english["anomalies"]
    ]


async def test_without_any_text_the_image_failed_and_its_findings_are_kept() -> None:
    def hang_up(request: ModelRequest) -> Line | None:
        silent = ("AnomalyIntegrator", "AnomalyFormatter")
        return text_response("No.") if request.agent in silent else None

    state = await PackedSpecialists(scene=["a"], override=hang_up).run()
    assert state["failure"] is not None
    assert state["failure"].agent == "AnomalyFormatter"
    assert fates(state) == [("a", "unchecked", None)]


async def test_an_integrator_of_ones_own_need_not_give_candidates() -> None:
    async def some(_state: PackedState, _image: object) -> PackedState:
        return {"faults": [{"numbers": (1,), "phenomenon": "p", "reasoning": "r", "box": None}]}

    specialists = PackedSpecialists(scene=["a"])
    state = await specialists.run({"integrate": some})
    assert [(each.phenomenon, each.found_by) for each in state["anomalies"]] == [("p", None)]
    assert state["candidates"] == []
    assert len(specialists.requests("AnomalyFormatter")) == 1


@pytest.mark.parametrize("broken", [{"name": ""}, {"realism": None}, {"phenomenon": ""}, {"ids": []}])
async def test_an_entry_without_its_texts_is_asked_for_again(broken: dict[str, Any]) -> None:
    answers = iter([broken])
    specialists = PackedSpecialists(scene=["a"], judge=lambda rows: [keep(rows[0], **next(answers, {}))])
    state = await specialists.run()
    assert len(specialists.requests("AnomalyIntegrator")) == 2
    assert fates(state) == [("a", "kept", 0)]


async def test_an_account_that_a_failed_call_left_incomplete_is_asked_for_again() -> None:
    row: Row = {"id": 1, "phenomenon": "a", "reasoning": "x"}
    answers = iter([listed("entries", *keep_all([row]))])

    def fail(request: ModelRequest) -> Line | None:
        if request.agent != "AnomalyIntegrator":
            return None
        return next(answers, RequestRejectedError("no"))

    state = await PackedSpecialists(scene=["a", "b"], override=fail).run()
    assert fates(state) == [("a", "kept", 0), ("b", "unchecked", 1)]
    assert errors(state) == [("AnomalyIntegrator", None, "rejected")]


async def test_a_closer_look_takes_the_place_of_the_first() -> None:
    seen = doubt("six fingers?", "hand", box=THING_ONE, kind="anatomy")
    specialists = PackedSpecialists(["hand"], scene=[seen], settled={"six fingers?": 85})
    state = await specialists.run()
    (candidate,) = state["candidates"]
    assert (candidate.confidence, candidate.first_confidence, candidate.region) == (0.85, 0.4, 1)
    assert (candidate.found_by, candidate.fate) == ("SceneScanner", "kept")
    # The doubt was asked about with its number, and the integrator is told what is left of it.
    (request,) = specialists.requests("AttributeAnalyzer")
    assert block(request, "parts")[0]["doubts"] == [{"id": 1, "doubt": "six fingers?"}]
    (request,) = specialists.requests("AnomalyIntegrator")
    (row,) = block(request, "findings")
    assert (row["id"], row["part"], row["confidence"]) == (1, 1, 85)


async def test_a_closer_look_that_disproves_a_doubt_drops_it_and_says_why() -> None:
    seen = doubt("six fingers?", "hand", box=THING_ONE)
    specialists = PackedSpecialists(["hand"], scene=[seen], settled={"six fingers?": 0})
    state = await specialists.run()
    (candidate,) = state["candidates"]
    assert (candidate.fate, candidate.why, candidate.anomaly) == ("dropped", "all is in order", None)
    assert (candidate.phenomenon, candidate.confidence, candidate.first_confidence) == (
        "six fingers?",
        0,
        0.4,
    )
    # Nothing is left to decide.
    assert not specialists.requests("AnomalyIntegrator")
    assert state["anomalies"] == []


async def test_a_closer_look_that_does_not_say_how_sure_it_is_confirms_nothing() -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent != "AttributeAnalyzer":
            return None
        return listed("findings", fault("five fingers", part=1, doubt=1, confidence="?"))

    seen = doubt("six fingers?", "hand", box=THING_ONE)
    specialists = PackedSpecialists(["hand"], scene=[seen], override=answer)
    state = await specialists.run()
    (candidate,) = state["candidates"]
    assert (candidate.phenomenon, candidate.confidence) == ("six fingers?", 0.4)
    (row,) = block(specialists.requests("AnomalyIntegrator")[0], "findings")
    assert row["closer"] == "five fingers"


async def test_a_wide_doubt_stands_where_one_of_its_parts_confirms_it() -> None:
    def answer(request: ModelRequest) -> Line | None:
        rows = block(request, "parts")
        if request.agent != "AttributeAnalyzer" or not rows:
            return None
        sure = [95, *[3] * (len(rows) - 1)]
        return listed(
            "findings",
            *(
                fault(f"part {row['part']}", part=row["part"], doubt=1, confidence=each)
                for row, each in zip(rows, sure, strict=True)
            ),
        )

    hills = doubt("hills without a ridge", box=[0, 300, 1000, 360])
    specialists = PackedSpecialists(scene=[hills], override=answer)
    state = await specialists.run()
    assert specialists.asked("AttributeAnalyzer") == [[1, 2]]
    (candidate,) = state["candidates"]
    assert (candidate.fate, candidate.confidence) == ("kept", 0.95)


async def test_an_added_fault_that_does_not_validate_is_an_error_of_the_record() -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent != "AnomalyIntegrator":
            return None
        added = {"ids": [0], "why": "seen", "decision": "add", "name": "no text", "realism": 5}
        return listed("entries", *(keep(row) for row in block(request, "findings")), added)

    state = await PackedSpecialists(scene=[fault("odd")], override=answer).run()
    assert fates(state) == [("odd", "kept", 0)]
    assert errors(state) == [("AnomalyIntegrator", None, "unparseable")]


@pytest.mark.parametrize("kind", ["anatomy", "light"])
async def test_a_doubt_that_is_not_answered_stands_as_it_was(kind: str) -> None:
    seen = doubt("six fingers?", "hand", box=THING_ONE, kind=kind)
    state = await PackedSpecialists(["hand"], scene=[seen], settled={"six fingers?": None}).run()
    (candidate,) = state["candidates"]
    assert (candidate.fate, candidate.confidence, candidate.first_confidence) == ("kept", 0.4, None)


async def test_what_is_hardly_likely_is_not_taken_on_and_of_doubts_the_likeliest() -> None:
    sure = [fault(f"sure {number}") for number in range(3)]
    unsure = [doubt(f"unsure {number}", confidence=10 + number) for number in range(8)]
    unlikely = [doubt("unlikely", confidence=9)]
    specialists = PackedSpecialists(scene=[*unlikely, *unsure, *sure])
    state = await specialists.run()
    left_out = [each.phenomenon for each in state["candidates"] if each.fate == "left_out"]
    # Eight in all go on.
    assert left_out == ["unlikely", "unsure 0", "unsure 1", "unsure 2"]
    assert len(state["anomalies"]) == 8
    state = await PackedSpecialists(scene=[fault(f"sure {number}") for number in range(12)]).run()
    assert len(state["anomalies"]) == 12
    state = await PackedSpecialists(scene=[fault("unknown", confidence=None)] * 9).run()
    assert {each.fate for each in state["candidates"]} == {"kept"}


texts = st.sampled_from("abcdefgh")
confidences = st.one_of(st.none(), st.integers(0, 100), st.just("very"))
kinds = st.sampled_from(["anatomy", "contact", "light", "other", "?"])
places: st.SearchStrategy[Any] = st.one_of(
    st.just([]),
    st.tuples(st.integers(0, 800), st.integers(0, 800), st.integers(20, 199)).map(
        lambda each: [each[0], each[1], each[0] + each[2], each[1] + each[2]]
    ),
    st.just([0, 0, 1000, 1000]),
    st.just([5, 5, 1, 1]),
)
scenes = st.lists(
    st.builds(
        lambda text, confidence, kind, box: doubt(text, box=box, confidence=confidence, kind=kind),
        texts, confidences, kinds, places,
    ),
    max_size=10,
)  # fmt: skip
of_parts = st.lists(
    st.fixed_dictionaries(
        {
            "part": st.integers(0, 13),
            "doubt": st.integers(0, 8),
            "observed": texts,
            "explanation": texts,
            "confidence": confidences,
            "bbox_2d": places,
        }
    ),
    max_size=6,
)
entries = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "ids": st.lists(st.integers(-1, 14), max_size=4),
                "why": st.sampled_from(["", "w"]),
                "decision": st.sampled_from(["keep", "correct", "drop", "add", "?"]),
                "name": st.sampled_from(["", "n"]),
                "phenomenon": st.sampled_from(["", "p"]),
                "reasoning": st.sampled_from(["", "r"]),
                "realism": st.one_of(st.none(), st.integers(0, 100), st.just("low")),
                "confidence": confidences,
                "part": st.integers(-1, 13),
                "bbox_2d": places,
            }
        ),
        st.fixed_dictionaries(
            {
                "ids": st.lists(st.integers(1, 14), min_size=1, max_size=4),
                "why": st.just("w"),
                "decision": st.sampled_from(["keep", "correct", "drop", "add"]),
                **dict.fromkeys(("name", "phenomenon", "reasoning"), texts),
                "realism": st.integers(0, 100),
            }
        ),
        st.sampled_from([None, "keep all", {}, []]),
    ),
    max_size=8,
)


@settings(max_examples=60)
@given(scenes, of_parts, of_parts, entries, st.sampled_from([0, 1, 2, None]))
async def test_every_number_ends_in_one_fate_and_none_is_lost(
    scene: list[dict[str, Any]],
    attributes: list[dict[str, Any]],
    relations: list[dict[str, Any]],
    judgements: list[Any],
    unwritten: int | None,
) -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent in ("AttributeAnalyzer", "RelationReasoner"):
            said = attributes if request.agent == "AttributeAnalyzer" else relations
            parts = {0, *(row["part"] for row in block(request, "parts"))}
            return listed("findings", *(each for each in said if each["part"] in parts))
        if request.agent == "AnomalyFormatter" and unwritten is None:
            return text_response("No.")
        return None

    specialists = PackedSpecialists(
        [f"thing {number}" for number in range(5)],
        boxes={"thing 4": LARGE},
        sorts={"thing 4": "reflection"},
        scene=scene,
        judge=lambda _rows: judgements,
        write=lambda rows: write_all(rows[unwritten or 0 :]),
        override=answer,
    )
    state = await specialists.run()
    looked = [each for sighting in state["sightings"] for each in sighting["findings"]]
    candidates, anomalies = state["candidates"], state.get("anomalies", [])
    assert [each.number for each in candidates] == list(range(1, len(candidates) + 1))
    # What the looks found, and what the integrator added.
    assert sum(each.found_by != "AnomalyIntegrator" for each in candidates) == len(looked)
    for each in candidates:
        if each.fate in ("dropped", "left_out"):
            assert each.anomaly is None
            assert each.why or each.fate == "left_out"
        elif each.anomaly is None:
            assert state.get("failure") or state["errors"], "a fault without a text is an error"
        else:
            assert each.found_by in (anomalies[each.anomaly].found_by or ())
    assert {each.anomaly for each in candidates} - {None} == set(range(len(anomalies)))
    severities = [each.severity for each in anomalies]
    assert severities == sorted(severities)
    for anomaly in anomalies:
        assert anomaly.box is None or (anomaly.box[2] <= 1024 and anomaly.box[3] <= 1024)
