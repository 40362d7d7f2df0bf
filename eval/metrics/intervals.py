"""95 % intervals of scores over images: Wilson's for plain shares, else a percentile bootstrap.

A score is a `Ratio` of two sums over images or a `Mean` over some of them; what belongs together, as the
images of one prompt, is resampled together (`resampled_sums`). All scores of one call see the same resamples,
so that differences of two are paired.

Images of a group resemble each other, so that a hundred images of ten originals say less than a hundred of as
many. Plain shares then have Wilson's interval of the number of independent images that would vary as much
(`effective_size`), other figures a bootstrap over groups. With one image a group both are what they are
without groups.

A bootstrap of one image, or of images that are all alike, has no width: every resample is the same, which
says nothing of how far the truth may be. Such a figure has no interval, unless it is 0 or 1 on a scale of
0–1, as a share of 0 or 100 % is: Wilson's score interval has a width there, and holds what it promises for
few images too (`percentile_intervals`). Sources: B. Efron and R. Tibshirani, *An Introduction to
the Bootstrap*, 1993, section 13.3 (percentile intervals); E. B. Wilson, *Probable inference, the law of
succession, and statistical inference*, JASA 22, 1927; L. D. Brown, T. T. Cai and A. DasGupta, *Interval
estimation for a binomial proportion*, Statistical Science 16, 2001; L. Kish, *Survey Sampling*, 1965, section
8.2 (design effect); E. L. Korn and B. I. Graubard, *Confidence intervals for proportions with small expected
number of positive counts estimated from survey data*, Survey Methodology 24, 1998 (effective size, degrees of
freedom), here with Wilson's interval in place of Clopper and Pearson's, as in C. Franco, R. Little, T. Louis
and E. Slud, *Comparative study of confidence intervals for proportions in complex sample surveys*, Journal of
Survey Statistics and Methodology 7, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncanny.eval.common.estimates import NO_INTERVAL
from uncanny.eval.metrics import RESAMPLES

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int16]
# For each image the number of its group, from 0.
Codes = NDArray[np.int64]
Interval = tuple[float, float]
Rng = np.random.Generator

# Up to so many values other than 0 their mean is tested exactly, over 4,096 choices of signs.
FEW_TO_FLIP = 13
LEVEL = 0.95
# The p-value, corrected where there are several, below which a difference counts as one.
ALPHA = 0.05
_ROUNDING = 1e-12
METHOD = f"Wilson for plain shares, else percentile bootstrap over images; {NO_INTERVAL}"

_Counts = NDArray[np.int64]
_CELLS_AT_ONCE = 1 << 20
# Small arrays are used again; larger ones go back to the system, and every page is fetched anew.
_CELLS_A_DRAW = 1 << 14
# BLAS shares a larger product among cores, which is worth the while for many columns only.
_CELLS_A_PRODUCT = 1 << 20
_FEW_COLUMNS = 8
# A count drawn for a kind costs as much as this many clusters drawn one by one (measured: 12 to 25).
_KIND_COST = 16
# Means that are resampled together: of 10,774 images half a thousand are 44 MB.
_MEANS_AT_ONCE = 512


class Ratio(NamedTuple):
    """Two columns of the same length, an entry an image or group: what counts, and of how much."""

    counts: Ints | Floats
    out_of: Ints | Floats

    @property
    def value(self) -> float | None:
        """The one sum over the other; None where `out_of` sums to 0."""
        total = int(self.out_of.sum(dtype=np.int64))
        return int(self.counts.sum(dtype=np.int64)) / total if total else None


def ratio(counts: Bools | Ints, out_of: Bools | Ints) -> Ratio:
    """A ratio of two columns."""
    return Ratio(counts.astype(np.int16), out_of.astype(np.int16))


class Mean:
    """The mean of `values` over the images that are `counted`; both have one entry an image."""

    __slots__ = ("counted", "values")

    def __init__(self, values: Floats, counted: Bools) -> None:
        self.values, self.counted = values, counted

    @property
    def value(self) -> float | None:
        """None where no image counts."""
        return float(self.values[self.counted].mean()) if self.counted.any() else None


def wilson_interval(count: float, out_of: float, *, level: float = LEVEL) -> Interval | None:
    """Wilson's score interval of the share `count` / `out_of`, within 0–1; None of nothing.

    An effective number of images (`effective_size`) need not be whole.
    """
    if not out_of:
        return None
    z = NormalDist().inv_cdf((1 + level) / 2)
    share, weight = count / out_of, z * z / out_of
    middle = (share + weight / 2) / (1 + weight)
    half = z * sqrt(share * (1 - share) / out_of + weight / (4 * out_of)) / (1 + weight)
    return (0.0 if count == 0 else middle - half, 1.0 if count == out_of else middle + half)


def group_codes(groups: Iterable[Hashable]) -> Codes:
    """For each image the number of its group, from 0 in order of first appearance."""
    numbers: dict[Hashable, int] = {}
    return np.fromiter((numbers.setdefault(each, len(numbers)) for each in groups), dtype=np.int64)


def units(rows: Bools, groups: Codes | None) -> int:
    """How many images, or `groups` of images, are among some of them: what resamples are drawn from."""
    return int(np.count_nonzero(rows)) if groups is None else len(np.unique(groups[rows]))


def sums_by_group(values: ArrayLike, codes: Codes) -> Floats:
    """The sum of `values`, an entry or a row an image, in each group; an entry or a row a group."""
    table = np.asarray(values, dtype=np.float64)
    sums = np.zeros((int(codes.max(initial=-1)) + 1, *table.shape[1:]))
    np.add.at(sums, codes, table)
    return sums


def effective_size(sums: ArrayLike, sizes: ArrayLike, squares: ArrayLike | None = None) -> float:
    """How many independent images say as much of a mean as groups of them do; 0 of nothing.

    Of each group the sum of its images' values, their number, and the sum of their squared values, which is
    `sums` itself where values are 0 or 1. At most the number of images. Where all values are alike their
    variance says nothing; a group then counts as one image, or groups of several sizes as (Σ sizes)² /
    Σ sizes².
    """
    kept = np.asarray(sizes) > 0
    totals, counts = (np.asarray(each, dtype=np.float64)[kept] for each in (sums, sizes))
    squared = totals if squares is None else np.asarray(squares, dtype=np.float64)[kept]
    n, groups = float(counts.sum()), len(counts)
    if n == groups:
        return n  # each image by itself
    total = float(totals.sum())
    mean = total / n
    # n² times the variance of values, 0 but for rounding where all are alike: as small as that of one hit is.
    spread = n * float(squared.sum()) - total**2
    if groups < 2 or spread <= _ROUNDING * total**2:
        return n * n / float((counts**2).sum())
    independent = spread / n**3
    variance = groups / (groups - 1) * float(((totals - mean * counts) ** 2).sum()) / n**2
    return max(1.0, n / max(1.0, variance / independent) * _few_groups(groups))


def _few_groups(groups: int) -> float:
    """A variance over few groups is known badly: Student's t in place of the normal, as a factor of size."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    normal = NormalDist().inv_cdf((1 + LEVEL) / 2)
    return float((normal / stdtrit(groups - 1, (1 + LEVEL) / 2)) ** 2)


