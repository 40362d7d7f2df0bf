"""Figures of all images of a run, corrected by what people found in its sample.

The formulas are in `eval.metrics.corrected`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal, get_args

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.corrected import (
    LEAST_JUDGED,
    Corrected,
    Design,
    Fit,
    corrected,
    fit_mean,
    fit_product,
    fit_share,
)
from uncanny.eval.metrics.intervals import Codes
from uncanny.eval.trust.data import COUNT, KIND_COLUMN, UNREAL, VISIBLE, Floats, JudgedRun, read_judged
from uncanny.records.sample import SAMPLE
from uncanny.wording import counted

FigureName = Literal["visible", "af", "mai", "cap"]
FIGURES: Final[tuple[FigureName, ...]] = get_args(FigureName)
# Fewer prompts say too little of how they vary.
LEAST_GROUPS: Final = 10


@dataclass(frozen=True, slots=True)
class TrustedFigure:
    """A figure of all images as corrected by people, and its value if all they are unsure of were true."""

    corrected: Corrected
    if_unsure_accepted: float | None

    def to_json(self) -> dict[str, Any]:
        each, people = self.corrected, self.corrected.people_only
        low, high = people.interval or (None, None)
        return {
            **{"value": each.value, "low": each.low, "high": each.high, "lambda": each.lam},
            "people_only": {"value": people.value, "low": low, "high": high},
            **{"model_only": each.model_only, "worth": each.effective, "method": each.method},
            "if_unsure_accepted": self.if_unsure_accepted,
        }

    @property
    def estimate(self) -> Estimate:
        each = self.corrected
        ends = None if each.low is None or each.high is None else (each.low, each.high)
        return Estimate(each.value, ends)


@dataclass(frozen=True, eq=False)
class Trusted:
    """A run with its judged images, and all its figures as people correct them.

    `groups` has shape (N,): the number of the group of each image that counts, such as its prompt, in the
    order of the records; None where images are independent.
    """

    judged: JudgedRun
    groups: Codes | None = None

    @property
    def design(self) -> Design:
        return self.judged.design

    @property
    def grown(self) -> int:
        """How many images came into the run after its sample was drawn: it says nothing of them."""
        return max(0, self.design.size - self.judged.sample.frame)

    @property
    def is_enough(self) -> bool:
        """Whether enough images, and groups of them, of a sample of all images are judged for intervals."""
        return not self.why_not

    @cached_property
    def why_not(self) -> str:
        """Why figures are not corrected, without a full stop; empty where they are."""
        design, groups = replace(self.design, groups=self.groups), LEAST_GROUPS
        judged = f"{counted(design.n, 'image')} of its sample {'is' if design.n == 1 else 'are'} judged"
        if self.grown:
            return (
                f"its sample was drawn from {self.judged.sample.frame:,} of {counted(design.size, 'image')}; "
                "extend it with `uncanny sample`"
            )
        if design.missing:
            if design.n + design.missing > design.size:
                return f"{judged}, and it has only {counted(design.size, 'image')}; {LEAST_JUDGED} are needed"
            return f"{judged}; {design.missing:,} more are needed for corrected figures"
        if self.groups is not None and design.independent < groups:
            return f"{judged}, of {design.independent:,} prompts; corrected figures need {groups}"
        return ""

    @cached_property
    def fits(self) -> Mapping[str, Fit]:
        """By the names of `FIGURES` and of kinds."""
        return self._fits(self.judged.people)

    @cached_property
    def figures(self) -> Mapping[str, TrustedFigure]:
        """By the names of `FIGURES`."""
        return {name: self.figure(name) for name in FIGURES}

    @cached_property
    def kinds(self) -> Mapping[str, TrustedFigure]:
        """The share of images with a fault of each kind that the model or people found anywhere."""
        return {
            kind: self.figure(kind)
            for kind, column in KIND_COLUMN.items()
            if self.judged.model[:, column].any() or self.judged.people_unsure[:, column].any()
        }

    def grouped(self, groups: Codes) -> Trusted:
        """The same with other groups of images; those of two runs that are compared are numbered together."""
        return Trusted(self.judged, groups)

    def to_json(self) -> dict[str, Any]:
        return {
            **{"n": self.design.n, "frame": self.design.size},
            **{name: each.to_json() for name, each in self.figures.items()},
            "kinds": {name: each.to_json() for name, each in self.kinds.items()},
        }

    @cached_property
    def _if_unsure(self) -> Mapping[str, Fit]:
        return self._fits(self.judged.people_unsure)

    def figure(self, name: str) -> TrustedFigure:
        """One of `FIGURES`, or the share of images with a fault of a kind."""
        return TrustedFigure(corrected(self.fits[name]), self._if_unsure[name].value)

    def _fits(self, people: Floats) -> dict[str, Fit]:
        design, model = replace(self.design, groups=self.groups), self.judged.model
        fits: dict[str, Fit] = {
            name: fit_share(design, model[:, place], people[:, place])
            for name, place in (("visible", VISIBLE), *KIND_COLUMN.items())
        }
        af, mai = (fit_mean(design, model[:, place], people[:, place]) for place in (COUNT, UNREAL))
        return {**fits, "af": af, "mai": mai, "cap": fit_product(mai, af)}


def verdict_words(trusted: Trusted) -> Iterator[str]:
    """Which verdicts are not used, and what people are unsure of where it matters: sentences, if any."""
    if stale := trusted.judged.stale:
        yield (
            f"{counted(stale, 'verdict')} about an earlier annotation, or another picture, of images of the "
            f"sample {'is' if stale == 1 else 'are'} not used."
        )
    visible = trusted.figure("visible")
    value, most = visible.corrected.value, visible.if_unsure_accepted
    if value is not None and most is not None and most > value:
        yield (
            f"People are unsure of some findings: if all of these are true, {100 * most:.1f} % of images "
            f"have a visible fault, not {100 * value:.1f} %."
        )


def read_trusted(run: Path, min_confidence: float) -> Trusted | None:
    """What people make of a run, from findings of at least `min_confidence`, 0-1; None without a sample.

    Raises UsageError and RecordError as `read_judged` does.
    """
    if not os.path.lexists(run / SAMPLE):
        return None
    return Trusted(read_judged(run, min_confidence))
