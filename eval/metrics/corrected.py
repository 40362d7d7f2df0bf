"""A figure of all images, from a model's values of all and people's values of a sample: corrected figures.

A model says something of each of the N images of a generator, and people judged n of them. With the model's
values f, people's values y, the inclusion probabilities π and the weights w ∝ 1/π, which sum to 1 over the
judged images, the corrected figure is

    θ(λ) = λ · mean(f) + Σ w (y − λ f)

Whatever the model's mistakes are, it is right on average, but for a bias of order 1/n, because λ and the sum
of 1/π are estimated; a good model only makes it more precise. λ, 0–1, says how far the model is followed: it
minimizes the estimated variance, and λ = 0 is the figure of people only.

What is estimated is the figure of the *generator*, of which its N images are a sample, as everywhere in
uncanny. So the variance has two parts: that of the residuals e = y − λ f, with the finite population
correction 1 − π, and that of y over the N images, which is all that is left when people judged every image:

    v = Σ w² (1 − π) (e − ē)² + s²(y) / N

Rare faults need more than a normal interval: a small sample often has no residual other than 0, and then
seems to know everything. Three things repair that, chosen by what the figure is and never by what it shows:

- Three pseudo-images join the variances, never the figure itself: half a one that both find clean, half a
  one in which both find a typical fault, one with a fault that only people find, and one with a fault that
  only the model finds. A typical fault is 1 in a share, else the mean of the model's values above 0.
- A residual is divided by 1 − h, where h is how far its image alone determines λ, as in a jackknife: λ fits
  the images that it was estimated from a little too well, above all with heavy tails. h is at most 1/2.
- Intervals are score intervals with `effective` images, s²(y) / v: as many as people alone would have had to
  judge at random for the same variance. For a share it is Wilson's. For a mean of counts, or of sums over
  them, the variance grows with the mean, as that of an overdispersed Poisson count does. Quantiles are
  Student's. CAP, the product of two means, has the interval of its square root, which is nearly linear in
  both, squared.

`benchmarks/scores/trust_coverage.py` measures how often they hold the truth, beside a bootstrap.

Sources: A. Angelopoulos, S. Bates, C. Fannjiang, M. Jordan and T. Zrnic, *Prediction-powered inference*,
Science 382, 2023; A. Angelopoulos, J. Duchi and T. Zrnic, *PPI++*, arXiv 2311.01453, 2023 (λ); T. Zrnic
and E. Candès, *Active statistical inference*, ICML 2024 (unequal probabilities); C.-E. Särndal, B. Swensson
and J. Wretman, *Model assisted survey sampling*, 1992, chapters 5 (weights that sum to 1) and 6 (the
difference estimator); J. Hájek, *Asymptotic theory of rejective sampling*, Annals of Mathematical
Statistics 35, 1964 (its variance without joint probabilities); E. L. Korn and B. I. Graubard, *Confidence
intervals for proportions*, Survey Methodology 24, 1998 (effective size); P. McCullagh and J. A. Nelder,
*Generalized linear models*, 1989, section 6.2 (overdispersed counts); J. G. MacKinnon and H. White, *Some
heteroskedasticity-consistent covariance matrix estimators*, Journal of Econometrics 29, 1985 (residuals over
1 − h, their HC3), here with the pseudo-images among those that determine λ.

Deviations: the sources take the unjudged images for a second sample, here the frame holds the judged ones
too: the same estimator, with λ (1 + n/(N − n)) times theirs, which reaches 1 earlier. With unequal
probabilities λ minimizes the variance over the judged images, because those of others need not be known.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics.intervals import LEVEL, Codes, Floats, Interval, design_effect, sums_by_group

# With fewer judged images there is a figure, but no interval.
LEAST_JUDGED: Final = 30
_PSEUDO_IMAGES: Final = 3.0
# How often a pseudo-image counts, and what people and the model find in it, in typical faults.
_PSEUDO: Final = ((0.5, 1.0, 1.0), (0.5, 0.0, 0.0), (1.0, 1.0, 0.0), (1.0, 0.0, 1.0))
# A residual becomes at most twice as large: one image with an enormous value would make intervals endless.
_MOST_LEVERAGE: Final = 0.5
# Probabilities and variances that differ by no more, beside the larger one, are the same.
_SAME: Final = 1e-12

Kind = Literal["share", "mean", "product"]
METHODS: Final[dict[Kind, str]] = {
    "share": "Wilson's score interval with the effective number of images",
    "mean": "score interval of an overdispersed count with the effective number of images",
    "product": "square of the score interval of the square root",
}


@dataclass(frozen=True, eq=False)
class Design:
    """Which images of a generator people judged, and how these were drawn.

    Parameters
    ----------
    size
        N, the number of images in the frame: all that the model has a value of. 0 if there are none.
    judged
        Shape (n,): the positions of the judged images in the frame, 0…N−1, each at most once. Empty if
        people have not judged any.
    probabilities
        Shape (n,): the inclusion probability of each judged image, above 0 to 1. It is
        n/N in simple random sampling.
    groups
        Shape (N,): the number of the group of each image, such as its prompt. Images of a group are not
        independent. Groups that two designs share pair their images in `difference`, so use one
        numbering for both. None takes each image by itself, and pairs nothing.

    Raises
    ------
    ValueError
        If lengths differ, a position is outside the frame or comes twice, or a probability is not in (0, 1].
    """

    size: int
    judged: NDArray[np.int64]
    probabilities: Floats
    groups: Codes | None = None

    def __post_init__(self) -> None:
        n = len(self.judged)
        if self.probabilities.shape != (n,):
            raise ValueError(f"{n} judged images need as many probabilities, got {self.probabilities.shape}")
        if n and (self.judged.min() < 0 or self.judged.max() >= self.size):
            raise ValueError(f"positions of judged images must be between 0 and {self.size - 1}")
        if len(np.unique(self.judged)) < n:
            raise ValueError("an image is judged twice")
        if not ((self.probabilities > 0) & (self.probabilities <= 1)).all():
            raise ValueError("inclusion probabilities must be above 0 and at most 1")
        if self.groups is not None and self.groups.shape != (self.size,):
            raise ValueError(f"{self.size} images need as many groups, got {self.groups.shape}")

    @property
    def n(self) -> int:
        """How many images people judged."""
        return len(self.judged)

    @property
    def missing(self) -> int:
        """How many more images people have to judge before figures have an interval."""
        return max(0, LEAST_JUDGED - self.n)

    @cached_property
    def weights(self) -> Floats:
        """Shape (n,): the share of all images that each judged one stands for; they sum to 1."""
        inverse = 1 / self.probabilities
        return np.asarray(inverse / inverse.sum())

    @cached_property
    def is_equal(self) -> bool:
        """Whether each judged image had the same probability."""
        return self.n == 0 or bool(np.ptp(self.probabilities) <= _SAME * self.probabilities.max())

    @cached_property
    def sampling_weights(self) -> Floats:
        """Shape (n,): w √(1 − π), with the finite population correction: 0 where π is 1."""
        return np.asarray(self.weights * np.sqrt(1 - self.probabilities))

    @cached_property
    def pseudo_weight(self) -> float:
        """What the square of a pseudo-image counts: it stands for n Σ w² images, as Kish has it.

        With the finite population correction, so 0 where every image is judged.
        """
        return float(self.n * (self.weights @ self.weights)) ** 2 * (1 - self.n / self.size)

    @cached_property
    def units(self) -> tuple[Codes, Codes] | None:
        """The groups with a judged image, and the place of each judged image among them; None of none."""
        if self.groups is None:
            return None
        names, codes = np.unique(self.groups[self.judged], return_inverse=True)
        return names, codes

    @property
    def independent(self) -> int:
        """How many judged images, or groups of them, are independent of each other."""
        return self.n if self.units is None else len(self.units[0])

    def summed(self, values: Floats) -> Floats:
        """Of an entry a judged image, the sums of those that belong together."""
        return values if self.units is None else sums_by_group(values, self.units[1])


@dataclass(frozen=True, slots=True)
class Corrected:
    """A figure of a generator, corrected by what people found in a sample, with a 95 % interval.

    `value`, `low` and `high` are in the unit of the figure: 0–1 of shares, from 0 of others. `value` is None
    without judged images, the ends are None with fewer than `LEAST_JUDGED`. `lam` is λ, 0–1; None of a
    product, which has two. `people_only` uses the judged images alone,
    `model_only` the model's values of all images, without a correction. `n` of `frame` images are judged.
    `effective` says what the model is worth: as if so many images had been judged at random, at most `frame`;
    None without an interval. `method` names the interval; None without one.
    """

    value: float | None
    low: float | None
    high: float | None
    lam: float | None
    people_only: Estimate
    model_only: float | None
    n: int
    frame: int
    effective: float | None
    method: str | None


@dataclass(frozen=True, eq=False)
class Spread:
    """What an interval needs of one estimator: a figure linear in the judged images.

    `residuals` and `people` have an entry a judged image, less their means. `squares` are the weighted
    sums of squares that pseudo-images add to each. `center` is the smoothed mean of people's values, and
    `clustering` how much more a mean over the frame varies because images come in groups, 1 or more.
    """

    design: Design
    residuals: Floats
    people: Floats
    squares: tuple[float, float]
    center: float
    clustering: float

    @cached_property
    def variances(self) -> tuple[float, float]:
        """That of people's values, an image, and that of the estimator; both smoothed, so above 0."""
        design, n = self.design, self.design.n
        images = n + _PSEUDO_IMAGES - 1
        spread = (n * float(design.weights @ self.people**2) + self.squares[1]) / images
        units = design.summed(n * design.sampling_weights * self.residuals)
        # Groups are fewer than images: one degree of freedom is one of them.
        few = 1.0 if len(units) == n else (n - 1) / n * len(units) / (len(units) - 1)
        pseudo = design.pseudo_weight * self.squares[0]
        sampled = (few * float(units @ units) + pseudo) / images / n
        return spread, sampled + self.clustering * spread / design.size

    @cached_property
    def unit_sums(self) -> tuple[Floats, Floats]:
        """What each image, or group, adds to the estimator: as one drawn for others, and as itself."""
        design = self.design
        itself = design.weights * np.sqrt(design.probabilities) * self.people
        return design.summed(design.sampling_weights * self.residuals), design.summed(itself)

    @property
    def effective(self) -> float:
        """How many images people alone would have to judge at random for this variance, at most all."""
        spread, variance = self.variances
        return min(float(self.design.size), spread / variance)


