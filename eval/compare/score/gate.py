"""A comparison as a gate: the figures of each further run, and whether they are worse than the first's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from uncanny.eval.common.estimates import p_words
from uncanny.eval.common.gates import Condition, GateResult, Measured, Subject, judge, read_conditions
from uncanny.eval.compare.score.figures import Paired
from uncanny.eval.compare.score.tables import truth_figures
from uncanny.eval.metrics.semap import PROTOCOLS
from uncanny.schema import KINDS
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.eval.compare.score.result import CompareResult, Comparison, Group

FIGURES: Final = ("af", "mai", "cap", "images_with_anomaly")
TRUTH: Final = (
    *(f"{name}_{protocol}" for name in ("semap", "semf1") for protocol in PROTOCOLS),
    *("detection", "recall", "precision", "false_alarms", "source"),
)
_KINDS: Final = tuple(f"kind:{kind}" for kind in KINDS)
# Of the others more is better.
_LESS_IS_BETTER: Final = {*FIGURES, *_KINDS, "false_alarms"}
_UNDIRECTED: Final = (
    "more findings on the same images are neither better nor worse; give {}, or compare releases of a "
    "generator with {}"
)


def compare_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """As `read_conditions` reads them, about the figures of a comparison. Raises UsageError."""
    return read_conditions(texts, (*FIGURES, *TRUTH), (*FIGURES, *TRUTH, *_KINDS))


def gate_comparisons(result: CompareResult, texts: Sequence[str]) -> GateResult:
    """Judge the conditions; see `CompareResult.gate`."""
    conditions = compare_conditions(texts)
    return judge(conditions, [_subject(each) for each in result.comparisons], "uncanny.compare")


def _subject(comparison: Comparison) -> Subject:
    """Of one set of images more findings are neither better nor worse; a truth, or two releases, tell."""
    truth = {name: each for name, each in truth_figures(comparison.truth) if name in TRUTH}
    found, judged = comparison.figures, comparison.settings.by == "prompt"
    figures: dict[str, Measured] = {
        name: _measured(name, each, judged=judged) for name, each in found.items()
    }
    figures |= {name: _measured(name, each, judged=True) for name, each in truth.items()}
    if judged and (comparison.by_kind.keys() & set(KINDS) or found["af"].a == found["af"].b == 0):
        # A kind that is not there was found in neither, unless the runs name no kind at all.
        figures |= {name: Measured(worse=False) for name in _KINDS}
    for kind, group in comparison.by_kind.items():
        figures[f"kind:{kind}"] = _measured(f"kind:{kind}", group, judged=judged)
    why = "" if truth or judged else _UNDIRECTED.format(option("truth"), option("by", "prompt"))
    measured = tuple(name for name, each in truth.items() if each.difference.value is not None)
    return Subject(comparison.names[1], figures, measured if truth else (*FIGURES, *_KINDS), why)


def _measured(name: str, figure: Paired | Group, *, judged: bool) -> Measured:
    """Whether it got worse is only said where more or less of it is `judged` to be so."""
    worse, gap = None, figure.difference.value
    if judged and gap is not None and figure.adjusted_p is not None:
        worse = figure.differs and (gap > 0) is (name in _LESS_IS_BETTER)
    change = f"{name} {figure.a:.4g} → {figure.b:.4g} ({p_words(figure.adjusted_p)})" if worse else ""
    if isinstance(figure, Paired):
        return Measured(figure.b, figure.b_interval, worse, change=change)
    return Measured(worse=worse, change=change)
