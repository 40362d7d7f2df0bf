"""Change points: a hand-worked series, what has no interval, and how often chance is taken for a change."""

from __future__ import annotations

from math import asin, erfc, sqrt

import numpy as np
import pytest

from uncanny.eval.audit.score.change_point import change_point
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.intervals import wilson_interval


def test_a_hand_worked_series() -> None:
    """On the scale of roots the means are 1, 1 and 2, each with a standard error of 0.1."""
    half = 1.959964 * 0.1
    series = [Estimate(root**2, ((root - half) ** 2, (root + half) ** 2)) for root in (1.0, 1.0, 2.0)]
    found = change_point(series, "mean")
    assert found is not None
    assert found.place == 2
    assert [found.before, found.after] == pytest.approx([1.0, 4.0])
    z = 1 / sqrt(0.1**2 / 2 + 0.1**2)
    assert found.p_value == pytest.approx(2 * erfc(z / sqrt(2)))


@pytest.mark.parametrize("independent", [True, False])
def test_the_split_is_that_of_trying_each(independent: bool) -> None:
    draw = np.random.default_rng(7)
    for _ in range(20):
        roots, halves = draw.uniform(1, 2, 40), 1.959964 * draw.uniform(0.05, 0.2, 40)
        series = [Estimate(r**2, ((r - h) ** 2, (r + h) ** 2)) for r, h in zip(roots, halves, strict=True)]
        errors = halves / 1.959964
        weights = 1 / errors**2
        best = (0.0, 0, 0.0, 0.0)
        for split in range(1, 40):
            sides = slice(None, split), slice(split, None)
            before, after = (float(np.average(roots[each], weights=weights[each])) for each in sides)
            variance = sum(
                1 / weights[each].sum()
                if independent
                else np.average(errors[each], weights=weights[each]) ** 2
                for each in sides
            )
            best = max(best, (abs(after - before) / sqrt(variance), split, before**2, after**2))
        found = change_point(series, "mean", independent=independent)
        assert found is not None
        assert found.place == best[1]
        assert (found.before, found.after) == pytest.approx(best[2:])
        assert found.p_value == pytest.approx(min(1.0, 39 * erfc(best[0] / sqrt(2))), rel=1e-4)


def test_shares_and_products_have_scales_of_their_own() -> None:
    series = [Estimate(0.25, (0.2, 0.3)), Estimate(0.5, (0.45, 0.55))]
    share, product = (change_point(series, kind) for kind in ("share", "product"))
    assert share is not None
    assert product is not None
    assert share.after == pytest.approx(product.after) == pytest.approx(0.5)
    for found, scale in ((share, lambda value: asin(sqrt(value))), (product, lambda value: value**0.25)):
        errors = [
            max(scale(value) - scale(low), scale(high) - scale(value)) / 1.959964
            for low, value, high in [(0.2, 0.25, 0.3), (0.45, 0.5, 0.55)]
        ]
        z = (scale(0.5) - scale(0.25)) / sqrt(errors[0] ** 2 + errors[1] ** 2)
        assert found.p_value == pytest.approx(erfc(z / sqrt(2)), rel=1e-5)


def test_what_has_no_interval_is_passed_over() -> None:
    known, unknown = Estimate(0.5, (0.4, 0.6)), Estimate(0.5)
    assert change_point([], "share") is None
    assert change_point([known, unknown, Estimate(None)], "share") is None
    found = change_point([known, unknown, Estimate(0.9, (0.85, 0.95))], "share")
    assert found is not None
    assert found.place == 2


@pytest.mark.parametrize(("rate", "same"), [(0.2, 1), (0.03, 1), (0.2, 4)])
def test_chance_is_rarely_taken_for_a_change(rate: float, same: int) -> None:
    """Also where faults are rare, and where so many releases in a row have the `same` images."""
    draw = np.random.default_rng(5)
    found = 0
    for _ in range(1_000):
        hits = np.repeat(draw.binomial(200, rate, size=8 // same), same).tolist()
        series = [Estimate(each / 200, wilson_interval(each, 200)) for each in hits]
        point = change_point(series, "share", independent=same == 1)
        assert point is not None
        found += point.p_value <= 0.05
    assert found <= 60
