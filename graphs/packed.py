"""The packed schedule of the annotation of one image as a LangGraph state machine, and the single one.

::

    perceive ─► regions ─► attributes (one Send per batch) ─► integrate ─► format
    scan ──────┘       └─► relations ───────────────────────┘

`perceive` asks the first scan along with its draft where one model does both; further ones are nodes of their
own. `regions` asks nobody: it cuts out the parts that are looked at more closely. Agents of the user's own
look at each batch of these beside attributes, or at the image beside the scan. A node for every agent, in
runs and in Studio alike: there are few of them. Where nothing is found integrate and format ask nothing.
`single` is one node.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, TypedDict, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from langgraph.typing import ContextT

from uncanny.agents.anomaly_formatter import write_anomalies
from uncanny.agents.anomaly_integrator import judge
from uncanny.agents.common.annotate_context import (
    FIRST_OF_PARTS,
    BatchFinding,
    BatchState,
    Context,
    PackedState,
    ScanState,
    Sighting,
)
from uncanny.agents.common.batches import look_at_parts
from uncanny.agents.common.closer_look import enlarge_regions, questions
from uncanny.agents.common.own_agent import LookAtBatch, LookAtImage, OwnAgent, check_agents
from uncanny.agents.object_perceiver import look_once, take_inventory
from uncanny.agents.scene_scanner import list_anomalies, look_at_image
from uncanny.agents.steps import LOOKS, SCAN_IMAGE, TAKE_INVENTORY, ListStep, Per, ScheduleName
from uncanny.errors import ExtensionError, StepFailedError
from uncanny.graphs.annotate import (
    REPLACED,
    SCHEDULE,
    AnnotateGraph,
    AnnotateInput,
    AnnotateNodes,
    OpenImage,
    annotate_graph,
    checked,
    node_names,
    qualified_name,
    same_image,
)


class PackedNodes(TypedDict, total=False):
    """Nodes of the packed schedule by name, as `AnnotateNodes` of the paper's."""

    perceive: Callable[[PackedState, Context], Awaitable[PackedState]]
    regions: Callable[[PackedState, Context], Awaitable[PackedState]]
    attributes: LookAtBatch
    relations: LookAtBatch
    integrate: Callable[[PackedState, Context], Awaitable[PackedState]]
    scan: LookAtImage
    format: Callable[[PackedState, Context], Awaitable[PackedState]]


# Looks at enlarged parts of the image; the others are at the whole of it.
_OF_PARTS: Final[frozenset[Per]] = frozenset({"batch", "relations"})

PackedGraph = CompiledStateGraph[PackedState, ContextT, AnnotateInput, PackedState]
"""A compiled graph over the state of the schedule `packed`."""


def packed_graph(nodes: PackedNodes | None = None, agents: Sequence[OwnAgent] = ()) -> PackedGraph[Context]:
    """The compiled graph of the schedule `packed`; its context is the `AnnotateContext` of the image.

    `nodes` are put in place of those with the same names, `agents` are asked beside those of the schedule.
    Raises UsageError for a name that is not a node, for what is not an async function, and for two agents of
    one name.

    >>> uncanny.extend.packed_graph().name
    'annotate'
    """
    if nodes or agents:
        return build_packed_graph(same_image, Context, nodes, agents)
    return _packed_graph_of_runs()


@cache
def _packed_graph_of_runs() -> PackedGraph[Context]:
    return build_packed_graph(same_image, Context)


