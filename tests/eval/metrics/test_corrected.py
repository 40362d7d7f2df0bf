"""Corrected figures: by hand, beside ppi-python, by what must hold, and how often intervals hold the truth.

ppi-python is not in the development group, because it installs a package `tests` that hides ours. `.ci/run`
compares with it. Without it, what it computed is here as numbers.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.special import stdtrit  # type: ignore[import-untyped]

from uncanny.eval.metrics.corrected import (
    LEAST_JUDGED,
    Corrected,
    Design,
    Fit,
    corrected,
    fit_mean,
    fit_product,
    fit_share,
)
from uncanny.eval.metrics.corrected_difference import difference
from uncanny.eval.metrics.intervals import Codes, Floats

SEEDS = st.integers(0, 2**32 - 1)
# λ and the figure by ppi-python 0.2.3 (`ppi_mean_pointestimate`) for `sampled(seed)`, computed on 2026-11-27.
PPI_PYTHON = {
    0: (0.432414404329, 1.152519202662),
    1: (0.592717046782, 1.214105558336),
    2: (0.617038180749, 1.077678909187),
    3: (0.546527915510, 0.942385627397),
}


def at_random(size: int, judged: Codes, groups: Codes | None = None) -> Design:
    """Simple random sampling."""
    return Design(size, judged, np.full(len(judged), len(judged) / max(1, size)), groups)


def sampled(seed: int, *, size: int = 400, n: int = 60, rate: float = 1.0) -> tuple[Design, Floats, Floats]:
    """Counts by people and by a model that misses some and adds others: a design, f and y."""
    rng = np.random.default_rng(seed)
    y = rng.poisson(rate, size)
    f = rng.binomial(y, 0.7) + rng.poisson(0.3 * rate, size)
    judged = rng.choice(size, n, replace=False)
    return at_random(size, judged), f.astype(np.float64), y[judged].astype(np.float64)


def ends(result: Corrected) -> tuple[float, float]:
    assert result.low is not None
    assert result.high is not None
    return result.low, result.high


def value(fit: Fit) -> float:
    assert fit.value is not None
    return fit.value


# By hand


def test_ten_images_of_which_four_are_judged() -> None:
    f = np.array([1, 0, 1, 0, 1, 1, 0, 0, 0, 0], dtype=float)
    fit = fit_share(at_random(10, np.array([0, 1, 2, 3])), f, np.array([1, 0, 1, 1]))
    # Judged: f is 1 0 1 0, y is 1 0 1 1, so their covariance is 1/2 − 1/2 · 3/4; f varies by 2.4/9 over ten.
    assert fit.lam == pytest.approx(1 / 8 / (2.4 / 9))
    assert fit.value == pytest.approx(3 / 4 + 15 / 32 * (4 / 10 - 1 / 2))
    assert (fit.people, fit.model) == (0.75, 0.4)


def test_unequal_probabilities() -> None:
    design = Design(5, np.array([0, 1]), np.array([0.5, 0.25]))
    assert design.weights == pytest.approx([1 / 3, 2 / 3])
    fit = fit_mean(design, np.array([2.0, 1, 0, 0, 0]), np.array([4.0, 1]))
    # With two images the line through both has slope 3, which is cut to 1.
    assert fit.people == pytest.approx(2)
    assert fit.lam == 1
    assert fit.value == pytest.approx(2 + (3 / 5 - 4 / 3))


def test_an_interval() -> None:
    """Thirty of sixty images: people and the model find the same three; the model finds three more."""
    n, size = 30, 60
    f = np.zeros(size)
    f[[0, 1, 2, 40, 41, 42]] = 1
    y = f[:n].copy()
    result = corrected(fit_share(at_random(size, np.arange(n)), f, y))
    # λ = (3/30 · 27/30) / (6 · 54/60 / 59)
    lam = 0.09 / (5.4 / 59)
    assert result.lam == pytest.approx(lam)
    assert result.value == pytest.approx(0.1)
    pseudo = [(0.5, 1, 1), (0.5, 0, 0), (1, 1, 0), (1, 0, 1)]
    spread = (n * 0.09 + sum(k * (by - 0.1) ** 2 for k, by, _ in pseudo)) / (n + 2)
    center = 0.1 - lam * 0.1
    # How far an image alone determines λ: the three that the model calls faulty, and the others.
    among = n * 0.09 + sum(k * (of - 0.1) ** 2 for k, _, of in pseudo)
    three, others = (1 - (of - 0.1) ** 2 / among for of in (1, 0))
    squares = (1 - lam) ** 2 * (3 * (0.9 / three) ** 2 + 27 * (0.1 / others) ** 2)
    squares += sum(k * (by - lam * of - center) ** 2 for k, by, of in pseudo)
    variance = squares / (n + 2) / n * (1 - n / size) + spread / size
    assert result.effective == pytest.approx(spread / variance)
    weight = stdtrit(n - 1, 0.975) ** 2 / (spread / variance)
    middle = (0.1 + weight / 2) / (1 + weight)
    half = sqrt(0.09 * weight + weight**2 / 4) / (1 + weight)
    assert ends(result) == pytest.approx((middle - half, middle + half))
    assert result.method is not None


# Beside other implementations


def ppi_plus_plus(f: Floats, judged: Codes, y: Floats) -> tuple[float, float]:
    """λ, cut to 0–1, and the mean, by PPI++ (arXiv 2311.01453): judged and other images are two samples."""
    others = np.delete(f, judged)
    n, more = len(judged), len(others)
    covariance = float(np.mean((y - y.mean()) * (f[judged] - f[judged].mean())))
    lam = min(1.0, max(0.0, covariance / ((1 + n / more) * float(f.var(ddof=1)))))
    return lam, float(lam * others.mean() + (y - lam * f[judged]).mean())


@given(SEEDS, st.integers(5, 80))
def test_is_ppi_plus_plus_of_the_unjudged_images(seed: int, n: int) -> None:
    """Its λ is (1 − n/N) times ours, where neither is cut to 1: the frame holds the judged images too."""
    design, f, y = sampled(seed, n=n)
    fit = fit_mean(design, f, y)
    lam, mean = ppi_plus_plus(f, design.judged, y)
    assert fit.lam is not None
    assume(fit.lam < 1)
    assert lam == pytest.approx(fit.lam * (1 - n / design.size), abs=1e-9)
    assert fit.value == pytest.approx(mean, abs=1e-9)


@pytest.mark.parametrize("seed", PPI_PYTHON)
def test_is_what_ppi_python_computed(seed: int) -> None:
    design, f, y = sampled(seed)
    fit = fit_mean(design, f, y)
    assert (fit.lam or 0) * (1 - design.n / design.size) == pytest.approx(PPI_PYTHON[seed][0], abs=1e-9)
    assert fit.value == pytest.approx(PPI_PYTHON[seed][1], abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_is_what_ppi_python_computes(seed: int) -> None:
    ppi_py = pytest.importorskip("ppi_py", reason="ppi-python is not installed: see the module's docstring")
    design, f, y = sampled(seed)
    fit = fit_mean(design, f, y)
    assert fit.lam is not None
    assert 0 < fit.lam < 1
    others = np.delete(f, design.judged)
    theirs = ppi_py.ppi_mean_pointestimate(y, f[design.judged], others)
    assert fit.value == pytest.approx(float(theirs.item()), abs=1e-9)
    # It does not tell its λ, but the figure is linear in λ.
    none, all_ = (
        float(ppi_py.ppi_mean_pointestimate(y, f[design.judged], others, lam=lam).item()) for lam in (0, 1)
    )
    lam = (float(theirs.item()) - none) / (all_ - none)
    assert lam == pytest.approx(fit.lam * (1 - design.n / design.size), abs=1e-9)
    assert fit.people == pytest.approx(none, abs=1e-9)


# What must hold


@given(SEEDS)
def test_a_model_that_says_the_same_of_all_images_changes_nothing(seed: int) -> None:
    design, f, y = sampled(seed)
    result = corrected(fit_mean(design, np.ones_like(f), y))
    assert result.lam == 0
    assert result.people_only.value == result.value
    assert result.people_only.interval == pytest.approx((result.low, result.high))
    share = corrected(fit_share(design, np.ones_like(f), y > 0))
    assert share.people_only.interval == (share.low, share.high)
    assert share.effective == pytest.approx(design.n)


@given(SEEDS)
def test_the_order_of_images_does_not_matter(seed: int) -> None:
    design, f, y = sampled(seed)
    rng = np.random.default_rng(seed)
    probabilities = rng.uniform(0.05, 0.5, design.n)
    groups = rng.integers(0, 150, design.size)
    before = corrected(fit_mean(Design(design.size, design.judged, probabilities, groups), f, y))
    order, mixed = rng.permutation(design.size), rng.permutation(design.n)
    places = np.argsort(order)[design.judged][mixed]
    after = corrected(
        fit_mean(Design(design.size, places, probabilities[mixed], groups[order]), f[order], y[mixed])
    )
    assert (*ends(after), after.value, after.lam) == pytest.approx((*ends(before), before.value, before.lam))
    assert after.effective == pytest.approx(before.effective)


@given(SEEDS, st.floats(0.01, 100))
def test_the_unit_of_a_mean_does_not_matter(seed: int, unit: float) -> None:
    design, f, y = sampled(seed)
    one, other = corrected(fit_mean(design, f, y)), corrected(fit_mean(design, f * unit, y * unit))
    assert one.value is not None
    assert (other.value, *ends(other)) == pytest.approx([unit * each for each in (one.value, *ends(one))])
    assert (other.lam, other.effective) == pytest.approx((one.lam, one.effective))


@given(SEEDS, st.sampled_from(["share", "mean"]), st.sampled_from([0.0, 0.02, 1.0]))
def test_a_model_that_seems_perfect_has_an_interval_all_the_same(seed: int, kind: str, rate: float) -> None:
    design, f, _ = sampled(seed, rate=rate)
    f = np.minimum(f, 1) if kind == "share" else f
    fit = (fit_share if kind == "share" else fit_mean)(design, f, f[design.judged])
    result = corrected(fit)
    low, high = ends(result)
    assert low <= value(fit) <= high
    # Sixty images without a mistake leave room for mistakes on some percent of all.
    assert high - low > 0.01
    assert result.effective is not None
    assert result.effective <= design.size
    if rate == 1:
        assert result.effective > 2 * design.n


@given(SEEDS)
def test_intervals_hold_the_figure_and_grow_with_the_level(seed: int) -> None:
    design, f, y = sampled(seed)
    af = fit_mean(design, f, y)
    for fit in (fit_share(design, f > 0, y > 0), af, fit_product(af, fit_mean(design, f / 2, y / 3))):
        narrow, wide = (ends(corrected(fit, level=level)) for level in (0.8, 0.99))
        assert 0 <= wide[0] <= narrow[0] <= value(fit) <= narrow[1] <= wide[1]


def test_where_people_judged_every_image_the_model_says_nothing_more() -> None:
    """The figure of the generator is still uncertain, as that of so many images is."""
    _, f, y = sampled(1, size=100, n=100)
    design = at_random(100, np.arange(100))
    result = corrected(fit_share(design, f > 0, y > 0))
    assert result.value == pytest.approx((y > 0).mean())
    assert result.effective == pytest.approx(100)
    assert result.people_only.interval == pytest.approx(ends(result))
    assert ends(result)[1] - ends(result)[0] > 0.1


def test_a_product_of_equal_means_is_a_square() -> None:
    design, f, y = sampled(2)
    fit = fit_mean(design, f, y)
    square, one = corrected(fit_product(fit, fit)), corrected(fit)
    assert square.value == pytest.approx((one.value or 0) ** 2)
    assert ends(square) == pytest.approx([each**2 for each in ends(one)])
    assert square.effective == pytest.approx(one.effective)
    assert square.model_only == pytest.approx(f.mean() ** 2)
    assert square.lam is None


def test_images_by_themselves_are_groups_of_one() -> None:
    design, f, y = sampled(3)
    alone = at_random(design.size, design.judged, np.arange(design.size))
    one, other = (corrected(fit_mean(each, f, y)) for each in (alone, design))
    assert (one.value, one.lam, one.effective) == pytest.approx((other.value, other.lam, other.effective))
    assert ends(one) == pytest.approx(ends(other))


def test_copies_of_an_image_say_no_more_than_one() -> None:
    design, f, y = sampled(4)
    both = np.concatenate([design.judged, design.judged + design.size])
    copied = at_random(2 * design.size, both, np.tile(np.arange(design.size), 2))
    twice, once = corrected(fit_mean(copied, np.tile(f, 2), np.tile(y, 2))), corrected(fit_mean(design, f, y))
    assert twice.value == pytest.approx(once.value, rel=1e-2)
    widths = [ends(each)[1] - ends(each)[0] for each in (twice, once)]
    assert widths[0] == pytest.approx(widths[1], rel=0.1)


# What is not measured is None


def test_without_images_there_is_nothing() -> None:
    nothing = np.empty(0)
    design = Design(0, np.empty(0, dtype=np.int64), nothing)
    result = corrected(fit_share(design, nothing, nothing))
    assert (result.value, result.low, result.people_only.value, result.model_only) == (None,) * 4
    assert (result.lam, result.effective, result.method, design.missing) == (None, None, None, LEAST_JUDGED)


def test_without_judged_images_there_is_the_model_only() -> None:
    design = Design(3, np.empty(0, dtype=np.int64), np.empty(0))
    fits = [fit_mean(design, np.array([1.0, 0, 5]), np.empty(0)) for _ in range(2)]
    for fit in (fits[0], fit_product(*fits)):
        result = corrected(fit)
        assert (result.value, result.people_only.value, result.people_only.interval) == (None, None, None)
        assert result.model_only == (4 if fit.kind == "product" else 2)
    assert difference(*fits).value is None
    assert difference(*fits).p_value is None


@pytest.mark.parametrize(("n", "missing"), [(1, 29), (29, 1), (30, 0)])
def test_a_few_judged_images_have_a_figure_without_an_interval(n: int, missing: int) -> None:
    design, f, y = sampled(5, n=n)
    fit = fit_mean(design, f, y)
    result = corrected(fit)
    assert result.value is not None
    assert result.people_only.value == pytest.approx(y.mean())
    assert design.missing == missing
    has = [each is not None for each in (result.low, result.high, result.effective, result.method)]
    assert has == [not missing] * 4
    apart = difference(fit, fit)
    assert apart.value == 0
    assert (apart.interval is None) == (apart.p_value is None) == bool(missing)


def test_what_does_not_fit_raises() -> None:
    one = np.array([0.5])
    for judged, probabilities in (([3], one), ([-1], one), ([0], one * 0), ([0], one * 4), ([0], [0.5, 0.5])):
        with pytest.raises(ValueError, match=r"judged|probabilit"):
            Design(3, np.array(judged), np.array(probabilities))
    with pytest.raises(ValueError, match="twice"):
        Design(3, np.array([1, 1]), np.array([0.5, 0.5]))
    design, f, y = sampled(6)
    with pytest.raises(ValueError, match="groups"):
        at_random(design.size, design.judged, np.arange(3))
    with pytest.raises(ValueError, match="share"):
        fit_share(design, f, y)
    for model, people in ((f[1:], y), (f, y[1:]), (f, -1 - y), (f + np.inf, y)):
        with pytest.raises(ValueError, match="values"):
            fit_mean(design, model, people)
    with pytest.raises(ValueError, match="compare"):
        difference(fit_share(design, f > 0, y > 0), fit_mean(design, f, y))
    with pytest.raises(ValueError, match="same design"):
        fit_product(fit_mean(design, f, y), fit_share(design, f > 0, y > 0))


# Differences


def two(seed: int, *, is_paired: bool, gap: float = 0.0) -> tuple[Fit, Fit]:
    """Two generators given the same prompts, which make faults likely for both."""
    rng = np.random.default_rng(seed)
    chances = rng.beta(0.5, 0.5, 500)
    judged = rng.choice(500, 100, replace=False)
    fits = []
    for place in range(2):
        y = rng.random(500) < chances * (1 - place * gap)
        f = np.where(rng.random(500) < 0.8, y, ~y)
        codes = np.arange(500) + (0 if is_paired else 500 * place)
        fits.append(fit_share(at_random(500, judged, codes), f, y[judged]))
    return fits[0], fits[1]


@given(SEEDS, st.booleans(), st.sampled_from([0, 0.3, 0.9]))
def test_p_values_and_intervals_of_differences_agree(seed: int, is_paired: bool, gap: float) -> None:
    first, second = two(seed, is_paired=is_paired, gap=gap)
    apart, back = difference(first, second), difference(second, first)
    assert apart.interval is not None
    assert apart.p_value is not None
    assert back.interval is not None
    assert apart.value == pytest.approx(value(first) - value(second))
    assert (back.interval[0], back.p_value) == pytest.approx((-apart.interval[1], apart.p_value))
    assert (apart.p_value < 0.05) == (not apart.interval[0] <= 0 <= apart.interval[1])
    assert apart.pairs == (100 if is_paired else 0)
    level = 1 - apart.p_value
    if 0.001 < level < 0.999:
        touching = difference(first, second, level=level).interval
        assert touching is not None
        assert min(abs(touching[0]), abs(touching[1])) < 1e-6


def test_pairs_say_more() -> None:
    widths = []
    for is_paired in (True, False):
        interval = difference(*two(1, is_paired=is_paired)).interval
        assert interval is not None
        widths.append(interval[1] - interval[0])
    assert widths[0] < 0.9 * widths[1]


def test_a_generator_does_not_differ_from_itself() -> None:
    first, _ = two(1, is_paired=True)
    apart = difference(first, first)
    assert (apart.value, apart.p_value) == (0, 1)
    design, f, y = sampled(7)
    assert difference(fit_mean(design, f, y), fit_mean(design, f, y)).p_value == 1


def test_figures_far_apart_have_a_tiny_p_value() -> None:
    design, f, y = sampled(8, size=4000, n=400)
    apart = difference(fit_mean(design, 20 + f, 20 + y), fit_mean(design, f, y))
    assert apart.p_value is not None
    assert 0 <= apart.p_value < 1e-12


# How often they hold the truth: `benchmarks/scores/trust_coverage.py` has all cells


def test_intervals_hold_rare_faults_where_normal_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    size, n, share, repetitions = 2_000, 50, 0.05, 500
    held = normal = 0
    for _ in range(repetitions):
        y = rng.random(size) < share
        f = np.where(y, rng.random(size) < 0.3, rng.random(size) < 0.002)
        judged = rng.choice(size, n, replace=False)
        fit = fit_share(at_random(size, judged), f, y[judged])
        low, high = ends(corrected(fit))
        held += low <= share <= high
        residuals = y[judged] - (fit.lam or 0) * f[judged]
        normal += abs(value(fit) - share) <= 1.96 * residuals.std() / sqrt(n)
    assert held / repetitions > 0.95
    assert normal / repetitions < 0.9


def test_intervals_of_counts_hold_with_unequal_probabilities() -> None:
    rng = np.random.default_rng(1)
    size, n, repetitions, mean = 1_000, 60, 500, 0.5
    held = 0
    for _ in range(repetitions):
        y = rng.poisson(mean * rng.gamma(0.5, 2, size))
        f = rng.binomial(y, 0.6) + rng.poisson(0.2, size)
        chances = np.where(f > 0, 1.5, 0.5)
        chances *= n / chances.sum()
        ends_ = np.cumsum(chances)
        judged = np.searchsorted(ends_, (rng.random() + np.arange(n)) * ends_[-1] / n)
        low, high = ends(corrected(fit_mean(Design(size, judged, chances[judged]), f, y[judged])))
        held += low <= mean <= high
    assert held / repetitions > 0.93
