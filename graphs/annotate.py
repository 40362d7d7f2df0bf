"""The annotation of one image as a LangGraph state machine.

::

    perceive ─► examine (one Send per object) ─► format
         └────► scan (one Send per scene scan) ───┘

`examine` is attributes → relations → integrate. In runs it is one node, since a node for each of the three
costs more than the rest of the bookkeeping together; in Studio it is a subgraph of three. Any of the six can
be replaced. There is no checkpointer: resuming is the answer cache's work, call by call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, Literal, TypedDict, TypeVar

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send
from langgraph.typing import ContextT

from uncanny.agents.anomaly_formatter import format_anomalies
from uncanny.agents.anomaly_integrator import integrate
from uncanny.agents.attribute_analyzer import analyze_attributes
from uncanny.agents.common.annotate_context import AnnotateState, Context, Examined, ObjectState, ScanState
from uncanny.agents.common.own_agent import is_coroutine_function
from uncanny.agents.object_perceiver import perceive
from uncanny.agents.relation_reasoner import reason_relations
from uncanny.agents.scene_scanner import scan_scene
from uncanny.answers.forms import Finding
from uncanny.errors import StepFailedError, UsageError
from uncanny.schema import SceneObject, StepError


class AnnotateInput(TypedDict):
    """`image` is the image's name in records; in Studio a path."""

    image: str


class Branch(TypedDict):
    """What one `examine` or `scan` begins with; the rest is for `examine`."""

    image: str
    order: int
    subject: SceneObject
    objects: list[SceneObject]
    cut: list[SceneObject]


S = TypeVar("S", AnnotateState, ObjectState, ScanState)
U = TypeVar("U")
Node = Callable[[S, Context], Awaitable[S]]
NodeName = Literal["perceive", "attributes", "relations", "integrate", "scan", "format"]


class AnnotateNodes(TypedDict, total=False):
    """Nodes by name: coroutine functions from what is known, and the image, to what they add to it.

    A node that has no result raises StepFailedError, as all that it asks through its `ImageContext` does.
    """

    perceive: Node[AnnotateState]
    attributes: Node[ObjectState]
    relations: Node[ObjectState]
    integrate: Node[ObjectState]
    scan: Node[ScanState]
    format: Node[AnnotateState]


NODES: Final[AnnotateNodes] = {
    "perceive": perceive,
    "attributes": analyze_attributes,
    "relations": reason_relations,
    "integrate": integrate,
    "scan": scan_scene,
    "format": format_anomalies,
}
# The key that a node has to set, or what comes after it has nothing to work on.
RESULTS: Final[Mapping[str, str]] = {
    "perceive": "objects",
    "attributes": "attributes",
    "relations": "relations",
    "integrate": "findings",
    "scan": "findings",
    "format": "anomalies",
}

# In the metadata of a compiled graph of ours: which of its nodes stand for nodes of the user's own, and whose
# schedule it is.
REPLACED: Final = "uncanny_replaced"
SCHEDULE: Final = "uncanny_schedule"

AnnotateGraph = CompiledStateGraph[AnnotateState, ContextT, AnnotateInput, AnnotateState]
"""A compiled graph over the state of the schedule `paper`."""
# From the image's name and the context that a graph is run with to the context of the image; True where the
# image is begun.
OpenImage = Callable[[str, ContextT, bool], Awaitable[Context]]


async def same_image(_image: str, context: Context, _begun: bool) -> Context:
    return context


def annotate_graph(nodes: AnnotateNodes | None = None) -> AnnotateGraph[Context]:
    """The compiled graph of the schedule `paper`; its context is the `AnnotateContext` of the image.

    `nodes` are put in place of those with the same names. Raises UsageError for a name that is none of them,
    and for what is not an async function.
    """
    return build_graph(same_image, Context, nodes) if nodes else _graph_of_runs()


@cache
def _graph_of_runs() -> AnnotateGraph[Context]:
    return build_graph(same_image, Context)


