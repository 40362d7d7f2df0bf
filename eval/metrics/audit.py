"""How plausible is what a generator makes: AF, MAI and CAP (AnomReason paper, section 4.3).

An anomaly of severity `s`, 0–100 with 100 realistic, has the implausibility `u = 1 − s/100`, 0–1. Over the
images `i = 1…n` of a generator, with the anomalies `A_i`:

- `af = Σ_i |A_i| / n`, anomalies an image
- `mai = Σ_i Σ_{a∈A_i} u_a / n`, implausibility an image, summed over its anomalies
- `cap = mai · af`, which grows with how bad and with how many
- `u_mean = Σ_i Σ_a u_a / Σ_i |A_i|`, implausibility of one anomaly, 0–1; it is ours

This is a reading of the paper, not a quotation: the formulas themselves are not preserved in the text we
have. All 30 published rows satisfy CAP = MAI · AF to rounding, MAI/AF lies in 0.63–0.76 for both assessors,
and the mean implausibility of the published annotations is about 0.70. Only "sum per image, mean over
images" fits all three.

Lower is better, 0 is flawless, and without images nothing is measured: None. Severities are integers, so
sums are kept in integers and no figure depends on the order of images.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Metric = Literal["mai", "af", "cap", "u_mean"]
METRICS: tuple[Metric, ...] = ("mai", "af", "cap", "u_mean")
# Those by which generators are ranked and compared: the paper's.
RANKED: tuple[Metric, ...] = ("mai", "af", "cap")
# Below this severity an anomaly is a visible fault: what cannot be or hardly ever is. Above are slight
# oddities (the words of prompts/shared/realism.md).
VISIBLE_BELOW = 50
# Of the sums by cluster.
COLUMNS = 3


class AuditMetrics(NamedTuple):
    """All four; `u_mean` is None without anomalies, the others without images."""

    mai: float | None
    af: float | None
    cap: float | None
    u_mean: float | None


def implausibility(severity: int) -> float:
    """0 for a fully realistic anomaly, 1 for a completely unreal one."""
    return 1 - severity / 100


def audit_metrics(counts: Ints, severity_sums: Ints) -> AuditMetrics:
    """From an entry an image: how many anomalies it has, and the sum of their severities."""
    images, anomalies = len(counts), int(counts.sum())
    unreal = (100 * anomalies - int(severity_sums.sum())) / 100
    if not images:
        return AuditMetrics(None, None, None, None)
    mai, af = unreal / images, anomalies / images
    return AuditMetrics(mai, af, mai * af, unreal / anomalies if anomalies else None)


def sums_by_cluster(clusters: Ints, counts: Ints, severity_sums: Ints, size: int) -> Floats:
    """Shape (size, 3): images, anomalies and their summed implausibility of each cluster 0…size−1.

    `clusters` says to which cluster each image belongs. These sums are all that a resample needs.
    """
    images = np.bincount(clusters, minlength=size)
    anomalies = np.bincount(clusters, weights=counts, minlength=size)
    unreal = anomalies - np.bincount(clusters, weights=severity_sums, minlength=size) / 100
    return np.stack([images.astype(np.float64), anomalies, unreal], axis=1)


def metrics_of_sums(sums: Floats) -> Floats:
    """MAI, AF, CAP and u_mean, last axis 4, from sums of images, anomalies and implausibility, last axis 3.

    NaN where there is nothing to divide by.
    """
    images, anomalies, unreal = np.moveaxis(sums, -1, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mai, af = unreal / images, anomalies / images
        u_mean = np.where(anomalies > 0, unreal / anomalies, np.nan)
    return cast(Floats, np.stack([mai, af, mai * af, u_mean], axis=-1))
