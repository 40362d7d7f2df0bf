"""The published SalArt-VQA figures, as percentages."""

from __future__ import annotations

from typing import Any

from uncanny.eval.published import published


def published_scores() -> dict[str, Any]:
    """Tables 1, 4, 5, 6 and 7: `main`, `hierarchy`, `q1_detection`, `by_route`, `type_and_disagreement`."""
    return published("mcq_scores")
