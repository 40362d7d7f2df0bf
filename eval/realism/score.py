"""Scores of verdicts, from the answers alone: labels, cases, the two-way reading, position bias, calls.

Source: SAGI, supplementary, sections 1.5 and 1.6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from uncanny.eval.mcq.result import Share
from uncanny.eval.metrics.bootstrap import RESAMPLES
from uncanny.eval.metrics.mcq import Bools, Ratio, ratio
from uncanny.eval.metrics.position_bias import position_bias
from uncanny.eval.metrics.shares import share_intervals
from uncanny.eval.realism.human import HumanAnswer, score_humans
from uncanny.eval.realism.records import Outcome, Verdict
from uncanny.eval.realism.result import CallCount, GroupScore, RealismScore, SetScore, TwoWay, VerdictSet
from uncanny.graphs.ugda_cases import CASES, LABELS

TWO_WAY: tuple[TwoWay, ...] = ("deceiving", "non_deceiving", "undetermined")
SECOND_CHECKS = 2


def score_verdicts(
    sets: Sequence[VerdictSet],
    *,
    humans: Sequence[HumanAnswer] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> RealismScore:
    """Score sets side by side; with 0 resamples there are no intervals.

    Verdicts have to carry their derived labels, as `load_verdicts` gives them.
    """

    def one(found: VerdictSet) -> SetScore:
        names = sorted({verdict.group for verdict in found.verdicts if verdict.group is not None})
        groups = {
            name: _figures([v for v in found.verdicts if v.group == name], resamples, seed) for name in names
        }
        human = None
        if humans is not None:
            human = score_humans(found.verdicts, humans, resamples=resamples, seed=seed)
        return SetScore(found, _figures(found.verdicts, resamples, seed), groups, human)

    return RealismScore({found.name: one(found) for found in sets}, resamples, seed)


def _figures(verdicts: Sequence[Verdict], resamples: int, seed: int) -> GroupScore:
    label = np.array([verdict.label for verdict in verdicts], dtype=np.str_)
    case = np.array([verdict.case or 0 for verdict in verdicts], dtype=np.int16)
    labelled, everybody = label != "undetermined", np.ones(len(verdicts), dtype=np.bool_)
    columns: dict[tuple[str, Any], Bools] = {
        **{("labels", name): label == name for name in LABELS},
        **{("cases", number): case == number for number in CASES},
    }
    columns["two_way", "deceiving"] = columns["labels", "deceiving"]
    columns["two_way", "non_deceiving"] = (
        columns["labels", "non_deceiving"] | columns["labels", "intermediate"]
    )
    columns["two_way", "undetermined"] = columns["labels", "undetermined"]
    ratios = {
        key: ratio(counts, everybody if key[1] == "undetermined" else labelled)
        for key, counts in columns.items()
    }
    shares = _shares(ratios, resamples, seed)
    return GroupScore(
        n=len(verdicts),
        labels=shares["labels"],
        cases=shares["cases"],
        two_way=shares["two_way"],
        outcomes=Counter(_outcome(verdict) for verdict in verdicts),
        position_bias=position_bias(
            choice
            for verdict in verdicts
            for choice in (verdict.original_first, verdict.edited_first)
            if choice is not None
        ),
        calls=_calls(verdicts),
    )


def _shares(
    ratios: Mapping[tuple[str, Any], Ratio], resamples: int, seed: int
) -> dict[str, dict[Any, Share]]:
    """By table and name."""
    intervals = share_intervals(list(ratios.values()), resamples=resamples, seed=seed)
    shares: dict[str, dict[Any, Share]] = {}
    for number, ((table, name), found) in enumerate(ratios.items()):
        counts, out_of = (int(column.sum(dtype=np.int64)) for column in found)
        shares.setdefault(table, {})[name] = Share(found.value, counts, out_of, intervals[number])
    return shares


def _outcome(verdict: Verdict) -> Outcome:
    if verdict.outcome is not None:
        return verdict.outcome
    return "undetermined" if verdict.label == "undetermined" else "judged"


def _calls(verdicts: Sequence[Verdict]) -> CallCount:
    made = [None if verdict.usage is None else verdict.usage.calls for verdict in verdicts]
    return CallCount(
        questions=sum(_questions(verdict) for verdict in verdicts),
        saved=SECOND_CHECKS * sum(verdict.first == "no" and _questions(verdict) == 1 for verdict in verdicts),
        made=None if None in made else sum(cast(list[int], made)),
    )


def _questions(verdict: Verdict) -> int:
    """How many of the three questions were asked: as recorded, else as the answers tell."""
    if verdict.outcome is not None:
        return len(verdict.raw)
    second = [verdict.original_first, verdict.edited_first]
    return 1 + (SECOND_CHECKS if verdict.first == "yes" or any(second) else 0)
