"""Findings that a model is not sure of: which of them count, and how many do not.

The parameter is `ConfidenceParameters` in `eval.common.parameters`. A finding without a confidence, as of a
model that was not asked for one, always counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

from uncanny.records.calibration import Calibration
from uncanny.schema import Annotation
from uncanny.wording import counted


class _Doubtable(Protocol):
    @property
    def confidence(self) -> float | None: ...


D = TypeVar("D", bound=_Doubtable)
A = TypeVar("A", bound=Annotation)


def is_sure(finding: _Doubtable, min_confidence: float) -> bool:
    """Whether a finding counts: its confidence is at least that, 0-1, or not known."""
    return finding.confidence is None or finding.confidence >= min_confidence


def sure_enough(findings: Iterable[D], min_confidence: float) -> tuple[tuple[D, ...], int]:
    """The findings that count, in their order, and how many do not."""
    every = tuple(findings)
    kept = tuple(each for each in every if is_sure(each, min_confidence))
    return kept, len(every) - len(kept)


@dataclass(slots=True)
class Sure:
    """Takes findings of at least the confidence `least`, 0-1, and those without one; counts all others.

    It is true where some were `left_out`, and says so in words, without a full stop. `unknown` counts the
    findings without a confidence, `unrated` those whose severity is a stand-in.

    With a `calibration` those that count get a probability. `probabilities` is the sum over the findings
    `with_probability`, also of those that records have themselves.
    """

    least: float = 0.0
    left_out: int = 0
    unknown: int = 0
    unrated: int = 0
    calibration: Calibration | None = None
    probabilities: float = 0.0
    with_probability: int = 0
    without_probability: int = 0

    def record(self, record: A) -> A:
        """The record with the findings that count."""
        kept, left_out = sure_enough(record.anomalies, self.least)
        self.left_out += left_out
        self.unknown += sum(each.confidence is None for each in kept)
        self.unrated += sum(not each.severity_rated for each in kept)
        if self.calibration is not None:
            kept = tuple(map(self.calibration.finding, kept))
        likely = [each.probability for each in kept if each.probability is not None]
        self.probabilities += sum(likely)
        self.with_probability += len(likely)
        self.without_probability += len(kept) - len(likely)
        changed = left_out or self.calibration is not None
        return record.model_copy(update={"anomalies": kept}) if changed else record

    @property
    def expected_right(self) -> float | None:
        """How many of the findings with a probability are right, by it; None where none has one."""
        return self.probabilities if self.with_probability else None

    @property
    def how_many_right(self) -> str | None:
        """The same as a sentence."""
        if not self.with_probability:
            return None
        others = self.without_probability
        more = f" {others:,} more {'finding has' if others == 1 else 'findings have'} no probability."
        return (
            f"About {self.probabilities:,.0f} of {counted(self.with_probability, 'finding')} are right "
            f"(calibrated).{more if others else ''}"
        )

    def __bool__(self) -> bool:
        return self.left_out > 0

    def __str__(self) -> str:
        return f"{self.hidden} left out"

    def notices(self) -> Iterator[str]:
        """What to know of the figures, in sentences."""
        if self:
            yield f"{self}."
        if self.unrated:
            have = "has" if self.unrated == 1 else "have"
            yield (
                f"{counted(self.unrated, 'finding')} {have} a severity that nobody has rated: figures of "
                "realism count a stand-in."
            )

    def beside(self, name: str, others: Mapping[str, Sure]) -> str | None:
        """What to know where others leave findings out, and these, of `name`, have no confidence at all."""
        lose = [each for each, other in others.items() if other]
        if not lose or not self.unknown or self:
            return None
        return (
            f"{name} has findings without a confidence, which all count, while some of "
            f"{' and '.join(lose)} are left out. A least confidence of 0 counts all of them."
        )

    @property
    def hidden(self) -> str:
        """The beginning of such a sentence, of one finding or more."""
        verb = "is" if self.left_out == 1 else "are"
        return f"{counted(self.left_out, 'finding')} below confidence {self.least:g} {verb}"
