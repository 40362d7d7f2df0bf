"""Graphs in place of uncanny's: one from nothing, and those of both schedules with the lab's nodes."""

from __future__ import annotations

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from lab_tools.agents import CALM_NODES, LIGHT, PAPER_NODES
from uncanny import Anomaly, SceneObject
from uncanny.errors import StepFailedError
from uncanny.extend import (
    AnnotateContext,
    AnnotateGraph,
    AnnotateInput,
    PackedGraph,
    PackedState,
    annotate_graph,
    packed_graph,
)


# LangGraph passes both by name.
async def look_once(state: PackedState, runtime: Runtime[AnnotateContext]) -> PackedState:  # noqa: ARG001
    """`anomalies`, or `failure` where the call failed."""
    try:
        faults = await runtime.context.items(LIGHT.step)
    except StepFailedError as failed:
        return {"failure": failed.record}
    names = dict.fromkeys(name for fault in faults for name in fault.objects)
    return {
        "objects": [SceneObject(name=name, description="named by a fault") for name in names],
        "anomalies": [
            Anomaly(name="light", phenomenon=each.observed, reasoning=each.explanation, severity=30)
            for each in faults
        ],
    }


def light_graph() -> PackedGraph[AnnotateContext]:
    """One look, one anomaly for each fault, no checks: `annotate(…, graph=light_graph())`."""
    builder = StateGraph(PackedState, AnnotateContext, input_schema=AnnotateInput)
    builder.add_node("look_once", look_once)
    builder.add_edge(START, "look_once")
    builder.add_edge("look_once", END)
    return builder.compile()


def calm_graph() -> PackedGraph[AnnotateContext]:
    """The graph of the schedule `packed` with a node and an agent of the lab."""
    return packed_graph(CALM_NODES, [LIGHT])


def paper_graph() -> AnnotateGraph[AnnotateContext]:
    """That of `paper`: `annotate(…, schedule="paper", graph=paper_graph())`."""
    return annotate_graph(PAPER_NODES)
