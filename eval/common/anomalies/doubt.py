"""How doubtful a model's findings are: people look at the most doubtful ones first.

Five signs, each from 0 to 1, as far as a record knows them; their mean is the doubt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from uncanny.schema import Annotation, Anomaly

Sign = Literal[
    "agents disagree",
    "model unsure",
    "realism in the middle",
    "found by one agent only",
    "object partial",
]
_SHOWN_FROM: Final = 0.5


@dataclass(frozen=True, slots=True)
class Doubt:
    """The signs that are known, by name; none are known of findings that other tools wrote."""

    signs: Mapping[Sign, float]

    @property
    def value(self) -> float:
        """0–1, higher is more doubtful; 0.5 where nothing is known."""
        return sum(self.signs.values()) / len(self.signs) if self.signs else 0.5

    @property
    def reasons(self) -> list[Sign]:
        """The signs that speak for a look, for people."""
        return [sign for sign, value in self.signs.items() if value >= _SHOWN_FROM]


def doubts(annotation: Annotation) -> list[Doubt]:
    """The doubt of each anomaly of a record, in their order.

    Agents disagree about one whose candidates the integrator corrected or said nothing of. The model is
    unsure at a confidence of 0.5, and not at all at 0 and 1. Realism is in the middle at 50, and not at all
    at 0 and 100. An object is partial where a step about it failed.
    """
    fates = _fates(annotation)
    partial = _partial(annotation)
    return [
        Doubt(_signs(anomaly, fates.get(number) if fates is not None else None, partial))
        for number, anomaly in enumerate(annotation.anomalies)
    ]


def _signs(anomaly: Anomaly, fates: Sequence[str] | None, partial: frozenset[str]) -> dict[Sign, float]:
    signs: dict[Sign, float] = {}
    if fates:
        signs["agents disagree"] = float(any(fate in ("corrected", "unchecked") for fate in fates))
    if anomaly.confidence is not None:
        signs["model unsure"] = 1 - abs(anomaly.confidence - 0.5) / 0.5
    if anomaly.severity_rated:
        signs["realism in the middle"] = 1 - abs(anomaly.severity - 50) / 50
    if anomaly.found_by is not None:
        signs["found by one agent only"] = float(len(anomaly.found_by) == 1)
    if anomaly.objects:
        signs["object partial"] = float(not partial.isdisjoint(anomaly.objects))
    return signs


def _fates(annotation: Annotation) -> dict[int, list[str]] | None:
    """What became of the candidates of each anomaly; None where the record has no candidates."""
    candidates = (annotation.model_extra or {}).get("candidates")
    if not isinstance(candidates, list):
        return None
    fates: dict[int, list[str]] = {}
    for each in candidates:
        match each:
            case {"anomaly": int(number), "fate": str(fate)}:
                fates.setdefault(number, []).append(fate)
    return fates


def _partial(annotation: Annotation) -> frozenset[str]:
    names: set[str] = set()
    for error in annotation.errors:
        several: Any = (error.model_extra or {}).get("objects")
        names |= {name for name in several if isinstance(name, str)} if isinstance(several, list) else set()
        names |= {error.object} if error.object else set()
    return frozenset(names)