def build_packed_graph(
    open_image: OpenImage[ContextT],
    context_schema: type[ContextT],
    nodes: PackedNodes | None = None,
    agents: Sequence[OwnAgent] = (),
) -> PackedGraph[ContextT]:
    """The graph for any context that `open_image` makes a `Context` of; otherwise as `packed_graph`."""
    nodes = nodes or {}
    agents = check_agents(agents)
    # Nodes that look for faults, and what they look at; those of the user's own come last.
    looks: dict[str, Per] = {step.look: step.per for step in LOOKS}
    # The key that a node has to set.
    results = {"perceive": "objects", "regions": "regions", "integrate": "faults", "format": "anomalies"}
    results |= dict.fromkeys(looks, "findings")
    replaced = node_names(nodes, results) | {each.name: each.as_planned(qualified_name) for each in agents}
    looks |= {each.name: each.per for each in agents}
    results |= dict.fromkeys((each.name for each in agents), "findings")
    active: Mapping[str, Any] = {
        "perceive": take_inventory,
        "regions": enlarge_regions,
        "integrate": judge,
        "format": write_anomalies,
        **{step.look: looker(step) for step in LOOKS},
        **nodes,
        **{each.name: each.node() for each in agents},
    }
    at_image = [name for name, per in looks.items() if per not in _OF_PARTS]
    at_parts = [name for name in looks if name not in at_image]

    def looks_once(image: Context) -> bool:
        """Whether the draft and the first scan are one question: no node of either is the user's own."""
        asked = (TAKE_INVENTORY.agent, SCAN_IMAGE.agent)
        ours = not {"perceive", SCAN_IMAGE.look} & {*nodes}
        return ours and image.config.scene_scans > 0 and image.asked_jointly(*asked)

    def place(name: str, number: int, image: Context) -> int:
        """Where what a look found comes among all findings: of the whole image, then of its parts."""
        if name in at_parts:
            return FIRST_OF_PARTS + number * len(at_parts) + at_parts.index(name)
        times = times_of(image)
        return sum(times[looks[each]] for each in at_image[: at_image.index(name)]) + number

    def times_of(image: Context) -> Mapping[Per, int]:
        return image.config.times(0, jointly=False)

    async def update(name: str, state: PackedState, image: Context) -> PackedState:
        """What a node adds to the state, or why it failed."""
        try:
            added: PackedState = await active[name](state, image)
            return checked(name, active, added, results)
        except StepFailedError as failed:
            return {"failure": failed.record}

    async def perceive(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        with image.scope.branch():
            if not looks_once(image):
                return {"cut": [], **await update("perceive", state, image)}
            try:
                return await look_once(state, image)
            except StepFailedError as failed:
                return {"failure": failed.record}
        return {}

    async def look_at_image(state: PackedState, runtime: Runtime[ContextT]) -> list[Send]:
        image = await open_image(state["image"], runtime.context, True)
        times, once = times_of(image), looks_once(image)
        return [
            Send(name, {"image": state["image"], "order": number})
            for name in at_image
            for number in range(once and name == SCAN_IMAGE.look, times[looks[name]])
        ]

    async def regions(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        # Without objects: integrate raises what ended the image.
        if image.scope.ended is not None or state.get("failure") or "objects" not in state:
            return {"regions": []}
        return await update("regions", state, image)

    async def fan_out(state: PackedState, runtime: Runtime[ContextT]) -> list[Send] | str:
        if state.get("failure") or "objects" not in state:
            return "integrate"
        batches, related = questions(state, await open_image(state["image"], runtime.context, False))
        sends = [Send(name, batch) for batch in batches for name in at_parts if looks[name] == "batch"]
        if related is not None:
            sends += [Send(name, related) for name in at_parts if looks[name] == "relations"]
        return sends or "integrate"

    def look_of(name: str) -> Callable[..., Awaitable[PackedState]]:
        async def look(state: ScanState | BatchState, runtime: Runtime[ContextT]) -> PackedState:
            image = await open_image(state["image"], runtime.context, False)
            order = place(name, state["order"], image)
            with image.scope.branch():
                try:
                    seen = await active[name](state, image)
                    sighting: Sighting = checked(name, active, seen, results)
                except StepFailedError as failed:
                    unanswered: Sighting = {"findings": [], "errors": [failed.record], "answered": False}
                    return {"sightings": [{**unanswered, "order": order}]}
                check_findings(name, active, sighting)
                return {"sightings": [{"errors": [], "answered": True, **sighting, "order": order}]}
            return {}

        return look

    async def integrate(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        image.scope.check()  # raises what ended one of the branches: by now all of them are back
        return {} if state.get("failure") else {"candidates": [], **await update("integrate", state, image)}

    async def write(state: PackedState, runtime: Runtime[ContextT]) -> PackedState:
        image = await open_image(state["image"], runtime.context, False)
        return await update("format", state, image)

    def metadata(name: str) -> dict[str, Any]:
        return {SCHEDULE: "packed", REPLACED: {name: replaced[name]} if name in replaced else {}}

    graph = StateGraph(PackedState, context_schema, input_schema=AnnotateInput)
    graph.add_node("perceive", perceive, metadata=metadata("perceive"))
    graph.add_node("regions", regions, metadata=metadata("regions"))
    for name in looks:
        seen = BatchState if name in at_parts else ScanState
        graph.add_node(name, look_of(name), input_schema=seen, metadata=metadata(name))
    graph.add_node("integrate", integrate, metadata=metadata("integrate"))
    graph.add_node("format", write, metadata=metadata("format"))
    graph.add_edge(START, "perceive")
    graph.add_conditional_edges(START, look_at_image, at_image)
    for name in ("perceive", *at_image):
        graph.add_edge(name, "regions")
    graph.add_conditional_edges("regions", fan_out, [*at_parts, "integrate"])
    for name in at_parts:
        graph.add_edge(name, "integrate")
    graph.add_conditional_edges(
        "integrate", lambda state: END if state.get("failure") else "format", ["format", END]
    )
    graph.add_edge("format", END)
    return graph.compile(name="annotate")


def looker(step: ListStep[Any]) -> LookAtImage | LookAtBatch:
    """What a step of `LOOKS` does in the graph."""
    return partial(look_at_parts if step.per in _OF_PARTS else look_at_image, step)


def check_findings(name: str, nodes: Mapping[str, object], sighting: Sighting) -> None:
    """Raises ExtensionError where a look's findings are not those of this schedule."""
    for finding in sighting["findings"]:
        missing = BatchFinding.__required_keys__ - finding.keys() if isinstance(finding, Mapping) else None
        if missing != set():
            what = type(finding).__name__ if missing is None else f"no {', '.join(sorted(missing))}"
            raise ExtensionError(
                f"Node {name!r} ({qualified_name(nodes[name])}) returned findings that are not those of the "
                f"schedule `packed`: {what}",
                remedy="Return each as a `BatchFinding`; `as_findings` makes them of a model's answer.",
            )


@cache
def single_graph() -> PackedGraph[Context]:
    """The compiled graph of the single schedule: one look at the image, answered by the whole list."""

    async def examine(state: PackedState, runtime: Runtime[Context]) -> PackedState:
        try:
            return await list_anomalies(state, runtime.context)
        except StepFailedError as failed:
            return {"failure": failed.record}

    graph = StateGraph(PackedState, Context, input_schema=AnnotateInput)
    graph.add_node("list", examine, metadata={SCHEDULE: "single", REPLACED: {}})
    graph.add_edge(START, "list")
    graph.add_edge("list", END)
    return graph.compile(name="annotate_single")


def schedule_graph(
    schedule: ScheduleName,
    nodes: AnnotateNodes | PackedNodes | None = None,
    agents: Sequence[OwnAgent] = (),
) -> AnnotateGraph[Context] | PackedGraph[Context]:
    """The compiled graph of runs with a schedule, with `nodes` in place of those of the same names.

    `agents` are asked besides, by `packed` alone. Raises UsageError for a name that is none of its nodes, and
    for what is not an async function.
    """
    match schedule:
        case "packed":
            return packed_graph(cast("PackedNodes | None", nodes), agents)
        case "paper":
            return annotate_graph(cast("AnnotateNodes | None", nodes))
        case "single":
            return single_graph()
