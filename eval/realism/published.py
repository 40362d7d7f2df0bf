"""The published figures on people and detectors by label, as percentages."""

from __future__ import annotations

from typing import Any

from uncanny.eval.published import published


def published_humans() -> dict[str, float]:
    """People in SAGI's table 8: `acc_deceiving`, `iou_deceiving` and so on, in percent."""
    rows: list[dict[str, Any]] = published("inpainting_scores")["human_vs_model"]
    (row,) = [row for row in rows if row["model"] == "Human"]
    return {name: value for name, value in row.items() if name != "model"}
