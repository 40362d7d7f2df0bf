"""The graphs of the agents that write for image models.

`perturb_graph` has one node, the CaptionPerturber. `prompts_graph` is the PromptWriter: a first edit, with
`double` a second one that knows of it, or with `remove` the choice of an object alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from uncanny.agents.caption_perturber import perturb
from uncanny.agents.context import AgentContext, SamplingSettings
from uncanny.agents.prompt_writer import choose_removal, write_first, write_second
from uncanny.answers.captions import Magnitude, TextKind
from uncanny.answers.writings import InpaintingPrompt
from uncanny.errors import StepFailedError
from uncanny.models.base import SentImage

Mode = Literal["inpaint", "double", "remove"]


@dataclass(frozen=True, slots=True)
class WriterContext(AgentContext[SamplingSettings]):
    """`AgentContext` of one text; `image` is the picture it is about, None where that is not shown."""

    image: SentImage | None = None


class PerturbState(TypedDict, total=False):
    """`text`, `kind` and `magnitude` are given; `failure` says why there is no `perturbed`."""

    text: str
    kind: TextKind
    magnitude: Magnitude
    perturbed: str
    failure: StepFailedError


class PromptsState(TypedDict, total=False):
    """`caption`, `objects` and `mode` are given; `failure` says why a prompt is missing."""

    caption: str
    objects: tuple[str, ...]
    mode: Mode
    first: InpaintingPrompt
    second: InpaintingPrompt
    failure: StepFailedError


async def perturb_node(state: PerturbState, runtime: Runtime[WriterContext]) -> PerturbState:
    context = runtime.context
    try:
        perturbed = await perturb(state["text"], state["kind"], state["magnitude"], context.image, context)
    except StepFailedError as failed:
        return {"failure": failed}
    return {"perturbed": perturbed}


async def first_node(state: PromptsState, runtime: Runtime[WriterContext]) -> PromptsState:
    context = runtime.context
    try:
        if state["mode"] == "remove":
            return {"first": await choose_removal(state["objects"], context)}
        return {"first": await write_first(state["caption"], state["objects"], context)}
    except StepFailedError as failed:
        return {"failure": failed}


def second_or_end(state: PromptsState) -> str:
    return "second" if state["mode"] == "double" and "first" in state else END


async def second_node(state: PromptsState, runtime: Runtime[WriterContext]) -> PromptsState:
    try:
        first = state["first"]
        return {"second": await write_second(state["caption"], state["objects"], first, runtime.context)}
    except StepFailedError as failed:
        return {"failure": failed}


@cache
def perturb_graph() -> CompiledStateGraph[PerturbState, WriterContext, PerturbState, PerturbState]:
    """The compiled graph; its context is a `WriterContext`."""
    graph = StateGraph(PerturbState, WriterContext)
    graph.add_node("perturb", perturb_node)
    graph.add_edge(START, "perturb")
    graph.add_edge("perturb", END)
    return graph.compile(name="perturb")


@cache
def prompts_graph() -> CompiledStateGraph[PromptsState, WriterContext, PromptsState, PromptsState]:
    """The compiled graph; its context is a `WriterContext`."""
    graph = StateGraph(PromptsState, WriterContext)
    graph.add_node("first", first_node)
    graph.add_node("second", second_node)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", second_or_end, ["second", END])
    graph.add_edge("second", END)
    return graph.compile(name="prompts")
