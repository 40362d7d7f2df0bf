"""Nodes of the user's own in place of the graph's, or a whole graph over the same state."""

from __future__ import annotations

from functools import partial
from typing import Any, cast

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from tests.agents.specialists import Specialists, scene_object
from tests.graphs.test_annotate_graph import errors, formatted
from uncanny.agents.common.annotate_context import (
    AnnotateContext,
    AnnotateState,
    Context,
    ObjectState,
    ScanState,
)
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import Step
from uncanny.answers.forms import AttributeFinding, Finding
from uncanny.errors import RequestRejectedError, UsageError
from uncanny.graphs.annotate import (
    AnnotateInput,
    AnnotateNodes,
    annotate_graph,
    build_graph,
    graph_names,
    node_names,
)
from uncanny.schema import Anomaly

HERE = __name__
LOOK = Step("MyAnalyzer", 1, "mine")


async def two_objects(_state: AnnotateState, _image: Context) -> AnnotateState:
    return {"objects": [scene_object("lamp"), scene_object("door")], "cut": []}


async def my_attributes(state: ObjectState, image: Context) -> ObjectState:
    """Asked through the context, with a text of one's own."""
    name = state["subject"].name
    messages = image.opening((image.image,), f"What is odd about {name}?")
    text = await image.generate(LOOK, messages, str.strip, subject=name, prompt_id="mine@1")
    return {"attributes": [AttributeFinding(name="odd", observed=text, explanation="x")]}


async def no_relations(_state: ObjectState, _image: Context) -> ObjectState:
    return {"relations": []}


async def copy_attributes(state: ObjectState, _image: Context) -> ObjectState:
    name = state["subject"].name
    return {
        "findings": [
            Finding(object=name, phenomenon=each.observed, explanation="x") for each in state["attributes"]
        ]
    }


async def my_scan(state: ScanState, _image: Context) -> ScanState:
    return {"findings": [Finding(object="scene", phenomenon=f"scan {state['order']}", explanation="x")]}


async def count_findings(state: AnnotateState, _image: Context) -> AnnotateState:
    number = sum(len(branch["findings"]) for branch in state["examined"])
    return {"anomalies": [Anomaly(name="all", phenomenon=str(number), reasoning="x", severity=5)]}


ALL: AnnotateNodes = {
    "perceive": two_objects,
    "attributes": my_attributes,
    "relations": no_relations,
    "integrate": copy_attributes,
    "scan": my_scan,
    "format": count_findings,
}


async def run(
    specialists: Specialists, nodes: AnnotateNodes, *, stepwise: bool = False, scans: int = 0
) -> AnnotateState:
    async def same(_image: str, context: Context, _begun: bool) -> Context:
        return context

    graph = build_graph(same, AnnotateContext, nodes, stepwise=True) if stepwise else annotate_graph(nodes)
    image = specialists.context(AnnotateConfig(schedule="paper", scene_scans=scans))
    return cast(AnnotateState, await graph.ainvoke({"image": "a.png"}, context=image))


@pytest.mark.parametrize("stepwise", [False, True])
async def test_every_node_can_be_replaced(stepwise: bool) -> None:
    specialists = Specialists("cup")
    state = await run(specialists, ALL, stepwise=stepwise, scans=2)
    assert [item.name for item in state["objects"]] == ["lamp", "door"]
    assert [anomaly.phenomenon for anomaly in state["anomalies"]] == ["4"]
    requests = [(request.agent, request.subject) for request in specialists.model.requests]
    assert requests == [("MyAnalyzer", "lamp"), ("MyAnalyzer", "door")]


async def test_one_node_is_replaced_and_the_others_stay() -> None:
    specialists = Specialists("cup")
    state = await run(specialists, {"attributes": my_attributes})
    assert {request.agent for request in specialists.model.requests} == {
        "ObjectPerceiver",
        "MyAnalyzer",
        "RelationReasoner",
        "AnomalyIntegrator",
        "AnomalyFormatter",
    }
    assert formatted(specialists) == ["cup 0"]
    assert errors(state) == []
    # The graph of runs is another one.
    again = Specialists("cup")
    await annotate_graph().ainvoke({"image": "a.png"}, context=again.context())
    assert not any(request.agent == "MyAnalyzer" for request in again.model.requests)


