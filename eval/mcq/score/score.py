"""Score answers against items: the scores of SalArt-VQA, for one model or several.

Answers that look at no image: what a score is worth is seen against them."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from random import Random
from typing import Any, Literal

from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import ARTIFACT_SPLITS, Answer, Item, Question, Split
from uncanny.eval.mcq.score.aggregate import grouped, is_rater, mcnemar, oracle, tally
from uncanny.eval.mcq.score.answers import Parser
from uncanny.eval.mcq.score.control import control_scores
from uncanny.eval.mcq.score.matrix import AnswerKey, ResponseMatrix, read_sheets
from uncanny.eval.mcq.score.result import ModelScore, SetScore, set_json
from uncanny.eval.metrics.intervals import RESAMPLES
from uncanny.eval.metrics.mcq import SPLITS


def score(
    items: Iterable[Item],
    answers: Iterable[Answer],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    parser: Parser = "exact",
    require_complete: bool = False,
) -> dict[str, Any]:
    """The report of `mcq score --json`; see `score_set` for the arguments and errors."""
    items, answers = list(items), list(answers)
    found = score_set(
        items, answers, resamples=resamples, seed=seed, parser=parser, require_complete=require_complete
    )
    return report_json(found, items, answers, parser)


def report_json(
    found: SetScore, items: Iterable[Item], answers: Iterable[Answer], parser: Parser
) -> dict[str, Any]:
    """The same of what is scored already; `no_image` stands with models that were asked the control."""
    held = set_json(found)
    for model, control in control_scores(items, answers, parser=parser).items():
        place = held["models"].get(model) if "models" in held else held
        if place is not None:
            place["no_image"] = control
    return held


def score_set(
    items: Iterable[Item],
    answers: Iterable[Answer],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    parser: Parser = "exact",
    require_complete: bool = False,
) -> SetScore:
    """Score every model that has answers; those to the control without image are `control_scores`'s.

    `resamples=0` leaves the intervals out. `parser="lenient"` adds a second reading beside the exact one.
    Raters are averaged into one `human`; they and baselines are no part of the oracle.

    Raises `UsageError` where there are no answers, none fits the items, a question is answered twice by one
    model, or, with `require_complete`, any answer is missing.
    """
    key, given = AnswerKey.of(items), [answer for answer in answers if answer.question != "q4_no_image"]
    matrices = read_sheets(key, given)
    if not matrices:
        raise UsageError("there are no answers to score", remedy="Run the questions first.")
    if require_complete:
        _demand_all(matrices.values())
    lenient = read_sheets(key, given, "lenient") if parser == "lenient" else {}
    models = [matrix for model, matrix in matrices.items() if not is_rater(model)]
    return SetScore(
        models=_tallied(matrices, resamples, seed),
        lenient=_tallied(lenient, resamples, seed),
        oracle=oracle(
            [matrix for matrix in models if not is_baseline(matrix.model)], resamples=resamples, seed=seed
        ),
        mcnemar=mcnemar(models),
        resamples=resamples,
        seed=seed,
    )


def _tallied(matrices: dict[str, ResponseMatrix], resamples: int, seed: int) -> dict[str, ModelScore]:
    return {
        name: tally(name, group, resamples=resamples, seed=seed) for name, group in grouped(matrices).items()
    }


def _demand_all(matrices: Iterable[ResponseMatrix]) -> None:
    for matrix in matrices:
        missing = matrix.reasons.total()
        if missing:
            why = ", ".join(f"{reason}: {count}" for reason, count in matrix.reasons.most_common(5))
            raise UsageError(
                f"{missing} of {int(matrix.key.asked.sum())} answers of {matrix.model!r} are missing ({why})",
                remedy="Finish the run, or score without --require-complete.",
            )


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