def build_graph(
    open_image: OpenImage[ContextT],
    context_schema: type[ContextT],
    nodes: AnnotateNodes | None = None,
    *,
    stepwise: bool = False,
) -> AnnotateGraph[ContextT]:
    """The graph for any context that `open_image` makes a `Context` of.

    `stepwise` gives each agent a node of its own. Raises UsageError as `annotate_graph` does.
    """
    nodes = nodes or {}
    replaced = node_names(nodes)
    active: AnnotateNodes = {**NODES, **nodes}

    async def perceive_image(state: AnnotateState, runtime: Runtime[ContextT]) -> AnnotateState:
        image = await open_image(state["image"], runtime.context, True)
        try:
            return checked("perceive", active, await active["perceive"](state, image))
        except StepFailedError as failed:
            return {"failure": failed.record}

    async def fan_out(state: AnnotateState, runtime: Runtime[ContextT]) -> list[Send] | str:
        if state.get("failure"):
            return END
        image = await open_image(state["image"], runtime.context, False)
        return branches(state, image.config.scene_scans) or "format"

    async def examine(state: Branch, runtime: Runtime[ContextT]) -> AnnotateState:
        image = await open_image(state["image"], runtime.context, False)
        known: ObjectState = {
            "image": state["image"],
            "order": state["order"],
            "subject": state["subject"],
            "objects": state["objects"],
            "cut": state.get("cut", []),
        }
        with image.scope.branch():
            try:
                known = {**known, **checked("attributes", active, await active["attributes"](known, image))}
                known = {**known, **checked("relations", active, await active["relations"](known, image))}
                known = {**known, **checked("integrate", active, await active["integrate"](known, image))}
            except StepFailedError as failed:
                return _examined(state["order"], (), failed.record)
            return _examined(state["order"], known["findings"])
        return {}

    async def scan(state: Branch, runtime: Runtime[ContextT]) -> AnnotateState:
        image = await open_image(state["image"], runtime.context, False)
        number = state["order"]
        after_objects = image.config.max_objects + number
        begin: ScanState = {"image": state["image"], "order": number}
        with image.scope.branch():
            try:
                done = checked("scan", active, await active["scan"](begin, image))
            except StepFailedError as failed:
                return _examined(after_objects, (), failed.record)
            return _examined(after_objects, done["findings"])
        return {}

    async def format_image(state: AnnotateState, runtime: Runtime[ContextT]) -> AnnotateState:
        image = await open_image(state["image"], runtime.context, False)
        image.scope.check()  # raises what ended one of the branches: by now all of them are back
        try:
            return checked("format", active, await active["format"](state, image))
        except StepFailedError as failed:
            return {"failure": failed.record}

    def metadata(*names: NodeName) -> dict[str, Any]:
        return {SCHEDULE: "paper", REPLACED: {name: replaced[name] for name in names if name in replaced}}

    graph = StateGraph(AnnotateState, context_schema, input_schema=AnnotateInput)
    graph.add_node("perceive", perceive_image, metadata=metadata("perceive"))
    objects = metadata("attributes", "relations", "integrate")
    if stepwise:
        graph.add_node("examine", _object_graph(open_image, context_schema, active), metadata=objects)
    else:
        graph.add_node("examine", examine, input_schema=Branch, metadata=objects)
    graph.add_node("scan", scan, input_schema=Branch, metadata=metadata("scan"))
    graph.add_node("format", format_image, metadata=metadata("format"))
    graph.add_edge(START, "perceive")
    graph.add_conditional_edges("perceive", fan_out, ["examine", "scan", "format", END])
    graph.add_edge("examine", "format")
    graph.add_edge("scan", "format")
    graph.add_edge("format", END)
    return graph.compile(name="annotate_paper")


def branches(state: AnnotateState, scans: int) -> list[Send]:
    """One for each object and each scene scan."""
    image, objects, cut = state["image"], state["objects"], state.get("cut", [])
    return [
        *(
            Send(
                "examine",
                {"image": image, "order": order, "subject": subject, "objects": objects, "cut": cut},
            )
            for order, subject in enumerate(objects)
        ),
        *(Send("scan", {"image": image, "order": number}) for number in range(scans)),
    ]


class ObjectOutput(TypedDict):
    examined: list[Examined]


