"""How an audit's figures and findings read."""

from __future__ import annotations

from collections.abc import Iterable

from uncanny.eval.audit.result import AuditResult, Difference, GeneratorScore, Leaderboard
from uncanny.eval.common.estimates import Estimate

MINUS = "−"


def amount(value: float | None) -> str:
    """A figure to two decimals, a dash where there is none; never 0 for what is only nearly so."""
    if value is None:
        return "–"
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
        return "–"
    return "0.00" if abs(value) < 0.005 else f"{value:+,.2f}".replace("-", MINUS)


def signed_ends(estimate: Estimate) -> str:
    """The interval of a difference in words; empty where there is none."""
    if estimate.interval is None:
        return ""
    low, high = estimate.interval
    return f"{signed(low)} to {signed(high)}"


def level_words(level: float) -> str:
    return f"{100 * level:.10g} %"


def difference_words(one: Difference) -> str:
    """A difference in CAP as a sentence."""
    if one.apart is None:
        return f"{one.first} and {one.second}: too few images for an interval"
    verdict = "differ" if one.apart else "can't be told apart"
    over = f", over {one.paired:,} shared prompts" if one.paired is not None else ""
    value, interval = signed(one.cap.value), signed_ends(one.cap)
    return f"{one.first} and {one.second} {verdict}: CAP {value} ({interval}){over}"


def rivals(leaderboard: Leaderboard) -> list[str]:
    """Those that can't be told apart from the first in the order, as far as they were compared."""
    return [
        one.second
        for one in leaderboard.differences
        if one.first == leaderboard.order[0] and one.apart is not True
    ]


def distinct(scores: Iterable[GeneratorScore], of: str) -> list[str]:
    """Models or prompts over all generators, each once."""
    return sorted({value for score in scores for value in getattr(score.provenance, of)})


def pairing_words(result: AuditResult) -> str:
    if result.pair_by is None:
        return "images resampled one by one"
    by = "file name" if result.pair_by == "stem" else f"column {result.pair_by}"
    return f"images with the same prompt (by {by}) resampled together"
