"""The exact McNemar test: do two models differ on the same items?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mcnemar_exact(first_only: ArrayLike, second_only: ArrayLike) -> NDArray[np.float64]:
    """Two-sided exact p-values from the counts of items that only the first, or only the second, gets right.

    Under the null hypothesis either count is binomial with p = 1/2; the p-value is twice the smaller tail, at
    most 1, and 1 where the two never differ. Works elementwise on arrays of the same shape.
    """
    from scipy.special import bdtr  # type: ignore[import-untyped]  # slow to import, and only comparisons need it

    first, second = np.asarray(first_only), np.asarray(second_only)
    tail = bdtr(np.minimum(first, second).astype(np.float64), first + second, 0.5)
    return np.minimum(1.0, 2.0 * np.asarray(tail, dtype=np.float64))
