"""What the semantic score of one or more prediction files is, as values to compute, print or plot with.

`SemanticScore` prints as the tables of `uncanny semantic`, `to_json()` is what the command writes with
`--json`, `to_pandas()` has a row a score, and `PredictionScore.per_image()` goes through single images.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.anomalies.image import ImagePair
from uncanny.eval.common.anomalies.read import ScoredAnomaly
from uncanny.eval.common.confidence import Sure
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.groups import ImageGroups
from uncanny.eval.common.headline import proven
from uncanny.eval.common.json_fields import JsonFields, as_json, intervals_json, json_of
from uncanny.eval.common.matching import Rule
from uncanny.eval.common.parameters import PageParameters, PicturesMode
from uncanny.eval.common.score_json import about
from uncanny.eval.common.tables.table import RowsResult, Table
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.eval.metrics.semap import PROTOCOLS, VERSIONS, VIEWS, ProtocolName, View
from uncanny.records.run_folder import Unfinished
from uncanny.schema import Source, Status

BINS = 50
Metric = Literal["semap", "semf1", "csemap", "csemf1"]


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
    semap: Mapping[View, Estimate]
    semf1: Mapping[View, Estimate]
    csemap: Mapping[View, Estimate] | None
    csemf1: Mapping[View, Estimate] | None
    detection_images: int
    thresholds: tuple[ThresholdScore, ...]

    def to_json(self) -> dict[str, Any]:
        metrics = {name: getattr(self, name) for name in get_args(Metric)}
        return {
            "images": self.images,
            **as_json(metrics),
            "detection_images": self.detection_images,
            "per_threshold": {
                str(each.threshold): json_of(each, "semap semf1 tp n_pred n_true micro")
                for each in self.thresholds
            },
            "ci": intervals_json(metrics),
        }

    def by_metric(self) -> Iterator[tuple[Metric, int, Mapping[View, Estimate]]]:
        """The metrics there are, each with how many images it is a mean over and its values by view."""
        yield "semap", self.images, self.semap
        yield "semf1", self.images, self.semf1
        if self.csemap is not None and self.csemf1 is not None:
            yield "csemap", self.detection_images, self.csemap
            yield "csemf1", self.detection_images, self.csemf1


@dataclass(frozen=True, slots=True)
class Accuracy(JsonFields):
    """How often the source is recognised among the images that were judged and whose true source is known.

    `answers` counts, for each true source, what was said: `generated`, `real`, or `unclear`, which is wrong.
    """

    json_keys: ClassVar = "images right unclear answers ci=estimate"

    estimate: Estimate
    images: int
    right: int
    answers: Mapping[Source, Mapping[str, int]]

    @property
    def unclear(self) -> int:
        return sum(answers["unclear"] for answers in self.answers.values())


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

    `matched` and `missed_total` count all of them. `pairs` are the images they are of, by their names in the
    truth.
    """

    best: tuple[Example, ...]
    worst: tuple[Example, ...]
    missed: tuple[Missed, ...]
    matched: int
    missed_total: int
    pairs: Mapping[str, ImagePair] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """How similarities are distributed: counts in bins of equal width from 0 to 1.

    `matched` are the pairs that `release` matches, `every` all cells of the matrices.
    """

    matched: Mapping[View, tuple[int, ...]]
    every: Mapping[View, tuple[int, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class ImageColumns:
    """Per-image figures, one entry an image of the truth that can be scored, in its order.

    `scored` says, by protocol, which images are in; `semap` and `semf1`, by protocol and view, mean nothing
    elsewhere. `predicted` is the image's name in the predictions, None where they do not have it. A source is
    the empty string where it is unknown or unclear. `judged` are the images that accuracy can be over: those
    in `release`, and partial records that do say a source.
    """

    images: tuple[str, ...]
    predicted: list[str | None]
    scored: Mapping[ProtocolName, NDArray[np.bool_]]
    semap: Mapping[ProtocolName, Mapping[View, NDArray[np.float64]]]
    semf1: Mapping[ProtocolName, Mapping[View, NDArray[np.float64]]]
    n_pred: NDArray[np.int64]
    n_true: NDArray[np.int64]
    true_source: NDArray[np.str_]
    predicted_source: NDArray[np.str_]
    judged: NDArray[np.bool_]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageColumns):
            return NotImplemented
        return all(_same(getattr(self, each.name), getattr(other, each.name)) for each in fields(self))

    __hash__ = None  # type: ignore[assignment]  # as dataclasses with mappings, only said


def _same(one: object, other: object) -> bool:
    """Whether two values of `ImageColumns` are equal, array by array; NaN stands for itself."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")
    return one == other


@dataclass(frozen=True, slots=True)
class ImageScore:
    """One image in one prediction file, scores in 0–1.

    `predicted` is its name there, None where it has no prediction, and then `release` is None. `semap` and
    `semf1` are by view. A source is None where it is unknown or no clear answer.
    """

    image: str
    predicted: str | None
    n_pred: int
    n_true: int
    semap: Mapping[ProtocolName, Mapping[View, float] | None]
    semf1: Mapping[ProtocolName, Mapping[View, float] | None]
    true_source: Source | None
    predicted_source: Source | None

    def to_json(self, *, detection: bool) -> dict[str, Any]:
        """A row of `per_image`; with `detection` the sources, too."""
        row = json_of(self, "image predicted n_pred n_true")
        for protocol in PROTOCOLS:
            scores = {"semap": self.semap[protocol], "semf1": self.semf1[protocol]}
            row[protocol] = None if scores["semap"] is None else scores
        return row | (json_of(self, "true_source predicted_source") if detection else {})


@dataclass(frozen=True, slots=True)
class PredictionScore:
    """One prediction file, run or list of records against the truth.

    `path` is where it came from. `paired_by` counts by which rule its images were paired with those of the
    truth; `blank_texts`, `unread_severities`, `unread_answers`, `unfinished`, `texts` and `sure` are
    as in `AnomalySet`.
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
    texts: tuple[str, ...] = ()
    sure: Sure = field(default_factory=Sure)

    def to_json(self) -> dict[str, Any]:
        detection = self.accuracy is not None
        return {
            **as_json(self.protocols),
            "accuracy": self.accuracy.estimate.value if self.accuracy else None,
            **json_of(self, "detection=accuracy path prompts=texts left_out unfinished paired_by"),
            **json_of(self, "left_out_below_confidence=sure.left_out"),
            "reading": json_of(self, "blank_texts unread_severities unread_answers"),
            "spread": {"bins": BINS, **as_json(self.spread)},
            "examples": json_of(self.examples, "best worst missed matched missed_total"),
            "per_image": [image.to_json(detection=detection) for image in self.per_image()],
        }

    def per_image(self) -> Iterator[ImageScore]:
        """Every image that `paper` takes, in the order of the truth."""
        columns = self.columns

        def views(
            values: Mapping[ProtocolName, Mapping[View, NDArray[np.float64]]], place: int
        ) -> dict[ProtocolName, Mapping[View, float] | None]:
            return {
                protocol: {view: float(values[protocol][view][place]) for view in VIEWS}
                if columns.scored[protocol][place]
                else None
                for protocol in PROTOCOLS
            }

        for place, image in enumerate(columns.images):
            if columns.scored["paper"][place]:
                yield ImageScore(
                    image,
                    columns.predicted[place],
                    int(columns.n_pred[place]),
                    int(columns.n_true[place]),
                    views(columns.semap, place),
                    views(columns.semf1, place),
                    cast(Source, str(columns.true_source[place])) or None,
                    cast(Source, str(columns.predicted_source[place])) or None,
                )

    @property
    def without_truth(self) -> int:
        """How many images of `release` have no true anomaly: they score 0 there, whatever is predicted."""
        return int((self.columns.scored["release"] & (self.columns.n_true == 0)).sum())

    @property
    def has_failures(self) -> bool:
        """Whether any record, predicted or true, is no finished answer, and so in no score."""
        return bool(self.left_out.truth) or any(self.left_out.unfinished.values())


@dataclass(frozen=True, slots=True)
class Difference(JsonFields):
    """`first` minus `second` over the `images` that both are scored on, image by image.

    `p_value` is that of the paired bootstrap, of few images that of an exact sign-flip test, `adjusted_p` the
    same corrected by Holm for all pairs of files with this protocol, metric and view; `cohens_d` is Cohen's
    d_z, the mean difference over the standard deviation of the differences. All are None where there is
    nothing to measure, the p-values without resamples too.
    """

    json_keys: ClassVar = (
        "first second protocol metric view images difference=estimate p_value adjusted_p cohens_d"
    )

    first: str
    second: str
    protocol: ProtocolName
    metric: Metric
    view: View
    images: int
    estimate: Estimate
    p_value: float | None
    adjusted_p: float | None
    cohens_d: float | None

    @property
    def differs(self) -> bool | None:
        """Whether the corrected p-value is at most 0.05 and no interval holds 0; None without a p-value."""
        return proven(self.adjusted_p, self.estimate.excludes_zero)


@dataclass(frozen=True, slots=True)
class TruthInfo:
    """The truth's path, how many of its images and anomalies are scored, and the digest of its content."""

    path: str
    images: int
    anomalies: int
    digest: str


COLUMNS = ("predictions", "protocol", "metric", "view", "value", "low", "high", "images")


@dataclass(frozen=True, slots=True, repr=False)
class SemanticScore(RowsResult):
    """All predictions against one truth. Scores with the same `signature` can be compared.

    `predictions` are by name, `score[name]` is one of them. `measure` describes the similarity, `balance` is
    λ, the share of the phenomenon in the view `full`. `no_comparison` says why published scores do not
    compare, None where they do; `published`, whether tables and page are to show them. `groups` are
    images that intervals and tests take together. Anomalies below `least_confidence`, 0-1, are left out.
    """

    columns: ClassVar = COLUMNS

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
    published: bool = False
    groups: ImageGroups | None = None
    least_confidence: float = 0.0

    def __getitem__(self, name: str) -> PredictionScore:
        return self.predictions[name]

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """By name the ids of the prompts that the predictions' records name."""
        return {name: each.texts for name, each in self.predictions.items()}

    def tables(self) -> tuple[Table, ...]:
        """What `uncanny semantic` prints."""
        from uncanny.eval.semantic.report.tables import score_tables

        return score_tables(self)

    def to_json(self) -> dict[str, Any]:
        """Everything, as `uncanny semantic --json` writes it; scores in 0–1, None where nothing counts."""
        made: dict[str, Any] = {"resamples": self.resamples, "seed": self.seed}
        return {
            "predictions": as_json(self.predictions),
            "backbone": self.measure.get("backbone"),
            "num_layers": self.measure.get("num_layers"),
            **json_of(
                self,
                "signature measure no_comparison lambda=balance thresholds min_confidence=least_confidence",
            ),
            "protocols": dict(VERSIONS),
            **json_of(self, "truth differences"),
            "about": about({"truth": self.truth.digest}, self.texts, **made, groups=self.groups),
            "bootstrap": {"level": LEVEL, **made, "over": "images"},
        }

    def rows(self) -> Iterator[dict[str, object]]:
        """A row for each predictions, protocol, metric and view, with value, interval and images.

        The accuracy of the source has neither protocol nor view.
        """

        def row(estimate: Estimate, images: int) -> dict[str, object]:
            low, high = estimate.interval or (None, None)
            return {"value": estimate.value, "low": low, "high": high, "images": images}

        for name, prediction in self.predictions.items():
            for protocol, score in prediction.protocols.items():
                for metric, images, views in score.by_metric():
                    for view, estimate in views.items():
                        keys = {"predictions": name, "protocol": protocol, "metric": metric, "view": view}
                        yield keys | row(estimate, images)
            if prediction.accuracy is not None:
                accuracy = prediction.accuracy
                yield {"predictions": name, "metric": "accuracy"} | row(accuracy.estimate, accuracy.images)

    def report(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        pictures: PicturesMode = "link",
    ) -> Path:
        """Write the HTML page and return its path: `semantic.html` beside the first predictions by default.

        Full-size `pictures` are linked from their files, or embedded in the page.

        Raises UsageError without a path for predictions of no file, OSError where it cannot be written.
        """
        from uncanny.eval.semantic.report.page import write_semantic_page

        page = PageParameters(out=out, title=title, pictures=pictures)
        if page.out is None:
            first = next((Path(each.path) for each in self.predictions.values()), Path())
            if not first.exists() or not self.predictions:
                raise UsageError("These predictions have no folder", remedy="Give a path for the page.")
        target = page_beside(first) if page.out is None else Path(page.out)
        return write_semantic_page(self, target, title=page.title, pictures=page.pictures)


def page_beside(predictions: Path) -> Path:
    """Where the page goes unless a path says: in the run folder, or beside the file."""
    return (predictions if predictions.is_dir() else predictions.parent) / "semantic.html"
