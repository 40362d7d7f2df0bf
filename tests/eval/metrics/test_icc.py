"""Intraclass correlation: the example of its authors, statsmodels, and values of pingouin."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from statsmodels.api import stats
from statsmodels.formula.api import ols

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.ratings import icc

# Shrout and Fleiss, 1979, table 2: six targets, four judges.
SHROUT_FLEISS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def test_the_example_of_shrout_and_fleiss() -> None:
    """Table 4 there has 0.29 and 0.62; the intervals are those of pingouin 0.7.0, `intraclass_corr`."""
    single, average = icc(SHROUT_FLEISS)
    assert (round(single.value or 0, 2), round(average.value or 0, 2)) == (0.29, 0.62)
    assert single.value == pytest.approx(0.28976377952755916)
    assert average.value == pytest.approx(0.6200505475989893)
    assert single.interval == pytest.approx((0.02, 0.76), abs=0.005)
    assert average.interval == pytest.approx((0.07, 0.93), abs=0.005)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_from_an_analysis_of_variance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(4, 30)), int(rng.integers(2, 6))
    table = np.round(rng.normal(2, 1, (n, 1)) + rng.normal(0, 0.4, (1, k)) + rng.normal(0, 0.7, (n, k)))
    things, raters = np.meshgrid(range(n), range(k), indexing="ij")
    frame = pd.DataFrame({"x": table.ravel(), "thing": things.ravel(), "rater": raters.ravel()})
    squares = stats.anova_lm(ols("x ~ C(thing) + C(rater)", frame).fit())
    rows, columns, error = squares["mean_sq"]
    single, average = icc(table)
    assert single.value == pytest.approx(
        (rows - error) / (rows + (k - 1) * error + k * (columns - error) / n)
    )
    assert average.value == pytest.approx((rows - error) / (rows + (columns - error) / n))
    assert single.interval is not None
    assert single.interval[0] < (single.value or 0) < single.interval[1]


def test_the_interval_holds_the_truth_in_most_samples() -> None:
    """Variances of things, raters and error of 1, 0.25 and 0.75: an ICC(2,1) of a half."""
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(400):
        table = rng.normal(0, 1, (40, 1)) + rng.normal(0, 0.5, (1, 5)) + rng.normal(0, 0.75**0.5, (40, 5))
        low, high = icc(table).single.interval or (1, 0)
        held += low <= 0.5 <= high
    assert held / 400 >= 0.92


def test_what_cannot_be_told() -> None:
    nothing = (Estimate(None), Estimate(None))
    tables: list[list[list[int]]] = [[[]], [[1, 2, 3]], [[1], [2]], [[2, 2], [2, 2]]]
    for table in tables:
        assert icc(table) == nothing
    # All agree on everything: there is no variance that an interval could come from.
    assert icc([[1, 1], [3, 3]]) == (Estimate(1.0), Estimate(1.0))
    with pytest.raises(ValueError, match="gaps"):
        icc([[1.0, 2.0], [float("nan"), 3.0]])


@pytest.mark.filterwarnings("error")
def test_small_tables_give_no_figure_beyond_its_range() -> None:
    """Of three things and three raters the estimated variance may be 0 or less, and an interval elsewhere."""
    rng = np.random.default_rng(0)
    for table in ([[2, 1], [1, 2]], [[1, 2, 3], [2, 3, 1], [3, 1, 2]], [[2, 3, 1], [1, 3, 2]]):
        assert all(each.value is None or each.value <= 1 for each in icc(table))
    for _ in range(500):
        n, k = int(rng.integers(2, 6)), int(rng.integers(2, 5))
        for each in icc(rng.integers(1, 4, (n, k))):
            assert each.value is None or each.value <= 1
            if each.interval is not None:
                assert each.value is not None
                assert each.interval[0] <= each.value <= each.interval[1]
