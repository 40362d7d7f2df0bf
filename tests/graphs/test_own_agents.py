"""Agents and nodes of the user's own in the packed schedule, and what cannot work in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from tests.agents.packed_specialists import LARGE, TWELVE, PackedSpecialists, block, errors, fates, fault
from tests.agents.specialists import listed
from tests.client.scripted import Line, ScriptedProvider
from uncanny.agents.common.annotate_context import (
    BatchState,
    Context,
    PackedState,
    ScanState,
    Sighting,
    as_findings,
)
from uncanny.agents.common.own_agent import OwnAgent
from uncanny.agents.steps import ListStep, Step
from uncanny.answers.forms import FINDINGS
from uncanny.answers.packed import FAULTS
from uncanny.errors import ExtensionError, RequestRejectedError, UsageError
from uncanny.graphs.annotate import annotate_graph, graph_names, graph_schedule
from uncanny.graphs.packed import packed_graph
from uncanny.models.base import ModelRequest

HERE = __name__
SHADOWS = OwnAgent(name="ShadowReader", prompt='Which shadows are wrong? Boxes as "$box_key": $box_rule')
HANDS = OwnAgent(name="HandCounter", prompt="$listed\nCount fingers. $part_rule", per="batch")


def says(answers: Mapping[str, Callable[[ModelRequest], Line]]) -> Callable[[ModelRequest], Line | None]:
    """An override that answers for agents of the user's own."""
    return lambda request: answers[request.agent](request) if request.agent in answers else None


async def run(
    specialists: PackedSpecialists, agents: list[OwnAgent], context: Context | None = None, **config: Any
) -> PackedState:
    graph = packed_graph(agents=agents)
    image = context or specialists.context(**config)
    return cast("PackedState", await graph.ainvoke({"image": "a.png"}, context=image))


async def test_an_agent_of_ones_own_looks_at_the_image_and_the_integrator_checks_what_it_found() -> None:
    own = {
        "ShadowReader": lambda _: listed("findings", fault("two shadows", "lamp", bbox_2d=[0, 0, 500, 500]))
    }
    specialists = PackedSpecialists(["lamp"], {"lamp": ["no bulb"]}, scene=["floats"], override=says(own))
    specialists.others = {"SceneScanner": ScriptedProvider(specialists.answer)}
    state = await run(specialists, [SHADOWS])
    (request,) = specialists.requests("ShadowReader")
    text = str(request.messages[1].parts[-1])
    assert text.startswith('Which shadows are wrong? Boxes as "bbox_2d": [x0, y0, x1, y1] in')
    # It is shown the picture as the scan is, and answers in the same form.
    (scan,) = specialists.others["SceneScanner"].requests
    assert request.schema == scan.schema is not None
    assert request.messages[0] == scan.messages[0]
    assert fates(state) == [("floats", "kept", 0), ("two shadows", "kept", 1), ("no bulb", "kept", 2)]
    candidate = state["candidates"][1]
    assert (candidate.found_by, candidate.objects) == ("ShadowReader", ("lamp",))
    assert candidate.box is not None
    assert state["anomalies"][1].found_by == ("ShadowReader",)


