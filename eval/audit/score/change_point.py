"""The release at which a figure changed: one change point in a series of estimates with intervals.

Each estimate is put on a scale on which its error hardly depends on its value (the arcsine of the root of a
share, the root of a mean, the fourth root of a product of two means), with the standard error that its
interval has there, by the longer of its two halves. For each place in the series the mean of what is before
is compared with that of what is after, weighted by precision; the place with the largest difference is the
change point. Its p-value is that of the difference times the number of places (Bonferroni). Releases of the
same prompts vary together, which makes the test more careful. Where releases may vary together in parts of
the series, because they have images in common, a mean is taken to vary as much as its estimates do. Series of
releases are short, so one change is looked for, the strongest.

Sources: D. M. Hawkins, *Testing a sequence of observations for a shift in location*, Journal of the American
Statistical Association 72, 1977 (the largest of all splits; here with known variances, and Bonferroni in the
place of its distribution); M. S. Bartlett, *The use of transformations*, Biometrics 3, 1947 (the scales).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import asin, erfc, sin, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.corrected import Kind
from uncanny.eval.metrics.intervals import LEVEL

Floats = npt.NDArray[np.float64]

# Standard errors from the middle of an interval to its end.
_HALF: Final = NormalDist().inv_cdf((1 + LEVEL) / 2)
_SCALES: Final[dict[Kind, tuple[Callable[[float], float], Callable[[float], float]]]] = {
    "share": (lambda value: asin(sqrt(value)), lambda value: sin(value) ** 2),
    "mean": (sqrt, lambda value: value**2),
    "product": (lambda value: value**0.25, lambda value: value**4),
}


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A figure is `after` from the estimate at `place` on, 1 or more, and `before` until then.

    Both are means on the scale of the test, in the unit of the figure. `p_value`, 0–1, is corrected for the
    number of places.
    """

    place: int
    before: float
    after: float
    p_value: float


def change_point(series: Sequence[Estimate], kind: Kind, *, independent: bool = True) -> ChangePoint | None:
    """The strongest change of a figure in a series, whether or not it is significant.

    Parameters
    ----------
    series
        The estimates in their order, each with its 95 % interval: 0–1 of a share, from 0 of others.
    kind
        What the figure is.
    independent
        Whether no two estimates rest on the same images. Where some do, the test is more careful.

    Returns
    -------
    None where fewer than two estimates have an interval with a width; the others are passed over.
    """
    to_scale, from_scale = _SCALES[kind]
    known = []
    for place, each in enumerate(series):
        if each.value is None or each.interval is None:
            continue
        low, value, high = map(to_scale, (each.interval[0], each.value, each.interval[1]))
        if high > low:
            known.append((place, value, max(value - low, high - value) / _HALF))
    if len(known) < 2:
        return None
    places, values, errors = zip(*known, strict=True)
    weights = 1 / np.square(errors)
    # Sums of what is before each place, and of all.
    sums = np.cumsum([weights, weights * values, weights * errors], axis=1)

    def means(total: Floats, weighted: Floats, spread: Floats) -> tuple[Floats, Floats]:
        return weighted / total, 1 / total if independent else np.square(spread / total)

    (before, variance), (after, other) = means(*sums[:, :-1]), means(*(sums[:, -1:] - sums[:, :-1]))
    changes = np.abs(after - before) / np.sqrt(variance + other)
    split = int(changes.argmax())
    p_value = min(1.0, erfc(changes[split] / sqrt(2)) * len(changes))
    first, last = (from_scale(float(each[split])) for each in (before, after))
    return ChangePoint(places[split + 1], first, last, p_value)