class Fit:
    """A figure of one generator with what its interval and its differences need: see `corrected`.

    Made by `fit_share`, `fit_mean` and `fit_product`.
    """

    def __init__(
        self,
        kind: Kind,
        design: Design,
        value: float | None,
        lam: float | None,
        people: float | None,
        model: float | None,
        spreads: tuple[Spread, Spread] | None,
    ) -> None:
        """`spreads` are those of the corrected figure and of people only; None without an interval."""
        self.kind, self.design, self.value, self.lam = kind, design, value, lam
        self.people, self.model, self.spreads = people, model, spreads

    def ends(self, quantile: float, *, people_only: bool = False) -> Interval | None:
        """The score interval at `quantile` standard errors, 0 or more; None without an interval."""
        value = self.people if people_only else self.value
        if self.spreads is None or value is None:
            return None
        spread = self.spreads[people_only]
        size = spread.effective
        if self.kind == "share":
            return _share_ends(value, size, quantile)
        scale = spread.variances[0] / spread.center / size
        if self.kind == "mean":
            return _mean_ends(value, scale, quantile)
        low, high = _mean_ends(sqrt(value), scale, quantile)
        return low * low, high * high


def fit_share(design: Design, model: ArrayLike, people: ArrayLike) -> Fit:
    """The share of images with something, such as a visible fault, or one of a kind.

    Parameters
    ----------
    design
        Which images people judged.
    model
        Shape (N,): the model's value of each image, 0–1; usually 0 or 1. A probability works too.
    people
        Shape (n,): 1 where people found it in a judged image, else 0, in the order of `design.judged`.

    Raises
    ------
    ValueError
        If a length does not fit the design or a value is outside its range.
    """
    f, y = _checked(design, model, people)
    if (f.size and f.max() > 1) or not np.isin(y, (0, 1)).all():
        raise ValueError("of a share, the model's values must be in 0–1 and people's values 0 or 1")
    return _fit("share", design, f, y, fault=1.0)


