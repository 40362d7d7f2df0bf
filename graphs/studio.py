"""The annotation graphs with a node for every agent, to look at and step through in LangGraph Studio.

`langgraph dev` serves them, `annotate` and `annotate_paper`. Input: `{"image": "/path/to/picture.png"}`; the
model is chosen in the context, `demo` by default, which knows the bundled scenes. They are the graphs of
runs, the paper's opened up, with images that are read and encoded here.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from uncanny.agents.common.annotate_context import Context
from uncanny.agents.config import AnnotateConfig, Strictness
from uncanny.agents.steps import ScheduleName
from uncanny.client.budget import worst_case
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.client.endpoint import guarded_endpoint
from uncanny.graphs.annotate import AnnotateGraph, build_graph
from uncanny.graphs.packed import PackedGraph, build_packed_graph
from uncanny.images.encode import PixelPolicy, SendLimits
from uncanny.images.prepared import prepare
from uncanny.models.base import ModelProvider, sent_image
from uncanny.models.registry import Access, open_model, parse_model
from uncanny.prompts import prompt_set

KEPT_IMAGES = 8


@dataclass(frozen=True)
class StudioContext:
    """What can be set in Studio's context panel. Keys come from the server's environment."""

    model: str = "demo"
    base_url: str | None = None
    repeats: int | None = None
    max_objects: int = 12
    scene_scans: int | None = None
    strictness: Strictness = "open"
    concurrency: int = 8


_providers: dict[tuple[str, str | None], ModelProvider] = {}
_contexts: OrderedDict[tuple[str, StudioContext, ScheduleName], Context] = OrderedDict()


async def image_context(
    image: str, context: StudioContext | None, begun: bool = False, schedule: ScheduleName = "packed"
) -> Context:
    """The open image at path `image`; the last few are kept, since every node needs it. Raises UncannyError.

    Where a run is `begun` with it, an image that was ended in an earlier run is opened anew.
    """
    context = context or StudioContext()
    key = (image, context, schedule)
    if begun and key in _contexts and _contexts[key].scope.ended is not None:
        del _contexts[key]
    if key not in _contexts:
        _contexts[key] = await asyncio.to_thread(_open, image, context, schedule)
        while len(_contexts) > KEPT_IMAGES:
            _contexts.popitem(last=False)
    return _contexts[key]


def _open(image: str, context: StudioContext, schedule: ScheduleName) -> Context:
    name = (context.model, context.base_url)
    if name not in _providers:
        _providers[name] = open_model(parse_model(context.model), Access(context.base_url))
    provider = _providers[name]
    capabilities = provider.capabilities
    limits = SendLimits(capabilities.media_types, capabilities.max_image_bytes, capabilities.max_image_side)
    prepared = prepare(Path(image), PixelPolicy(), limits)
    own = guarded_endpoint(
        provider,
        context.concurrency,
        price=lambda _tokens: None,
        worst_case=partial(worst_case, provider.name),
    )
    times = {"repeats": context.repeats, "scene_scans": context.scene_scans}
    config = AnnotateConfig.model_validate(
        {
            "schedule": schedule,
            "max_objects": context.max_objects,
            "strictness": context.strictness,
            **{name: number for name, number in times.items() if number is not None},
        }
    )
    return Context(
        ModelClient({"": [own]}),
        CallScope(image),
        config,
        prompt_set(config.table.prompts),
        sent_image(prepared),
        size=(prepared.width, prepared.height),
        source=Path(image),
    )


graph: PackedGraph[StudioContext] = build_packed_graph(image_context, StudioContext)
paper_graph: AnnotateGraph[StudioContext] = build_graph(
    partial(image_context, schedule="paper"), StudioContext, stepwise=True
)
