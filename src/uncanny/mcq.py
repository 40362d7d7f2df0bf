"""`uncanny.mcq`: does a model understand an artifact? The Q1–Q4 multiple-choice protocol of SalArt-VQA.

items = uncanny.mcq.load("items.jsonl")
uncanny.mcq.run_each(items, models=["openai/gpt-4o", "anthropic/claude-sonnet-4-5"], out="runs/mcq")
scores = uncanny.mcq.score(items, "runs/mcq")
print(scores)
scores["openai/gpt-4o"].splits["artifact"].all_q1_4
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.errors import Problem as Problem
    from uncanny.eval.mcq.data.answers import write_predictions as write_predictions
    from uncanny.eval.mcq.data.checks import check as check
    from uncanny.eval.mcq.data.drafts import build as build
    from uncanny.eval.mcq.data.export import export_table as export_table
    from uncanny.eval.mcq.data.items import Answer as Answer
    from uncanny.eval.mcq.data.items import Item as Item
    from uncanny.eval.mcq.data.items import ItemSet as ItemSet
    from uncanny.eval.mcq.data.kept import KeptItems as KeptItems
    from uncanny.eval.mcq.data.kept import keep as keep
    from uncanny.eval.mcq.data.load import load as load
    from uncanny.eval.mcq.data.overlay import overlay as overlay
    from uncanny.eval.mcq.data.released import import_table as import_table
    from uncanny.eval.mcq.plan import McqPlan as McqPlan
    from uncanny.eval.mcq.plan import plan as plan
    from uncanny.eval.mcq.run import McqForecast as McqForecast
    from uncanny.eval.mcq.run import McqRun as McqRun
    from uncanny.eval.mcq.run import forecast as forecast
    from uncanny.eval.mcq.run import run as run
    from uncanny.eval.mcq.run import run_async as run_async
    from uncanny.eval.mcq.run import run_each as run_each
    from uncanny.eval.mcq.run import run_each_async as run_each_async
    from uncanny.eval.mcq.score.aggregate import random_expectation as random_expectation
    from uncanny.eval.mcq.score.box_models import BoxScores as BoxScores
    from uncanny.eval.mcq.score.box_models import box_answers as box_answers
    from uncanny.eval.mcq.score.box_models import choose_box as choose_box
    from uncanny.eval.mcq.score.box_models import read_mask as read_mask
    from uncanny.eval.mcq.score.box_models import score_boxes as score_boxes
    from uncanny.eval.mcq.score.controls import NoImageScore as NoImageScore
    from uncanny.eval.mcq.score.controls import baseline_answers as baseline_answers
    from uncanny.eval.mcq.score.result import McNemar as McNemar
    from uncanny.eval.mcq.score.result import McqScores as McqScores
    from uncanny.eval.mcq.score.result import ModelScore as ModelScore
    from uncanny.eval.mcq.score.result import SplitScores as SplitScores
    from uncanny.eval.mcq.score.score import score as score

__all__, __getattr__, __dir__ = lazy_names(__name__)
