"""Score answers against items: the scores of SalArt-VQA, for one model or several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from uncanny.errors import UsageError
from uncanny.eval.mcq.baselines import is_baseline
from uncanny.eval.mcq.compare import mcnemar, oracle
from uncanny.eval.mcq.humans import grouped, is_rater
from uncanny.eval.mcq.items import Answer, Item
from uncanny.eval.mcq.letters import Parser
from uncanny.eval.mcq.no_image import control_scores
from uncanny.eval.mcq.result import ModelScore, SetScore
from uncanny.eval.mcq.score_json import set_json
from uncanny.eval.mcq.sheet import Key, Sheet, read_sheets
from uncanny.eval.mcq.tally import tally
from uncanny.eval.metrics.bootstrap import RESAMPLES


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
    key, given = Key.of(items), [answer for answer in answers if answer.question != "q4_no_image"]
    sheets = read_sheets(key, given)
    if not sheets:
        raise UsageError("there are no answers to score", remedy="Run the questions first.")
    if require_complete:
        _demand_all(sheets.values())
    lenient = read_sheets(key, given, "lenient") if parser == "lenient" else {}
    models = [sheet for model, sheet in sheets.items() if not is_rater(model)]
    return SetScore(
        models=_tallied(sheets, resamples, seed),
        lenient=_tallied(lenient, resamples, seed),
        oracle=oracle(
            [sheet for sheet in models if not is_baseline(sheet.model)], resamples=resamples, seed=seed
        ),
        mcnemar=mcnemar(models),
        resamples=resamples,
        seed=seed,
    )


def _tallied(sheets: dict[str, Sheet], resamples: int, seed: int) -> dict[str, ModelScore]:
    return {
        name: tally(name, group, resamples=resamples, seed=seed) for name, group in grouped(sheets).items()
    }


def _demand_all(sheets: Iterable[Sheet]) -> None:
    for sheet in sheets:
        missing = sheet.reasons.total()
        if missing:
            why = ", ".join(f"{reason}: {count}" for reason, count in sheet.reasons.most_common(5))
            raise UsageError(
                f"{missing} of {int(sheet.key.asked.sum())} answers of {sheet.model!r} are missing ({why})",
                remedy="Finish the run, or score without --require-complete.",
            )
