"""How the scores of the semantic protocol read: numbers, intervals, differences, measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from uncanny.eval.common.estimates import Estimate, p_words
from uncanny.eval.common.matching import Rule
from uncanny.eval.common.similarity.weights import DEFAULT_BACKBONE, measure_words
from uncanny.eval.common.tables.table import Column
from uncanny.eval.metrics.semap import View
from uncanny.eval.semantic.score.result import Difference, Metric, SemanticScore

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
