"""One pair as a LangGraph graph: the first check, then both orders side by side or nothing, then the label.

After `no` the second check is not asked, and neither is it after a first check without a verdict: no answer
to it could give the pair a label. Source: SAGI, supplementary, sections 1.5 and 1.6.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from uncanny.agents.order_judge import ORDERS, Order, judge_order
from uncanny.agents.realism_judge import judge_realism
from uncanny.agents.verdict import Judged, Judging
from uncanny.answers.realism_verdict import Position, Realistic
from uncanny.graphs.ugda_cases import Labelled, label_of
from uncanny.models.base import SentImage


@dataclass(frozen=True, slots=True)
class PairContext:
    """Both images, ready to send, and what to ask with."""

    original: SentImage
    edited: SentImage
    judging: Judging


class PairState(TypedDict, total=False):
    """`pair` is the pair's id, given. `second` holds one entry an order, or none where it was not asked."""

    pair: str
    first: Judged[Realistic]
    second: Annotated[list[Judged[Position]], operator.add]
    labelled: Labelled


class OrderState(TypedDict):
    """What one branch is given."""

    order: Order


async def first_node(
    state: PairState,  # noqa: ARG001  what is asked about is in the context
    runtime: Runtime[PairContext],
) -> PairState:
    context = runtime.context
    return {"first": await judge_realism(context.edited, context.judging)}


def exit_or_both_orders(state: PairState) -> list[Send] | str:
    if state["first"].verdict != "yes":
        return "label"
    return [Send("order", {"order": order}) for order in ORDERS]


async def order_node(state: OrderState, runtime: Runtime[PairContext]) -> PairState:
    context = runtime.context
    with context.judging.scope.branch():
        judged = await judge_order(state["order"], context.original, context.edited, context.judging)
        return {"second": [judged]}
    return {}


async def label_node(state: PairState, runtime: Runtime[PairContext]) -> PairState:
    """Raises what ended one of the orders: by now both are back."""
    runtime.context.judging.scope.check()
    said = {one.asked: one.verdict for one in state.get("second", ())}
    labelled = label_of(state["first"].verdict, said.get("original_first"), said.get("edited_first"))
    return {"labelled": labelled}


@cache
def pair_graph() -> Any:
    """The compiled graph; its context is a `PairContext`."""
    graph = StateGraph(PairState, context_schema=PairContext)
    graph.add_node("first", first_node)
    graph.add_node("order", order_node)
    graph.add_node("label", label_node)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", exit_or_both_orders, ["order", "label"])
    graph.add_edge("order", "label")
    graph.add_edge("label", END)
    return graph.compile(name="ugda")