def fit_mean(design: Design, model: ArrayLike, people: ArrayLike) -> Fit:
    """The mean of a count an image, or of a sum over what is counted, such as AF and MAI.

    Parameters
    ----------
    design
        Which images people judged.
    model
        Shape (N,): the model's value of each image, 0 or more, in the unit of the figure.
    people
        Shape (n,): the same by people, in the order of `design.judged`.

    Raises
    ------
    ValueError
        If a length does not fit the design or a value is below 0 or not finite.
    """
    f, y = _checked(design, model, people)
    some = f[f > 0] if (f > 0).any() else y[y > 0]
    return _fit("mean", design, f, y, fault=float(some.mean()) if len(some) else 1.0)


def fit_product(first: Fit, second: Fit) -> Fit:
    """The product of two means of the same images, such as CAP = MAI · AF.

    Parameters
    ----------
    first, second
        Two results of `fit_mean` with the same design; others raise a ValueError.
    """
    if first.design is not second.design or {first.kind, second.kind} != {"mean"}:
        raise ValueError("a product needs two means of the same design")
    spreads = None
    if first.spreads is not None and second.spreads is not None:
        spreads = (
            _product_spread(first.value, first.spreads[0], second.value, second.spreads[0]),
            _product_spread(first.people, first.spreads[1], second.people, second.spreads[1]),
        )
    return Fit(
        "product",
        first.design,
        _product(first.value, second.value),
        None,
        _product(first.people, second.people),
        _product(first.model, second.model),
        spreads,
    )


