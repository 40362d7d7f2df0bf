"""Detection as a LangGraph graph: the verdict, then the anomalies or the content, as the verdict says.

The context is the `ImageContext` of the image. An image without a clear verdict is asked nothing further.
"""

from __future__ import annotations

from functools import cache
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from uncanny.agents.config import DetectConfig
from uncanny.agents.context import ImageContext
from uncanny.agents.source_detector import (
    Listing,
    Verdict,
    describe_content,
    judge_source,
    list_anomalies,
)
from uncanny.errors import StepFailedError
from uncanny.schema import StepError

Context = ImageContext[DetectConfig]


class DetectState(TypedDict, total=False):
    """`image` is its name, given. `failure` is why a turn has no answer; later ones are then left out."""

    image: str
    verdict: Verdict
    listing: Listing
    description: str
    failure: StepError


async def judge(state: DetectState, runtime: Runtime[Context]) -> DetectState:  # noqa: ARG001
    try:
        return {"verdict": await judge_source(runtime.context)}
    except StepFailedError as failed:
        return {"failure": failed.record}


async def list_all(state: DetectState, runtime: Runtime[Context]) -> DetectState:
    try:
        return {"listing": await list_anomalies(runtime.context, state["verdict"])}
    except StepFailedError as failed:
        return {"failure": failed.record}


async def describe(state: DetectState, runtime: Runtime[Context]) -> DetectState:
    try:
        return {"description": await describe_content(runtime.context, state["verdict"])}
    except StepFailedError as failed:
        return {"failure": failed.record}


def after_verdict(state: DetectState) -> str:
    verdict = state.get("verdict")
    if verdict is None or verdict.source is None:
        return END
    return "list_anomalies" if verdict.source == "generated" else "describe"


@cache
def detect_graph() -> CompiledStateGraph[DetectState, Context, DetectState, DetectState]:
    """The compiled graph; its context is the `ImageContext` of the image."""
    graph = StateGraph(DetectState, ImageContext)
    graph.add_node("judge", judge)
    graph.add_node("list_anomalies", list_all)
    graph.add_node("describe", describe)
    graph.add_edge(START, "judge")
    graph.add_conditional_edges("judge", after_verdict, ["list_anomalies", "describe", END])
    graph.add_edge("list_anomalies", END)
    graph.add_edge("describe", END)
    return graph.compile(name="detect")