def design_effect(deviations: Floats, codes: Codes) -> float:
    """How much more a mean varies because its values come in groups: 1 where they do not go together.

    `deviations` are the values less their mean, `codes` the number of the group of each.
    """
    squares = float(deviations @ deviations)
    sums = sums_by_group(deviations, codes)
    return float(sums @ sums) / squares if squares > 0 else 1.0


def clustered_interval(hits: ArrayLike, sizes: ArrayLike) -> Interval | None:
    """The interval of the share Σ `hits` / Σ `sizes`, an entry a group, within 0–1; None of nothing."""
    n = float(np.asarray(sizes, dtype=np.float64).sum())
    if not n:
        return None
    size = effective_size(hits, sizes)
    # A share of 1 is just 1, so that all are counted.
    return wilson_interval(size * (float(np.asarray(hits, dtype=np.float64).sum()) / n), size)


def by_group(ratio: Ratio, groups: Codes | None) -> Ratio:
    """The same ratio with an entry a group in place of an entry an image; None leaves it as it is."""
    return ratio if groups is None else Ratio(*(sums_by_group(column, groups) for column in ratio))


def share_intervals(
    ratios: Sequence[Ratio],
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Interval | None]:
    """Wilson's where a ratio is a plain share of images, else a bootstrap over images, as `METHOD` says.

    Ratios are in 0–1: what is 0 or 1 on every image has Wilson's of the number of images. `groups` says which
    images belong together; None takes each by itself. None where a ratio has no value, or no width otherwise;
    with 0 resamples there are none at all.
    """
    if not resamples:
        return [None] * len(ratios)
    plain = [is_plain(each) for each in ratios]
    ratios = [by_group(each, groups) for each in ratios]
    others = [each for each, simple in zip(ratios, plain, strict=True) if not simple]
    drawn = iter(
        percentile_intervals(
            replicates(others, resamples=resamples, seed=seed),
            images=[int(np.count_nonzero(each.out_of)) for each in others],
        )
    )
    return [
        clustered_interval(*each) if simple else next(drawn)
        for each, simple in zip(ratios, plain, strict=True)
    ]


