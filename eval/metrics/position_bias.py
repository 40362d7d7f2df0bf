"""Does the place of an image decide? How often "first" is chosen, against "second"."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class PositionBias:
    """Choices over all second checks with a verdict, both orders counted.

    `first_share` is "first" among "first" and "second", 0–1, with its exact (Clopper–Pearson) 95 % interval;
    `p_value` is that of the exact two-sided binomial test of one half. "both" says nothing about places and
    is in neither. All three are None where neither place was ever chosen.
    """

    first: int
    second: int
    both: int
    first_share: float | None
    interval: tuple[float, float] | None
    p_value: float | None

    @property
    def checks(self) -> int:
        return self.first + self.second + self.both

    def share(self, choice: Literal["first", "second", "both"]) -> float | None:
        """Of all checks, "both" included; None where there are none."""
        return getattr(self, choice) / self.checks if self.checks else None


def position_bias(choices: Iterable[str]) -> PositionBias:
    """Choices are `first`, `second` or `both`. The two orders of one pair count as two checks.

    Each image is shown once in each place, so a judge that goes by the images alone chooses both places
    equally often. Raises ValueError for any other choice.
    """
    counted = Counter(choices)
    first, second, both = (counted.pop(name, 0) for name in ("first", "second", "both"))
    if counted:
        raise ValueError(f"no choices: {', '.join(map(repr, counted))}")
    if not first + second:
        return PositionBias(first, second, both, None, None, None)
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # slow to import

    test = binomtest(first, first + second, 0.5)
    low, high = test.proportion_ci(LEVEL, method="exact")
    share = first / (first + second)
    return PositionBias(first, second, both, share, (float(low), float(high)), float(test.pvalue))