@pytest.mark.parametrize("stepwise", [False, True])
async def test_a_call_of_an_own_node_that_fails_is_recorded_as_a_step_of_its_agent(stepwise: bool) -> None:
    specialists = Specialists("cup", "table")
    specialists.answers["MyAnalyzer", 1, "table"] = lambda _: RequestRejectedError("no")
    state = await run(specialists, {"attributes": my_attributes}, stepwise=stepwise)
    assert errors(state) == [("MyAnalyzer", 1, "table")]
    assert formatted(specialists) == ["cup 0"]


@pytest.mark.parametrize("stepwise", [False, True])
@pytest.mark.parametrize(("name", "result"), [("attributes", "attributes"), ("format", "anomalies")])
async def test_a_node_without_its_result_is_a_defect_that_is_named(
    name: str, result: str, stepwise: bool
) -> None:
    async def nothing(_state: object, _image: Context) -> dict[str, Any]:
        return {}

    nodes = cast(AnnotateNodes, {name: nothing})
    with pytest.raises(TypeError, match=rf"node '{name}' \(.*nothing\) sets no '{result}'"):
        await run(Specialists("cup"), nodes, stepwise=stepwise)


def test_a_name_that_is_no_node_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no node 'atributes'") as refused:
        annotate_graph(cast(AnnotateNodes, {"atributes": my_attributes}))
    assert "attributes, format, integrate, perceive, relations, scan" in str(refused.value)


@pytest.mark.parametrize("node", [lambda state, _image: state, "mine", None])
def test_what_is_not_an_async_function_is_refused(node: object) -> None:
    with pytest.raises(UsageError, match="Node 'scan' must be an async function") as refused:
        annotate_graph(cast(AnnotateNodes, {"scan": node}))
    assert "async def" in str(refused.value)


class Called:
    """A node with a state of its own."""

    async def __call__(self, state: ScanState, image: Context) -> ScanState:
        return await my_scan(state, image)


def test_what_was_replaced_has_a_name_for_the_record() -> None:
    assert node_names({"scan": my_scan, "format": count_findings}) == {
        "scan": f"{HERE}:my_scan",
        "format": f"{HERE}:count_findings",
    }
    assert node_names({"scan": Called()}) == {"scan": f"{HERE}:Called"}
    assert node_names({"scan": partial(my_scan)}) == {"scan": f"{HERE}:my_scan"}
    assert node_names({}) == {}


async def everything(state: AnnotateState, runtime: Runtime[Context]) -> AnnotateState:  # noqa: ARG001
    text = await runtime.context.generate(
        LOOK, runtime.context.opening((runtime.context.image,), "All?"), str, prompt_id="mine@1"
    )
    return {"objects": [], "anomalies": [Anomaly(name="all", phenomenon=text, reasoning="x", severity=5)]}


async def test_a_whole_graph_over_the_same_state_is_run_alike() -> None:
    graph = StateGraph(AnnotateState, AnnotateContext, input_schema=AnnotateInput)
    graph.add_node("everything", everything)
    graph.add_edge(START, "everything")
    graph.add_edge("everything", END)
    compiled = graph.compile()
    specialists = Specialists()
    state = cast(AnnotateState, await compiled.ainvoke({"image": "a.png"}, context=specialists.context()))
    assert [anomaly.phenomenon for anomaly in state["anomalies"]] == ["Notes on scene."]
    assert graph_names(compiled) == {"everything": f"{HERE}:everything"}


def test_a_graph_made_of_own_nodes_is_recorded_by_them() -> None:
    graph = annotate_graph({"attributes": my_attributes, "format": count_findings})
    assert graph_names(graph) == {
        "attributes": f"{HERE}:my_attributes",
        "format": f"{HERE}:count_findings",
    }
    assert graph_names(annotate_graph()) == {}
