"""The packed schedule: who is asked how often, about which parts, and what a bad answer costs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.agents.packed_specialists import (
    LARGE,
    TWELVE,
    PackedSpecialists,
    block,
    doubt,
    errors,
    fates,
    fault,
    noise,
    sent,
)
from tests.agents.specialists import listed
from tests.client.scripted import CAPABILITIES, Line, ScriptedProvider, guarded, text_response
from tests.graphs.test_packed_roles import kinds_of
from tests.growth import check_linear
from uncanny.agents.common.annotate_context import BatchFinding, PackedState
from uncanny.agents.common.closer_look import after_all_looks, questions
from uncanny.agents.common.regions import Place, View, choose_regions
from uncanny.agents.object_perceiver import merge_located
from uncanny.agents.steps import SCHEDULES, ScheduleName
from uncanny.client.client import ModelClient
from uncanny.errors import ModelUnusableError, RequestRejectedError, UsageError
from uncanny.graphs.packed import packed_graph, schedule_graph
from uncanny.models.anthropic import messages_body
from uncanny.models.base import ModelRequest, SentImage
from uncanny.prompts import prompt_set
from uncanny.schema import Region, SceneObject

ON_THING_ONE = [100, 100, 150, 150]


def agents(specialists: PackedSpecialists) -> list[str]:
    return sorted(request.agent for request in specialists.model.requests)


def pictures(request: ModelRequest) -> list[SentImage]:
    (turn,) = (turn for turn in request.messages if turn.role == "user")
    return [part for part in turn.parts if isinstance(part, SentImage)]


# Without any object it is looked at in tiles.
@pytest.mark.parametrize(("objects", "calls"), [(0, 2), (1, 2), (4, 2), (5, 3), (8, 3), (12, 3), (40, 3)])
async def test_a_clean_image_takes_no_more_than_three_calls(objects: int, calls: int) -> None:
    specialists = PackedSpecialists([f"thing {number}" for number in range(objects)])
    state = await specialists.run()
    assert len(specialists.model.requests) == calls
    assert (state["anomalies"], state["candidates"]) == ([], [])
    assert not {"AnomalyIntegrator", "AnomalyFormatter"} & {*agents(specialists)}
    assert len(state["regions"]) == min(objects or 4, 8)
    assert {each.why for each in state["regions"]} == {"object" if objects else "tile"}


async def test_a_clean_image_with_a_large_mirror_takes_three_calls_too() -> None:
    specialists = PackedSpecialists(
        TWELVE, boxes={"thing 1": LARGE}, sorts={"thing 1": "reflection", "thing 2": "shadow"}
    )
    context = specialists.context()
    state = await specialists.run(context=context)
    assert agents(specialists) == ["AttributeAnalyzer", "ObjectPerceiver", "RelationReasoner"]
    # What is too large to be enlarged is compared in the whole image, which is part 0.
    (request,) = specialists.requests("RelationReasoner")
    assert (block(request, "parts"), pictures(request)) == ([{"part": 0}], [context.image])
    assert len(state["regions"]) == 4
    assert specialists.asked("AttributeAnalyzer") == [[1, 2, 3, 4]]


async def test_a_mirror_that_is_enlarged_is_compared_and_not_examined_by_itself() -> None:
    # Of a small image three hundredths are little enough to be enlarged.
    specialists = PackedSpecialists(
        ["mirror", "cup"],
        relations={"mirror": ["odd"]},
        boxes={"mirror": (100, 100, 400, 400), "cup": (700, 700, 760, 760)},
        sorts={"mirror": "reflection"},
    )
    state = await specialists.run(context=specialists.context(source=noise(480, 480), image=sent(480, 480)))
    assert (specialists.asked("RelationReasoner"), specialists.asked("AttributeAnalyzer")) == ([[1]], [[2]])
    assert fates(state) == [("odd", "kept", 0)]


async def test_twelve_regions_with_all_there_can_be_take_seven_calls() -> None:
    seen = doubt("it floats", "thing 1", box=ON_THING_ONE, kind="contact")
    specialists = PackedSpecialists(
        TWELVE,
        {"thing 7": ["odd"]},
        scene=[seen],
        judge=lambda _rows: [],
    )
    state = await specialists.run()
    assert len(state["regions"]) == 12
    # Three more of the integrator's are asked for what it left out.
    assert sorted({*agents(specialists)}) == [
        "AnomalyFormatter",
        "AnomalyIntegrator",
        "AttributeAnalyzer",
        "ObjectPerceiver",
        "RelationReasoner",
    ]
    assert len(specialists.model.requests) - (len(specialists.requests("AnomalyIntegrator")) - 1) == 7
    usual = PackedSpecialists(TWELVE, {"thing 7": ["odd"]}, scene=[seen])
    await usual.run()
    assert len(usual.model.requests) == 6


@pytest.mark.parametrize("config", [{"max_regions": 0}, {"max_regions": 0, "max_objects": 1}])
async def test_one_call_where_nothing_is_enlarged_and_nothing_is_found(config: dict[str, Any]) -> None:
    specialists = PackedSpecialists(TWELVE)
    state = await specialists.run(**config)
    assert (agents(specialists), state["regions"]) == (["ObjectPerceiver"], [])


async def test_without_the_pixels_of_the_file_nothing_is_enlarged() -> None:
    specialists = PackedSpecialists(TWELVE)
    state = await specialists.run(context=specialists.context(source=b"gone"))
    assert (agents(specialists), state["regions"]) == (["ObjectPerceiver"], [])
    context = replace(specialists.context(), source=None)
    state = await specialists.run(context=context)
    assert (state["regions"], context.parts) == ([], {})
    # A finding is kept all the same, and judged in the whole picture.
    specialists = PackedSpecialists(TWELVE, scene=[doubt("odd", box=ON_THING_ONE)])
    state = await specialists.run(context=specialists.context(source=b"gone"))
    assert agents(specialists) == ["AnomalyIntegrator", "ObjectPerceiver"]
    assert fates(state) == [("odd", "kept", 0)]


async def test_questions_about_parts_show_the_whole_small_and_then_each_part_by_its_number() -> None:
    specialists = PackedSpecialists(TWELVE[:6], {"thing 2": ["odd"]})
    context = specialists.context()
    await specialists.run(context=context)
    for request in specialists.requests("AttributeAnalyzer"):
        parts = request.messages[1].parts
        numbers = [row["part"] for row in block(request, "parts")]
        assert parts[0] == "The whole picture:"
        assert max(pictures(request)[0].width, pictures(request)[0].height) == 640
        assert [part for part in parts[2:-1] if isinstance(part, str)] == [f"Part {n}:" for n in numbers]
        assert pictures(request)[1:] == [context.parts[number] for number in numbers]
    assert specialists.asked("AttributeAnalyzer") == [[1, 2, 3], [4, 5, 6]]
    (request,) = specialists.requests("AnomalyIntegrator")
    # The whole as it was sent, and the one part where something is.
    assert pictures(request) == [context.image, context.parts[2]]


async def test_who_looks_at_relations_sees_the_whole_and_answers_what_no_part_shows() -> None:
    far = doubt("the shadows differ", kind="light")
    near = doubt("the cup floats", box=ON_THING_ONE, kind="contact")
    specialists = PackedSpecialists(TWELVE[:2], scene=[far, near], relations={"thing 1": ["odd"]})
    context = specialists.context()
    state = await specialists.run(context=context)
    (request,) = specialists.requests("RelationReasoner")
    assert pictures(request) == [context.image, context.parts[1]]
    assert [(row["part"], row["doubts"]) for row in block(request, "parts")] == [
        (0, [{"id": 1, "doubt": "the shadows differ"}]),
        (1, [{"id": 2, "doubt": "the cup floats"}]),
    ]
    assert fates(state)[2] == ("odd", "kept", 2)
    assert [each.first_confidence for each in state["candidates"]] == [0.4, 0.4, None]


async def test_a_bad_item_about_the_whole_image_is_asked_about_again_alone() -> None:
    def spoil(request: ModelRequest) -> Line | None:
        rows = block(request, "parts")
        if request.agent != "RelationReasoner" or len(rows) < 2:
            return None
        return listed("findings", fault("", part=0), fault("odd", part=1))

    far = doubt("the shadows differ", kind="light")
    near = doubt("the cup floats", box=ON_THING_ONE, kind="contact")
    specialists = PackedSpecialists(TWELVE[:1], scene=[far, near], override=spoil)
    state = await specialists.run()
    assert specialists.asked("RelationReasoner") == [[0, 1], [0]]
    assert fates(state) == [
        ("the shadows differ", "kept", 0), ("the cup floats", "kept", 1), ("odd", "kept", 2),
    ]  # fmt: skip
    # The same where nothing was asked about the whole.
    specialists = PackedSpecialists(
        TWELVE[:1],
        scene=[near],
        override=lambda request: (
            listed("findings", fault("", part=0), fault("odd", part=1))
            if specialists.asked("RelationReasoner") == [[1]] and request.agent == "RelationReasoner"
            else None
        ),
    )
    state = await specialists.run()
    assert specialists.asked("RelationReasoner") == [[1], [0]]
    assert errors(state) == []


async def test_a_doubt_is_answered_by_one_agent() -> None:
    seen = [
        doubt("it floats", box=ON_THING_ONE, kind="contact"),
        doubt("six fingers", box=ON_THING_ONE, kind="anatomy"),
        fault("plain to see", bbox_2d=ON_THING_ONE),
    ]
    specialists = PackedSpecialists(TWELVE[:1], scene=seen)
    await specialists.run()
    asked = {
        agent: [
            each["doubt"]
            for request in specialists.requests(agent)
            for row in block(request, "parts")
            for each in row.get("doubts", ())
        ]
        for agent in ("AttributeAnalyzer", "RelationReasoner")
    }
    assert asked == {"AttributeAnalyzer": ["six fingers"], "RelationReasoner": ["it floats"]}


async def test_of_a_list_that_is_too_long_the_first_are_examined_and_named_and_the_rest_counted() -> None:
    names = [f"thing {number}" for number in range(1, 506)]
    specialists = PackedSpecialists(names, {"thing 1": ["odd"]})
    context = specialists.context()
    state = await specialists.run(context=context)
    assert [each.name for each in (*state["objects"], *state["cut"])] == names[:500]
    assert (len(state["objects"]), dict(context.left_out)) == (12, {"inventory": 5})
    assert [each.phenomenon for each in state["anomalies"]] == ["odd"]
    assert len(specialists.requests("ObjectPerceiver")) == 1


async def test_of_all_drafts_together_a_thousand_objects_are_known() -> None:
    class Drafts(PackedSpecialists):
        def answer(self, request: ModelRequest) -> Line:
            if request.agent == "ObjectPerceiver":
                # The first is asked for with the open look.
                draft = 0 if "findings" in request.schema.lists else request.sample  # type: ignore[union-attr]
                self.objects = [f"thing {draft}-{number}" for number in range(400)]
                self.boxes = dict.fromkeys(self.objects, ())
            return super().answer(request)

    context = (specialists := Drafts()).context(repeats=3)
    state = await specialists.run(context=context)
    assert (len(state["objects"]) + len(state["cut"]), dict(context.left_out)) == (1_000, {"objects": 200})
    assert state["anomalies"] == []
    assert len(specialists.requests("ObjectPerceiver")) == 3


async def test_a_bad_item_costs_its_part_alone() -> None:
    def spoil(request: ModelRequest) -> Line | None:
        rows = block(request, "parts")
        if request.agent != "AttributeAnalyzer" or len(rows) == 1:
            return None
        return listed("findings", fault("a", part=1), fault("", part=2), fault("lost", part=2))

    names = ["cup", "table", "door"]
    specialists = PackedSpecialists(names, {"cup": ["z"], "table": ["b"]}, override=spoil)
    state = await specialists.run()
    assert specialists.asked("AttributeAnalyzer") == [[1, 2, 3], [2]]
    requests = specialists.requests("AttributeAnalyzer")
    assert [request.batch for request in requests] == [("cup", "table", "door"), ()]
    assert [request.subject for request in requests] == [None, "part 2"]
    # What was said about the part is said anew; what was said of others holds.
    assert [each.phenomenon for each in state["anomalies"]] == ["a", "b"]
    assert errors(state) == []


async def test_an_item_about_a_part_that_nobody_asked_about_costs_the_others_nothing() -> None:
    def stray(request: ModelRequest) -> Line | None:
        rows = block(request, "parts")
        if request.agent != "AttributeAnalyzer" or len(rows) == 1:
            return None
        return listed("findings", fault("a", part=1), fault("somewhere", part=99))

    specialists = PackedSpecialists(["cup", "table"], override=stray)
    context = specialists.context()
    state = await specialists.run(context=context)
    # It is asked for again, as the answer may be mended; the last one is used as far as it can be.
    assert specialists.asked("AttributeAnalyzer") == [[1, 2]] * 3
    assert [each.phenomenon for each in state["anomalies"]] == ["a"]
    assert (dict(context.left_out), errors(state)) == ({"findings": 1}, [])


async def test_an_invalid_item_about_the_only_part_of_a_question_about_relations_is_an_error() -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent != "RelationReasoner":
            return None
        return listed("findings", fault("", part=1), fault("it floats", part=1, doubt=1))

    seen = doubt("floats?", "cup", box=ON_THING_ONE, kind="contact")
    specialists = PackedSpecialists(TWELVE[:1], scene=[seen], override=answer)
    state = await specialists.run()
    assert len(specialists.requests("RelationReasoner")) == 3
    assert errors(state) == [("RelationReasoner", "part 1", "unparseable")]


async def test_doubts_beyond_the_parts_of_the_question_about_relations_are_answered_by_the_other_agent() -> (
    None
):
    places = [[150 * n, 150 * n, 150 * n + 20, 150 * n + 20] for n in range(6)]
    seen = [doubt(f"foot {n} hovers", box=box, kind="contact") for n, box in enumerate(places)]
    specialists = PackedSpecialists(scene=seen)
    await specialists.run()
    asked = [
        each["doubt"]
        for agent in ("RelationReasoner", "AttributeAnalyzer")
        for request in specialists.requests(agent)
        for row in block(request, "parts")
        for each in row.get("doubts", ())
    ]
    assert sorted(asked) == [f"foot {n} hovers" for n in range(6)]


async def test_findings_have_the_same_numbers_where_a_part_was_asked_about_again() -> None:
    def spoil(request: ModelRequest) -> Line | None:
        rows = block(request, "parts")
        if request.agent != "AttributeAnalyzer" or len(rows) == 1:
            return None
        return listed("findings", fault("c", part=3), fault("", part=1), fault("b", part=2))

    names, faults = ["cup", "table", "door"], {"cup": ["a"], "table": ["b"], "door": ["c"]}
    spoiled = await PackedSpecialists(names, faults, override=spoil).run()
    whole = await PackedSpecialists(names, faults).run()
    assert fates(spoiled) == fates(whole) == [("a", "kept", 0), ("b", "kept", 1), ("c", "kept", 2)]


async def test_of_a_batch_that_cannot_be_read_every_part_is_asked_about_alone() -> None:
    def spoil(request: ModelRequest) -> Line | None:
        numbers = [row["part"] for row in block(request, "parts")]
        unread = request.agent == "AttributeAnalyzer" and (len(numbers) > 1 or numbers == [2])
        return text_response("hm?") if unread else None

    specialists = PackedSpecialists(["cup", "table"], {"cup": ["it floats"]}, override=spoil)
    state = await specialists.run()
    assert [each.phenomenon for each in state["anomalies"]] == ["it floats"]
    assert errors(state) == [("AttributeAnalyzer", "part 2", "unparseable")]
    assert all(each.get("answered", True) for each in state["sightings"])
    # Three tries of the batch, one for the cup, three for the table.
    assert len(specialists.requests("AttributeAnalyzer")) == 7


async def test_a_finding_beside_an_invalid_one_is_kept_where_asking_anew_fails() -> None:
    def answer(request: ModelRequest) -> Line | None:
        if request.agent != "AttributeAnalyzer":
            return None
        if len(block(request, "parts")) == 1:
            return text_response("no idea")
        return listed("findings", fault("it floats", part=1), fault("", part=1))

    state = await PackedSpecialists(["cup", "dog"], override=answer).run()
    assert [each.phenomenon for each in state["anomalies"]] == ["it floats"]
    assert errors(state) == [("AttributeAnalyzer", "part 1", "unparseable")]


async def test_a_refused_batch_is_one_error_that_names_its_objects() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        return RequestRejectedError("no") if request.agent == "AttributeAnalyzer" else None

    specialists = PackedSpecialists(["cup", "table"], scene=["it floats"], override=refuse)
    state = await specialists.run()
    assert len(specialists.requests("AttributeAnalyzer")) == 1
    assert errors(state) == [("AttributeAnalyzer", None, "rejected")]
    assert [each.get("answered", True) for each in state["sightings"]].count(False) == 1
    assert [each.phenomenon for each in state["anomalies"]] == ["it floats"]


async def test_the_error_of_a_batch_of_one_is_about_its_part() -> None:
    def refuse(request: ModelRequest) -> Line | None:
        return RequestRejectedError("no") if request.agent == "AttributeAnalyzer" else None

    state = await PackedSpecialists(["cup"], override=refuse).run()
    assert errors(state) == [("AttributeAnalyzer", "part 1", "rejected")]


@pytest.mark.parametrize(
    "agent",
    ["ObjectPerceiver", "AttributeAnalyzer", "RelationReasoner", "AnomalyIntegrator", "AnomalyFormatter"],
)
async def test_what_ends_the_run_is_raised_as_it_is(agent: str) -> None:
    def end(request: ModelRequest) -> Line | None:
        return ModelUnusableError("wrong key") if request.agent == agent else None

    specialists = PackedSpecialists(
        ["cup", "mirror"],
        {"cup": ["a"]},
        scene=["b"],
        boxes={"mirror": LARGE},
        sorts={"mirror": "reflection"},
        judge=lambda _rows: [],
        override=end,
    )
    with pytest.raises(ModelUnusableError, match="wrong key"):
        await specialists.run()
    assert specialists.model.now == 0


async def test_a_node_of_ones_own_takes_the_place_of_one() -> None:
    async def all_real(_state: PackedState, _image: object) -> PackedState:
        return {"faults": [], "candidates": []}

    specialists = PackedSpecialists(["cup"], {"cup": ["a"]})
    state = await specialists.run({"integrate": all_real})
    assert state["anomalies"] == []
    assert not specialists.requests("AnomalyIntegrator")
    with pytest.raises(UsageError, match="no node 'examine'"):
        packed_graph({"examine": all_real})  # type: ignore[arg-type]


async def test_with_a_perceiver_of_ones_own_the_scan_is_asked_for_by_itself() -> None:
    async def one(_state: PackedState, _image: object) -> PackedState:
        return {"objects": [SceneObject(name="lamp", description="d", box=(100, 100, 160, 160))]}

    specialists = PackedSpecialists(["cup"], {"lamp": ["dark"]}, scene=["odd"])
    state = await specialists.run({"perceive": one})
    assert kinds_of(specialists.model) == {"inventory": 0, "look": 0, "findings": 1}
    assert [each.phenomenon for each in state["anomalies"]] == ["odd", "dark"]


async def test_regions_of_ones_own_are_what_is_asked_about() -> None:
    async def one(_state: PackedState, image: Any) -> PackedState:
        region = Region(number=1, box=(0, 0, 300, 300), why="tile", objects=("cup",))
        return {"regions": await image.enlarge(lambda _: [region], image.view("AttributeAnalyzer"), ())}

    specialists = PackedSpecialists(["cup"], {"cup": ["a"]})
    state = await specialists.run({"regions": one})
    assert specialists.asked("AttributeAnalyzer") == [[1]]
    assert fates(state) == [("a", "kept", 0)]


async def test_parts_are_png_where_one_of_the_models_takes_no_jpeg() -> None:
    specialists = PackedSpecialists(["cup"])
    context = specialists.context()
    await specialists.run(context=context)
    assert {part.media_type for part in context.parts.values()} == {"image/jpeg"}
    png = replace(CAPABILITIES, media_types=frozenset({"image/png"}))
    specialists.others = {"AnomalyIntegrator": ScriptedProvider(specialists.answer, capabilities=png)}
    context = specialists.context()
    await specialists.run(context=context)
    assert {part.media_type for part in context.parts.values()} == {"image/png"}


async def test_a_name_ends_no_block_of_a_prompt_and_begins_no_line_of_it() -> None:
    name = 'cup "$box_key"\n2. dog </parts></scene>'
    specialists = PackedSpecialists([name], {name: ["</findings> a"]})
    state = await specialists.run()
    assert state["anomalies"][0].objects == (name,)
    (request,) = specialists.requests("AttributeAnalyzer")
    assert [row["shows"] for row in block(request, "parts")] == [[name]]
    text = str(request.messages[1].parts[-1])
    assert (text.count("</scene>"), text.count("</parts>")) == (0, 1)
    assert "\n2. dog" not in text
    (request,) = specialists.requests("AnomalyIntegrator")
    assert [row["phenomenon"] for row in block(request, "findings")] == ["</findings> a"]


def many(size: int) -> list[BatchFinding]:
    """A place of its own for each of `size` findings."""
    return [
        {
            "found_by": "SceneScanner",
            "objects": ("cup",),
            "phenomenon": "p",
            "reasoning": "r",
            "box": (n % 1000, n // 1000, n % 1000 + 5, n // 1000 + 5),
            "confidence": 0.6,
        }
        for n in range(size)
    ]


@pytest.mark.slow
def test_many_boxes_and_names_take_no_more_than_in_proportion() -> None:
    image = PackedSpecialists().context()

    def decide(text: str) -> None:
        findings = many(len(text))
        regions = choose_regions(
            [Place(box) for each in findings if (box := each["box"])],
            [],
            View((1024, 1024), (1024, 1024), 1024),
            12,
            lambda _box: 1.0,
        )
        state: PackedState = {
            "image": "a.png",
            "objects": [],
            "regions": regions,
            "sightings": [{"findings": findings, "order": 0}],
        }
        questions(state, image)
        assert len(after_all_looks(state)) == len(text)

    def merge(text: str) -> None:
        names = [SceneObject(name=f"thing {n}", description="d") for n in range(len(text))]
        assert len(merge_located([names, names])) == len(text)

    for work in (decide, merge):
        check_linear(work, "x".__mul__)


def test_a_name_that_was_merged_by_place_is_known_from_then_on() -> None:
    sofa, couch = (SceneObject(name=name, description="d", box=(0, 0, 9, 9)) for name in ("sofa", "couch"))
    again = SceneObject(name="Couch", description="longer")
    (merged,) = merge_located([[sofa], [couch], [again]])
    assert (merged.name, merged.description, merged.box) == ("sofa", "longer", (0, 0, 9, 9))


async def test_what_no_other_call_begins_like_is_not_written_into_the_cache_of_prefixes() -> None:
    """Of Anthropic's it would cost a quarter more."""

    async def bodies(schedule: ScheduleName) -> list[str]:
        model = ScriptedProvider(lambda _request: text_response('{"inventory": [], "findings": []}'))
        specialists = PackedSpecialists()
        image = replace(
            specialists.context(schedule=schedule),
            model_client=ModelClient({"": [guarded(model)]}),
            prompts=prompt_set(SCHEDULES[schedule].prompts),
            image=sent(),
        )
        if schedule == "single":
            model._script = lambda _request: text_response("No anomalies.")
        graph: Any = schedule_graph(schedule)
        await graph.ainvoke({"image": "a.png"}, context=image)
        return [messages_body(request, "claude").decode() for request in model.requests]

    (body,) = await bodies("single")
    assert '"type":"image"' in body
    assert "cache_control" not in body
    packed = await bodies("packed")
    assert len(packed) == 2
    # Each has a schema of its own, with which an answer's cache begins.
    assert not any("cache_control" in each for each in packed)
