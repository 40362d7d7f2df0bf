"""The HTML page of an audit: one file that needs nothing else and asks nothing of the network.

The tables of the audit page: leaderboard rows, differences of all pairs, names that generators share.

The worst images of each generator as small pictures with what is wrong with them.

The published audit of 15 generators by two assessors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny import __version__
from uncanny.eval.audit import words
from uncanny.eval.audit.plots import plane, ranks, severities
from uncanny.eval.audit.result import (
    RANKED,
    Agreement,
    AuditResult,
    Difference,
    GeneratorScore,
    Leaderboard,
    PublishedRow,
    PublishedTable,
    WorstImage,
)
from uncanny.eval.audit.words import difference_words
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.page import Shot, pictures, score_page, stamp
from uncanny.eval.common.published import CAVEATS, published
from uncanny.eval.metrics.significance import rank_agreement
from uncanny.records.jsonl import write_atomically


def write_audit_page(result: AuditResult, path: Path, *, title: str | None = None) -> Path:
    """Write the page to `path` and return it.

    Pictures of the worst images are read from where the result says; one that cannot be read is left out.
    The file appears whole or not at all. Raises `OSError` where it cannot be written.
    """
    leaderboard = result.leaderboard
    page = (
        _environment()
        .get_template("audit.html.j2")
        .render(
            title=title or "Generator audit",
            result=result,
            leaderboard=leaderboard,
            rows=rows(leaderboard),
            scale=scale(leaderboard),
            rivals=words.rivals(leaderboard) if leaderboard.order else [],
            left_out=left_out(leaderboard),
            matrix=matrix(leaderboard),
            shared=(shared := shared_names(leaderboard)),
            shared_most=max((value or 0 for _, by in shared for value in by), default=0),
            shots=shots(leaderboard),
            plots=_plots(result),
            second=rows(result.against) if result.against else None,
            second_scale=scale(result.against) if result.against else None,
            published=published_rows(result),
            caveat=CAVEATS["generator_audit"],
            about=_about(result),
        )
    )
    write_atomically(path, [page.encode("utf-8", "replace")])
    return path


def _plots(result: AuditResult) -> dict[str, Any]:
    leaderboard = result.leaderboard
    return {
        "plane": plane(leaderboard),
        "severities": severities(leaderboard),
        "ranks": ranks(leaderboard, result.against) if result.against else "",
    }


def _about(result: AuditResult) -> dict[str, Any]:
    scores = list(result.leaderboard.generators.values())
    return {
        "images": sum(score.images for score in scores),
        "anomalies": sum(score.anomalies for score in scores),
        "left_out": sum(score.left_out.total for score in scores),
        "models": words.distinct(scores, "models"),
        "prompts": words.distinct(scores, "prompts"),
        "level": words.level_words(result.level),
        "pairing": words.pairing_words(result),
        "made": stamp(datetime.now(UTC).isoformat()),
        "version": __version__,
    }


def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "amount": words.amount,
        "ends": words.ends,
        "signed": words.signed,
    }
    environment = score_page("uncanny.eval.audit", ("audit.css",), filters)
    environment.globals |= {"signed_ends": words.signed_ends, "difference_words": words.difference_words}
    return environment


MOST_SHARED = 16


@dataclass(frozen=True, slots=True)
class Strip:
    """A figure and its interval drawn on a scale that all rows share, in percent of the width."""

    at: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the leaderboard; `rank` is None without a CAP. `tie` says why it equals the next line."""

    rank: int | None
    score: GeneratorScore
    strip: Strip | None
    tie: str | None


def rows(leaderboard: Leaderboard) -> list[Row]:
    """All generators in the order of the board."""
    alike = {one.first: difference_words(one) for one in leaderboard.alike}
    low, high = scale(leaderboard)
    found = []
    for place, name in enumerate(leaderboard.order, 1):
        score = leaderboard.generators[name]
        has = score.cap.value is not None
        strip = _strip(score.cap, low, high) if has else None
        found.append(Row(place if has else None, score, strip, alike.get(name)))
    return found


def scale(leaderboard: Leaderboard) -> tuple[float, float]:
    """The lowest and highest end of any interval of CAP; 0 to 1 without any figure."""
    caps = [score.cap for score in leaderboard.generators.values() if score.cap.value is not None]
    ends = [one.value for one in caps if one.value is not None]
    ends += [end for one in caps if one.interval for end in one.interval]
    return (min(ends), max(ends)) if ends else (0.0, 1.0)


