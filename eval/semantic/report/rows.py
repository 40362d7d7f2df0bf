"""How scores read, and what is shown beside them: the best, differences, records left out, published rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from uncanny.eval.common.estimates import Estimate, p_words
from uncanny.eval.common.headline import Versus, ranking
from uncanny.eval.common.matching import Rule
from uncanny.eval.common.published import published
from uncanny.eval.common.similarity.weights import DEFAULT_BACKBONE, measure_words
from uncanny.eval.common.tables.table import Column
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName, View
from uncanny.eval.semantic.score.result import Difference, Metric, PredictionScore, SemanticScore
from uncanny.schema import Status

METRICS: Mapping[Metric, str] = {"semap": "SemAP", "semf1": "SemF1", "csemap": "cSemAP", "csemf1": "cSemF1"}
VIEW_NAMES: Mapping[View, str] = {"phe": "phenomenon", "rea": "reasoning", "full": "full"}
RULES: Mapping[Rule, str] = {
    "name": "name",
    "sha256": "content",
    "path": "end of the path",
    "stem": "name without extension",
    "file": "file name alone",
}


_SCORE, _GAP = Column("", digits=4), Column("", digits=4, signed=True)
# The ends of intervals have a digit less.
ends, signed = Column("", digits=3).ends, _GAP.words


def amount(value: float | None) -> str:
    """A figure to four decimals, a dash where there is none; never 0 or 1 for what is only nearly so."""
    return ">0.9999" if value is not None and 0.99995 <= value < 1 else _SCORE.words(value)


def signed_ends(estimate: Estimate) -> str:
    """The interval of a difference to three decimals; empty where there is none."""
    return Column("", digits=3, signed=True).ends(estimate, " to ")


def difference_words(difference: Difference) -> str:
    """A difference as a sentence."""
    estimate, both = difference.estimate, f"{difference.first} and {difference.second}"
    what = f"{METRICS[difference.metric]}, {difference.protocol}, {VIEW_NAMES[difference.view]}"
    if estimate.value is None:
        return f"{both} have no image in common: {what}"
    apart = difference.differs
    verdict = "not tested:" if apart is None else "differ:" if apart else "do not differ significantly:"
    ends_and_p = [signed_ends(estimate)] if estimate.interval else []
    ends_and_p += [] if difference.adjusted_p is None else [p_words(difference.adjusted_p)]
    interval = f" ({'; '.join(ends_and_p)})" if ends_and_p else ""
    value, images = signed(estimate.value), f"{difference.images:,} shared images"
    return f"{both} {verdict} {what} {value}{interval}, over {images}"


def reached(similarity: float, thresholds: Sequence[float]) -> str:
    """The highest threshold that a similarity reaches, as words."""
    passed = [threshold for threshold in thresholds if similarity >= threshold]
    return f"reaches {max(passed):g}" if passed else f"below {min(thresholds):g}"


def comparison_words(score: SemanticScore) -> str | None:
    """Why published figures do not compare, or not all of them; None where they do."""
    if score.no_comparison is not None:
        what = f"{measure_words(score.measure)}: {score.no_comparison}."
        chrf = " chrF counts characters in common and knows no meaning."
        return what + chrf if score.measure.get("measure") == "chrf" else what
    backbone = score.measure.get("backbone")
    if backbone != DEFAULT_BACKBONE:
        return (
            f"Only the published table made with {backbone} compares, not the main ones, "
            f"which were made with {DEFAULT_BACKBONE}."
        )
    return None


# Up to so many pairs of files every difference has its line; above, a table of all pairs for the full view.
MOST_LISTED = 3
MOST_NAMES = 1000
UNFINISHED: Mapping[Status, str] = {
    "failed": "no prediction, not counted",
    "unreadable": "no prediction, not counted",
    "partial": "no whole prediction, counted only for accuracy, if it has a source",
    "ok": "not counted",
}


@dataclass(frozen=True, slots=True)
class DifferenceMatrix:
    """Differences of all pairs in one score, row minus column; None on the diagonal."""

    protocol: ProtocolName
    metric: Metric
    rows: tuple[tuple[str, tuple[Difference | None, ...]], ...]


@dataclass(frozen=True, slots=True)
class NameList:
    """Images that are in no figure, or not in all, for one reason; `names` are the first of `count`."""

    short: str
    why: str
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A line of the table of published and own scores, which are `release`; own ones have intervals."""

    model: str
    own: bool
    scores: tuple[Estimate, ...]


def main_score(prediction: PredictionScore) -> Estimate:
    """The score that files are ranked by: SemAP, release, full."""
    return prediction.protocols["release"].semap["full"]


def best_first(score: SemanticScore) -> SemanticScore:
    """The same with its files from the highest score to the lowest; those without one come last."""

    def place(prediction: PredictionScore) -> tuple[bool, float]:
        value = main_score(prediction).value
        return (value is None, -(value or 0.0))

    ranked = sorted(score.predictions.items(), key=lambda each: place(each[1]))
    return replace(score, predictions=dict(ranked))


