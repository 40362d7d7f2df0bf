"""The HTML page of semantic scores: one file that needs nothing else and asks nothing of the network.

The tables of the semantic page: who leads, differences, what is left out, published rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny import __version__
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.page import score_page, stamp
from uncanny.eval.common.published import CAVEATS, published
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName
from uncanny.eval.semantic.report import page as rows
from uncanny.eval.semantic.report import words
from uncanny.eval.semantic.report.plots import MOST_IN_VIEWS, dots, spreads
from uncanny.eval.semantic.report.words import METRICS, is_apart
from uncanny.eval.semantic.score.result import Difference, PredictionScore, SemanticScore
from uncanny.eval.semantic.similarity.backbone import DEFAULT_BACKBONE
from uncanny.records.jsonl import write_atomically
from uncanny.schema import Status


def write_semantic_page(
    score: SemanticScore,
    path: Path,
    *,
    title: str | None = None,
    published: bool = False,
    made: datetime | None = None,
) -> Path:
    """Write the page to `path` and return it; the same score and `made`, by default now, give the same bytes.

    `published` adds the published rows where the score's measure and settings let them compare. The file
    appears whole or not at all. Raises `OSError` where it cannot be written.
    """
    page = (
        _environment()
        .get_template("semantic.html.j2")
        .render(
            title=title or "Semantic score",
            score=score,
            models=score.predictions,
            verdict=rows.verdict(score),
            comparison=words.comparison_words(score),
            dots=dots(score),
            spreads=spreads(score),
            in_views=len(score.predictions) <= MOST_IN_VIEWS,
            detection=rows.has_detection(score),
            pairs=rows.pairs_of(score),
            tables=rows.tables_of(score) if len(score.differences) else [],
            listed=len(rows.pairs_of(score)) <= rows.MOST_LISTED,
            lists={name: rows.left_out_lists(one) for name, one in score.predictions.items()},
            published=rows.published_rows(score) if published else [],
            published_detection=rows.published_detection(score) if published else [],
            published_source=rows.published_source(),
            caveat=CAVEATS["semantic_scores"],
            measure=words.measure_words(score.measure),
            measure_rows=words.measure_rows(score.measure),
            made=stamp((made or datetime.now(UTC)).isoformat()),
            version=__version__,
        )
    )
    write_atomically(path, [page.encode("utf-8", "replace")])
    return path


def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "amount": words.amount,
        "ends": words.ends,
        "signed": words.signed,
        "tau": lambda value: f"{value:g}",
    }
    environment = score_page("uncanny.eval.semantic", ("semantic.css",), filters)
    environment.globals |= {
        "protocols": PROTOCOLS,
        "views": VIEWS,
        "view_names": words.VIEW_NAMES,
        "metric_names": words.METRICS,
        "signed_ends": words.signed_ends,
        "is_apart": words.is_apart,
        "difference_words": words.difference_words,
        "reached": words.reached,
        "rules": words.RULES,
        "without_truth": rows.without_truth,
    }
    return environment


# Up to so many pairs of files every difference has its line; above, a table of all pairs for the full view.
MOST_LISTED = 3
MOST_NAMES = 1000
_ORDER = tuple(METRICS)
_UNFINISHED: Mapping[Status, str] = {
    "failed": "no prediction, in no figure",
    "unreadable": "no prediction, in no figure",
    "partial": "no whole prediction, in no figure but accuracy, where a source is said",
    "ok": "in no figure",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """The file with the highest SemAP (release, full) and those it can't be told apart from."""

    leader: PredictionScore
    rivals: tuple[str, ...]
    others: int


@dataclass(frozen=True, slots=True)
class Table:
    """Differences of all pairs in one figure, row minus column; None on the diagonal."""

    protocol: ProtocolName
    metric: str
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
    """A line of the table of published and own figures, which are `release`; own ones have intervals."""

    model: str
    own: bool
    figures: tuple[Estimate, ...]


def headline(one: PredictionScore) -> Estimate:
    return one.protocols["release"].semap["full"]


def verdict(score: SemanticScore) -> Verdict | None:
    """None where no file has a figure."""
    ranked = [one for one in score.predictions.values() if headline(one).value is not None]
    if not ranked:
        return None
    leader = max(ranked, key=lambda one: headline(one).value or 0.0)
    rivals = [
        one.second if one.first == leader.name else one.first
        for one in score.differences
        if leader.name in (one.first, one.second)
        and (one.protocol, one.metric, one.view) == ("release", "semap", "full")
        and is_apart(one.figure) is not True
    ]
    return Verdict(leader, tuple(rivals), len(ranked) - 1)


