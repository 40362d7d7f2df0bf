"""One MCQ item as a LangGraph graph: its questions side by side, each a single-turn call of its own."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from uncanny.agents.artifact_answerer import Asked, Given, ask
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.models.base import Sampling


@dataclass(frozen=True, slots=True)
class ItemContext:
    """The item's questions, ready to send, and what to ask them with."""

    questions: Sequence[Asked]
    model_client: ModelClient
    scope: CallScope
    sampling: Sampling


class ItemState(TypedDict, total=False):
    """`item` is the item's id, given; `answers` gets one entry from each question."""

    item: str
    answers: Annotated[list[Given], operator.add]


class QuestionState(TypedDict):
    """What one branch is given: the position of its question."""

    number: int


async def ask_node(state: QuestionState, runtime: Runtime[ItemContext]) -> ItemState:
    context = runtime.context
    asked = context.questions[state["number"]]
    with context.scope.branch():
        return {"answers": [await ask(asked, context.model_client, context.scope, context.sampling)]}
    return {}


async def end_node(
    state: ItemState,  # noqa: ARG001
    runtime: Runtime[ItemContext],
) -> ItemState:
    """Raises what ended one of the questions: by now all of them are back."""
    runtime.context.scope.check()
    return {}


def fan_out(_state: ItemState, runtime: Runtime[ItemContext]) -> list[Send] | str:
    return [Send("ask", {"number": number}) for number in range(len(runtime.context.questions))] or END


@cache
def item_graph() -> Any:
    """The compiled graph; its context is an `ItemContext`."""
    graph = StateGraph(ItemState, context_schema=ItemContext)
    graph.add_node("ask", ask_node)
    graph.add_node("end", end_node)
    graph.add_conditional_edges(START, fan_out, ["ask", END])
    graph.add_edge("ask", "end")
    graph.add_edge("end", END)
    return graph.compile(name="mcq")
