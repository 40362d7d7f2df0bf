"""The leaderboard of an audit in 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncanny.cli.terminal import layout
from uncanny.eval.audit.guard import told
from uncanny.eval.audit.result import RANKED, Agreement, AuditResult, Difference, Leaderboard, PublishedTable
from uncanny.eval.audit.score import ALL_PAIRS_UP_TO
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.published import CAVEATS

WIDTH = 80
IMAGES_WIDTH = 8
LEAST_NAME = 10
LIKE = "≈"
MOST_ALIKE = 4
UNMEASURED = "–"


def leaderboard(result: AuditResult) -> str:
    """Figures with intervals, lowest CAP first, and what has to be known before they are believed."""
    boards = [("", result.leaderboard)]
    if result.against is not None:
        boards = [
            (_assessor(result.leaderboard), result.leaderboard),
            (_assessor(result.against), result.against),
        ]
    lines: list[str] = []
    for assessor, leaderboard in boards:
        lines += [f"Assessor: {assessor}"] if assessor else []
        lines += [*_table(leaderboard), *_differences(leaderboard, result.pair_by), *_notes(leaderboard), ""]
    if result.agreement:
        lines += ["Rank agreement of the two (1 the same order, 0 none in common, −1 the reverse):"]
        lines += [*_ranks(result.agreement), ""]
    if result.published is not None:
        lines += [*_published(result.published), ""]
    return layout([*lines, *_legend(result)])


def _assessor(leaderboard: Leaderboard) -> str:
    found = {model for score in leaderboard.generators.values() for model in score.provenance.models}
    return ", ".join(sorted(found)) or "none"


def _table(leaderboard: Leaderboard) -> Iterator[str]:
    cells = {
        name: [_estimate(leaderboard.generators[name].figure(figure)) for figure in RANKED]
        for name in leaderboard.order
    }
    widths = [max(len(held[column]) for held in cells.values()) for column in range(len(RANKED))]
    room = WIDTH - 4 - IMAGES_WIDTH - sum(2 + width for width in widths)
    longest = max(len("generator"), *map(len, leaderboard.order))
    names = min(longest, max(room, LEAST_NAME))
    heads = "".join(f"  {figure.upper():<{width}}" for figure, width in zip(RANKED, widths, strict=True))
    yield f"    {'generator':<{names}}{'images':>{IMAGES_WIDTH}}{heads}".rstrip()
    alike = {one.second for one in leaderboard.alike}
    for rank, name in enumerate(leaderboard.order, 1):
        shown = "".join(f"  {cell:<{width}}" for cell, width in zip(cells[name], widths, strict=True))
        head = f"{rank:>2}{LIKE if name in alike else ' '} {_fit(name, names):<{names}}"
        yield f"{head}{leaderboard.generators[name].images:>{IMAGES_WIDTH},}{shown}".rstrip()


def _differences(leaderboard: Leaderboard, pair_by: str | None) -> Iterator[str]:
    """Neighbours that are alike, in few words where they are many, and who is behind for sure."""
    alike = leaderboard.alike
    if len(alike) > MOST_ALIKE:
        yield f"{LIKE} cannot be told apart from the one before."
    else:
        for one in alike:
            yield from _wrapped(
                f"{LIKE} {one.first} and {one.second} cannot be told apart: {_cap(one, pair_by)}."
            )
    measured = [name for name in leaderboard.order if leaderboard.generators[name].cap.value is not None]
    if 2 < len(measured) <= ALL_PAIRS_UP_TO:
        pairs = [(name, leaderboard.difference(measured[0], name)) for name in measured[1:]]
        behind = [name for name, one in pairs if one is not None and one.apart and (one.cap.value or 0) < 0]
        yield from _wrapped(f"Behind the first for sure: {', '.join(behind) or 'none'}.")


def _cap(one: Difference, pair_by: str | None) -> str:
    if one.cap.interval is None or one.cap.value is None:
        return "too few images to tell"
    low, high = one.cap.interval
    over = "" if pair_by is None else f" over {one.paired:,} shared prompts" if one.paired else ", unpaired"
    return f"CAP {one.cap.value:+.2f}, {low:+.2f} to {high:+.2f}{over}"


def _notes(leaderboard: Leaderboard) -> Iterator[str]:
    for name in leaderboard.order:
        score = leaderboard.generators[name]
        if score.left_out.total and not score.many_left_out:
            yield from _wrapped(f"{name}: {score.left_out.total:,} of {score.records:,} images are left out.")
    for notice in leaderboard.notices:
        yield from _wrapped(f"Note: {notice}")
    for mixed in leaderboard.mixed:
        yield from _wrapped(f"Not made alike: {told(mixed)}")


def _ranks(found: Sequence[Agreement]) -> Iterator[str]:
    yield f"    {'':<6}{'Spearman':>10}{'Kendall':>10}{'generators':>12}"
    for one in found:
        ranks = f"{_rank(one.spearman):>10}{_rank(one.kendall):>10}"
        yield f"    {one.figure.upper():<6}{ranks}{one.generators:>12}"


def _published(table: PublishedTable) -> Iterator[str]:
    assessors = list(dict.fromkeys(row.assessor for row in table.rows))
    yield from _wrapped(f"Published: {table.source}. {CAVEATS['generator_audit']}")
    yield f"    {'':<20}" + "".join(f"{assessor:^28}" for assessor in assessors).rstrip()
    heads = "".join(f"{figure.upper():>9}" for figure in RANKED)
    yield f"    {'generator':<20}{heads} {heads}"
    by_generator: dict[str, dict[str, str]] = {}
    for row in table.rows:
        figures = "".join(f"{getattr(row, figure):>9.2f}" for figure in RANKED)
        by_generator.setdefault(row.generator, {})[row.assessor] = figures
    for name, held in by_generator.items():
        yield f"    {_fit(name, 20):<20}" + " ".join(held[assessor] for assessor in assessors)
    yield "    Rank agreement of the two:"
    yield from _ranks(table.agreement)


def _legend(result: AuditResult) -> Iterator[str]:
    yield from _wrapped(
        "Lower is better, 0 is flawless. AF: anomalies an image. MAI: their summed implausibility an image. "
        "CAP = MAI · AF."
    )
    drawn = "images" if result.pair_by is None else f"prompts (by {result.pair_by})"
    if result.resamples:
        yield from _wrapped(f"95 % intervals by {result.resamples:,} resamples of {drawn}.")


def _estimate(one: Estimate) -> str:
    if one.value is None:
        return UNMEASURED
    if one.interval is None:
        return _figure(one.value)
    return f"{_figure(one.value)} {_figure(one.interval[0])}–{_figure(one.interval[1])}"


def _figure(value: float) -> str:
    return f"{value:.2f}" if value < 100 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def _rank(value: float | None) -> str:
    return UNMEASURED if value is None else f"{value:.2f}"


def _fit(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}…"


def _wrapped(text: str) -> list[str]:
    from textwrap import wrap

    return wrap(text, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
