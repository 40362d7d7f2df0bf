"""One pair as a LangGraph graph: the first check, then both orders side by side or nothing, then the label.

After `no` the second check is not asked, and neither is it after a first check without a verdict: no answer
to it could give the pair a label. Source: SAGI, supplementary, sections 1.5 and 1.6.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from uncanny.agents.common.context import AgentContext, SamplingSettings
from uncanny.agents.realism_judge import ORDERS, Judgement, Order, judge_order, judge_realism
from uncanny.answers.verdicts import Position, Realistic
from uncanny.graphs.ugda_cases import Labelled, label_of
from uncanny.models.base import SentImage


@dataclass(frozen=True, slots=True)
class PairContext(AgentContext[SamplingSettings]):
    """`AgentContext` of one pair: both images, ready to send."""

    original: SentImage
    edited: SentImage


class PairState(TypedDict, total=False):
    """`pair` is the pair's id, given. `second` holds one entry an order, or none where it was not asked."""

    pair: str
    first: Judgement[Realistic]
    second: Annotated[list[Judgement[Position]], operator.add]
    labelled: Labelled


class OrderState(TypedDict):
    """What one branch begins with."""

    order: Order


async def first_node(state: PairState, runtime: Runtime[PairContext]) -> PairState:  # noqa: ARG001
    return {"first": await judge_realism(runtime.context.edited, runtime.context)}


def exit_or_both_orders(state: PairState) -> list[Send] | str:
    if state["first"].verdict != "yes":
        return "label"
    return [Send("order", {"order": order}) for order in ORDERS]


async def order_node(state: OrderState, runtime: Runtime[PairContext]) -> PairState:
    context = runtime.context
    with context.scope.branch():
        return {"second": [await judge_order(state["order"], context.original, context.edited, context)]}
    return {}


async def label_node(state: PairState, runtime: Runtime[PairContext]) -> PairState:
    """Raises what ended one of the orders: by now both are back."""
    runtime.context.scope.check()
    verdicts = {judgement.check: judgement.verdict for judgement in state.get("second", ())}
    labelled = label_of(state["first"].verdict, verdicts.get("original_first"), verdicts.get("edited_first"))
    return {"labelled": labelled}


@cache
def pair_graph() -> CompiledStateGraph[PairState, PairContext, PairState, PairState]:
    """The compiled graph; its context is a `PairContext`."""
    graph = StateGraph(PairState, PairContext)
    graph.add_node("first", first_node)
    graph.add_node("order", order_node)
    graph.add_node("label", label_node)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", exit_or_both_orders, ["order", "label"])
    graph.add_edge("order", "label")
    graph.add_edge("label", END)
    return graph.compile(name="ugda")
