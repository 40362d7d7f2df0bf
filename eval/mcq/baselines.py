"""Answers that look at no image: what a score is worth is seen against them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from random import Random
from typing import Any, Literal

from uncanny.eval.mcq.items import ARTIFACT_SPLITS, Answer, Item, Question, Split
from uncanny.eval.metrics.mcq import SPLITS

PREFIX = "baseline/"
Baseline = Literal["random", "always-E/no"]
BASELINES: tuple[Baseline, ...] = ("random", "always-E/no")


def is_baseline(model: str) -> bool:
    """Whether these answers were made up here."""
    return model.startswith(PREFIX)


def baseline_answers(items: Iterable[Item], baseline: Baseline, *, seed: int = 0) -> list[Answer]:
    """An answer to every question of every item, by the model `baseline/NAME`.

    `random` is uniform over the options of the question and depends on seed, item and question alone, not on
    the order or number of items; `always-E/no` finds nothing anywhere.
    """
    return [
        Answer(
            id=item.id,
            question=question,
            raw=_choice(item, question, baseline, seed),
            model=PREFIX + baseline,
        )
        for item in items
        for question in item.asked()
    ]


def _choice(item: Item, question: Question, baseline: Baseline, seed: int) -> str:
    options = options_of(item, question)
    return (
        options[-1] if baseline == "always-E/no" else Random(f"{seed} {item.id} {question}").choice(options)
    )


def options_of(item: Item, question: Question) -> tuple[str, ...]:
    """The answers that can be given; the last one finds nothing. Empty where the question is not asked."""
    if question == "q1":
        return ("yes", "no") if item.q1 else ()
    if question == "q3":
        return (*item.q3.boxes, "E") if item.q3 else ()
    held = item.q2 if question == "q2" else item.q4
    return (*held.options, "E") if held else ()


def random_expectation(items: Iterable[Item]) -> dict[str, Any]:
    """What `random` scores on average, in closed form: `splits` as in a score, and recall and specificity.

    With the usual four options and E: 1/2 on Q1, 1/5 on Q2–Q4, 0.4 % on all four, 0.8 % on the last three.
    """
    held = list(items)
    splits: dict[str, dict[str, float | None]] = {
        name: _expected([item for item in held if item.split in members]) for name, members in SPLITS.items()
    }
    splits["ref_pg"]["all_q1_4"] = None
    with_q1: frozenset[Split] = ARTIFACT_SPLITS | {"ref_real"}
    paired = _expected([item for item in held if item.split in with_q1])
    splits["overall"] = {
        "q1": paired["q1"],
        "all_q1_4": paired["all_q1_4"],
        "all_q2_4": _expected(held)["all_q2_4"],
    }
    detection = {"recall": splits["artifact"]["q1"], "specificity": splits["ref_real"]["q1"]}
    return {"splits": splits, "q1_detection": detection}


def _expected(items: list[Item]) -> dict[str, float | None]:
    wanted: dict[str, tuple[Question, ...]] = {
        "q1": ("q1",),
        "q2": ("q2",),
        "q3": ("q3",),
        "q4": ("q4",),
        "all_q1_4": ("q1", "q2", "q3", "q4"),
        "all_q2_4": ("q2", "q3", "q4"),
    }
    return {name: _mean(_chances(items, questions)) for name, questions in wanted.items()}


def _chances(items: list[Item], questions: tuple[Question, ...]) -> list[float]:
    sizes = [[len(options_of(item, question)) for question in questions] for item in items]
    return [1 / prod(options) for options in sizes if all(options)]


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