def _strip(cap: Estimate, low: float, high: float) -> Strip:
    def place(value: float) -> float:
        return round(3 + 94 * (value - low) / (high - low), 2) if high > low else 50.0

    assert cap.value is not None
    if cap.interval is None:
        return Strip(place(cap.value), None, None)
    return Strip(place(cap.value), place(cap.interval[0]), place(cap.interval[1]))


def matrix(leaderboard: Leaderboard) -> list[tuple[str, list[Difference | None]]] | None:
    """For each generator its differences to all others as row minus column, None on the diagonal.

    None where fewer than two were compared, or not every pair was.
    """
    names = [name for name in leaderboard.order if leaderboard.generators[name].cap.value is not None]
    pairs = {(one.first, one.second): one for one in leaderboard.differences}
    if len(names) < 2 or len(pairs) < len(names) * (len(names) - 1) // 2:
        return None
    return [
        (row, [pairs.get((row, column)) or _turned(pairs.get((column, row))) for column in names])
        for row in names
    ]


def _turned(one: Difference | None) -> Difference | None:
    if one is None:
        return None
    return Difference(one.second, one.first, one.paired, -one.mai, -one.af, -one.cap, one.apart)


def shared_names(leaderboard: Leaderboard) -> list[tuple[str, list[float | None]]]:
    """Names among the most frequent of at least two generators, by generator in the order of the board.

    In anomalies a hundred images; None where a name is not among a generator's most frequent. The most
    frequent one over all comes first, at most `MOST_SHARED`.
    """
    found: dict[str, dict[str, float]] = {}
    shown: dict[str, str] = {}
    for name in leaderboard.order:
        score = leaderboard.generators[name]
        for one in score.names:
            key = one.name.casefold()
            shown.setdefault(key, one.name)
            found.setdefault(key, {})[name] = 100 * one.anomalies / score.images
    several = [key for key, by in found.items() if len(by) > 1]
    several.sort(key=lambda key: -sum(found[key].values()))
    return [
        (shown[key], [found[key].get(name) for name in leaderboard.order]) for key in several[:MOST_SHARED]
    ]


def left_out(leaderboard: Leaderboard) -> Sequence[GeneratorScore]:
    """The generators of which some records are in no figure."""
    return [score for name in leaderboard.order if (score := leaderboard.generators[name]).left_out.total]


def published_rows(result: AuditResult) -> list[tuple[str, list[tuple[str, float, float, float]]]]:
    """The published rows by assessor, lowest CAP first; empty where they were not asked for."""
    if result.published is None:
        return []
    tables: dict[str, list[tuple[str, float, float, float]]] = {}
    for row in sorted(result.published.rows, key=lambda row: row.cap):
        tables.setdefault(row.assessor, []).append((row.generator, row.cap, row.mai, row.af))
    return sorted(tables.items())


# So many pictures in the whole page, and so many of one generator.
MOST_SHOWN, MOST_EACH = 64, 8
LEAST_EACH = 3


@dataclass(frozen=True, slots=True)
class Pictured:
    """One image; `thumb` is a data URI, None where the file is missing, was changed or cannot be read."""

    worst: WorstImage
    thumb: str | None


def shots(leaderboard: Leaderboard) -> dict[str, list[Pictured]]:
    """For each generator with anomalies its worst images, in the order of the board."""
    each = max(LEAST_EACH, min(MOST_EACH, MOST_SHOWN // max(len(leaderboard.order), 1)))
    chosen = {
        name: [one for one in leaderboard.generators[name].worst if one.anomalies][:each]
        for name in leaderboard.order
    }
    files = [Shot(one.path, one.sha256) for worst in chosen.values() for one in worst]
    thumbs = iter(pictures(files, budget=0))
    return {
        name: [Pictured(one, next(thumbs).small) for one in worst] for name, worst in chosen.items() if worst
    }


SOURCE = "the AnomReason paper, table 3: 246 prompts a generator"
ASSESSORS = ("AnomReasonor", "AnomAgent")


def published_table() -> PublishedTable:
    """Table 3 of the AnomReason paper, in its order, and how its assessors agree on the ranks."""
    held = published("generator_audit")
    rows = tuple(
        PublishedRow(row["generator"], assessor, **row[assessor])
        for row in held["rows"]
        for assessor in ASSESSORS
    )
    return PublishedTable(SOURCE, rows, tuple(_agreement(held["rows"])))


def _agreement(rows: list[dict[str, dict[str, float]]]) -> list[Agreement]:
    first, second = ASSESSORS
    found = []
    for figure in RANKED:
        ranks = rank_agreement([row[first][figure] for row in rows], [row[second][figure] for row in rows])
        found.append(Agreement(figure, len(rows), ranks.spearman, ranks.kendall))
    return found
