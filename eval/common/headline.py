"""What a page or a terminal says first: only what a corrected test proves, the strongest of it first.

Every protocol's headline is made here, from the adjusted p-values that its tables show. `proven` is the one
rule of what counts as proven; `headline` words changes and associations, `ranking` who leads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import asin, sqrt
from typing import Final

from uncanny.eval.common.estimates import Estimate, p_words
from uncanny.eval.metrics.intervals import ALPHA

# Claims that are spelled out, and names; the others are counted.
MOST_SAID: Final = 3
MOST_NAMED: Final = 4
UNTESTED: Final = "Whether they differ is not tested."


def proven(adjusted_p: float | None, excludes_zero: bool | None) -> bool | None:
    """Whether a corrected p-value reaches the level (`ALPHA`); None where nothing was tested.

    `excludes_zero` is of the interval that stands beside the test: one that holds 0 proves nothing, whatever
    the p-value. None where there is no interval: the test alone decides.
    """
    if adjusted_p is None:
        return None
    return excludes_zero is not False and adjusted_p <= ALPHA


@dataclass(frozen=True, slots=True)
class Claim:
    """One tested statement. `words` say it with its direction, without a full stop.

    `effect` is its size, comparable among the claims of one headline; its sign does not matter here. Of
    claims with the same `topic`, if any, only the strongest is said.
    """

    words: str
    effect: float
    adjusted_p: float | None
    excludes_zero: bool | None
    topic: str = ""

    @property
    def proven(self) -> bool | None:
        return proven(self.adjusted_p, self.excludes_zero)

    def __str__(self) -> str:
        return f"{self.words} ({p_words(self.adjusted_p)})"


@dataclass(frozen=True, slots=True)
class Versus:
    """Two that are ranked, tested against each other; `lead` is above 0 where `first` is the better one."""

    first: str
    second: str
    lead: Estimate
    adjusted_p: float | None

    @property
    def ahead(self) -> float | None:
        return self.lead.value

    @property
    def proven(self) -> bool | None:
        if self.ahead is None or not self.ahead:
            return None if self.ahead is None or self.adjusted_p is None else False
        return proven(self.adjusted_p, self.lead.excludes_zero)

    def seen_from(self, name: str) -> Versus:
        """The same with `name`, one of the two, as the first."""
        if name == self.first:
            return self
        return Versus(self.second, self.first, -self.lead, self.adjusted_p)


def share_effect(before: float | None, now: float | None) -> float:
    """Cohen's h of two shares in 0–1: 2 · (arcsin √now − arcsin √before); 0 where one is not measured.

    Source: J. Cohen, Statistical Power Analysis for the Behavioral Sciences, 1988, chapter 6.
    """
    if before is None or now is None:
        return 0.0
    return 2 * (asin(sqrt(min(max(now, 0.0), 1.0))) - asin(sqrt(min(max(before, 0.0), 1.0))))


def rate_effect(before: float | None, now: float | None, *, factors: int = 1) -> float:
    """The counterpart of `share_effect` for figures from 0 without an end, as anomalies an image.

    2 · (√now − √before), which like h makes the variance even; of a product of `factors` such figures their
    geometric mean. This is our choice, to order claims of both sorts.
    """
    if before is None or now is None:
        return 0.0
    root = 1 / (2 * factors)
    return 2 * (float(max(now, 0.0) ** root) - float(max(before, 0.0) ** root))


def strongest(claims: Iterable[Claim]) -> list[Claim]:
    """The proven ones by the size of their effect, the largest first, one of each topic."""
    said: list[Claim] = []
    for claim in sorted((each for each in claims if each.proven), key=lambda each: -abs(each.effect)):
        if not claim.topic or claim.topic not in {each.topic for each in said}:
            said.append(claim)
    return said


def headline(claims: Iterable[Claim], *, nothing: str, untested: str) -> str:
    """What is proven, strongest first, with its p-values; without a full stop.

    `nothing` is said where tests prove nothing, `untested` where there is no test at all.
    """
    claims = list(claims)
    said = strongest(claims)
    if not said:
        return untested if all(each.proven is None for each in claims) else nothing
    more = len(said) - MOST_SAID
    return "; ".join([*map(str, said[:MOST_SAID]), *([f"{more:,} more below"] if more > 0 else [])])


def ranking(scores: Mapping[str, str], tests: Iterable[Versus], *, what: str, things: str = "models") -> str:
    """Who leads in `what`, as sentences; empty without a score.

    `scores` are the figures in words by name, the best first. Those that are not proven to be behind the
    first are named together with it. `things` is what the ranked are called, in the plural.
    """
    names = list(scores)
    if not names:
        return ""
    first, *others = names
    if not others:
        return f"{first} reaches {scores[first]} in {what}."
    tests = [each for each in tests if each.first in scores and each.second in scores]
    if not any(each.proven for each in tests):
        everyone = _listed([f"{name} ({scores[name]})" for name in names])
        if all(each.proven is None for each in tests):
            return f"In {what}: {everyone}. {UNTESTED}"
        return f"No significant difference between {things} in {what}: {everyone}."
    against = {
        each.second: each
        for each in (test.seen_from(first) for test in tests if first in (test.first, test.second))
    }
    behind = [name for name in others if name in against and _ahead(against[name])]
    untested = [name for name in others if name not in against or against[name].proven is None]
    leaders = [name for name in names if name not in behind and name not in untested]
    rest = _listed([f"{name} ({scores[name]})" for name in behind])
    if len(leaders) > 1:
        together = _listed([f"{name} ({scores[name]})" for name in leaders])
        who = "none of them is" if len(leaders) > 2 else f"{leaders[1]} is not"
        said = [f"{together} lead in {what}; {who} significantly behind {first}."]
        said += [f"{first} is significantly ahead of {rest}."] if behind else []
    else:
        ahead = f", significantly ahead of {rest}" if behind else ""
        said = [f"{first} leads in {what} with {scores[first]}{ahead}."]
    said += [f"Not tested against {first}: {_listed(untested)}."] if untested else []
    sure = [each for test in tests for each in (test, test.seen_from(test.second)) if _ahead(each)]
    among = [each for each in sure if each.first in leaders and each.second in leaders]
    claims = [
        Claim(
            f"{each.first} is significantly ahead of {each.second}",
            each.ahead or 0.0,
            each.adjusted_p,
            each.lead.excludes_zero,
        )
        for each in among or ([] if behind else sure)
    ]
    said += [f"{headline(claims, nothing='', untested='')}."] if claims else []
    return " ".join(said)


def _ahead(test: Versus) -> bool:
    return bool(test.proven) and (test.ahead or 0.0) > 0


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_NAMED + 1:
        names = [*names[:MOST_NAMED], f"{len(names) - MOST_NAMED:,} others"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
