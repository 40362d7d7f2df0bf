"""The packed schedule of the annotation of one image as a LangGraph state machine, and the single one.

::

    perceive ──► attributes (one Send per batch) ──► integrate ──► format
             └─► relations (one Send per batch) ───┘
    scan (one Send per scene scan), beside perceive

A node for every agent, in runs and in Studio alike: there are few of them. Where nothing is found, or
there is no list of objects, integrate and format ask nothing. `single` is one node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from itertools import pairwise
from typing import Final, Literal, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from langgraph.typing import ContextT

from uncanny.agents.anomaly_formatter import write_anomalies
from uncanny.agents.anomaly_integrator import judge
from uncanny.agents.attribute_analyzer import analyze_batch
from uncanny.agents.object_perceiver import take_inventory
from uncanny.agents.relation_reasoner import relate_batch
from uncanny.agents.scene_scanner import list_anomalies, scan_openly
from uncanny.agents.state import BatchState, Context, PackedState, ScanState, Sighting
from uncanny.agents.steps import ScheduleName
from uncanny.errors import StepFailedError
from uncanny.graphs.annotate import (
    REPLACED,
    AnnotateGraph,
    AnnotateInput,
    AnnotateNodes,
    OpenImage,
    annotate_graph,
    checked,
    node_names,
    same_image,
)

PackedNode = Literal["perceive", "attributes", "relations", "integrate", "scan", "format"]


class PackedNodes(TypedDict, total=False):
    """Nodes of the packed schedule by name, as `AnnotateNodes` of the paper's."""

    perceive: Callable[[PackedState, Context], Awaitable[PackedState]]
    attributes: Callable[[BatchState, Context], Awaitable[BatchState]]
    relations: Callable[[BatchState, Context], Awaitable[BatchState]]
    integrate: Callable[[PackedState, Context], Awaitable[PackedState]]
    scan: Callable[[ScanState, Context], Awaitable[Sighting]]
    format: Callable[[PackedState, Context], Awaitable[PackedState]]


PACKED_NODES: Final[PackedNodes] = {
    "perceive": take_inventory,
    "attributes": analyze_batch,
    "relations": relate_batch,
    "integrate": judge,
    "scan": scan_openly,
    "format": write_anomalies,
}
# The key that a node has to set.
PACKED_RESULTS: Final[Mapping[str, str]] = {
    "perceive": "objects",
    "attributes": "findings",
    "relations": "findings",
    "integrate": "faults",
    "scan": "findings",
    "format": "anomalies",
}
PackedGraph = CompiledStateGraph[PackedState, ContextT, AnnotateInput, PackedState]


def packed_graph(nodes: PackedNodes | None = None) -> PackedGraph[Context]:
    """The compiled packed graph of runs; its context is the `AnnotateContext` of the image.

    `nodes` are put in place of those with the same names. Raises UsageError as `annotate_graph` does.
    """
    return build_packed_graph(same_image, Context, nodes) if nodes else _packed_graph_of_runs()


@cache
def _packed_graph_of_runs() -> PackedGraph[Context]:
    return build_packed_graph(same_image, Context)