def headline(score: SemanticScore) -> str:
    """Who leads by SemAP, by the paired tests of the tables; empty where no file has a score."""
    scores = {name: main_score(each) for name, each in best_first(score).predictions.items()}
    tests = [
        Versus(each.first, each.second, each.estimate, each.adjusted_p)
        for each in score.differences
        if (each.protocol, each.metric, each.view) == ("release", "semap", "full")
    ]
    words = {
        name: f"{each.value:.3f}"
        + ("" if each.interval is None else " [{:.3f}–{:.3f}]".format(*each.interval))
        for name, each in scores.items()
        if each.value is not None
    }
    return ranking(words, tests, what="SemAP (release, full)", things="files")


def pairs_of(
    score: SemanticScore,
) -> list[tuple[str, str, dict[tuple[ProtocolName, Metric, View], Difference]]]:
    """Differences by pair of files: first, second, and by protocol, metric and view."""
    pairs: dict[tuple[str, str], dict[tuple[ProtocolName, Metric, View], Difference]] = {}
    for each in score.differences:
        pairs.setdefault((each.first, each.second), {})[each.protocol, each.metric, each.view] = each
    return [(first, second, differences) for (first, second), differences in pairs.items()]


def matrices_of(score: SemanticScore) -> list[DifferenceMatrix]:
    """For the view `full`, a matrix for each protocol and metric that any two files have."""
    names, order = list(score.predictions), tuple(METRICS)
    cells = {}
    for each in score.differences:
        if each.view == "full":
            cells[each.protocol, each.metric, each.first, each.second] = each
            cells[each.protocol, each.metric, each.second, each.first] = replace(
                each, first=each.second, second=each.first, estimate=-each.estimate
            )
    tables = dict.fromkeys((protocol, metric) for protocol, metric, _, _ in cells)
    return [
        DifferenceMatrix(
            *key, tuple((row, tuple(cells.get((*key, row, column)) for column in names)) for row in names)
        )
        for key in sorted(tables, key=lambda key: (order.index(key[1]), PROTOCOLS.index(key[0])))
    ]


def left_out_lists(prediction: PredictionScore) -> list[NameList]:
    """Why images of this file or its truth are left out, with their names; no empty lists."""
    left = prediction.left_out
    reasons: list[tuple[str, str, Sequence[str]]] = [
        ("without a prediction", "not in release, empty in paper", left.only_truth),
        ("not in the truth", "not counted", left.only_predictions),
        *((status, UNFINISHED[status], names) for status, names in left.unfinished.items()),
        ("unfinished in the truth", "not counted", left.truth),
        ("without a true source", "not in detection", left.without_source),
    ]
    return [
        NameList(short, why, len(names), tuple(names[:MOST_NAMES])) for short, why, names in reasons if names
    ]


def published_rows(score: SemanticScore) -> list[PublishedRow]:
    """SemAP and SemF1 by view of published models and own files, highest SemAP of the view full first.

    Empty where the published scores do not compare with these.
    """
    return _ranked(score, published_semantic(score), ("semap", "semf1"))


def published_detection_rows(score: SemanticScore) -> list[PublishedRow]:
    """The same for cSemAP, cSemF1 and, last, accuracy; empty without own scores."""
    rows = _ranked(score, published_detection(score), ("csemap", "csemf1"), accuracy=True)
    return rows if any(row.own for row in rows) else []


def _ranked(
    score: SemanticScore, theirs: list[PublishedRow], metrics: Sequence[Metric], *, accuracy: bool = False
) -> list[PublishedRow]:
    """Own scores in `release` beside theirs, if any, of the files that have them all."""
    own = []
    for name, prediction in score.predictions.items():
        values = {metric: views for metric, _, views in prediction.protocols["release"].by_metric()}
        last = prediction.accuracy if accuracy else None
        if all(metric in values for metric in metrics) and (last is not None or not accuracy):
            scores = [values[metric][view] for metric in metrics for view in VIEWS]
            scores += [] if last is None else [last.estimate]
            own.append(PublishedRow(name, own=True, scores=tuple(scores)))
    return sorted([*own, *theirs], key=lambda row: -(row.scores[2].value or 0.0)) if theirs else []


def published_semantic(score: SemanticScore) -> list[PublishedRow]:
    """The published models' SemAP and SemF1 by view; empty where they do not compare."""
    table = published("semantic_scores")["backbones"].get(score.measure.get("backbone"))
    if score.no_comparison is not None or table is None:
        return []
    return [_published(row, ("semap", "semf1")) for row in table]


def published_detection(score: SemanticScore) -> list[PublishedRow]:
    """The published models' cSemAP, cSemF1 and accuracy; they were made with one backbone alone."""
    if score.no_comparison is not None or score.measure.get("backbone") != DEFAULT_BACKBONE:
        return []
    return [_published(row, ("csemap", "csemf1"), "acc") for row in published("detection_scores")["rows"]]


def _published(row: Mapping[str, Any], metrics: Sequence[Metric], *more: str) -> PublishedRow:
    keys = [*(f"{metric}_{view}" for metric in metrics for view in VIEWS), *more]
    return PublishedRow(str(row["model"]), own=False, scores=tuple(Estimate(row.get(key)) for key in keys))
