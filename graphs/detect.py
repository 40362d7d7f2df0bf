"""Detection as a LangGraph graph: the verdict, then the anomalies or the content, as the verdict says.

The context is a `Conversation`. A picture without a clear verdict is asked nothing further.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from uncanny.agents.failure import StepFailedError
from uncanny.agents.source_detector import Conversation, Listing, Verdict
from uncanny.schema import StepError


class DetectState(TypedDict, total=False):
    """`image` is its name, given. `failure` is why a turn has no answer; later ones are then left out."""

    image: str
    verdict: Verdict
    listing: Listing
    description: str
    failure: StepError


async def judge(state: DetectState, runtime: Runtime[Conversation]) -> DetectState:  # noqa: ARG001
    try:
        return {"verdict": await runtime.context.judge()}
    except StepFailedError as failed:
        return {"failure": failed.record}


async def list_anomalies(state: DetectState, runtime: Runtime[Conversation]) -> DetectState:
    try:
        return {"listing": await runtime.context.list_anomalies(state["verdict"])}
    except StepFailedError as failed:
        return {"failure": failed.record}


async def describe(state: DetectState, runtime: Runtime[Conversation]) -> DetectState:
    try:
        return {"description": await runtime.context.describe(state["verdict"])}
    except StepFailedError as failed:
        return {"failure": failed.record}


def after_verdict(state: DetectState) -> str:
    verdict = state.get("verdict")
    if verdict is None or verdict.source is None:
        return END
    return "list_anomalies" if verdict.source == "generated" else "describe"


@cache
def detect_graph() -> Any:
    """The compiled graph; its context is a `Conversation`."""
    graph = StateGraph(DetectState, context_schema=Conversation)
    graph.add_node("judge", judge)
    graph.add_node("list_anomalies", list_anomalies)
    graph.add_node("describe", describe)
    graph.add_edge(START, "judge")
    graph.add_conditional_edges("judge", after_verdict, ["list_anomalies", "describe", END])
    graph.add_edge("list_anomalies", END)
    graph.add_edge("describe", END)
    return graph.compile(name="detect")