def build_packed_graph(
    open_image: OpenImage[ContextT], context_schema: type[ContextT], nodes: PackedNodes | None = None
) -> PackedGraph[ContextT]:
    """The graph for any context that `open_image` makes a `Context` of.

    `nodes` are put in place of those with the same names. Raises UsageError as `annotate_graph` does.
    """
    nodes = nodes or {}
    replaced = node_names(nodes, PACKED_RESULTS)
    active: PackedNodes = {**PACKED_NODES, **nodes}

    async def perceive(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        with image.scope.branch():
            try:
                update = await active["perceive"](state, image)
                return {"cut": [], **checked("perceive", active, update, PACKED_RESULTS)}
            except StepFailedError as failed:
                return {"failure": failed.record}
        return {}

    async def scans(state: PackedState, runtime: Runtime[ContextT]) -> list[Send]:
        image = await open_image(state["image"], runtime.context, True)
        return [
            Send("scan", {"image": state["image"], "order": number})
            for number in range(image.config.scene_scans)
        ]

    async def scan(state: ScanState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        order = 2 * image.config.max_objects + state["order"]
        with image.scope.branch():
            try:
                sighting = checked("scan", active, await active["scan"](state, image), PACKED_RESULTS)
            except StepFailedError as failed:
                return {"sightings": [_unanswered(order, failed)]}
            return {"sightings": [{"errors": [], "answered": True, **sighting, "order": order}]}
        return {}

    async def fan_out(state: PackedState, runtime: Runtime[ContextT]) -> list[Send] | str:
        # Without objects: integrate raises what ended the image, once the scans are back as well.
        if state.get("failure") or "objects" not in state:
            return "integrate"
        image = await open_image(state["image"], runtime.context, False)
        return batches(state, image.config.batch_objects) or "integrate"

    def examine(name: Literal["attributes", "relations"]) -> Callable[..., Awaitable[PackedState]]:
        async def examine_batch(state: BatchState, runtime: Runtime[ContextT]) -> PackedState:
            image = await open_image(state["image"], runtime.context, False)
            with image.scope.branch():
                try:
                    result = checked(name, active, await active[name](state, image), PACKED_RESULTS)
                except StepFailedError as failed:
                    return {"sightings": [_unanswered(state["order"], failed)]}
                return {
                    "sightings": [
                        {
                            "order": state["order"],
                            "findings": result["findings"],
                            "errors": result.get("errors", []),
                            "answered": result.get("answered", True),
                        }
                    ]
                }
            return {}

        return examine_batch

    async def integrate(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        image.scope.check()  # raises what ended one of the branches: by now all of them are back
        if state.get("failure"):
            return {}
        try:
            update = checked("integrate", active, await active["integrate"](state, image), PACKED_RESULTS)
            return {"candidates": [], **update}
        except StepFailedError as failed:
            return {"failure": failed.record}

    async def write(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        try:
            return checked("format", active, await active["format"](state, image), PACKED_RESULTS)
        except StepFailedError as failed:
            return {"failure": failed.record}

    def metadata(name: PackedNode) -> dict[str, dict[str, str]]:
        return {REPLACED: {name: replaced[name]} if name in replaced else {}}

    graph = StateGraph(PackedState, context_schema, input_schema=AnnotateInput)
    graph.add_node("perceive", perceive, metadata=metadata("perceive"))
    graph.add_node("scan", scan, input_schema=ScanState, metadata=metadata("scan"))
    graph.add_node(
        "attributes", examine("attributes"), input_schema=BatchState, metadata=metadata("attributes")
    )
    graph.add_node("relations", examine("relations"), input_schema=BatchState, metadata=metadata("relations"))
    graph.add_node("integrate", integrate, metadata=metadata("integrate"))
    graph.add_node("format", write, metadata=metadata("format"))
    graph.add_edge(START, "perceive")
    graph.add_conditional_edges(START, scans, ["scan"])
    graph.add_conditional_edges("perceive", fan_out, ["attributes", "relations", "integrate"])
    graph.add_edge("attributes", "integrate")
    graph.add_edge("relations", "integrate")
    graph.add_conditional_edges(
        "integrate", lambda state: END if state.get("failure") else "format", ["format", END]
    )
    graph.add_edge("format", END)
    return graph.compile(name="annotate")


def batches(state: PackedState, most: int) -> list[Send]:
    """One for each batch and each of the two agents; batches are as equal in size as can be."""
    objects = state["objects"]
    if not objects:
        return []
    count = -(-len(objects) // most)
    ends = [round(len(objects) * part / count) for part in range(count + 1)]
    sends: list[Send] = []
    for number, (first, last) in enumerate(pairwise(ends)):
        for offset, agent in enumerate(("attributes", "relations")):
            batch: BatchState = {
                "image": state["image"],
                "order": 2 * number + offset,
                "batch": tuple(range(first + 1, last + 1)),
                "objects": objects,
                "cut": state["cut"],
            }
            sends.append(Send(agent, batch))
    return sends


def _unanswered(order: int, failed: StepFailedError) -> Sighting:
    return {"order": order, "findings": [], "errors": [failed.record], "answered": False}


@cache
def single_graph() -> PackedGraph[Context]:
    """The compiled graph of the single schedule."""
    return build_single_graph(same_image, Context)


def build_single_graph(
    open_image: OpenImage[ContextT], context_schema: type[ContextT]
) -> PackedGraph[ContextT]:
    """One look at the image, answered by the whole list."""

    async def examine(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, True)
        try:
            return await list_anomalies(state, image)
        except StepFailedError as failed:
            return {"failure": failed.record}

    graph = StateGraph(PackedState, context_schema, input_schema=AnnotateInput)
    graph.add_node("list", examine, metadata={REPLACED: {}})
    graph.add_edge(START, "list")
    graph.add_edge("list", END)
    return graph.compile(name="annotate")


def schedule_graph(
    schedule: ScheduleName, nodes: AnnotateNodes | PackedNodes | None = None
) -> AnnotateGraph[Context] | PackedGraph[Context]:
    """The compiled graph of runs with a schedule, with `nodes` in place of those of the same names.

    Raises UsageError for a name that is none of its nodes, and for what is no coroutine function.
    """
    match schedule:
        case "packed":
            return packed_graph(cast("PackedNodes | None", nodes))
        case "paper":
            return annotate_graph(cast("AnnotateNodes | None", nodes))
        case "single":
            return single_graph()
