"""An audit as tables for a terminal and a notebook, and how its numbers and differences read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.published import CAVEATS
from uncanny.eval.common.tables import MISSING, Table
from uncanny.eval.metrics.audit import RANKED

if TYPE_CHECKING:
    from uncanny.eval.audit.score.result import Agreement, AuditResult, Leaderboard, PublishedTable

LIKE = "≈"
MINUS = "−"
_MOST_ALIKE = 4


def amount(value: float | None) -> str:
    """A score to two decimals, a dash where there is none; never 0 for what is only nearly so."""
    if value is None:
        return MISSING
    return "<0.01" if 0 < value < 0.005 else f"{value:,.2f}"


def ends(estimate: Estimate) -> str | None:
    """The two ends of the interval; None where there is none."""
    if estimate.interval is None:
        return None
    low, high = estimate.interval
    return f"{low:,.2f}–{high:,.2f}"


def signed(value: float | None) -> str:
    """A difference with its sign; none for what rounds to nothing."""
    if value is None:
        return MISSING
    return "0.00" if abs(value) < 0.005 else f"{value:+,.2f}".replace("-", MINUS)


def signed_ends(estimate: Estimate) -> str:
    """The interval of a difference in words; empty where there is none."""
    if estimate.interval is None:
        return ""
    low, high = estimate.interval
    return f"{signed(low)} to {signed(high)}"


def level_words(level: float) -> str:
    return f"{100 * level:.10g} %"


def audit_tables(result: AuditResult) -> tuple[Table, ...]:
    """A leaderboard an assessor, how their ranks agree, the published rows where they were asked for."""
    tables = []
    for leaderboard in result.leaderboards:
        several = len(result.leaderboards) > 1
        title = f"Assessor: {', '.join(leaderboard.models) or 'none'}" if several else None
        last = leaderboard is result.leaderboards[-1]
        notes = [*_differences(leaderboard), *_notes(leaderboard), *(_legend(result) if last else ())]
        tables.append(_leaderboard_table(leaderboard, level_words(result.level), title, notes))
    if result.agreement:
        what = "Rank agreement of the two (1 the same order, 0 none in common, −1 the reverse)"
        tables.append(_agreement_table(result.agreement, what))
    if result.published is not None:
        tables.append(_published_table(result.published))
        tables.append(_agreement_table(result.published.agreement, "Rank agreement of the two published"))
    return tuple(tables)


def _leaderboard_table(
    leaderboard: Leaderboard, level: str, title: str | None, notes: Sequence[str]
) -> Table:
    scores = [leaderboard.generators[name] for name in leaderboard.order]
    with_intervals = any(score.metric(metric).interval for score in scores for metric in RANKED)
    columns = ["    generator", "images"]
    for metric in RANKED:
        columns += [metric.upper(), *([level] if with_intervals else [])]
    alike = {each.second for each in leaderboard.alike}
    rows = []
    for rank, score in enumerate(scores, 1):
        mark = LIKE if score.name in alike else " "
        cells = [f"{rank:>2}{mark} {score.name}", f"{score.images:,}"]
        for metric in RANKED:
            estimate = score.metric(metric)
            cells += [amount(estimate.value), *([ends(estimate) or ""] if with_intervals else [])]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows), title, tuple(notes))


def _differences(leaderboard: Leaderboard) -> Iterator[str]:
    """Neighbours that are alike, in few words where they are many, and who is behind for sure."""
    alike = leaderboard.alike
    if len(alike) > _MOST_ALIKE:
        yield f"{LIKE} can't be told apart from the one before."
    else:
        yield from (f"{LIKE} {difference}." for difference in alike)
    measured = leaderboard.measured
    compared = [leaderboard.difference(measured[0], name) for name in measured[1:]]
    if len(measured) > 2 and None not in compared:
        behind = [each.second for each in compared if each and each.apart and (each.cap.value or 0) < 0]
        yield f"Behind the first for sure: {', '.join(behind) or 'none'}."


def _notes(leaderboard: Leaderboard) -> Iterator[str]:
    for name in leaderboard.order:
        score = leaderboard.generators[name]
        if score.left_out.total and not score.many_left_out:
            yield f"{name}: {score.left_out.total:,} of {score.records:,} images are left out."
    yield from (f"{note}." for note in leaderboard.texts_notes())
    yield from (f"Note: {notice}" for notice in leaderboard.notices)
    yield from (f"Not made alike: {mismatch}" for mismatch in leaderboard.mixed)


def _legend(result: AuditResult) -> Iterator[str]:
    yield (
        "Lower is better, 0 is flawless. AF: anomalies an image. MAI: their summed implausibility an image. "
        "CAP = MAI · AF."
    )
    drawn = "images" if result.pair_by is None else f"prompts (by {result.pair_by})"
    if result.resamples:
        yield f"{level_words(result.level)} intervals by {result.resamples:,} resamples of {drawn}."


def _agreement_table(agreements: Sequence[Agreement], title: str) -> Table:
    rows = tuple(
        (
            each.metric.upper(),
            MISSING if each.spearman is None else f"{each.spearman:.2f}",
            MISSING if each.kendall is None else f"{each.kendall:.2f}",
            f"{each.generators:,}",
        )
        for each in agreements
    )
    return Table(("", "Spearman", "Kendall", "generators"), rows, title)


def _published_table(table: PublishedTable) -> Table:
    by_generator: dict[str, dict[str, tuple[str, ...]]] = {}
    for row in table.rows:
        scores = tuple(f"{getattr(row, metric):.2f}" for metric in RANKED)
        by_generator.setdefault(row.generator, {})[row.assessor] = scores
    blank = (MISSING,) * len(RANKED)
    rows = tuple(
        (name, *(cell for assessor in table.assessors for cell in scores.get(assessor, blank)))
        for name, scores in by_generator.items()
    )
    columns = ("generator", *(metric.upper() for _ in table.assessors for metric in RANKED))
    whose = f"Assessors, from left to right: {', '.join(table.assessors)}."
    notes = (whose, *filter(None, [table.names_note]), CAVEATS["generator_audit"])
    return Table(columns, rows, f"Published: {table.source}", notes)
