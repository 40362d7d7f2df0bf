"""The published SalArt-VQA figures, as percentages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from uncanny.eval.mcq.items import Item
from uncanny.eval.mcq.texts import carries_texts
from uncanny.eval.published import published

_THEIRS = "published models were asked with the released texts about the 950 released images"


def published_scores() -> dict[str, Any]:
    """Tables 1, 4, 5, 6 and 7: `main`, `hierarchy`, `q1_detection`, `by_route`, `type_and_disagreement`."""
    return published("mcq_scores")


def whose_texts(items: Sequence[Item]) -> Literal["set", "ours", "mixed"]:
    """Whether the items are asked with their own texts, with ours, or some with these and some with those."""
    own = sum(carries_texts(item) for item in items)
    return "set" if own == len(items) else "ours" if not own else "mixed"


def published_caveat(items: Sequence[Item]) -> str:
    """In what else than the model published rows differ from those of `items`."""
    texts = whose_texts(items)
    if texts == "set":
        return f"Asked with the set's own texts; {_THEIRS}: rows compare only where these items are those."
    asked = "uncanny's own texts" if texts == "ours" else "uncanny's own texts in part"
    return f"Asked with {asked}; {_THEIRS}: for orientation only, rows do not compare."
