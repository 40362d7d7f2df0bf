"""The control of the MCQ report: Q4 asked again without the image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from uncanny.eval.mcq.items import Answer, Item
from uncanny.eval.mcq.no_image import control_scores


@dataclass(frozen=True, slots=True)
class Control:
    """One model's figures as `score_no_image` gives them."""

    model: str
    figures: dict[str, Any]


def controls(items: Sequence[Item], answers: Sequence[Answer]) -> list[Control]:
    """A line for each model that was asked without the image; empty where none was.

    Raises `UsageError` where an answer comes twice.
    """
    return [Control(model, figures) for model, figures in control_scores(items, answers).items()]