async def test_an_agent_of_ones_own_looks_at_batches_of_enlarged_parts() -> None:
    def count(request: ModelRequest) -> Line:
        row = block(request, "parts")[0]
        return listed("findings", fault("six", *row["shows"], part=row["part"], bbox_2d=[0, 0, 500, 500]))

    specialists = PackedSpecialists(
        TWELVE, {"thing 7": ["odd"]}, scene=["floats"], override=says({"HandCounter": count})
    )
    context = specialists.context()
    state = await run(specialists, [HANDS], context)
    assert sorted(specialists.asked("HandCounter")) == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12]]
    for request in specialists.requests("HandCounter"):
        assert request.messages[1].parts[:2] == ("The whole picture:", context.parts[0])
        text = str(request.messages[1].parts[-1])
        assert text.startswith("First comes the whole picture")
        assert text.endswith("across and down that part; [] if you cannot tell.")
    found = [(each.found_by, each.objects, each.phenomenon, each.region) for each in state["candidates"]]
    assert found == [
        ("SceneScanner", ("scene",), "floats", None),
        ("HandCounter", ("thing 1",), "six", 1),
        ("AttributeAnalyzer", ("thing 7",), "odd", 7),
        ("HandCounter", ("thing 5",), "six", 5),
        ("HandCounter", ("thing 9",), "six", 9),
    ]
    x0, y0, x1, y1 = context.regions[5].box
    assert state["candidates"][3].box == (x0, y0, (x0 + x1) // 2, (y0 + y1) // 2)


async def test_findings_keep_their_order_whatever_comes_back_first() -> None:
    own = {
        "ShadowReader": lambda _: listed("findings", fault("own 1", "x")),
        "SignReader": lambda _: listed("findings", fault("own 2", "x")),
        "HandCounter": lambda _: listed("findings", fault("hand", part=1)),
    }
    specialists = PackedSpecialists(
        ["cup", "mirror"],
        {"cup": ["part"]},
        {"mirror": ["gap"]},
        scene=["scan"],
        boxes={"mirror": LARGE},
        sorts={"mirror": "reflection"},
        override=says(own),
    )
    signs = OwnAgent(name="SignReader", prompt="Read the signs.")
    state = await run(specialists, [SHADOWS, HANDS, signs], scene_scans=2)
    assert [each.phenomenon for each in state["candidates"]] == [
        "scan", "scan", "own 1", "own 2", "part", "gap", "hand",
    ]  # fmt: skip


async def test_what_an_agent_of_ones_own_fails_at_is_an_error_of_the_record() -> None:
    own: dict[str, Callable[[ModelRequest], Line]] = {"ShadowReader": lambda _: RequestRejectedError("no")}
    state = await run(PackedSpecialists(["cup"], {"cup": ["a"]}, override=says(own)), [SHADOWS])
    assert errors(state) == [("ShadowReader", None, "rejected")]
    assert [each.phenomenon for each in state["anomalies"]] == ["a"]


async def test_a_look_of_ones_own_asks_as_often_as_it_likes() -> None:
    async def twice(state: ScanState, image: Context) -> Sighting:
        notes = await image.text(notes_step, place=f"scan {state['order']}")
        faults = await image.items(agent.step, notes=notes)
        return {"findings": as_findings("ShadowReader", faults, image)}

    notes_step = Step("ShadowReader", 1, "notes", text="Describe the shadows of $place in $box_key.")
    agent = OwnAgent(name="ShadowReader", prompt="Which are wrong?\n$notes", look=twice)
    own: dict[str, Callable[[ModelRequest], Line]] = {
        "ShadowReader": lambda request: (
            listed("findings", fault("odd", "x")) if request.schema else listed("notes")
        )
    }
    specialists = PackedSpecialists(override=says(own))
    state = await run(specialists, [agent])
    texts = [str(request.messages[1].parts[1]) for request in specialists.requests("ShadowReader")]
    assert texts == [
        "Describe the shadows of scan 0 in bbox_2d.",
        'Which are wrong?\n{"notes":[]}',
    ]
    assert [each.phenomenon for each in state["anomalies"]] == ["odd"]


async def test_a_look_may_ask_nobody() -> None:
    async def measure(_state: ScanState, image: Context) -> Sighting:
        assert image.config.max_objects == 12
        return {
            "findings": [
                {
                    "found_by": "Detector",
                    "objects": ("image",),
                    "phenomenon": "blocks",
                    "reasoning": "measured",
                    "box": (0, 0, 8, 8),
                }
            ]
        }

    specialists = PackedSpecialists()
    state = await run(specialists, [OwnAgent(name="Detector", look=measure)])
    assert [each.found_by for each in state["anomalies"]] == [("Detector",)]
    assert "Detector" not in {request.agent for request in specialists.model.requests}


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ({"name": "shadows", "prompt": "x"}, "is not a valid agent name"),
        ({"name": "Shadow Reader", "prompt": "x"}, "is not a valid agent name"),
        ({"name": 5, "prompt": "x"}, "is not a valid agent name"),
        ({"name": "SceneScanner", "prompt": "x"}, "is built in"),
        ({"name": "A", "prompt": " \n"}, "is empty"),
        (
            {"name": "A", "prompt": "texts/shadows.md"},
            r"looks like a file name\. Give Path\('texts/sh",
        ),
        ({"name": "A", "prompt": b"x"}, "must be a text or a Path"),
        ({"name": "A"}, "has no prompt"),
        ({"name": "A", "prompt": Path("/nowhere/a.md")}, "cannot be read: /nowhere/a.md: No such file"),
        ({"name": "A", "prompt": "It costs $5"}, r"has a \$ that does not start a variable"),
        (
            {"name": "A", "prompt": "$objects and $findings"},
            r"`packed` does not fill in: \$objects, \$findings",
        ),
        ({"name": "A", "prompt": "$findings", "per": "batch"}, r"does not fill in: \$findings"),
        ({"name": "A", "prompt": "Look.", "per": "batch"}, r"does not have \$listed"),
        ({"name": "A", "prompt": "x", "per": "object"}, "per='object'"),
        ({"name": "A", "look": print}, "is not an async function"),
    ],
)
def test_an_agent_that_cannot_work_is_refused_when_it_is_made(agent: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        OwnAgent(**agent)


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ([SHADOWS, SHADOWS], "Two agents are called ShadowReader"),
        (["ShadowReader"], "'ShadowReader' is not one"),
        ("ShadowReader", "must be a list of OwnAgent"),
        ([OwnAgent], "is not one"),
    ],
)
def test_what_is_no_list_of_agents_is_refused(agents: Any, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        packed_graph(agents=agents)


def test_a_prompt_may_be_a_file(tmp_path: Path) -> None:
    file = tmp_path / "shadows.md"
    file.write_text("\nWhich shadows?\n\n", encoding="utf-8")
    own, same = OwnAgent(name="A", prompt=file), OwnAgent(name="A", prompt="Which shadows?")
    assert own.as_planned(str) == same.as_planned(str)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="cannot be read"):
        OwnAgent(name="A", prompt=file)


