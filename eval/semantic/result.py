"""What the semantic score finds, as values a report can use directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics.detection import Source
from uncanny.eval.metrics.semap import ProtocolName, View
from uncanny.eval.semantic.pair_images import Rule
from uncanny.eval.semantic.scored_image import ScoredAnomaly
from uncanny.records.run_folder import Unfinished
from uncanny.schema import Status

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Figure:
    """A mean over images with its 95 % interval; both None where there is no image to take it over."""

    value: float | None
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Micro:
    """Over all anomalies of all images together, in 0–1; None where there is nothing to count out of."""

    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True, slots=True)
class ThresholdScore:
    """One protocol at one threshold: means over images, and counts over all anomalies of these images."""

    threshold: float
    semap: Mapping[View, float | None]
    semf1: Mapping[View, float | None]
    tp: Mapping[View, int]
    n_pred: int
    n_true: int
    micro: Mapping[View, Micro]


@dataclass(frozen=True, slots=True)
class ProtocolScore:
    """One protocol. `images` are those that `semap` and `semf1` are means over.

    `csemap` and `csemf1`, over `detection_images`, are None where truth or predictions say no source.
    """

    images: int
    semap: Mapping[View, Figure]
    semf1: Mapping[View, Figure]
    csemap: Mapping[View, Figure] | None
    csemf1: Mapping[View, Figure] | None
    detection_images: int
    thresholds: tuple[ThresholdScore, ...]


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often the source is recognised among the images that were judged and whose true source is known.

    `answers` counts, for each true source, what was said: `generated`, `real`, or `unclear`, which is wrong.
    """

    figure: Figure
    images: int
    right: int
    answers: Mapping[Source, Mapping[str, int]]

    @property
    def unclear(self) -> int:
        return sum(said["unclear"] for said in self.answers.values())


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Names of images that are in no figure, or not in all.

    `only_truth`: without a prediction, so in `release` left out and in `paper` empty. `only_predictions`: in
    neither. `unfinished`: by status, records of the predictions that are no answer, in neither. `truth`: the
    same of the truth. `without_source`: images whose true source is unknown, where detection is scored.
    """

    only_truth: tuple[str, ...]
    only_predictions: tuple[str, ...]
    unfinished: Mapping[Status, tuple[str, ...]]
    truth: tuple[str, ...]
    without_source: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A predicted anomaly and the true one that it was matched with in `release`, by the view `full`."""

    image: str
    predicted: ScoredAnomaly
    true: ScoredAnomaly
    similarity: Mapping[View, float]


@dataclass(frozen=True, slots=True)
class Missed:
    """A true anomaly without a match. `closest` is its highest `full` similarity, None for none."""

    image: str
    true: ScoredAnomaly
    closest: float | None


@dataclass(frozen=True, slots=True)
class Examples:
    """The best and worst matched pairs, best or worst first, and missed true anomalies, furthest first.

    `matched` and `missed_total` count all of them.
    """

    best: tuple[Example, ...]
    worst: tuple[Example, ...]
    missed: tuple[Missed, ...]
    matched: int
    missed_total: int


@dataclass(frozen=True, slots=True)
class Spread:
    """How similarities are distributed: counts in bins of equal width from 0 to 1.

    `matched` are the pairs that `release` matches, `every` all cells of the matrices.
    """

    matched: Mapping[View, tuple[int, ...]]
    every: Mapping[View, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class ImageColumns:
    """Per-image figures, one entry an image of the truth that can be scored, in its order.

    `scored` says, by protocol, which images are in; `semap` and `semf1`, by protocol and view, mean nothing
    elsewhere. `predicted` is the image's name in the predictions, None where they do not have it. A source is
    the empty string where it is unknown or unclear. `judged` are the images that accuracy can be over: those
    in `release`, and partial records that do say a source.
    """

    images: tuple[str, ...]
    predicted: tuple[str | None, ...]
    scored: Mapping[ProtocolName, NDArray[np.bool_]]
    semap: Mapping[ProtocolName, Mapping[View, NDArray[np.float64]]]
    semf1: Mapping[ProtocolName, Mapping[View, NDArray[np.float64]]]
    n_pred: NDArray[np.int64]
    n_true: NDArray[np.int64]
    true_source: NDArray[np.str_]
    predicted_source: NDArray[np.str_]
    judged: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PredictionScore:
    """One prediction file against the truth.

    `paired_by` counts how images were found to be the same; `blank_texts`, `unread_severities` and
    `unread_answers` and `unfinished` are as in `AnomalyFile`.
    """

    name: str
    path: str
    protocols: Mapping[ProtocolName, ProtocolScore]
    accuracy: Accuracy | None
    left_out: LeftOut
    paired_by: Mapping[Rule, int]
    blank_texts: int
    unread_severities: int
    unread_answers: tuple[str, ...]
    spread: Spread
    examples: Examples
    columns: ImageColumns
    unfinished: Unfinished | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """`first` minus `second` over the `images` that both are scored on, image by image."""

    first: str
    second: str
    protocol: ProtocolName
    metric: str
    view: View
    images: int
    figure: Figure


@dataclass(frozen=True, slots=True)
class TruthInfo:
    """The truth's path, how many of its images and anomalies are scored, and the digest of its content."""

    path: str
    images: int
    anomalies: int
    digest: str


@dataclass(frozen=True, slots=True)
class SemanticScore:
    """All prediction files against one truth. Reports with the same `signature` can be compared.

    `no_comparison` says why published figures do not compare, None where they do.
    """

    predictions: Mapping[str, PredictionScore]
    differences: tuple[Difference, ...]
    measure: Mapping[str, Any]
    no_comparison: str | None
    thresholds: tuple[float, ...]
    balance: float
    truth: TruthInfo
    signature: str
    resamples: int
    seed: int
