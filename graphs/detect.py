"""Detection as a LangGraph graph, one for each protocol; the context is the `ImageContext` of the image.

`conversation`: the verdict, then the anomalies or the content, as the verdict says; an image without a clear
verdict is asked nothing further. `independent`: the verdict and the anomalies, side by side.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import cache
from typing import Any, TypedDict, assert_never

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


def turn(
    key: str,
    ask: Callable[[Context, DetectState], Awaitable[object]],
    failure: str = "failure",
    *,
    alone: bool = False,
) -> Callable[..., Awaitable[Any]]:
    """A node that sets `key` to what `ask` gives, or `failure` to why it gives nothing.

    One that is asked `alone` leaves what ends the run to the node that all come back to.
    """

    async def node(state: DetectState, runtime: Runtime[Context]) -> dict[str, object]:
        with runtime.context.scope.branch() if alone else nullcontext():
            try:
                return {key: await ask(runtime.context, state)}
            except StepFailedError as failed:
                return {failure: failed.record}
        return {}

    return node


def after_verdict(state: DetectState) -> str:
    verdict = state.get("verdict")
    if verdict is None or verdict.source is None:
        return END
    return "list_anomalies" if verdict.source == "generated" else "describe"


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
            graph.add_node("judge", turn("verdict", lambda image, _: judge_source(image)))
            listing = turn("listing", lambda image, state: list_anomalies(image, state["verdict"]))
            graph.add_node("list_anomalies", listing)
            described = turn("description", lambda image, state: describe_content(image, state["verdict"]))
            graph.add_node("describe", described)
            graph.add_edge(START, "judge")
            graph.add_conditional_edges("judge", after_verdict, ["list_anomalies", "describe", END])
            graph.add_edge("list_anomalies", END)
            graph.add_edge("describe", END)
        case "independent":
            judge = turn("verdict", lambda image, _: judge_source_alone(image), alone=True)
            graph.add_node("judge", judge)
            listing = turn(
                "listing", lambda image, _: list_anomalies_alone(image), "listing_failure", alone=True
            )
            graph.add_node("list_anomalies", listing)
            graph.add_node("end", end_node)
            graph.add_edge(START, "judge")
            graph.add_edge(START, "list_anomalies")
            graph.add_edge(["judge", "list_anomalies"], "end")
            graph.add_edge("end", END)
        case _:
            assert_never(protocol)
    return graph.compile(name="detect")
