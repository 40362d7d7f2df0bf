"""The state machine over scripted agents: what fails where, what is kept, and in which order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import orjson
import pytest

from tests.agents.specialists import Answer, Specialists, listed
from tests.client.scripted import Line, text_response, texts
from uncanny.agents.common.annotate_context import AnnotateState
from uncanny.agents.common.context import STEP_ERRORS
from uncanny.agents.config import AnnotateConfig
from uncanny.errors import BudgetError, ModelUnusableError, RequestRejectedError
from uncanny.graphs.annotate import annotate_graph
from uncanny.models.base import ModelRequest

NO = RequestRejectedError("no")
FAILING: Answer = lambda _: NO  # noqa: E731


async def run(specialists: Specialists, **config: Any) -> AnnotateState:
    image = specialists.context(AnnotateConfig(schedule="paper", **config))
    return cast(AnnotateState, await annotate_graph().ainvoke({"image": "a.png"}, context=image))


def errors(state: AnnotateState) -> list[tuple[str, int, str | None]]:
    branches = sorted(state.get("examined", []), key=lambda branch: branch["order"])
    failures = [branch["error"] for branch in branches if branch["error"] is not None]
    return [(failure.agent, failure.step, failure.object) for failure in failures]


def formatted(specialists: Specialists) -> list[str]:
    """What the formatter was given, as the phenomenon of each finding."""
    (request,) = specialists.requests("AnomalyFormatter")
    text = texts(request, "user")[0]
    findings = text[text.rindex("<findings>") + 10 : text.rindex("</findings>")]
    return [finding["phenomenon"] for finding in orjson.loads(findings)]


async def test_all_objects_are_examined_and_their_findings_formatted() -> None:
    specialists = Specialists("cup", "table", "hand")
    state = await run(specialists)
    assert [item.name for item in state["objects"]] == ["cup", "table", "hand"]
    assert formatted(specialists) == ["cup 0", "table 0", "hand 0"]
    assert [anomaly.severity for anomaly in state["anomalies"]] == [7]
    assert (errors(state), state.get("failure"), state["cut"]) == ([], None, [])


async def test_every_relation_step_knows_all_objects() -> None:
    specialists = Specialists("cup", "table", "hand")
    await run(specialists)
    for request in specialists.requests("RelationReasoner"):
        context = request.messages[1].parts[1]
        assert isinstance(context, str)
        assert all(f'"name":"{name}"' in context for name in ("cup", "table", "hand"))


async def test_objects_above_the_limit_are_cut_and_recorded() -> None:
    specialists = Specialists("a1", "a2", "a3", "a4")
    state = await run(specialists, max_objects=2)
    assert [item.name for item in state["objects"]] == ["a1", "a2"]
    assert [item.name for item in state["cut"]] == ["a3", "a4"]
    assert {request.subject for request in specialists.requests("AttributeAnalyzer")} == {"a1", "a2"}
    # Who looks at relations, and who writes, knows that they are there.
    knowing = {
        request.agent
        for request in specialists.model.requests
        if any("a3; a4" in text for text in texts(request))
    }
    assert knowing == {"RelationReasoner", "AnomalyFormatter"}


@pytest.mark.parametrize("last_first", [False, True])
async def test_findings_stand_in_object_order_whoever_is_done_first(last_first: bool) -> None:
    names = [f"thing {n}" for n in range(5)]
    specialists = Specialists(*names)
    done = {name: asyncio.Event() for name in names}
    order = names[::-1] if last_first else names
    finished: list[str] = []

    def waiting(name: str) -> Callable[[ModelRequest], Any]:
        async def answer(_: ModelRequest) -> Line:
            before = order[: order.index(name)]
            await asyncio.gather(*(done[other].wait() for other in before))
            finished.append(name)
            done[name].set()
            return listed("findings", {"object": name, "phenomenon": name, "explanation": "x"})

        return answer

    for name in names:
        specialists.answers["AnomalyIntegrator", 2, name] = waiting(name)
    await run(specialists)
    assert finished == order
    assert formatted(specialists) == names


async def test_scans_join_the_findings_after_the_objects_in_order() -> None:
    specialists = Specialists("cup", "table")
    state = await run(specialists, scene_scans=3)
    assert formatted(specialists) == ["cup 0", "table 0", "scene 0", "scene 1", "scene 2"]
    assert len(state["examined"]) == 5


STEPS: list[tuple[str, int]] = [
    ("AttributeAnalyzer", 1),
    ("AttributeAnalyzer", 2),
    ("RelationReasoner", 1),
    ("RelationReasoner", 2),
    ("AnomalyIntegrator", 1),
    ("AnomalyIntegrator", 2),
]


@pytest.mark.parametrize(("agent", "step"), STEPS)
async def test_a_failed_step_ends_its_object_and_no_other(agent: str, step: int) -> None:
    specialists = Specialists("cup", "table", "hand")
    specialists.answers[agent, step, "table"] = FAILING
    state = await run(specialists)
    assert errors(state) == [(agent, step, "table")]
    assert formatted(specialists) == ["cup 0", "hand 0"]
    assert state.get("failure") is None
    about = [
        (request.agent, request.step) for request in specialists.model.requests if request.subject == "table"
    ]
    assert about == STEPS[: STEPS.index((agent, step)) + 1]


async def test_a_failed_scan_is_recorded_and_the_rest_goes_on() -> None:
    specialists = Specialists("cup")
    specialists.answers["SceneScanner", 1, None] = lambda request: (
        NO if request.sample == 0 else text_response('{"findings": []}')
    )
    state = await run(specialists, scene_scans=2)
    assert errors(state) == [("SceneScanner", 1, None)]
    assert formatted(specialists) == ["cup 0"]


async def test_a_failed_perceiver_ends_the_image() -> None:
    specialists = Specialists("cup")
    specialists.answers["ObjectPerceiver", 1, None] = FAILING
    state = await run(specialists, scene_scans=2)
    assert state["failure"] is not None
    assert state["failure"].agent == "ObjectPerceiver"
    assert {request.agent for request in specialists.model.requests} == {"ObjectPerceiver"}
    assert "anomalies" not in state


async def test_a_failed_formatter_ends_the_image() -> None:
    specialists = Specialists("cup")
    specialists.answers["AnomalyFormatter", 1, None] = FAILING
    state = await run(specialists)
    assert state["failure"] is not None
    assert state["failure"].agent == "AnomalyFormatter"
    assert "anomalies" not in state


async def test_nothing_found_is_an_answer_and_asks_no_formatter() -> None:
    specialists = Specialists("cup")
    specialists.answers["AttributeAnalyzer", 2, None] = lambda _: listed("attributes")
    specialists.answers["RelationReasoner", 2, None] = lambda _: listed("relations")
    state = await run(specialists)
    assert state["anomalies"] == []
    assert not specialists.requests("AnomalyIntegrator")
    assert not specialists.requests("AnomalyFormatter")


async def test_an_image_without_objects_asks_for_nothing_else() -> None:
    specialists = Specialists()
    state = await run(specialists)
    assert (state["objects"], state["anomalies"], errors(state)) == ([], [], [])
    assert {request.agent for request in specialists.model.requests} == {"ObjectPerceiver"}


async def test_scans_run_even_where_there_is_no_object() -> None:
    specialists = Specialists()
    await run(specialists, scene_scans=1)
    assert formatted(specialists) == ["scene 0"]


@pytest.mark.parametrize(("agent", "step"), [("ObjectPerceiver", 1), *STEPS, ("AnomalyFormatter", 1)])
async def test_what_ends_the_run_is_raised_as_it_is(agent: str, step: int) -> None:
    specialists = Specialists("cup", "table")
    specialists.answers[agent, step, None] = lambda _: ModelUnusableError("wrong key")
    with pytest.raises(ModelUnusableError, match="wrong key"):
        await run(specialists)
    assert specialists.model.now == 0


async def test_objects_are_examined_side_by_side() -> None:
    specialists = Specialists(*(f"thing {n}" for n in range(6)))
    await run(specialists)
    assert specialists.model.most >= 6


def test_budget_errors_are_no_step_failures() -> None:
    assert not issubclass(BudgetError, STEP_ERRORS)
    assert not issubclass(ModelUnusableError, STEP_ERRORS)