def is_plain(share: Ratio) -> bool:
    """Whether each image counts for one or for nothing: no weights, and no image with several answers."""
    counts, out_of = np.asarray(share.counts), np.asarray(share.out_of)
    return bool(((out_of == 0) | (out_of == 1)).all() and ((counts == 0) | (counts == out_of)).all())


def mean_intervals(
    means: Iterable[Mean],
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    shares: bool = False,
) -> Iterator[Interval | None]:
    """Percentile intervals, one a mean, resampling images or `groups` of them; None below two of these, where
    all are alike, and where `resamples` is 0. Of `shares`, means of figures in 0–1, those that are all 0 or
    all 1 have Wilson's.

    For a paired bootstrap of two means, give the mean of their difference image by image.
    """
    tests = mean_tests(means, groups=groups, resamples=resamples, seed=seed, shares=shares)
    return (each.interval for each in tests)


class Compared(NamedTuple):
    """A mean: its interval, None below two images and where all are alike, and its test against 0, None where
    nothing counts."""

    interval: Interval | None
    p_value: float | None


def mean_tests(
    means: Iterable[Mean],
    *,
    groups: Codes | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    shares: bool = False,
) -> Iterator[Compared]:
    """As `mean_intervals`, and how likely a mean so far from 0 is where the true one is 0: two-sided, 0–1.

    Where at most `FEW_TO_FLIP` values differ from 0 it is exact, that of `sign_flip_test`: a bootstrap of few
    values knows too little of how they vary, and calls one value, which it draws every time, certain. Of
    more it is twice the share of resamples on the rarer side of 0, with one added to both counts, so that it
    is never 0: below 0.05 where the 95 % interval leaves 0 out, but for rounding (A. C. Davison and D. V.
    Hinkley, *Bootstrap Methods and their Application*, 1997, sections 4.2 and 5.5). The smallest of these is
    2 over one more than `resamples`. Both are None where no image counts or `resamples` is 0.
    """
    remaining = iter(means)
    while batch := list(islice(remaining, _MEANS_AT_ONCE)):
        if not resamples:
            yield from (Compared(None, None) for _ in batch)
            continue
        summed = [_of_groups(mean, groups) for mean in batch]
        drawn = _mean_replicates(summed, resamples, seed)
        images = [int(np.count_nonzero(sizes)) for _, sizes in summed] if shares else None
        intervals = percentile_intervals(drawn, images=images)
        for (sums, sizes), ends, column in zip(summed, intervals, drawn.T, strict=True):
            kept = column[~np.isnan(column)]
            values = sums[sizes > 0]
            ends = ends if len(values) > 1 else None
            if not len(kept):
                yield Compared(ends, None)
            elif np.count_nonzero(values) <= FEW_TO_FLIP:
                yield Compared(ends, sign_flip_test(values))
            else:
                rarer = min(int((kept <= 0).sum()), int((kept >= 0).sum()))
                yield Compared(ends, min(1.0, 2 * (rarer + 1) / (len(kept) + 1)))


