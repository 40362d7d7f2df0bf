"""Scores as JSON and as a table of rows: the contract of `uncanny realism score`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from uncanny.eval.mcq.result import Share
from uncanny.eval.metrics.position_bias import PositionBias
from uncanny.eval.metrics.shares import METHOD
from uncanny.eval.realism.result import GroupScore, HumanScore, RealismScore, SetScore

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
            for table, row, share in _shares(figures):
                low, high = share.interval or (None, None)
                writer.writerow((name, group, table, row, share.value, share.counts, share.out_of, low, high))
            bias = figures.position_bias
            for place in ("first", "second", "both"):
                row_of = (bias.share(place), getattr(bias, place), bias.checks, None, None)
                writer.writerow((name, group, "position", place, *row_of))
            writer.writerow((name, group, "position", "p_value", bias.p_value, *[None] * 4))
    return out.getvalue()


def _shares(figures: GroupScore) -> Iterator[tuple[str, str, Share]]:
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
    for table, name, share in _shares(figures):
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
