"""How many items it takes to tell two models apart, and what a number of items can tell.

Of two models on the same items only those count that just one of them gets right: how many there are, the
discordance, decides over the number of items, beside the difference itself. Without better knowledge it is
that of models which err independently, which asks for more items than models that find the same items hard;
an earlier score has the real one. Power is that of the exact McNemar test, see `metrics/paired.py`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar, Final

import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.common.tables.table import Cell, Column, Table, TableResult
from uncanny.eval.mcq.parameters import PlanParameters
from uncanny.eval.mcq.score.controls import is_baseline
from uncanny.eval.metrics.paired import (
    MOST_ITEMS,
    ROUNDING,
    independent_discordance,
    items_needed,
    mcnemar_power,
    smallest_difference,
)
from uncanny.files import read_file
from uncanny.parameters import takes
from uncanny.wording import counted, option

# Beside the one that is asked for.
DIFFERENCES: Final = (0.01, 0.02, 0.03, 0.05, 0.1)


@dataclass(frozen=True, slots=True)
class PlannedDifference:
    """Two models `difference` apart; shares in 0–1.

    `discordant` is the share of items that only one of them gets right, `needed` the items that show it with
    the power wanted, None for more than ten million. `power` is what the items at hand have, None where their
    number is not given.
    """

    difference: float
    discordant: float
    needed: int | None
    power: float | None


@dataclass(frozen=True, slots=True, repr=False)
class McqPlan(TableResult, JsonFields):
    """What it takes: `needed` items for the difference that was asked for. Shares in 0–1.

    `differences` are that one and some more, smallest first, without those that the discordance rules out.
    `alpha` is the level of each of the `pairs` of models. `source` says where the discordance is from;
    `discordant` is None where it is that of independent models, which differs by difference. `smallest` is
    the smallest difference that `items` at hand show, None where none is, or their number is not given.
    """

    json_keys: ClassVar = (
        "difference needed accuracy discordant source power alpha models items "
        "smallest_difference=smallest differences"
    )

    difference: float
    accuracy: float
    discordant: float | None
    source: str
    power: float
    alpha: float
    models: int
    items: int | None
    differences: tuple[PlannedDifference, ...]
    smallest: float | None

    @property
    def pairs(self) -> int:
        return self.models * (self.models - 1) // 2

    @property
    def needed(self) -> int | None:
        """Items for `difference`; None for more than ten million."""
        return next(each.needed for each in self.differences if each.difference == self.difference)

    def tables(self) -> tuple[Table, ...]:
        """A line a difference, and what was taken for granted."""
        difference, discordant, items, *power = plan_heads(self.items)
        # Rounded away, the difference that was asked for would read as none.
        digits = max(1, len(_percent(self.difference).partition(".")[2]))
        columns = (
            Column(difference, unit="points", digits=digits),
            Column(discordant, unit="%"),
            Column(items),
            *(Column(head, unit="%", digits=0) for head in power),
        )
        rows: tuple[tuple[Cell, ...], ...] = tuple(
            (
                each.difference,
                each.discordant,
                f"> {MOST_ITEMS:,}" if each.needed is None else each.needed,
                *(() if self.items is None else (each.power,)),
            )
            for each in self.differences
        )
        return (Table(columns, rows, self._headline(), tuple(self._notes())),)

    def _headline(self) -> str:
        needed = f"more than {MOST_ITEMS:,}" if self.needed is None else f"{self.needed:,}"
        return (
            f"Two models {_percent(self.difference)} points apart take {needed} items: found in "
            f"{_percent(self.power)} % of cases, at a level of {_percent(self.alpha)} %."
        )

    def _notes(self) -> Iterator[str]:
        yield (
            "Differences are in points; differ on: percent of items that only one of the two gets right. "
            "Items are those that the score counts, as images with all of Q1–4."
        )
        yield f"{self.source}."
        if self.items is not None:
            shown = "no difference" if self.smallest is None else f"{_percent(self.smallest)} points and more"
            yield f"{counted(self.items, 'item')} can tell: {shown}, with that power."
        if self.models > 2:
            yield (
                f"{self.models} models are {self.pairs:,} pairs: each is tested at the level divided by "
                "their number (Bonferroni), the hardest that Holm's correction asks."
            )
        yield "Exact McNemar test, two-sided, its power computed exactly."


def plan_heads(items: int | None) -> tuple[str, ...]:
    """What stands above the columns of a plan; a power only where the number of `items` at hand is given."""
    return ("difference", "differ on", "items", *(() if items is None else (f"power of {items:,}",)))


@takes(PlanParameters)
def plan(parameters: PlanParameters) -> McqPlan:
    """Compute how many items show a difference between two models, and what your items can show.

    Shares are in 0–1. The share of items that only one of the two models gets right is `discordant`; else it
    is taken from `scores`, the JSON of `score` on several models or its file, for one `question`; else it is
    that of models which err independently. Raises UsageError for numbers that cannot be, and for scores
    without a comparison.

    >>> uncanny.mcq.plan(difference=0.1, discordant=0.3).needed
    249
    """
    difference, worse, items = parameters.difference, parameters.accuracy, parameters.items
    models, scores, discordant = parameters.models, parameters.scores, parameters.discordant
    share = None
    source = (
        f"Discordance is that of models which err independently, the worse one right on {_percent(worse)} %: "
        "models that find the same items hard need fewer. Pass scores of an earlier run to use theirs"
    )
    if discordant is not None:
        share, source = discordant, f"Discordance is as given, {_percent(discordant)} %"
    elif scores is not None:
        share, n = _discordance(scores, parameters.question)
        source = (
            f"Discordance is that of {counted(n, 'pair')} of models in earlier scores, {_percent(share)} %"
        )
    level = parameters.alpha / (models * (models - 1) // 2)
    if share is None and difference > 1 - worse + ROUNDING:
        raise UsageError(
            f"A model cannot be {_percent(difference)} points better than one that is right on "
            f"{_percent(worse)} %",
            remedy=f"Give a smaller {option('difference')} or {option('accuracy')}.",
        )
    if share is not None and difference > share + ROUNDING:
        raise UsageError(
            f"Models that differ on {_percent(share)} % of items cannot be {_percent(difference)} points "
            "apart",
            remedy=f"Give a smaller {option('difference')}, or a larger {option('discordant')}.",
        )
    most = 1 - worse if share is None else share
    wanted = sorted({difference, *(each for each in DIFFERENCES if each <= most + ROUNDING)})
    planned = []
    for each in wanted:
        apart = independent_discordance(worse, each) if share is None else share
        needed = items_needed(each, apart, power=parameters.power, alpha=level)
        has = None if items is None else mcnemar_power(items, each, apart, alpha=level)
        planned.append(PlannedDifference(each, apart, needed, has))
    smallest = None
    if items is not None:
        smallest = smallest_difference(items, share, accuracy=worse, power=parameters.power, alpha=level)
    return McqPlan(
        difference, worse, share, source, parameters.power, level, models, items, tuple(planned), smallest
    )


def _discordance(scores: str | os.PathLike[str] | Mapping[str, Any], question: str) -> tuple[float, int]:
    """The share of items that only one model of a pair gets right, over all pairs, and how many pairs."""
    place = "These scores"
    content: object = scores
    if isinstance(scores, str | os.PathLike):
        place = os.fspath(scores)
        try:
            content = orjson.loads(read_file(Path(scores)))
        except OSError as error:
            raise UsageError(f"{place} cannot be read: {error.strerror or error}") from error
        except orjson.JSONDecodeError as error:
            raise UsageError(
                f"{place} is not valid JSON: {error}",
                remedy="Pass the JSON file that a score of several models wrote.",
            ) from error
    tests = content.get("mcnemar") if isinstance(content, Mapping) else None
    pairs: list[tuple[int, int]] = []
    for each in tests if isinstance(tests, list) else ():
        try:
            test, names = each[question], each["models"]
            only = int(test["first_only"]), int(test["second_only"])
            n = int(test["n"])
        except (KeyError, TypeError, ValueError, OverflowError):
            continue
        differing = sum(only)
        if n > 0 and min(only) >= 0 and differing <= n and not any(map(is_baseline, map(str, names))):
            pairs.append((differing, n))
    apart, total = map(sum, zip(*pairs, strict=True)) if pairs else (0, 0)
    if not apart:
        why = "no two models are compared" if not pairs else "no item is right for only one of two models"
        raise UsageError(
            f"{place}: {why} on {question}",
            remedy=f"Pass the JSON of a score of several models, or {option('discordant')}.",
        )
    return apart / total, len(pairs)


def _percent(share: float) -> str:
    """In percent or points; what is small keeps the digits that say so."""
    percent = 100 * share
    return f"{Decimal(f'{percent:.2g}'):f}" if percent < 1 else f"{percent:.2f}".rstrip("0").rstrip(".")
