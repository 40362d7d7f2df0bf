"""Histograms of measured edits: a bar is of one bin, and every edit is in one of them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.edits.report import Bar, Spread, bars_of
from uncanny.eval.metrics.edits import Cutoffs, bin_of, percentile_cutoffs

VALUES = st.lists(
    st.sampled_from([0.0, 0.25, 0.5, 1.0]) | st.floats(-1, 1) | st.floats(0, 1e-9) | st.floats(0, 1e4),
    min_size=1,
    max_size=60,
)


def cutoffs_of(data: st.DataObject, values: list[float]) -> Cutoffs | None:
    own = percentile_cutoffs(values)
    given_ends = st.tuples(st.floats(-2, 2), st.floats(-2, 2)).map(lambda ends: Cutoffs(*sorted(ends)))
    return data.draw(st.sampled_from([own, None]) | given_ends)


@given(VALUES, st.data())
def test_every_edit_is_in_one_bar_of_its_own_bin(values: list[float], data: st.DataObject) -> None:
    cutoffs = cutoffs_of(data, values)
    bars = bars_of(Spread("mse", values, cutoffs))
    assert sum(bar.count for bar in bars) == len(values)
    for name in ("small", "medium", "large", None):
        wanted = sum(bin_of(value, cutoffs) == name for value in values)
        assert sum(bar.count for bar in bars if bar.name == name) == wanted
    for bar in bars:
        assert bar.count > 0
        assert bar.left < bar.right
        assert sum(bar.low <= value <= bar.high for value in values) >= bar.count
        for end in cutoffs or ():
            assert not bar.low < end < bar.high, "no bar reaches over a cut-off"
    assert len(bars) <= 24 + 3 + 2


@given(VALUES, st.data())
def test_bars_stand_side_by_side(values: list[float], data: st.DataObject) -> None:
    bars = bars_of(Spread("mse", values, cutoffs_of(data, values)))
    # All values of a bin may be the same: its bar then has the width of a step, whatever is beside it.
    wide = [bar for bar in bars if bar.low < bar.high]
    widest = max((bar.right - bar.left for bar in wide), default=0)
    for one, other in pairwise(wide):
        assert one.right - other.left < 1e-9 * widest


def test_bars_by_hand() -> None:
    """Ten steps of 0.1 around the cut-offs 0.25 and 0.75; 0.25 and 0.75 are medium."""
    values = [0.0, 0.2, 0.25, 0.5, 0.75, 0.8, 1.0]
    bars = bars_of(Spread("ssim", values, Cutoffs(0.25, 0.75)))
    assert [(bar.name, bar.count) for bar in bars] == [
        *[("small", 1), ("small", 1)],
        *[("medium", 1), ("medium", 1), ("medium", 1)],
        *[("large", 1), ("large", 1)],
    ]
    tips = [(bar.low, bar.high) for bar in bars if bar.name == "medium"]
    assert (tips[0][0], tips[-1][1]) == (0.25, 0.75)


def test_a_few_large_values_leave_room_for_the_others() -> None:
    values = [place / 1000 for place in range(100)] + [5.0, 9.0]
    cutoffs = percentile_cutoffs(values)
    assert cutoffs is not None
    *bars, last = bars_of(Spread("mse", values, cutoffs))
    assert last == Bar(5.0, 9.0, last.left, last.right, 2, "large", gathers=True)
    assert last.left > bars[-1].right
    medium = sum(bar.right - bar.left for bar in bars if bar.name == "medium")
    assert medium / (last.right - bars[0].left) > 0.1
    assert not any(bar.gathers for bar in bars)


@pytest.mark.parametrize("cutoffs", [None, Cutoffs(0.5, 0.5), Cutoffs(0.0, 1.0), Cutoffs(2.0, 3.0)])
def test_values_that_are_all_alike_have_one_bar(cutoffs: Cutoffs | None) -> None:
    (bar,) = bars_of(Spread("ssim", [0.5, 0.5, 0.5], cutoffs))
    assert (bar.low, bar.high, bar.count, bar.name) == (0.5, 0.5, 3, bin_of(0.5, cutoffs))
