"""The exact McNemar test against sums of binomial coefficients."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.metrics.significance import mcnemar_exact


@given(st.integers(0, 400), st.integers(0, 400))
def test_twice_the_smaller_tail(first: int, second: int) -> None:
    total = first + second
    tail = Fraction(sum(comb(total, k) for k in range(min(first, second) + 1)), 2**total)
    assert mcnemar_exact(first, second) == pytest.approx(float(min(Fraction(1), 2 * tail)), rel=1e-9)


def test_known_values() -> None:
    # 5 against 0: 2 / 2^5.  9 against 3: 2 (1 + 12 + 66 + 220) / 2^12.
    assert mcnemar_exact([5, 0, 9, 4], [0, 0, 3, 4]) == pytest.approx([0.0625, 1.0, 598 / 4096, 1.0])
    assert mcnemar_exact(np.array([950]), np.array([0]))[0] < 1e-280