def pairs_of(score: SemanticScore) -> list[tuple[str, str, dict[tuple[str, str, str], Difference]]]:
    """Differences by pair of files: first, second, and by protocol, metric and view."""
    pairs: dict[tuple[str, str], dict[tuple[str, str, str], Difference]] = {}
    for one in score.differences:
        pairs.setdefault((one.first, one.second), {})[one.protocol, one.metric, one.view] = one
    return [(first, second, held) for (first, second), held in pairs.items()]


def tables_of(score: SemanticScore) -> list[Table]:
    """For the view `full`, a table for each protocol and metric that any two files have."""
    names = list(score.predictions)
    held = {
        (one.protocol, one.metric, one.first, one.second): one
        for one in score.differences
        if one.view == "full"
    }
    wanted = dict.fromkeys((protocol, metric) for protocol, metric, _, _ in held)
    return [
        Table(
            protocol,
            metric,
            tuple(
                (
                    row,
                    tuple(
                        held.get((protocol, metric, row, column))
                        or _turned(held.get((protocol, metric, column, row)))
                        for column in names
                    ),
                )
                for row in names
            ),
        )
        for protocol, metric in sorted(
            wanted, key=lambda key: (_ORDER.index(key[1]), PROTOCOLS.index(key[0]))
        )
    ]


def _turned(one: Difference | None) -> Difference | None:
    if one is None:
        return None
    return Difference(one.second, one.first, one.protocol, one.metric, one.view, one.images, -one.figure)


def left_out_lists(one: PredictionScore) -> list[NameList]:
    """Why images of this file or its truth are left out, with their names; no empty lists."""
    out = one.left_out
    found: list[tuple[str, str, Sequence[str]]] = [
        ("without a prediction", "not in release, empty in paper", out.only_truth),
        ("not in the truth", "in no figure", out.only_predictions),
        *(
            (status, "no finished prediction, in no figure", names)
            for status, names in out.unfinished.items()
        ),
        ("unfinished in the truth", "in no figure", out.truth),
        ("without a true source", "not in detection", out.without_source),
    ]
    return [
        NameList(short, why, len(names), tuple(names[:MOST_NAMES])) for short, why, names in found if names
    ]


def published_rows(score: SemanticScore) -> list[PublishedRow]:
    """SemAP and SemF1 by view of published models and own files, highest SemAP of the view full first.

    Empty where the published figures do not compare with the score's.
    """
    table = published("semantic_scores")["backbones"].get(score.measure.get("backbone"))
    if score.no_comparison is not None or table is None:
        return []
    own = []
    for name, one in score.predictions.items():
        held = one.protocols["release"]
        figures = [metric[view] for metric in (held.semap, held.semf1) for view in VIEWS]
        own.append(PublishedRow(name, own=True, figures=tuple(figures)))
    return _ranked([*own, *(_published(row, ("semap", "semf1")) for row in table)])


def published_detection(score: SemanticScore) -> list[PublishedRow]:
    """The same for cSemAP, cSemF1 and, last, accuracy; empty without own figures."""
    if score.no_comparison is not None or score.measure.get("backbone") != DEFAULT_BACKBONE:
        return []
    own = []
    for name, one in score.predictions.items():
        held = one.protocols["release"]
        if one.accuracy is not None and held.csemap is not None and held.csemf1 is not None:
            figures = [metric[view] for metric in (held.csemap, held.csemf1) for view in VIEWS]
            own.append(PublishedRow(name, own=True, figures=(*figures, one.accuracy.figure)))
    if not own:
        return []
    rows = published("detection_scores")["rows"]
    return _ranked([*own, *(_published(row, ("csemap", "csemf1"), "acc") for row in rows)])


def published_source() -> str:
    return str(published("semantic_scores")["source"])


def _ranked(rows: list[PublishedRow]) -> list[PublishedRow]:
    return sorted(rows, key=lambda row: -(row.figures[2].value or 0.0))


def _published(row: Mapping[str, Any], metrics: Sequence[str], *more: str) -> PublishedRow:
    keys = [*(f"{metric}_{view}" for metric in metrics for view in VIEWS), *more]
    return PublishedRow(str(row["model"]), own=False, figures=tuple(Estimate(row.get(key)) for key in keys))


def without_truth(one: PredictionScore) -> int:
    """How many images of `release` have no true anomaly: it scores 0 there, whatever is predicted."""
    return int((one.columns.scored["release"] & (one.columns.n_true == 0)).sum())


def has_detection(score: SemanticScore) -> bool:
    return any(one.accuracy is not None for one in score.predictions.values())
