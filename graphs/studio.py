"""The same state machine with a node for every agent, to look at and step through in LangGraph Studio.

`langgraph dev` serves it. Input: `{"image": "/path/to/picture.png"}`; the model is chosen in the context,
`demo` by default, which knows the bundled scenes. Slower than the flat form, and the same functions.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from uncanny.agents.annotate_config import AnnotateConfig
from uncanny.agents.context import ImageContext
from uncanny.client.budget import worst_case
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import guarded_endpoint
from uncanny.graphs.annotate import (
    AnnotateState,
    Branch,
    examined,
    fan_out,
    format_node,
    perceive_node,
    scan_node,
)
from uncanny.graphs.object_step import ObjectState, attribute_step, integrate_step, relation_step
from uncanny.images import PixelPolicy, SendLimits, prepare
from uncanny.models.base import ModelProvider, Tokens, encode_image
from uncanny.models.registry import Access, open_model, parse_model

KEPT_IMAGES = 8


@dataclass(frozen=True)
class StudioContext:
    """What can be set in Studio's context panel. Keys come from the server's environment."""

    model: str = "demo"
    base_url: str | None = None
    repeats: int = 3
    max_objects: int = 12
    scene_scans: int = 0
    concurrency: int = 8


class StudioInput(TypedDict):
    """`image` is the path of a file on the machine that serves the graph."""

    image: str


_providers: dict[tuple[str, str | None], ModelProvider] = {}
_contexts: OrderedDict[tuple[str, StudioContext], ImageContext] = OrderedDict()


async def image_context(image: str, context: StudioContext | None, *, afresh: bool = False) -> ImageContext:
    """The open image; the last few are kept, since every node asks for it. Raises UncannyError.

    With `afresh`, one that was ended in an earlier run is opened anew.
    """
    context = context or StudioContext()
    key = (image, context)
    if afresh and key in _contexts and _contexts[key].scope.ended is not None:
        del _contexts[key]
    if key not in _contexts:
        _contexts[key] = await asyncio.to_thread(_open, image, context)
        while len(_contexts) > KEPT_IMAGES:
            _contexts.popitem(last=False)
    return _contexts[key]


def _open(image: str, context: StudioContext) -> ImageContext:
    name = (context.model, context.base_url)
    if name not in _providers:
        _providers[name] = open_model(parse_model(context.model), Access(context.base_url))
    provider = _providers[name]
    capabilities = provider.capabilities
    limits = SendLimits(capabilities.media_types, capabilities.max_image_bytes, capabilities.max_image_side)
    prepared = prepare(Path(image), PixelPolicy(), limits)
    sent = encode_image(
        sha256=prepared.sent_sha256,
        media_type=prepared.media_type,
        width=prepared.sent_width,
        height=prepared.sent_height,
        data=prepared.sent,
    )

    def no_price(_tokens: Tokens) -> None:
        return None

    own = guarded_endpoint(
        provider, context.concurrency, price=no_price, worst_case=lambda r: worst_case(provider.name, r)
    )
    config = AnnotateConfig(
        repeats=context.repeats, max_objects=context.max_objects, scene_scans=context.scene_scans
    )
    return ImageContext(sent, ModelClient({"": [own]}), CallScope(image), config)


class _ObjectInput(ObjectState):
    order: int


class _ObjectOutput(TypedDict):
    examined: list[Any]


async def _attributes(state: _ObjectInput, runtime: Runtime[StudioContext]) -> ObjectState:
    image = await image_context(state["image"], runtime.context)
    with image.scope.branch():
        return await attribute_step(state, image)
    return {}


async def _relations(state: _ObjectInput, runtime: Runtime[StudioContext]) -> ObjectState:
    image = await image_context(state["image"], runtime.context)
    with image.scope.branch():
        return await relation_step(state, image)
    return {}


async def _integrate(state: _ObjectInput, runtime: Runtime[StudioContext]) -> ObjectState:
    image = await image_context(state["image"], runtime.context)
    with image.scope.branch():
        return await integrate_step(state, image)
    return {}


def _collect(state: _ObjectInput) -> AnnotateState:
    return examined(state["order"], state)


def _object_graph() -> Any:
    def after(result: str, following: str) -> Any:
        return lambda state: following if result in state else "collect"

    graph = StateGraph(_ObjectInput, context_schema=StudioContext, output_schema=_ObjectOutput)
    graph.add_node("AttributeAnalyzer", _attributes)
    graph.add_node("RelationReasoner", _relations)
    graph.add_node("AnomalyIntegrator", _integrate)
    graph.add_node("collect", _collect)
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


async def _perceive(state: AnnotateState, runtime: Runtime[StudioContext]) -> AnnotateState:
    return await perceive_node(state, await image_context(state["image"], runtime.context, afresh=True))


async def _scan(state: Branch, runtime: Runtime[StudioContext]) -> AnnotateState:
    return await scan_node(state, await image_context(state["image"], runtime.context))


async def _format(state: AnnotateState, runtime: Runtime[StudioContext]) -> AnnotateState:
    return await format_node(state, await image_context(state["image"], runtime.context))


def _branches(state: AnnotateState, runtime: Runtime[StudioContext]) -> list[Send] | str:
    return fan_out(state, (runtime.context or StudioContext()).scene_scans)


def studio_graph() -> Any:
    """Compile it."""
    graph = StateGraph(AnnotateState, context_schema=StudioContext, input_schema=StudioInput)
    graph.add_node("perceive", _perceive)
    graph.add_node("examine", _object_graph())
    graph.add_node("scan", _scan)
    graph.add_node("format", _format)
    graph.add_edge(START, "perceive")
    graph.add_conditional_edges("perceive", _branches, ["examine", "scan", "format", END])
    graph.add_edge("examine", "format")
    graph.add_edge("scan", "format")
    graph.add_edge("format", END)
    return graph.compile(name="annotate")


graph = studio_graph()