def _object_graph(
    open_image: OpenImage[ContextT], context_schema: type[ContextT], nodes: AnnotateNodes
) -> CompiledStateGraph[ObjectState, ContextT, Branch, ObjectOutput]:
    """`examine` as a graph of three nodes, named for their agents: keys of the state have the other names."""

    def step(name: NodeName, node: Node[ObjectState]) -> Callable[..., Awaitable[ObjectState]]:
        async def run(state: ObjectState, runtime: Runtime[ContextT]) -> ObjectState:
            image = await open_image(state["image"], runtime.context, False)
            with image.scope.branch():
                try:
                    return checked(name, nodes, await node(state, image))
                except StepFailedError as failed:
                    return {"error": failed.record}
            return {}

        return run

    def after(result: str, following: str) -> Callable[[ObjectState], str]:
        return lambda state: following if result in state else "collect"

    def collect(state: ObjectState) -> AnnotateState:
        return _examined(state["order"], state.get("findings", ()), state.get("error"))

    graph = StateGraph(ObjectState, context_schema, input_schema=Branch, output_schema=ObjectOutput)
    graph.add_node("AttributeAnalyzer", step("attributes", nodes["attributes"]))
    graph.add_node("RelationReasoner", step("relations", nodes["relations"]))
    graph.add_node("AnomalyIntegrator", step("integrate", nodes["integrate"]))
    graph.add_node("collect", collect)
    graph.add_edge(START, "AttributeAnalyzer")
    graph.add_conditional_edges(
        "AttributeAnalyzer", after("attributes", "RelationReasoner"), ["RelationReasoner", "collect"]
    )
    graph.add_conditional_edges(
        "RelationReasoner", after("relations", "AnomalyIntegrator"), ["AnomalyIntegrator", "collect"]
    )
    graph.add_edge("AnomalyIntegrator", "collect")
    graph.add_edge("collect", END)
    return graph.compile(name="object")


def checked(name: str, nodes: Mapping[str, object], update: U, results: Mapping[str, str] = RESULTS) -> U:
    """What a node returned. Raises TypeError where that is no mapping, or lacks the node's result."""
    if not isinstance(update, Mapping):
        raise TypeError(
            f"node {name!r} ({qualified_name(nodes[name])}) returned {type(update).__name__}, not a mapping "
            f"with {results[name]!r}"
        )
    if results[name] not in update:
        raise TypeError(f"node {name!r} ({qualified_name(nodes[name])}) sets no {results[name]!r}")
    return update


def _examined(order: int, findings: Sequence[Finding], error: StepError | None = None) -> AnnotateState:
    return {"examined": [{"order": order, "findings": list(findings), "error": error}]}


def node_names(nodes: Mapping[str, object], results: Mapping[str, str] = RESULTS) -> dict[str, str]:
    """What stands in the place of which node, as `module:qualname`. Raises UsageError as `annotate_graph`.

    `results` has the names of all nodes of the graph.
    """
    names: dict[str, str] = {}
    if not isinstance(nodes, Mapping):
        raise UsageError(
            f"nodes must be a mapping from the name of a node to a function, not {nodes!r}",
            remedy=f"The names are {', '.join(sorted(results))}.",
        )
    for name, node in nodes.items():
        if name not in results:
            raise UsageError(
                f"The graph has no node {name!r}", remedy=f"Its nodes are {', '.join(sorted(results))}."
            )
        if not is_coroutine_function(node):
            raise UsageError(
                f"Node {name!r} must be an async function, not {node!r}",
                remedy="Write it as `async def node(state, image)`.",
            )
        names[name] = qualified_name(node)
    return names


def graph_names(graph: CompiledStateGraph[Any, Any, Any, Any]) -> dict[str, Any]:
    """The nodes of a compiled graph by name, as `module:qualname`; those of a subgraph as `node/its node`.

    Of a graph made by `annotate_graph` or `packed_graph` those alone that are not its own; agents that were
    added as `OwnAgent.as_planned` has them.
    """
    if not isinstance(graph, CompiledStateGraph):
        raise UsageError(
            f"graph must be a compiled LangGraph, not {graph!r}", remedy="Give what `.compile()` returns."
        )
    names: dict[str, Any] = {}
    for name, spec in graph.builder.nodes.items():
        replaced = (spec.metadata or {}).get(REPLACED)
        runnable = spec.runnable
        if replaced is not None:
            names |= replaced
        elif isinstance(runnable, CompiledStateGraph):
            names |= {f"{name}/{inner}": place for inner, place in graph_names(runnable).items()}
        else:
            function = getattr(runnable, "afunc", None) or getattr(runnable, "func", None) or runnable
            names[name] = qualified_name(function)
    return names


def graph_schedule(graph: CompiledStateGraph[Any, Any, Any, Any]) -> str | None:
    """The schedule that a graph was made for; None of one that is not ours."""
    made_for = ((spec.metadata or {}).get(SCHEDULE) for spec in graph.builder.nodes.values())
    return next((schedule for schedule in made_for if schedule is not None), None)


def qualified_name(function: object) -> str:
    """`module:qualname`, the same in every process; of an object that is called, that of its class."""
    while isinstance(function, partial):
        function = function.func
    named = function if hasattr(function, "__qualname__") else type(function)
    return f"{named.__module__}:{named.__qualname__}"
