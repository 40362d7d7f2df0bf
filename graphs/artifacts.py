"""Locating artifacts as a LangGraph graph: all questions about an image side by side.

One branch for each category, or one for all of them, and one more where the likelihood is asked for. The
context is the `ArtifactContext` of the image.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from uncanny.agents.artifact_locator import (
    Answered,
    ArtifactContext,
    estimate_likelihood,
    locate_all,
    locate_category,
)
from uncanny.errors import StepFailedError
from uncanny.schema import ArtifactCategory, StepError


class ArtifactState(TypedDict, total=False):
    """`image` is its name, given. `answers` has one entry a question about artifacts, in any order.

    `likelihood` is missing where it was not asked for, and where `failure` says why there is none.
    """

    image: str
    answers: Annotated[list[Answered], operator.add]
    likelihood: float
    failure: StepError


class CategoryState(TypedDict):
    """What one branch begins with."""

    category: ArtifactCategory


def questions(state: ArtifactState, runtime: Runtime[ArtifactContext]) -> list[Send]:
    """The branches of an image."""
    config = runtime.context.config
    branches = (
        [Send("locate_all", state)]
        if config.joint
        else [Send("locate", {"category": category}) for category in config.categories]
    )
    return [*branches, *([Send("estimate", state)] if config.likelihood else [])]


async def locate_node(state: CategoryState, runtime: Runtime[ArtifactContext]) -> ArtifactState:
    with runtime.context.scope.branch():
        return {"answers": [await locate_category(state["category"], runtime.context)]}
    return {}


async def locate_all_node(state: ArtifactState, runtime: Runtime[ArtifactContext]) -> ArtifactState:  # noqa: ARG001
    with runtime.context.scope.branch():
        return {"answers": [await locate_all(runtime.context.config.categories, runtime.context)]}
    return {}


async def estimate_node(state: ArtifactState, runtime: Runtime[ArtifactContext]) -> ArtifactState:  # noqa: ARG001
    with runtime.context.scope.branch():
        try:
            return {"likelihood": await estimate_likelihood(runtime.context)}
        except StepFailedError as failed:
            return {"failure": failed.record}
    return {}


async def end_node(state: ArtifactState, runtime: Runtime[ArtifactContext]) -> ArtifactState:  # noqa: ARG001
    """Raises what ended one of the branches: by now all are back."""
    runtime.context.scope.check()
    return {}


ArtifactGraph = CompiledStateGraph[ArtifactState, ArtifactContext, ArtifactState, ArtifactState]


@cache
def artifact_graph() -> ArtifactGraph:
    """The compiled graph; its context is the `ArtifactContext` of the image."""
    graph = StateGraph(ArtifactState, ArtifactContext)
    graph.add_node("locate", locate_node)
    graph.add_node("locate_all", locate_all_node)
    graph.add_node("estimate", estimate_node)
    graph.add_node("end", end_node)
    graph.add_conditional_edges(START, questions, ["locate", "locate_all", "estimate"])
    for node in ("locate", "locate_all", "estimate"):
        graph.add_edge(node, "end")
    graph.add_edge("end", END)
    return graph.compile(name="artifacts")
