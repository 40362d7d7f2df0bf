"""Figures with their uncertainty: means (`Estimate`), shares of what was counted (`Share`), how they read.

Every protocol's result is made of these two. A figure that nothing was measured for is None, not 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uncanny.eval.metrics.intervals import Bools, Codes, Ratio

Interval = tuple[float, float]
# Why a figure may have none, in the words of every score.
NO_INTERVAL = "a figure of one image, or one that is the same on all images, has no interval"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval, in the unit of the figure.

    `value` is None where there is nothing to measure. `interval` is None there too, where intervals were not
    wanted, and where it would have no width (`NO_INTERVAL`).
    """

    value: float | None
    interval: Interval | None = None

    @property
    def excludes_zero(self) -> bool | None:
        """Of a difference: whether its interval leaves 0 out; None without an interval."""
        return None if self.interval is None else not self.interval[0] <= 0 <= self.interval[1]

    def __neg__(self) -> Estimate:
        """Of a difference: the same seen from the other side. 0 stays 0 and never becomes −0."""
        return Estimate(
            None if self.value is None else 0.0 - self.value,
            self.interval and (0.0 - self.interval[1], 0.0 - self.interval[0]),
        )


@dataclass(frozen=True, slots=True)
class Share:
    """A share in 0–1 with its 95 % interval; `value` is None where there is nothing to count out of.

    `counts` of `out_of` images. For several raters both are summed, and `value` is the raters' mean.
    """

    value: float | None
    counts: int
    out_of: int
    interval: Interval | None = None


class ShareValue:
    """An attribute: the value of the share of its name among the `shares` of a result; None without one."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, result: object, owner: type | None = None) -> float | None:
        shares: Mapping[str, Share] = getattr(result, "shares", {})
        share = shares.get(self._name)
        return None if share is None else share.value


def wilson_share(count: int, out_of: int, *, interval: bool = True) -> Share:
    """`count` of `out_of` that are independent, with Wilson's 95 % interval unless none is wanted.

    Without anything to count out of there is neither a value nor an interval.
    """
    # NumPy, which the interval's module needs, is not on the way of whoever only shows figures.
    from uncanny.eval.metrics.intervals import wilson_interval

    ends = wilson_interval(count, out_of) if interval else None
    return Share(count / out_of if out_of else None, count, out_of, ends)


def share_of(hits: Bools, groups: Codes | None = None) -> Share:
    """The share of `hits`, an entry an image; `groups` are the images that belong together, None of none.

    With Wilson's interval, of the effective number of images where they come in groups.
    """
    from uncanny.eval.metrics.intervals import clustered_interval, sums_by_group

    count, n = int(hits.sum()), len(hits)
    if groups is None or not n:
        return wilson_share(count, n)
    import numpy as np

    _, codes = np.unique(groups, return_inverse=True)
    sizes = sums_by_group(np.ones(n), codes)
    return Share(count / n, count, n, clustered_interval(sums_by_group(hits, codes), sizes))


def shares_of(
    ratios: Sequence[Ratio], groups: Codes | None = None, *, resamples: int, seed: int
) -> list[Share]:
    """A share a ratio, with intervals as `share_intervals` makes them."""
    from uncanny.eval.metrics.intervals import share_intervals

    ends = share_intervals(ratios, groups=groups, resamples=resamples, seed=seed)
    return [
        Share(each.value, int(each.counts.sum(dtype="int64")), int(each.out_of.sum(dtype="int64")), interval)
        for each, interval in zip(ratios, ends, strict=True)
    ]


def interval_words(figure: Estimate | Share) -> str | None:
    """The two ends of a share in percent, without the sign; None where there is no interval."""
    if figure.interval is None:
        return None
    low, high = figure.interval
    return f"{100 * low:.1f}–{100 * high:.1f}"


def percent_words(figure: Estimate | Share) -> str:
    """A share in percent, with its interval in brackets where it has one."""
    ends = interval_words(figure)
    return f"{100 * (figure.value or 0.0):.1f} %{f' [{ends}]' if ends else ''}"


def p_cell(p_value: float | None) -> str | None:
    """A p-value for a column of them; never 0."""
    return None if p_value is None else "< 0.0001" if p_value < 0.0001 else f"{p_value:.2g}"


def p_words(p_value: float | None) -> str:
    """A p-value for people; never 0, and words where the two have nothing in common to test."""
    if p_value is None:
        return "nothing in common"
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.2g}"