def sign_flip_test(values: Floats) -> float | None:
    """The exact two-sided p-value, above 0 to 1, of a mean so far from 0 where each sign is a fair coin's.

    Values that are 0 say nothing; n others cannot give less than 2^(1 − n): 1 of one, 0.5 of two. All 2^n
    choices of signs are tried, so `values` are to be few. None of no values. Source: R. A. Fisher, *The
    Design of Experiments*, 1935, chapter III.
    """
    if not len(values):
        return None
    moving = values[values != 0]
    if not len(moving):
        return 1.0
    # The mean of all signs turned is as far from 0: one half of the choices has the first as it is.
    choices = np.arange(2 ** (len(moving) - 1))[:, None] >> np.arange(len(moving)) & 1
    sums = np.abs((1.0 - 2.0 * choices) @ moving)
    rounding = 1e-12 * np.abs(moving).sum()
    return float((sums >= abs(moving.sum()) - rounding).mean())


def resampled_t_test(difference: float, drawn: Floats, clusters: int) -> float | None:
    """Two-sided p-value, 0–1, of a difference where the true one is 0; `drawn` has it in each resample.

    Student's t of the difference in units of its bootstrap standard error, with one degree of freedom less
    than the smaller side has `clusters`, images or prompts; the variance of resamples of n of them is
    (n − 1) / n of what it ought to be, which is made good. A percentile interval of ten images is too short;
    how often either tells apart what is alike is measured by `python -m benchmarks audit`. The p-value
    depends little on the number of resamples, so that it can be corrected for many tests.

    Where nothing varies it is 1 of no difference, else 2^(1 − n), that of n signs which are all one; the
    chance that two unpaired sides of n fall apart so is smaller yet. None below two clusters, or with nothing
    drawn. Source: B. Efron and R. Tibshirani, *An Introduction to the Bootstrap*, 1993, chapter 6 and
    section 12.4; the smaller side's degrees of freedom are the cautious choice.
    """
    from scipy.special import stdtr  # slow to import

    kept = drawn[~np.isnan(drawn)]
    if clusters < 2 or not len(kept):
        return None
    error, rounding = float(kept.std()), _ROUNDING * max(1.0, abs(difference))
    if error <= rounding:
        return 1.0 if abs(difference) <= rounding else 2.0 ** (1 - clusters)
    error *= sqrt(clusters / (clusters - 1))
    return float(2 * stdtr(clusters - 1, -abs(difference) / error))


def percentile_intervals(
    values: Floats, *, level: float = LEVEL, images: Sequence[int] | None = None
) -> list[Interval | None]:
    """Low and high end of each column of `values`, shape (resamples, scores).

    NaN entries are left out; None where nothing is left, and where all is the same, so that there is no
    width. `images`, of scores in 0–1, says how many images, or groups of them, each was drawn from (`units`):
    one that is 0, or 1, in all resamples has Wilson's interval of none, or all, of so many. Wilson's is for
    shares; that a mean or an F1 does no better or worse than a share would is our reading, without a source.
    How often it holds the truth is measured by `python -m benchmarks coverage`.
    """
    tail = (1 - level) / 2
    intervals: list[Interval | None] = []
    for place, column in enumerate(values.T):
        kept = column[~np.isnan(column)]
        low, high = np.quantile(kept, [tail, 1 - tail]).tolist() if len(kept) else (np.nan, np.nan)
        if images is not None and low == high and low in (0.0, 1.0):
            intervals.append(wilson_interval(images[place] if low else 0, images[place], level=level))
        else:
            has_width = high - low > _ROUNDING * max(1.0, abs(low))
            intervals.append((low, high) if has_width else None)
    return intervals


