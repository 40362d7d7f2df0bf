"""Detection as a LangGraph graph, one for each protocol; the context is the `ImageContext` of the image.

`conversation`: the verdict, then the anomalies or the content, as the verdict says; an image without a clear
verdict is asked nothing further. `independent`: the verdict and the anomalies, side by side.
"""

from __future__ import annotations

from functools import cache
from typing import TypedDict, assert_never

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from uncanny.agents.common.context import ImageContext
from uncanny.agents.config import DetectConfig, DetectProtocol
from uncanny.agents.source_detector import (
    Listing,
    Verdict,
    describe_content,
    judge_source,
    judge_source_alone,
    list_anomalies,
    list_anomalies_alone,
)
from uncanny.errors import StepFailedError
from uncanny.schema import StepError

Context = ImageContext[DetectConfig]


class DetectState(TypedDict, total=False):
    """`image` is its name, given. `failure` is why a turn has no answer; later ones are then left out.

    `listing_failure` is the same of the anomalies where the calls are independent.
    """

    image: str
    verdict: Verdict
    listing: Listing
    description: str
    failure: StepError
    listing_failure: StepError


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


async def judge_alone(state: DetectState, runtime: Runtime[Context]) -> DetectState:  # noqa: ARG001
    with runtime.context.scope.branch():
        try:
            return {"verdict": await judge_source_alone(runtime.context)}
        except StepFailedError as failed:
            return {"failure": failed.record}
    return {}


async def list_alone(state: DetectState, runtime: Runtime[Context]) -> DetectState:  # noqa: ARG001
    with runtime.context.scope.branch():
        try:
            return {"listing": await list_anomalies_alone(runtime.context)}
        except StepFailedError as failed:
            return {"listing_failure": failed.record}
    return {}


async def end_node(state: DetectState, runtime: Runtime[Context]) -> DetectState:  # noqa: ARG001
    """Raises what ended one of the two calls: by now both are back."""
    runtime.context.scope.check()
    return {}


DetectGraph = CompiledStateGraph[DetectState, Context, DetectState, DetectState]


@cache
def detect_graph(protocol: DetectProtocol = "conversation") -> DetectGraph:
    """The compiled graph of a protocol; its context is the `ImageContext` of the image."""
    graph = StateGraph(DetectState, ImageContext)
    match protocol:
        case "conversation":
            graph.add_node("judge", judge)
            graph.add_node("list_anomalies", list_all)
            graph.add_node("describe", describe)
            graph.add_edge(START, "judge")
            graph.add_conditional_edges("judge", after_verdict, ["list_anomalies", "describe", END])
            graph.add_edge("list_anomalies", END)
            graph.add_edge("describe", END)
        case "independent":
            graph.add_node("judge", judge_alone)
            graph.add_node("list_anomalies", list_alone)
            graph.add_node("end", end_node)
            graph.add_edge(START, "judge")
            graph.add_edge(START, "list_anomalies")
            graph.add_edge(["judge", "list_anomalies"], "end")
            graph.add_edge("end", END)
        case _:
            assert_never(protocol)
    return graph.compile(name="detect")
