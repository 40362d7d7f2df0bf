"""Two models on the same items: tests, intervals, effect sizes, and how many items it takes."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
import pytest
from scipy.stats import permutation_test, ttest_1samp  # type: ignore[import-untyped]

from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.intervals import Mean, mean_tests, sign_flip_test, wilson_interval
from uncanny.eval.metrics.paired import (
    cohens_d,
    cohens_g,
    connor_items,
    independent_discordance,
    items_needed,
    mcnemar_power,
    odds_ratio,
    paired_interval,
    smallest_difference,
    unpaired_interval,
)
from uncanny.eval.metrics.significance import mcnemar_exact


def test_effect_sizes_by_hand() -> None:
    assert (cohens_g(15, 5), odds_ratio(15, 5)) == (0.25, 3.0)
    assert (cohens_g(0, 4), odds_ratio(0, 4)) == (-0.5, 0.0)
    assert (cohens_g(3, 0), odds_ratio(3, 0)) == (0.5, None)
    assert (cohens_g(0, 0), odds_ratio(0, 0)) == (None, None)


def test_paired_interval_by_hand() -> None:
    # 32 and 22 of 50 right, 12 and 2 of them alone: shares 0.64 and 0.44, Wilson by the formula.
    ends = paired_interval(20, 12, 2, 16)
    assert ends is not None
    (low, high), (other_low, other_high) = (
        wilson_interval(32, 50) or (0, 0),
        wilson_interval(22, 50) or (0, 0),
    )
    phi = (20 * 16 - 12 * 2 - 25) / (32 * 18 * 22 * 28) ** 0.5
    below, above = 0.64 - low, high - 0.64
    other_below, other_above = 0.44 - other_low, other_high - 0.44
    assert ends[0] == pytest.approx(0.2 - (below**2 - 2 * phi * below * other_above + other_above**2) ** 0.5)
    assert ends[1] == pytest.approx(0.2 + (above**2 - 2 * phi * above * other_below + other_below**2) ** 0.5)
    assert paired_interval(0, 0, 0, 0) is None
    # Where two never differ there still is width, and it is the same on both sides.
    low, high = paired_interval(10, 0, 0, 0) or (0, 0)
    assert -0.35 < low == -high < 0
    low, high = paired_interval(0, 5, 0, 0) or (0, 0)
    assert 0.3 < low < high == 1.0
    assert paired_interval(20, 2, 12, 16) == pytest.approx((-ends[1], -ends[0]))


def test_paired_intervals_hold_what_they_promise() -> None:
    rng = np.random.default_rng(3)
    for n, chances in (
        (50, (0.5, 0.2, 0.1, 0.2)),
        (30, (0.85, 0.1, 0.02, 0.03)),
        (200, (0.1, 0.3, 0.25, 0.35)),
    ):
        drawn = rng.multinomial(n, chances, size=2_000).tolist()
        ends = [paired_interval(*counts) or (0.0, 0.0) for counts in drawn]
        true = chances[1] - chances[2]
        assert np.mean([low <= true <= high for low, high in ends]) > 0.935


def test_power_is_the_sum_over_all_outcomes() -> None:
    n, difference, discordant = 12, 0.2, 0.5
    first, second = (discordant + difference) / 2, (discordant - difference) / 2
    expected = sum(
        comb(n, b) * comb(n - b, c) * first**b * second**c * (1 - discordant) ** (n - b - c)
        for b in range(n + 1)
        for c in range(n + 1 - b)
        if mcnemar_exact(b, c) <= 0.05
    )
    assert mcnemar_power(n, difference, discordant) == pytest.approx(expected, rel=1e-9)
    assert mcnemar_power(n, -difference, discordant) == pytest.approx(expected, rel=1e-9)
    assert mcnemar_power(0, difference, discordant) == 0.0
    with pytest.raises(ValueError, match=r"0.5 apart cannot differ on 0.2"):
        mcnemar_power(n, 0.5, 0.2)


def test_items_needed_have_the_power_and_fewer_do_not() -> None:
    # Connor's formula by hand: ((1.96 √0.3 + 0.8416 √(0.3 − 0.01)) / 0.1)² = 233.1.
    assert connor_items(0.1, 0.3) == 234
    items = items_needed(0.1, 0.3)
    assert items is not None
    assert 234 < items < 260
    assert mcnemar_power(items, 0.1, 0.3) >= 0.8 > mcnemar_power(items - 1, 0.1, 0.3)
    assert all(mcnemar_power(more, 0.1, 0.3) >= 0.8 for more in range(items, items + 30))
    assert items_needed(0.0001, 0.5) is None
    assert items_needed(0.1, 0.3, alpha=0.005) > items  # type: ignore[operator]


def test_power_is_that_of_a_simulation() -> None:
    rng = np.random.default_rng(5)
    drawn = rng.multinomial(300, [0.2, 0.1, 0.7], size=40_000)
    found = (mcnemar_exact(drawn[:, 0], drawn[:, 1]) <= 0.05).mean()
    assert mcnemar_power(300, 0.1, 0.3) == pytest.approx(found, abs=0.01)


def test_the_smallest_difference_is_found_and_a_smaller_one_is_not() -> None:
    smallest = smallest_difference(950, 0.2)
    assert smallest is not None
    assert mcnemar_power(950, smallest, 0.2) >= 0.8 > mcnemar_power(950, smallest - 0.0002, 0.2)
    assert smallest_difference(3, None, accuracy=0.6) is None
    # Here the largest difference is beyond its discordance by rounding.
    with_one_always_right = smallest_difference(100, None, accuracy=0.887)
    assert with_one_always_right is not None
    assert 0.05 < with_one_always_right < 0.113
    for accuracy in np.arange(1, 1_000) / 1_000:
        connor_items(1 - accuracy, independent_discordance(accuracy, 1 - accuracy))
    assert independent_discordance(0.6, 0.1) == pytest.approx(0.7 * 0.4 + 0.6 * 0.3)


def test_a_paired_bootstrap_tests_what_its_interval_says() -> None:
    rng = np.random.default_rng(2)
    everywhere = np.ones(60, dtype=np.bool_)
    values = [rng.normal(shift, 1, 60) for shift in (0.0, 0.15, 0.3, 0.6)] + [np.zeros(60)]
    tests = list(mean_tests([Mean(each, everywhere) for each in values], resamples=2_000))
    for each, test in zip(values[:4], tests[:4], strict=True):
        assert test.interval is not None
        assert test.p_value is not None
        assert (test.p_value < 0.05) == (not test.interval[0] <= 0 <= test.interval[1])
        assert test.p_value == pytest.approx(ttest_1samp(each, 0).pvalue, abs=0.03)
        assert cohens_d(each) == pytest.approx(ttest_1samp(each, 0).statistic / 60**0.5)
    assert tests[4].p_value == 1.0
    for number in (3, 6, 60):
        assert cohens_d(np.zeros(number)) is None
        assert cohens_d(np.full(number, 0.1)) is None  # their standard deviation is 1e-17, not 0
        assert cohens_d(np.full(number, 1e9) / 3) is None
    assert cohens_d(np.array([0.1])) is None
    assert list(mean_tests([Mean(values[0], ~everywhere)], resamples=50)) == [(None, None)]
    assert list(mean_tests([Mean(values[0], everywhere)], resamples=0)) == [(None, None)]
    smallest = list(mean_tests([Mean(everywhere.astype(np.float64), everywhere)], resamples=999))
    assert smallest[0].p_value == 2 / 1_000


def test_few_images_prove_nothing() -> None:
    """However alike they are: against the same test by scipy."""
    rng = np.random.default_rng(3)
    rows = [[0.3], [0.3, 0.1], [0.2, -0.1], [0.3, 0.3, 0.3, 0.3, 0.1], [1, 1, 1, 1, -0.1], [0.1, 0.2, 0, 0]]
    for values in [*map(np.array, rows), rng.normal(0.5, 1, 10)]:
        counted = np.array([True] * len(values) + [False])
        (test,) = mean_tests([Mean(np.append(values, 9.0), counted)], resamples=500)
        # A 0 changes nothing, and scipy takes no fewer than two.
        exact = permutation_test(
            (np.append(values, 0),), np.mean, permutation_type="samples", n_resamples=np.inf
        )
        assert test.p_value == sign_flip_test(values) == pytest.approx(exact.pvalue)
        assert exact.pvalue >= 2.0 ** (1 - len(values))
        assert (test.interval is None) == (len(values) == 1)
    assert sign_flip_test(np.zeros(0)) is None
    assert sign_flip_test(np.zeros(4)) == 1


def test_intervals_of_independent_shares_are_newcombes() -> None:
    """Method 10 of his table II: (a) 56/70 − 48/80, (d) 9/10 − 3/10, (f) 10/10 − 0/20, (h) 10/10 − 0/10."""
    for counts, ends in (
        ((56, 70, 48, 80), (0.0524, 0.3339)),
        ((9, 10, 3, 10), (0.1705, 0.8090)),
        ((10, 10, 0, 20), (0.6791, 1.0)),
        ((10, 10, 0, 10), (0.6075, 1.0)),
    ):
        assert unpaired_interval(*counts) == pytest.approx(ends, abs=1e-4)
    assert unpaired_interval(0, 0, 3, 10) is None


@pytest.mark.slow
def test_tests_and_corrections_are_those_of_statsmodels_and_scipy() -> None:
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests
    from statsmodels.stats.proportion import proportion_confint

    rng = np.random.default_rng(7)
    adjust: Callable[..., tuple[object, list[float], object, object]] = multipletests
    for _ in range(60):
        both, first, second, neither = rng.integers(0, 40, size=4).tolist()
        ours = float(mcnemar_exact(first, second))
        assert ours == pytest.approx(mcnemar([[both, first], [second, neither]], exact=True).pvalue)
        if first + second:
            assert ours == pytest.approx(binomtest(first, first + second, 0.5).pvalue)
        total = both + first + 1
        assert wilson_interval(both, total) == pytest.approx(
            proportion_confint(both, total, method="wilson"), abs=1e-12
        )
        p_values = rng.random(int(rng.integers(1, 12))).tolist()
        assert holm(p_values) == pytest.approx(list(adjust(p_values, method="holm")[1]))