def replicates(ratios: Sequence[Ratio], *, resamples: int = RESAMPLES, seed: int = 0) -> Floats:
    """The value of each ratio in each resample of the images, shape (resamples, ratios).

    All ratios see the same resamples. NaN stands where a resample holds nothing to count out of.

    Images with the same entries in every column are one kind, and how often each kind is drawn is
    multinomial. Drawing the kinds' counts is the same as drawing the images, at the cost of the kinds alone.
    """
    if not ratios or not len(ratios[0].counts):
        return np.full((resamples, len(ratios)), np.nan)
    columns = np.stack([each.counts for each in ratios] + [each.out_of for each in ratios], axis=1)
    kinds, often = np.unique(columns, axis=0, return_counts=True)
    images, cells = len(columns), kinds.astype(np.float64)
    rng = np.random.default_rng(seed)
    values = np.empty((resamples, len(ratios)))
    step = max(1, _CELLS_AT_ONCE // len(kinds))
    for start in range(0, resamples, step):
        stop = min(start + step, resamples)
        drawn = rng.multinomial(images, often / images, size=stop - start).astype(np.float64)
        counts, out_of = np.split(drawn @ cells, 2, axis=1)
        with np.errstate(invalid="ignore"):
            values[start:stop] = counts / out_of
    return values


def resampled_sums(columns: Floats, rng: Rng, *, resamples: int = RESAMPLES) -> Floats:
    """The sum of each column in each resample, shape (resamples, columns).

    `columns` has a row a cluster, with what it adds to each sum. A resample draws as many clusters as there
    are, with replacement; all columns see the same ones. Without clusters all sums are 0.

    Where many rows are equal, how often each kind of row is drawn is multinomial, and drawing these counts is
    the same as drawing the clusters. Memory does not grow with `resamples` times clusters.
    """
    if not len(columns):
        return np.zeros((resamples, columns.shape[1]))
    kinds, often = np.unique(columns, axis=0, return_counts=True)
    if len(kinds) * _KIND_COST < len(columns):
        chances = often / len(columns)
        return _summed(kinds, resamples, lambda number: rng.multinomial(len(columns), chances, size=number))
    return _summed(columns, resamples, lambda number: _drawn_clusters(len(columns), number, rng))


def _summed(rows: Floats, resamples: int, draw: Callable[[int], _Counts]) -> Floats:
    sums = np.empty((resamples, rows.shape[1]))
    cells = _CELLS_A_DRAW if rows.shape[1] <= _FEW_COLUMNS else _CELLS_A_PRODUCT
    block = np.empty((max(1, min(resamples, cells // len(rows))), len(rows)))
    step = max(1, _CELLS_A_DRAW // len(rows))
    for start in range(0, resamples, len(block)):
        drawn = block[: min(len(block), resamples - start)]
        for first in range(0, len(drawn), step):
            part = drawn[first : first + step]
            part[:] = draw(len(part))
        sums[start : start + len(drawn)] = drawn @ rows
    return sums


def _drawn_clusters(clusters: int, number: int, rng: Rng) -> _Counts:
    drawn = rng.integers(clusters, size=(number, clusters))
    drawn += clusters * np.arange(number)[:, None]
    often = np.bincount(drawn.ravel(), minlength=number * clusters)
    return often.reshape(number, clusters)


def _of_groups(mean: Mean, groups: Codes | None) -> tuple[Floats, Floats]:
    """The sum and the number of the values that count, an entry a group, or an image without groups."""
    sums = np.where(mean.counted, mean.values, 0.0)
    sizes = mean.counted.astype(np.float64)
    if groups is None:
        return sums, sizes
    return sums_by_group(sums, groups), sums_by_group(sizes, groups)


def _mean_replicates(means: Sequence[tuple[Floats, Floats]], resamples: int, seed: int) -> Floats:
    """The value of each mean in each resample, NaN where it counts no image; shape (resamples, means).

    Of each mean the sums and sizes of what is resampled.
    """
    places: dict[bytes, int] = {}
    different: list[Floats] = []
    which = []
    for _, sizes in means:
        key = sizes.tobytes()
        if key not in places:
            places[key] = len(different)
            different.append(sizes)
        which.append(places[key])
    table = np.stack([*(sums for sums, _ in means), *different], axis=1)
    drawn = resampled_sums(table, np.random.default_rng(seed), resamples=resamples)
    totals, counts = drawn[:, : len(means)], drawn[:, len(means) :]
    with np.errstate(invalid="ignore"):
        values: Floats = totals / counts[:, which]
    return values
