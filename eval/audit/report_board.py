"""The tables of the audit page: leaderboard rows, differences of all pairs, names that generators share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from uncanny.eval.audit.report_words import difference_words
from uncanny.eval.audit.result import AuditResult, Board, Difference, Estimate, GeneratorScore

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


def rows(board: Board) -> list[Row]:
    """All generators in the order of the board."""
    alike = {one.first: difference_words(one) for one in board.alike}
    low, high = scale(board)
    found = []
    for place, name in enumerate(board.order, 1):
        score = board.generators[name]
        has = score.cap.value is not None
        strip = _strip(score.cap, low, high) if has else None
        found.append(Row(place if has else None, score, strip, alike.get(name)))
    return found


def scale(board: Board) -> tuple[float, float]:
    """The lowest and highest end of any interval of CAP; 0 to 1 without any figure."""
    caps = [score.cap for score in board.generators.values() if score.cap.value is not None]
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


def matrix(board: Board) -> list[tuple[str, list[Difference | None]]] | None:
    """For each generator its differences to all others as row minus column, None on the diagonal.

    None where fewer than two were compared, or not every pair was.
    """
    names = [name for name in board.order if board.generators[name].cap.value is not None]
    pairs = {(one.first, one.second): one for one in board.differences}
    if len(names) < 2 or len(pairs) < len(names) * (len(names) - 1) // 2:
        return None
    return [
        (row, [pairs.get((row, column)) or _turned(pairs.get((column, row))) for column in names])
        for row in names
    ]


def _turned(one: Difference | None) -> Difference | None:
    if one is None:
        return None
    mai, af, cap = (_negative(figure) for figure in (one.mai, one.af, one.cap))
    return Difference(one.second, one.first, one.paired, mai, af, cap, one.apart)


def _negative(figure: Estimate) -> Estimate:
    value = None if figure.value is None else 0.0 - figure.value
    return Estimate(value, figure.interval and (0.0 - figure.interval[1], 0.0 - figure.interval[0]))


def shared_names(board: Board) -> list[tuple[str, list[float | None]]]:
    """Names among the most frequent of at least two generators, by generator in the order of the board.

    In anomalies a hundred images; None where a name is not among a generator's most frequent. The most
    frequent one over all comes first, at most `MOST_SHARED`.
    """
    found: dict[str, dict[str, float]] = {}
    shown: dict[str, str] = {}
    for name in board.order:
        score = board.generators[name]
        for one in score.names:
            key = one.name.casefold()
            shown.setdefault(key, one.name)
            found.setdefault(key, {})[name] = 100 * one.anomalies / score.images
    several = [key for key, by in found.items() if len(by) > 1]
    several.sort(key=lambda key: -sum(found[key].values()))
    return [(shown[key], [found[key].get(name) for name in board.order]) for key in several[:MOST_SHARED]]


def left_out(board: Board) -> Sequence[GeneratorScore]:
    """The generators of which some records are in no figure."""
    return [score for name in board.order if (score := board.generators[name]).left_out.total]


def published_rows(result: AuditResult) -> list[tuple[str, list[tuple[str, float, float, float]]]]:
    """The published rows by assessor, lowest CAP first; empty where they were not asked for."""
    if result.published is None:
        return []
    tables: dict[str, list[tuple[str, float, float, float]]] = {}
    for row in sorted(result.published.rows, key=lambda row: row.cap):
        tables.setdefault(row.assessor, []).append((row.generator, row.cap, row.mai, row.af))
    return sorted(tables.items())
