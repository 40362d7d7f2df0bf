"""An audit as a gate: the own generators' figures, and what became of them since the earlier release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from uncanny.errors import UsageError
from uncanny.eval.audit.score.corrected import corrected_score, too_few_words
from uncanny.eval.audit.score.tables import release_claims
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.gates import (
    Condition,
    GateResult,
    Measured,
    Subject,
    judge,
    read_conditions,
)
from uncanny.eval.trust.data import skipped_words
from uncanny.eval.trust.figures import FIGURES
from uncanny.schema import KINDS
from uncanny.wording import option, shown

if TYPE_CHECKING:
    from uncanny.eval.audit.score.result import AuditResult, GeneratorScore

GATED: Final = (*FIGURES, *(f"kind:{kind}" for kind in KINDS))


def audit_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """As `read_conditions` reads them, about the figures of an audit. Raises UsageError."""
    conditions = read_conditions(texts, GATED)
    for each in conditions:
        is_share = each.figure == "visible" or (each.figure or "").startswith("kind:")
        if is_share and each.limit is not None and each.limit > 1:
            raise UsageError(
                f"{option('conditions')} {shown(each.text)}: {each.figure} is a share, in 0–1",
                remedy=f"Write {each.limit / 100:g} for {each.limit:g} percent.",
            )
    return conditions


def gated(names: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """Which generators conditions are about: the own ones, or the only one. Raises UsageError for several."""
    if own or len(names) == 1:
        return tuple(own or names)
    raise UsageError(
        f"{option('conditions')} needs to know which of the {len(names):,} generators is yours",
        remedy=f"Pass {option('own', 'NAME')}.",
    )


def gate_audit(result: AuditResult, texts: Sequence[str]) -> GateResult:
    """Judge the conditions; see `AuditResult.gate`."""
    conditions = audit_conditions(texts)
    names = gated(list(result.leaderboard.generators), result.own)
    return judge(conditions, [_subject(result, name) for name in names], "uncanny.audit")


def _subject(result: AuditResult, name: str) -> Subject:
    score, release = corrected_score(result[name]), result.releases.get(name)
    why, undecided = "", False
    if release is None:
        why = f"there is no earlier release to compare with; name one with {option('before')}"
    elif release.too_few:
        why = "the releases have too few images or prompts in common to compare (fewer than ten)"
    elif release.untrusted or release.passed_over:
        why, undecided = release.untrusted or release.passed_over, True
    undecided_level = score.trusted is not None and score.corrected is None
    few = "rests on too few images (fewer than ten)" if score.too_few else "is not measured"
    if undecided_level:
        few = f"is undecided: {too_few_words(score.trusted)}"
    elif score.trusted is not None and score.trusted.judged.skipped:
        undecided_level, few = True, f"is undecided: {skipped_words(score.trusted.judged)}"
    figures = {
        figure: Measured(
            None if score.too_few or undecided_level else each.value,
            each.interval,
            why=few,
            undecided=undecided_level,
            basis="" if score.corrected is None else " (corrected)",
            more=_if_unsure(score, figure),
        )
        for figure, each in zip(GATED, _estimates(score), strict=True)
    }
    if release is not None and not undecided:
        # Both begin with the figures, then the kinds; what has no kind and groups of names come after them.
        changes = [*release.figures.values(), *release.kinds.values()]
        for figure, change, claim in zip(GATED, changes, release_claims(release), strict=False):
            worse = None if change.verdict == "not measured" else change.verdict == "worse"
            figures[figure] = replace(figures[figure], worse=worse, change=str(claim))
    return Subject(name, figures, GATED, why, undecided)


def _if_unsure(score: GeneratorScore, figure: str) -> float:
    """How much larger a corrected figure is if all that people are unsure of is true."""
    if score.corrected is None:
        return 0.0
    each = score.corrected.figure(figure.removeprefix("kind:"))
    return (each.if_unsure_accepted or 0.0) - (each.corrected.value or 0.0)


def _estimates(score: GeneratorScore) -> list[Share | Estimate]:
    """In the order of `GATED`; a kind that nothing records is not measured."""
    kinds, unknown = score.faults.kinds, Share(None, 0, 0)
    return [
        score.faults.visible,
        *(score.af, score.mai, score.cap),
        *(kinds[kind].share if kind in kinds else unknown for kind in KINDS),
    ]
