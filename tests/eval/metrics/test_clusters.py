"""Shares and paired tests over groups of images, beside other implementations and by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uncanny.eval.metrics import significance
from uncanny.eval.metrics.intervals import (
    clustered_interval,
    effective_size,
    group_codes,
    sums_by_group,
    wilson_interval,
)
from uncanny.eval.metrics.paired import paired_tests
from uncanny.eval.metrics.significance import group_sign_test, mcnemar_exact

GROUPS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 5)), min_size=1, max_size=12)


def test_groups_are_numbered_as_they_come() -> None:
    codes = group_codes(["b", "a", "b", None])
    assert codes.tolist() == [0, 1, 0, 2]
    assert sums_by_group([1, 2, 3, 4], codes).tolist() == [4, 2, 4]
    assert len(group_codes([])) == 0


def test_ten_pairs_by_hand() -> None:
    """Five pairs that are both right and five that are both wrong say as much as ten images."""
    hits, sizes = [2] * 5 + [0] * 5, [2] * 10
    # Variance over groups: 10/9 · 10 · 1² / 20² = 1/36; of 20 images 0.25/20 = 1/80: a design effect of 20/9.
    independent = 20 / (20 / 9)
    few = (1.959964 / 2.262157) ** 2  # the normal's over Student's t with 9 degrees of freedom
    assert effective_size(hits, sizes) == pytest.approx(independent * few, rel=1e-5)
    assert clustered_interval(hits, sizes) == wilson_interval(
        effective_size(hits, sizes) / 2, effective_size(hits, sizes)
    )


def test_images_by_themselves_have_wilsons_interval() -> None:
    assert clustered_interval([1, 0, 1, 0], [1, 1, 1, 1]) == wilson_interval(2, 4)
    assert clustered_interval([1, 0], [1, 0]) == wilson_interval(1, 1)
    assert clustered_interval([], []) is None
    assert clustered_interval([0, 0], [0, 0]) is None


@pytest.mark.parametrize("share", [0, 1])
def test_a_share_of_none_or_all_counts_each_group_once(share: int) -> None:
    assert clustered_interval([3 * share] * 8, [3] * 8) == wilson_interval(8 * share, 8)
    assert clustered_interval([9 * share], [9]) == wilson_interval(share, 1)


@given(GROUPS)
def test_the_variance_is_that_of_a_regression_with_clusters(groups: list[tuple[int, int]]) -> None:
    import statsmodels.api as sm
    from scipy.stats import norm, t  # type: ignore[import-untyped]

    sizes = np.array([size for size, _ in groups])
    hits = np.array([min(size, hit) for size, hit in groups])
    n, share = int(sizes.sum()), hits.sum() / sizes.sum()
    if len(groups) < 2 or share in (0, 1) or n == len(groups):
        return
    values = np.concatenate([np.arange(size) < hit for size, hit in zip(sizes, hits, strict=True)])
    codes = np.repeat(np.arange(len(groups)), sizes)
    model = sm.OLS(values.astype(float), np.ones(n)).fit(cov_type="cluster", cov_kwds={"groups": codes})
    variance = float(model.cov_params()[0, 0])
    few = (norm.ppf(0.975) / t.ppf(0.975, len(groups) - 1)) ** 2
    expected = min(n, share * (1 - share) / variance if variance > 0 else n) * few
    assert effective_size(hits, sizes) == pytest.approx(max(1.0, expected), rel=1e-6)


@given(GROUPS)
def test_intervals_hold_the_share_and_are_no_shorter_than_without_groups(
    groups: list[tuple[int, int]],
) -> None:
    sizes = [size for size, _ in groups]
    hits = [min(size, hit) for size, hit in groups]
    share, ends = sum(hits) / sum(sizes), clustered_interval(hits, sizes)
    plain = wilson_interval(sum(hits), sum(sizes))
    assert ends is not None
    assert plain is not None
    assert 0 <= ends[0] <= share <= ends[1] <= 1
    assert ends[1] - ends[0] >= plain[1] - plain[0] - 1e-12
    assert ends[0] < ends[1]


@given(st.lists(st.integers(-4, 4), max_size=9))
def test_the_sign_test_tries_all_signs(differences: list[int]) -> None:
    if not differences:
        assert group_sign_test(differences) is None
        return
    seen = abs(sum(differences))
    signs = product((1, -1), repeat=len(differences))
    sums = [abs(sum(s * d for s, d in zip(each, differences, strict=True))) for each in signs]
    expected = sum(each >= seen for each in sums) / len(sums)
    assert group_sign_test(differences) == pytest.approx(expected)


@given(st.integers(0, 60), st.integers(0, 60))
def test_of_images_by_themselves_it_is_mcnemars(first: int, second: int) -> None:
    differences = [1] * first + [-1] * second + [0]
    assert group_sign_test(differences) == pytest.approx(float(mcnemar_exact(first, second)))


def test_pairs_that_agree_count_once() -> None:
    assert group_sign_test([2] * 5) == group_sign_test([1] * 5) == pytest.approx(2 / 2**5)


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_many_groups_have_the_normal_limit_of_the_exact_test(
    monkeypatch: pytest.MonkeyPatch, shift: int
) -> None:
    rng = np.random.default_rng(shift)
    differences = rng.integers(-3, 4, 2_000)
    differences[: 40 * shift] = 2
    exact = group_sign_test(differences)
    monkeypatch.setattr(significance, "MOST_SUMS", 0)
    assert group_sign_test(differences) == pytest.approx(exact, abs=0.002)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()), max_size=30))
def test_groups_of_one_item_are_no_groups(rows: list[tuple[bool, bool, bool, bool]]) -> None:
    table = np.array(rows, dtype=np.bool_).reshape(-1, 4).T
    right, answered = table[:2] & table[2:], table[2:]
    alone = paired_tests(["a", "b"], right, answered, np.arange(right.shape[1]))
    assert alone == paired_tests(["a", "b"], right, answered)


def test_items_that_come_twice_say_no_more_than_once() -> None:
    right = np.array([[True] * 12 + [False] * 8, [False] * 6 + [True] * 10 + [False] * 4])
    answered = np.ones_like(right)
    (once,) = paired_tests(["a", "b"], right, answered)
    twice, codes = np.repeat(right, 2, axis=1), np.repeat(np.arange(20), 2)
    (naive,) = paired_tests(["a", "b"], twice, np.ones_like(twice))
    (grouped,) = paired_tests(["a", "b"], twice, np.ones_like(twice), codes)
    assert (grouped.difference.value, grouped.n) == (once.difference.value, 40)
    assert grouped.p_value == pytest.approx(once.p_value)
    assert naive.p_value is not None
    assert once.p_value is not None
    assert naive.p_value < once.p_value
    widths = [each.difference.interval for each in (naive, once, grouped)]
    narrow, expected, own = (high - low for low, high in filter(None, widths))
    # Student's t over twenty groups makes it a little wider than Wilson's of twenty items.
    assert narrow < expected < own < 1.15 * expected


@given(st.lists(st.integers(1, 50), min_size=1, max_size=30))
@example([7, 2, 3, 20])
def test_a_share_of_all_ends_at_1(sizes: list[int]) -> None:
    ends = clustered_interval(sizes, sizes)
    assert ends is not None
    assert ends[1] == 1.0
    assert clustered_interval([0] * len(sizes), sizes) == pytest.approx((0.0, 1 - ends[0]))


def test_one_hit_of_a_million_images_is_not_none() -> None:
    """In groups of ten one varies as among a million by themselves, none as little as groups."""
    hits, sizes = np.zeros(100_000), np.full(100_000, 10.0)
    assert effective_size(hits, sizes) == pytest.approx(1e5)
    hits[5] = 1
    size = effective_size(hits, sizes)
    assert size == pytest.approx(1e6, rel=1e-4)
    # Of a million hits but one, as much.
    assert effective_size(sizes - hits, sizes) == pytest.approx(size)
    hits[5] = 10
    assert effective_size(hits, sizes) == pytest.approx(1e5, rel=1e-4)
