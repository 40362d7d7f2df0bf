"""From the confidence that a model states to the probability that people accept a finding.

The map is an isotonic regression (Zadrozny and Elkan, *Transforming classifier scores into accurate
multiclass probability estimates*, KDD 2002): the shares of accepted findings that fit best and never fall
with the confidence. It is honest about itself: its error is measured on images that it was not fitted to.

Ours: a finding counts 1/π, the inverse of the probability with which its image was drawn, as the design
`active` draws doubtful images more often. Half an accepted finding at the lowest confidence, and half a
rejected one at the highest, keep it from saying 0 or 1 (the half of Krichevsky and Trofimov, *The performance
of universal encoding*, IEEE Transactions on Information Theory 27, 1981). It is linear between its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from uncanny.eval.trust.data import JudgedFinding
from uncanny.records.calibration import Calibration, CalibrationStep, MadeWith, line_of

# With fewer findings a map says more of chance than of the model.
LEAST_FINDINGS: Final = 50
# Parts of the images, of which each is measured by a map of the others; and so many images there must be.
FOLDS: Final = 10
BINS: Final = 10
_PSEUDO: Final = 0.5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class CrossFitted:
    """A calibration, and the probability that each finding with a confidence has by a map of other images."""

    calibration: Calibration
    probabilities: Floats


def fit_calibration(
    findings: Sequence[JudgedFinding], least_confidence: float, made_with: MadeWith
) -> CrossFitted | None:
    """The calibration by judged findings, which have a confidence of at least `least_confidence`, 0-1.

    Findings that people are unsure of are not accepted; those without a confidence are counted. None of fewer
    than `LEAST_FINDINGS` with one, and of fewer than `FOLDS` images with such.
    """
    known = [each for each in findings if each.confidence is not None]
    stated, accepted, weights = columns_of(known)
    fold = folds([each.image for each in known])
    images = {each.image for each in known}
    if len(known) < LEAST_FINDINGS or len(images) < FOLDS:
        return None
    probabilities = np.zeros(len(known))
    for part in range(FOLDS):
        others = fold != part
        steps = fit_steps(stated[others], accepted[others], weights[others])
        probabilities[~others] = np.interp(stated[~others], *line_of(steps))
    calibration = Calibration(
        steps=fit_steps(stated, accepted, weights),
        least_confidence=least_confidence,
        findings=len(known),
        without_confidence=len(findings) - len(known),
        images=len(images),
        folds=FOLDS,
        error_before=calibration_error(stated, accepted, weights),
        error_after=calibration_error(probabilities, accepted, weights),
        made_with=made_with,
    )
    return CrossFitted(calibration, probabilities)


def columns_of(findings: Sequence[JudgedFinding]) -> tuple[Floats, Floats, Floats]:
    """Of findings that have one the confidence, whether each was accepted, 1 or 0, and how much it counts."""
    return (
        np.array([each.confidence for each in findings], np.float64),
        np.array([each.accepted is True for each in findings], np.float64),
        np.array([each.weight for each in findings], np.float64),
    )


def folds(images: Sequence[str]) -> Floats:
    """The part, from 0, that each image of the list is in: of equal size in images, and always the same."""
    order = sorted(set(images), key=lambda image: sha256(image.encode("utf-8", "surrogatepass")).digest())
    place = {image: number % FOLDS for number, image in enumerate(order)}
    return np.array([place[image] for image in images])


def fit_steps(stated: Floats, accepted: Floats, weights: Floats) -> tuple[CalibrationStep, ...]:
    """The steps of the map: confidences, 0-1, which were accepted, 1 or 0, and how much each counts, above 0.

    Weights are taken as shares of their mean, so that pseudo-findings are halves of a usual one. There has to
    be one finding at least.
    """
    from scipy.optimize import isotonic_regression  # type: ignore[import-untyped]  # slow to import

    ends = [stated.min(), stated.max()]
    values, at = np.unique(np.append(stated, ends), return_inverse=True)
    counts = np.append(weights / weights.mean(), [_PSEUDO, _PSEUDO])
    totals = np.bincount(at, counts)
    shares = np.bincount(at, counts * np.append(accepted, [1.0, 0.0])) / totals
    fit = isotonic_regression(shares, weights=totals)
    return tuple(
        CalibrationStep(
            low=float(values[first]), high=float(values[after - 1]), probability=float(fit.x[first])
        )
        for first, after in pairwise(fit.blocks)
    )


def calibration_error(probabilities: Floats, accepted: Floats, weights: Floats) -> float:
    """The expected calibration error in ten bins, 0-1, lower is better, of one finding at least.

    It is the mean distance of the probability from the share that is accepted, each finding counting its
    weight (Guo et al., *On calibration of modern neural networks*, ICML 2017, equation 5, with weights).
    """
    at = bins_of(probabilities)
    gaps = np.bincount(at, weights * (probabilities - accepted), minlength=BINS)
    return float(np.abs(gaps).sum() / weights.sum())


def bins_of(probabilities: Floats) -> npt.NDArray[np.int64]:
    """The bin of each, from 0; the last one holds a probability of 1, too."""
    return np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
