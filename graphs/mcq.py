"""One MCQ item as a LangGraph graph: its questions side by side, each a single-turn call of its own."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from uncanny.agents.artifact_answerer import QuestionPrompt, RawAnswer, answer_question
from uncanny.agents.context import AgentContext, SamplingSettings


@dataclass(frozen=True, slots=True)
class ItemContext(AgentContext[SamplingSettings]):
    """`AgentContext` of one item: its questions, ready to send."""

    questions: Sequence[QuestionPrompt]


class ItemState(TypedDict, total=False):
    """`item` is the item's id, given; `answers` gets one entry from each question."""

    item: str
    answers: Annotated[list[RawAnswer], operator.add]


class QuestionState(TypedDict):
    """What one branch begins with: the position of its question."""

    number: int


async def answer_node(state: QuestionState, runtime: Runtime[ItemContext]) -> ItemState:
    context = runtime.context
    with context.scope.branch():
        return {"answers": [await answer_question(context.questions[state["number"]], context)]}
    return {}


async def end_node(state: ItemState, runtime: Runtime[ItemContext]) -> ItemState:  # noqa: ARG001
    """Raises what ended one of the questions: by now all of them are back."""
    runtime.context.scope.check()
    return {}


def fan_out(_state: ItemState, runtime: Runtime[ItemContext]) -> list[Send] | str:
    return [Send("answer", {"number": number}) for number in range(len(runtime.context.questions))] or END


@cache
def item_graph() -> CompiledStateGraph[ItemState, ItemContext, ItemState, ItemState]:
    """The compiled graph; its context is an `ItemContext`."""
    graph = StateGraph(ItemState, ItemContext)
    graph.add_node("answer", answer_node)
    graph.add_node("end", end_node)
    graph.add_conditional_edges(START, fan_out, ["answer", END])
    graph.add_edge("answer", "end")
    graph.add_edge("end", END)
    return graph.compile(name="mcq")