def corrected(fit: Fit, *, level: float = LEVEL) -> Corrected:
    """The figure with its interval at `level`, above 0 to below 1.

    Without images every figure is None; without judged ones only the model's is there.
    """
    quantile = quantile_of(level, fit.design.independent - 1) if fit.spreads else 0.0
    low, high = fit.ends(quantile) or (None, None)
    return Corrected(
        fit.value,
        low,
        high,
        fit.lam,
        Estimate(fit.people, fit.ends(quantile, people_only=True)),
        fit.model,
        fit.design.n,
        fit.design.size,
        fit.spreads[0].effective if fit.spreads else None,
        METHODS[fit.kind] if fit.spreads else None,
    )


def _checked(design: Design, model: ArrayLike, people: ArrayLike) -> tuple[Floats, Floats]:
    f, y = np.asarray(model, dtype=np.float64), np.asarray(people, dtype=np.float64)
    if f.shape != (design.size,) or y.shape != (design.n,):
        raise ValueError(f"need {design.size} values of the model and {design.n} of people")
    for values in (f, y):
        if values.size and not (np.isfinite(values).all() and values.min() >= 0):
            raise ValueError("values must be finite and not below 0")
    return f, y


def _fit(kind: Kind, design: Design, f: Floats, y: Floats, *, fault: float) -> Fit:
    model = float(f.mean()) if design.size else None
    if model is None or not design.n:
        return Fit(kind, design, None, None, None, model, None)
    judged = f[design.judged]
    people, found = float(design.weights @ y), float(design.weights @ judged)
    dy, df = y - people, judged - found
    lam = _lam(design, dy, df, float(((f - model) ** 2).sum()))
    # Neither a share nor a count can be below 0, though λ mean(f) may be far from what people find.
    most = 1.0 if kind == "share" else np.inf
    value = min(max(people + lam * (model - found), 0.0), most)
    spreads = None
    if not design.missing and design.independent > 1:
        center, clustering = _smoothed(design, people, fault), _clustering(design, f - model, dy)

        def spread(by: float, residuals: Floats) -> Spread:
            squares = _pseudo_squares(fault, by, people, found), _pseudo_squares(fault, 0.0, people, found)
            return Spread(design, residuals, dy, squares, center, clustering)

        followed = (dy - lam * df) / (1 - _leverage(design, df, found, fault)) if lam else dy
        spreads = (spread(lam, followed), spread(0.0, dy))
    return Fit(kind, design, value, lam, people, model, spreads)


