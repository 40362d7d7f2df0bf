"""What scoring of verdicts finds, as values a report can use directly.

Scores of verdicts, from the answers alone: labels, cases, the two-way reading, position bias, calls.

Source: SAGI, supplementary, sections 1.5 and 1.6.

Scores as JSON and as a table of rows: the contract of `uncanny realism score`."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from uncanny.eval.common.estimates import Share
from uncanny.eval.metrics.bootstrap import RESAMPLES
from uncanny.eval.metrics.mcq import Bools, Ratio, ratio
from uncanny.eval.metrics.shares import METHOD, share_intervals
from uncanny.eval.metrics.significance import PositionBias, position_bias
from uncanny.eval.realism.data import Outcome, Verdict, VerdictSet
from uncanny.eval.realism.humans import HumanAnswer, HumanScore, score_humans
from uncanny.graphs.ugda_cases import CASES, LABELS, Case, Label

TwoWay = Literal["deceiving", "non_deceiving", "undetermined"]


@dataclass(frozen=True, slots=True)
class CallCount:
    """What was asked, and what the early exit saved.

    `questions` is how many of the three questions a pair were asked, `saved` how many second checks, two a
    pair, the `no` of the first check made needless. `made` counts calls with retries and repair questions;
    None where the records do not tell.
    """

    questions: int
    saved: int
    made: int | None


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The figures of all pairs, or of one group's.

    Shares come with 95 % Wilson intervals. Those of the three labels, of the cases and of the
    two-way reading, where `intermediate` counts as non-deceiving, are out of the pairs with a label; that of
    `undetermined` is out of all. `outcomes` counts records by how they came about, those that do not tell
    by their label.
    """

    n: int
    labels: Mapping[Label, Share]
    cases: Mapping[Case, Share]
    two_way: Mapping[TwoWay, Share]
    outcomes: Mapping[Outcome, int]
    position_bias: PositionBias
    calls: CallCount


@dataclass(frozen=True, slots=True)
class SetScore:
    """One set. `groups` is empty where no pair has a group; pairs without one are then under no name of
    theirs but in `overall`. `human` is None where nobody was asked."""

    verdicts: VerdictSet
    overall: GroupScore
    groups: Mapping[str, GroupScore]
    human: HumanScore | None


@dataclass(frozen=True, slots=True)
class RealismScore:
    """All sets side by side, by name, in the order given."""

    sets: Mapping[str, SetScore]
    resamples: int
    seed: int


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


COLUMNS = ("set", "group", "table", "name", "value", "count", "out_of", "low", "high")


def report_json(score: RealismScore) -> dict[str, Any]:
    """One set as it is, several as `{"models": {NAME: set}}`."""
    found = {name: _set_json(each, score) for name, each in score.sets.items()}
    return next(iter(found.values())) if len(found) == 1 else {"models": found}


def report_csv(score: RealismScore) -> str:
    """A row a figure; the group is empty for the pairs of a whole set, cells are for what is not measured."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name, each in score.sets.items():
        for group, figures in (("", each.overall), *each.groups.items()):
            for table, row, share in _shares_json(figures):
                low, high = share.interval or (None, None)
                writer.writerow((name, group, table, row, share.value, share.counts, share.out_of, low, high))
            bias = figures.position_bias
            for place in ("first", "second", "both"):
                row_of = (bias.share(place), getattr(bias, place), bias.checks, None, None)
                writer.writerow((name, group, "position", place, *row_of))
            writer.writerow((name, group, "position", "p_value", bias.p_value, *[None] * 4))
    return out.getvalue()


def _shares_json(figures: GroupScore) -> Iterator[tuple[str, str, Share]]:
    for table, shares in (
        ("labels", figures.labels),
        ("cases", figures.cases),
        ("two_way", figures.two_way),
    ):
        for name, share in shares.items():
            yield table, str(name), share


def _set_json(found: SetScore, score: RealismScore) -> dict[str, Any]:
    return {
        **_figures_json(found.overall),
        "groups": {name: _figures_json(figures) for name, figures in found.groups.items()},
        "human": None if found.human is None else _human_json(found.human),
        "unfinished": None if found.verdicts.unfinished is None else asdict(found.verdicts.unfinished),
        "intervals": METHOD,
        "resamples": score.resamples,
        "seed": score.seed,
    }


def _figures_json(figures: GroupScore) -> dict[str, Any]:
    """Counts under the contract's keys; shares with their intervals beside them."""
    shares: dict[str, dict[str, Any]] = {"labels": {}, "cases": {}, "two_way": {}}
    for table, name, share in _shares_json(figures):
        shares[table][name] = _share_json(share)
    return {
        "n": figures.n,
        "labels": {label: share.counts for label, share in figures.labels.items()},
        "cases": {str(case): share.counts for case, share in figures.cases.items()},
        "two_way": {label: share.counts for label, share in figures.two_way.items()},
        "shares": shares,
        "outcomes": dict(figures.outcomes),
        "position_bias": _bias_json(figures.position_bias),
        "calls": {
            "questions": figures.calls.questions,
            "saved": figures.calls.saved,
            "made": figures.calls.made,
        },
    }


def _bias_json(bias: PositionBias) -> dict[str, Any]:
    return {
        "first": bias.first,
        "second": bias.second,
        "both": bias.both,
        "p_value": bias.p_value,
        "shares": {"first": bias.share("first"), "second": bias.share("second"), "both": bias.share("both")},
        "first_share": bias.first_share,
        "ci": bias.interval,
    }


def _human_json(human: HumanScore) -> dict[str, Any]:
    return {
        "answers": human.answers,
        "raters": human.raters,
        "unused": human.unused,
        "undetermined": human.undetermined,
        "accuracy": {label: _share_json(share) for label, share in human.accuracy.items()},
        "iou": {label: _share_json(share, mean=True) for label, share in human.iou.items()},
    }


def _share_json(share: Share, *, mean: bool = False) -> dict[str, Any]:
    """Of a mean there is no count, only how many values it is the mean of."""
    counts = {} if mean else {"count": share.counts}
    return {"value": share.value, **counts, "out_of": share.out_of, "ci": share.interval}