def test_the_graph_names_what_was_added() -> None:
    async def look(_state: BatchState, _image: Context) -> Sighting:
        return {"findings": []}

    own = OwnAgent(name="B", per="batch", look=look)
    digest = sha256(str(SHADOWS.prompt).encode()).hexdigest()[:8]
    assert graph_names(packed_graph(agents=[SHADOWS, own])) == {
        "ShadowReader": {"per": "image", "prompt": f"ShadowReader@{digest}", "text": SHADOWS.prompt},
        "B": {"per": "batch", "look": f"{HERE}:{look.__qualname__}"},
    }
    assert graph_names(packed_graph()) == {}
    assert (graph_schedule(packed_graph()), graph_schedule(annotate_graph())) == ("packed", "paper")


LOOK = ListStep("SceneScanner", 1, "scan", form=FAULTS)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (ListStep("SceneScanner", 1, "scan", text="$notes of $box_key, $more", form=FAULTS),
         r"prompt 'scan' of the schedule `packed` has variables that were not filled in: \$notes, \$more\."),
        (ListStep("SceneScanner", 1, "shadows", form=FAULTS), "has no prompt 'shadows'"),
        (ListStep("SceneScanner", 1, "attributes", form=FAULTS), r"not filled in: \$listed, \$doubts"),
    ],
)  # fmt: skip
async def test_a_prompt_that_cannot_be_filled_in_is_named_with_its_schedule(
    step: ListStep[Any], words: str
) -> None:
    async def scan(_state: ScanState, image: Context) -> Sighting:
        return {"findings": as_findings("SceneScanner", await image.items(step), image)}

    specialists = PackedSpecialists(["cup"])
    with pytest.raises(ExtensionError, match=words):
        await specialists.run({"scan": scan})
    assert not specialists.requests("SceneScanner")


async def test_findings_of_the_other_schedule_are_refused_with_the_node() -> None:
    """As a node for the schedule `paper` returns them."""

    async def scan(_state: ScanState, image: Context) -> Any:
        step = ListStep("ShadowReader", 1, "scan", form=FINDINGS)
        return {"findings": list(await image.items(step))}

    rows = [{"object": "lamp", "phenomenon": "two shadows", "explanation": "x"}]
    specialists = PackedSpecialists(override=says({"ShadowReader": lambda _: listed("findings", *rows)}))
    with pytest.raises(
        ExtensionError, match=r"Node 'scan' \(.*scan\) returned findings .* `packed`: Finding"
    ):
        await specialists.run({"scan": scan})
    (request,) = specialists.requests("ShadowReader")
    # A form that is none of the schedule's is asked for as what it is.
    assert request.schema is not None
    items = request.schema.own["properties"]["answer"]["properties"]["findings"]["items"]["properties"]
    assert list(items) == ["object", "phenomenon", "explanation"]
