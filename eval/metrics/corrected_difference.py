"""The difference of two corrected figures: of two generators, or of one before and after a change.

Each of the two figures has its own interval (`corrected.py`), which is not symmetric where faults are rare.
The interval of the difference is made of both, with how the two estimators go together. They do where people
judged images of the same prompts for both; without such prompts they are independent. The p-value inverts the
interval, so that the two never contradict each other.

Sources: R. G. Newcombe, *Improved confidence intervals for the difference between binomial proportions based
on paired data*, Statistics in Medicine 17, 1998, method 10; G. Y. Zou and A. Donner, *Construction of
confidence limits about effect measures: a general approach*, Statistics in Medicine 27, 2008 (any two
figures).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from uncanny.eval.metrics.corrected import Fit, quantile_of
from uncanny.eval.metrics.intervals import LEVEL, Interval

# Further than so many standard errors from 0 the p-value is as good as 0.
_FARTHEST: Final = 1e6


@dataclass(frozen=True, slots=True)
class Difference:
    """The corrected figure of one generator minus that of another.

    `interval` is at the level asked for; `p_value` is two-sided, 0–1, and below 1 − level just where the
    interval leaves 0 out. Both are None where one of the two has no interval, `value` where one has no
    figure. `pairs` counts the images, or groups, that people judged for both and that were compared as pairs.
    """

    value: float | None
    interval: Interval | None
    p_value: float | None
    pairs: int


def difference(first: Fit, second: Fit, *, level: float = LEVEL) -> Difference:
    """The figure of `first` minus that of `second`, another generator or the same one before.

    The interval comes from those of both, and from how their residuals go together in the groups that people
    judged for both. Without such groups the two are independent.

    Parameters
    ----------
    first, second
        The same kind of figure of two designs. Number their groups together, so that a prompt has one number.
    level
        The level of the interval, above 0 to below 1.

    Raises
    ------
    ValueError
        If the two are not the same kind of figure.
    """
    if first.kind != second.kind:
        raise ValueError(f"cannot compare a {first.kind} with a {second.kind}")
    together, pairs = _correlation(first, second)
    if first.value is None or second.value is None:
        return Difference(None, None, None, pairs)
    value = first.value - second.value
    if first.spreads is None or second.spreads is None:
        return Difference(value, None, None, pairs)
    degrees = min(first.design.independent, second.design.independent) - 1

    def ends(quantile: float) -> Interval:
        return _difference_ends(first, second, together, quantile)

    return Difference(value, ends(quantile_of(level, degrees)), _p_value(value, ends, degrees), pairs)


def _correlation(first: Fit, second: Fit) -> tuple[float, int]:
    """How the two estimators go together, −1 to 1, and over how many units that people judged for both."""
    own, other = first.design.units, second.design.units
    if own is None or other is None:
        return 0.0, 0
    common, here, there = np.intersect1d(own[0], other[0], assume_unique=True, return_indices=True)
    if first.spreads is None or second.spreads is None or len(common) < 2:
        return 0.0, len(common)
    parts = zip(first.spreads[0].unit_sums, second.spreads[0].unit_sums, strict=True)
    covariance = sum(float(ours[here] @ theirs[there]) for ours, theirs in parts)
    variance = first.spreads[0].variances[1] * second.spreads[0].variances[1]
    return min(1.0, max(-1.0, covariance / sqrt(variance))), len(common)


def _difference_ends(first: Fit, second: Fit, together: float, quantile: float) -> Interval:
    """From both intervals, as Newcombe's method 10 and Zou and Donner do; 0 widths at quantile 0."""
    ends, others = first.ends(quantile), second.ends(quantile)
    assert ends is not None
    assert others is not None
    assert first.value is not None
    assert second.value is not None
    below, above = first.value - ends[0], ends[1] - first.value
    other_below, other_above = second.value - others[0], others[1] - second.value
    value = first.value - second.value
    low = sqrt(max(below**2 - 2 * together * below * other_above + other_above**2, 0.0))
    high = sqrt(max(above**2 - 2 * together * above * other_below + other_below**2, 0.0))
    return value - low, value + high


def _p_value(value: float, ends: Callable[[float], Interval], degrees: int) -> float:
    """One minus the level at which the interval just reaches 0."""
    from scipy.special import stdtr  # type: ignore[import-untyped]  # slow to import

    if value == 0:
        return 1.0

    def leaves_zero_out(quantile: float) -> bool:
        low, high = ends(quantile)
        return low > 0 or high < 0

    near, far = 0.0, 1.0
    while leaves_zero_out(far):
        near, far = far, 2 * far
        if far > _FARTHEST:
            break
    for _ in range(60):
        middle = (near + far) / 2
        near, far = (middle, far) if leaves_zero_out(middle) else (near, middle)
    return min(1.0, float(2 * stdtr(degrees, -near)))
