"""Scores of verdicts, from the answers alone: labels, cases, the two-way reading, position bias, calls.

Source: SAGI, supplementary, sections 1.5 and 1.6. Where this differs: `intermediate` is shown on its own
beside the paper's two-way reading, a pair without a readable verdict is `undetermined` and in no other share,
shares come with intervals, and how often the first place is chosen is tested, which the paper does not do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from uncanny.eval.common.estimates import Share, shares_of
from uncanny.eval.common.groups import IMAGE, ORIGINAL_COLUMNS, ImageGroups, cell_of, no_column, own_keys
from uncanny.eval.common.parameters import ReportParameters
from uncanny.eval.metrics.intervals import Bools, group_codes, ratio
from uncanny.eval.metrics.significance import position_bias
from uncanny.eval.realism.parameters import RealismScoreParameters
from uncanny.eval.realism.people import PersonAnswer, people_answers, score_people
from uncanny.eval.realism.result import CallCount, GroupScore, RealismScore, SetScore
from uncanny.eval.realism.verdicts import (
    CASES,
    LABELS,
    Verdict,
    VerdictOutcome,
    Verdicts,
    VerdictSet,
    verdict_sets,
)
from uncanny.parameters import takes
from uncanny.records.run_folder import RunFolder
from uncanny.schema import columns_of

SECOND_CHECKS = 2


@takes(RealismScoreParameters)
def score(verdicts: Verdicts, parameters: RealismScoreParameters) -> RealismScore:
    """Score verdicts offline, several sets side by side; what `uncanny realism score` does.

    `verdicts` are run folders, folders of several models' runs, or verdict files, one or several, a mapping
    that gives each a name, or `Verdict` records. Labels are derived again from the answers.

    Raises ItemsError with every invalid line, repeated id, and stored label that disagrees with its answers,
    and UsageError for a file that cannot be read, holds nothing, or is named twice.

    >>> run = uncanny.realism.run("scenes", model="demo", out=out)
    >>> scores = uncanny.realism.score({"ours": run})
    >>> scores.sets["ours"].overall.labels["deceiving"].counts
    4
    """
    answers = None if parameters.people is None else people_answers(parameters.people)
    sets = {each.name: _set_score(each, answers, parameters) for each in verdict_sets(verdicts)}
    return RealismScore(sets, parameters.resamples, parameters.seed, parameters.published)


def _set_score(
    verdict_set: VerdictSet, answers: Sequence[PersonAnswer] | None, parameters: RealismScoreParameters
) -> SetScore:
    verdicts, group_by = verdict_set.verdicts, parameters.group_by
    resamples, seed = parameters.resamples, parameters.seed
    belongs = {verdict.id: _original(verdict, group_by) for verdict in verdicts}
    if group_by not in (None, IMAGE) and all(id == group for id, group in belongs.items()):
        there = set().union(*(columns_of(verdict) for verdict in verdicts), own_keys(verdicts[0]))
        raise no_column(f"pair of {verdict_set.name}", group_by, there)
    groups: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.group is not None:
            groups.setdefault(verdict.group, []).append(verdict)
    return SetScore(
        verdict_set,
        _group_score(verdicts, belongs, resamples, seed),
        {name: _group_score(group, belongs, resamples, seed) for name, group in sorted(groups.items())},
        None
        if answers is None
        else score_people(verdicts, answers, belongs=belongs, resamples=resamples, seed=seed),
        ImageGroups.of(
            group_by or ORIGINAL_COLUMNS[0], [belongs[verdict.id] for verdict in verdicts], "pairs"
        ),
    )


def _original(verdict: Verdict, group_by: str | None) -> str:
    """What a pair shares with others: its original, or the value of a column; its id where nothing."""
    if group_by == IMAGE:
        return verdict.id
    if group_by is not None and (cell := cell_of(verdict, group_by)) is not None:
        return f"{group_by}={cell}"
    side = verdict.original if group_by in (None, ORIGINAL_COLUMNS[0]) else None
    return verdict.id if side is None else f"original={side.sha256 or side.image}"


def _group_score(
    verdicts: Sequence[Verdict], belongs: Mapping[str, str], resamples: int, seed: int
) -> GroupScore:
    label = np.array([verdict.label for verdict in verdicts], dtype=np.str_)
    case = np.array([verdict.case or 0 for verdict in verdicts], dtype=np.int16)
    labelled, everybody = label != "undetermined", np.ones(len(verdicts), dtype=np.bool_)
    columns: dict[tuple[str, Any], Bools] = {
        **{("labels", name): label == name for name in LABELS},
        **{("cases", number): case == number for number in CASES},
        ("two_way", "deceiving"): label == "deceiving",
        ("two_way", "non_deceiving"): (label == "non_deceiving") | (label == "intermediate"),
        ("two_way", "undetermined"): label == "undetermined",
    }
    ratios = {
        key: ratio(counts, everybody if key[1] == "undetermined" else labelled)
        for key, counts in columns.items()
    }
    codes = group_codes(belongs[verdict.id] for verdict in verdicts)
    shares: dict[str, dict[Any, Share]] = {}
    drawn = shares_of(list(ratios.values()), codes, resamples=resamples, seed=seed)
    for (table, name), share in zip(ratios, drawn, strict=True):
        shares.setdefault(table, {})[name] = share
    checks = [
        (choice, code)
        for verdict, code in zip(verdicts, codes.tolist(), strict=True)
        for choice in (verdict.original_first, verdict.edited_first)
        if choice is not None
    ]
    alone = len(set(codes.tolist())) == len(codes)
    return GroupScore(
        n=len(verdicts),
        labels=shares["labels"],
        cases=shares["cases"],
        two_way=shares["two_way"],
        outcomes=Counter(_outcome(verdict) for verdict in verdicts),
        position_bias=position_bias(
            (choice for choice, _ in checks), None if alone else group_codes(code for _, code in checks)
        ),
        calls=_calls(verdicts),
    )


def _outcome(verdict: Verdict) -> VerdictOutcome:
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
    """How many of the three questions were asked: as a run records it, else as the answers tell."""
    if verdict.asked is not None or verdict.raw:
        return len(verdict.raw)
    if verdict.outcome == "unusable":
        return 0
    second = [verdict.original_first, verdict.edited_first]
    return 1 + (SECOND_CHECKS if verdict.first == "yes" or any(second) else 0)


def page_of(run: Path, parameters: ReportParameters) -> Path:
    """Write the page of a run's scores, as `uncanny.report` does."""
    out = RunFolder(run).report if parameters.out is None else parameters.out
    return score(run).report(out, pictures=parameters.pictures)
