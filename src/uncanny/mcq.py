"""`uncanny.mcq`: does a model understand an artifact? The Q1–Q4 multiple-choice protocol of SalArt-VQA.

items = uncanny.mcq.load("items.jsonl")
uncanny.mcq.run(items, model=["openai/gpt-4o", "anthropic/claude-sonnet-4-5"], out="runs/mcq")
scores = uncanny.mcq.score(items, "runs/mcq")
print(scores)
scores["openai/gpt-4o"].splits["artifact"].all_q1_4
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uncanny.eval.common.problems import Problem
    from uncanny.eval.mcq.data.answers import write_predictions
    from uncanny.eval.mcq.data.checks import check
    from uncanny.eval.mcq.data.drafts import build
    from uncanny.eval.mcq.data.export import export_table
    from uncanny.eval.mcq.data.items import Answer, Item, ItemSet
    from uncanny.eval.mcq.data.load import load
    from uncanny.eval.mcq.data.overlay import overlay
    from uncanny.eval.mcq.data.released import import_table
    from uncanny.eval.mcq.forecast import McqForecast, forecast
    from uncanny.eval.mcq.run import McqRun, run, run_async
    from uncanny.eval.mcq.score.box_models import BoxScores, box_answers, choose_box, read_mask, score_boxes
    from uncanny.eval.mcq.score.controls import NoImageScore, baseline_answers, random_expectation
    from uncanny.eval.mcq.score.result import McNemar, McqScores, ModelScore, SplitScores
    from uncanny.eval.mcq.score.score import score

_HOMES = {
    "Answer": "mcq.data.items",
    "BoxScores": "mcq.score.box_models",
    "Item": "mcq.data.items",
    "ItemSet": "mcq.data.items",
    "McNemar": "mcq.score.result",
    "McqForecast": "mcq.forecast",
    "McqRun": "mcq.run",
    "McqScores": "mcq.score.result",
    "ModelScore": "mcq.score.result",
    "NoImageScore": "mcq.score.controls",
    "Problem": "common.problems",
    "SplitScores": "mcq.score.result",
    "baseline_answers": "mcq.score.controls",
    "box_answers": "mcq.score.box_models",
    "build": "mcq.data.drafts",
    "check": "mcq.data.checks",
    "choose_box": "mcq.score.box_models",
    "export_table": "mcq.data.export",
    "forecast": "mcq.forecast",
    "import_table": "mcq.data.released",
    "load": "mcq.data.load",
    "overlay": "mcq.data.overlay",
    "random_expectation": "mcq.score.controls",
    "read_mask": "mcq.score.box_models",
    "run": "mcq.run",
    "run_async": "mcq.run",
    "score": "mcq.score.score",
    "score_boxes": "mcq.score.box_models",
    "write_predictions": "mcq.data.answers",
}
__all__ = [
    "Answer",
    "BoxScores",
    "Item",
    "ItemSet",
    "McNemar",
    "McqForecast",
    "McqRun",
    "McqScores",
    "ModelScore",
    "NoImageScore",
    "Problem",
    "SplitScores",
    "baseline_answers",
    "box_answers",
    "build",
    "check",
    "choose_box",
    "export_table",
    "forecast",
    "import_table",
    "load",
    "overlay",
    "random_expectation",
    "read_mask",
    "run",
    "run_async",
    "score",
    "score_boxes",
    "write_predictions",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"uncanny.eval.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