def _lam(design: Design, dy: Floats, df: Floats, squares: float) -> float:
    """λ from what people and the model find in judged images, less their means.

    `squares` is the sum of squares of the model's values over the frame, less their mean.
    """
    if design.is_equal and design.independent == design.n:
        # The variance of f is known over all images, as in PPI++.
        together, alone = float(dy @ df) / design.n, squares / max(1, design.size - 1)
    else:
        both, own = (design.summed(design.sampling_weights * each) for each in (dy, df))
        together, alone = float(both @ own), float(own @ own)
    return min(1.0, max(0.0, together / alone)) if alone > 0 else 0.0


def _leverage(design: Design, df: Floats, found: float, fault: float) -> Floats:
    """Shape (n,): how far each judged image, or its group, alone determines λ, 0 to `_MOST_LEVERAGE`."""
    own = (design.n * design.sampling_weights * df) ** 2
    pseudo = sum(often * (fault * by_model - found) ** 2 for often, _, by_model in _PSEUDO)
    total = float(own.sum()) + design.pseudo_weight * pseudo
    if not total:
        return np.zeros(design.n)
    units = own if design.units is None else design.summed(own)[design.units[1]]
    return np.minimum(units / total, _MOST_LEVERAGE)


def _pseudo_squares(fault: float, lam: float, people: float, found: float) -> float:
    return sum(
        often * (fault * (by_people - lam * by_model) - (people - lam * found)) ** 2
        for often, by_people, by_model in _PSEUDO
    )


def _smoothed(design: Design, people: float, fault: float) -> float:
    """The mean of people's values with the pseudo-images, in half of which they find a fault."""
    return (design.n * people + _PSEUDO_IMAGES / 2 * fault) / (design.n + _PSEUDO_IMAGES)


def _clustering(design: Design, df: Floats, dy: Floats) -> float:
    """Kish's design effect of groups, by what the model finds in the frame, or people in judged images where
    that is more: a weak model does not see what images of a group share."""
    if design.groups is None:
        return 1.0
    _, codes = np.unique(design.groups, return_inverse=True)
    effects = [1.0, design_effect(df, codes)]
    if design.units is not None and design.independent < design.n:
        own = design.units[1]
        of_frame, of_judged = (float(n @ n) / float(n.sum()) for n in map(np.bincount, (codes, own)))
        effects.append(1 + (of_frame - 1) * (design_effect(dy, own) - 1) / (of_judged - 1))
    return max(effects)


def _product(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first * second


def _product_spread(a: float | None, first: Spread, b: float | None, second: Spread) -> Spread:
    """That of √(a b), which is linear in both around their values: its slopes are √(b/a)/2 and √(a/b)/2."""
    ratio = sqrt(b / a) if a and b else sqrt(second.center / first.center)
    slopes = np.array([ratio / 2, 1 / (2 * ratio)])
    # Pseudo-images have a fault in both figures or in neither: their deviations add, at most.
    squares = [float((slopes @ np.sqrt([first.squares[each], second.squares[each]])) ** 2) for each in (0, 1)]
    return Spread(
        first.design,
        slopes[0] * first.residuals + slopes[1] * second.residuals,
        slopes[0] * first.people + slopes[1] * second.people,
        (squares[0], squares[1]),
        float(slopes @ [first.center, second.center]),
        max(first.clustering, second.clustering),
    )


def _share_ends(share: float, size: float, quantile: float) -> Interval:
    """Wilson's, within 0–1."""
    weight = quantile * quantile / size
    middle = (share + weight / 2) / (1 + weight)
    half = quantile * sqrt(share * (1 - share) / size + weight / (4 * size)) / (1 + weight)
    return (0.0 if share == 0 else max(0.0, middle - half), 1.0 if share == 1 else min(1.0, middle + half))


def _mean_ends(mean: float, scale: float, quantile: float) -> Interval:
    """All μ with |mean − μ| ≤ quantile · √(scale · μ): the variance grows with the mean."""
    weight = quantile * quantile * scale
    half = sqrt(mean * weight + weight * weight / 4)
    return (max(0.0, mean + weight / 2 - half), mean + weight / 2 + half)


def quantile_of(level: float, degrees: int) -> float:
    """Student's, two-sided."""
    from scipy.special import stdtrit  # type: ignore[import-untyped]  # slow to import

    return float(stdtrit(degrees, (1 + level) / 2))
