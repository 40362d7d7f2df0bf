"""What two runs took for the same images: calls, tokens, money and time, and the ratio B/A."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from uncanny.eval.common.json_fields import json_of
from uncanny.eval.compare.data import ComparedRun, PairedRuns, RunImage

Measured = Literal["calls", "input_tokens", "cached_tokens", "output_tokens", "cost_usd"]
CostName = Literal[Measured, "seconds_an_image"]
MEASURED: tuple[Measured, ...] = get_args(Measured)
COST_NAMES: tuple[CostName, ...] = (*MEASURED, "seconds_an_image")
Both = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class Cost:
    """Sums over the images that both runs have a record of, whatever became of them: (A, B).

    A sum is None where any of its records did not measure it; `unmeasured` counts those. `seconds_an_image`
    is the clock time of a whole run by the images it has, None where no `run.json` says.
    """

    sums: Mapping[Measured, Both]
    unmeasured: Mapping[Measured, tuple[int, int]]
    images: int
    seconds_an_image: Both

    def ratio(self, name: CostName) -> float | None:
        """B/A; None where either is not known, or A is 0."""
        a, b = self.seconds_an_image if name == "seconds_an_image" else self.sums[name]
        return b / a if a and b is not None else None

    def to_json(self) -> dict[str, Any]:
        ratios = {name: self.ratio(name) for name in COST_NAMES}
        costs = json_of(self, "**sums seconds_an_image images")
        return {**costs, "ratio": ratios, **json_of(self, "unmeasured")}


def cost_of(paired: PairedRuns) -> Cost:
    sums: dict[Measured, Both] = {}
    unmeasured: dict[Measured, tuple[int, int]] = {}
    for name in MEASURED:
        values = [[_measured(image, name) for image in (pair.a, pair.b)] for pair in paired.pairs]
        sides = list(zip(*values, strict=True))
        missing = [sum(value is None for value in side) for side in sides]
        unmeasured[name] = (missing[0], missing[1])
        a, b = (
            None if lost else sum(value for value in side if value is not None)
            for side, lost in zip(sides, missing, strict=True)
        )
        sums[name] = (a, b)
    return Cost(sums, unmeasured, len(paired.pairs), (_seconds(paired.a), _seconds(paired.b)))


def _measured(image: RunImage, name: Measured) -> float | None:
    if image.usage is None:
        return None
    # A price of nothing asked is nothing, also where no price is known.
    if name == "cost_usd" and image.usage.cost_usd is None and not image.usage.calls:
        return 0.0
    value: float | None = getattr(image.usage, name)
    return value


def _seconds(run: ComparedRun) -> float | None:
    return None if run.seconds is None else run.seconds / len(run.images)
