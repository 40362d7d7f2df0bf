"""What the semantic score finds, as values a report can use directly.

Scores as the JSON of `semantic --json`.

Beside the keys of the format, by prediction: `path`, `left_out`, `unfinished`, `paired_by`, `reading`,
`detection`, `spread`, `examples`, and `per_image`, a row an image; by protocol `ci`, `detection_images`, and
`micro` at each threshold. At the top: `measure`, `no_comparison` (why published figures do not compare, or
null), `lambda`, `thresholds`, `protocols` (their versions), `truth`, `differences`, `bootstrap`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics import semap_paper, semap_release
from uncanny.eval.metrics.bootstrap import LEVEL
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, Matrix, ProtocolName, View, ViewScore
from uncanny.eval.semantic.data.images import Rule, ScoredAnomaly, ScoredImage
from uncanny.records.run_folder import Unfinished
from uncanny.schema import Source, Status

BINS = 50


Views = Mapping[View, Matrix]


@dataclass(frozen=True, slots=True)
class ImagePair:
    """An image of the truth, at `place`, and its prediction, None where there is none."""

    place: int
    true: ScoredImage
    predicted: ScoredImage | None

    @property
    def shape(self) -> tuple[int, int]:
        """How many anomalies are predicted and true."""
        return len(self.predicted.anomalies) if self.predicted else 0, len(self.true.anomalies)


@dataclass(frozen=True, slots=True)
class ScoredPair:
    """An image with its similarities and, by protocol and view, its scores."""

    pair: ImagePair
    similarity: Views
    scores: Mapping[ProtocolName, Mapping[View, ViewScore]]


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


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How often the source is recognised among the images that were judged and whose true source is known.

    `answers` counts, for each true source, what was said: `generated`, `real`, or `unclear`, which is wrong.
    """

    figure: Estimate
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
    figure: Estimate


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


VERSIONS: dict[ProtocolName, str] = {"release": semap_release.VERSION, "paper": semap_paper.VERSION}


def semantic_json(found: SemanticScore) -> dict[str, Any]:
    """Everything; figures in 0–1, None where there is nothing to take them over."""
    return {
        "predictions": {name: _prediction(score) for name, score in found.predictions.items()},
        "backbone": found.measure.get("backbone"),
        "num_layers": found.measure.get("num_layers"),
        "signature": found.signature,
        "measure": dict(found.measure),
        "no_comparison": found.no_comparison,
        "lambda": found.balance,
        "thresholds": list(found.thresholds),
        "protocols": VERSIONS,
        "truth": asdict(found.truth),
        "differences": [
            {
                "first": one.first,
                "second": one.second,
                "protocol": one.protocol,
                "metric": one.metric,
                "view": one.view,
                "images": one.images,
                "difference": one.figure.value,
                "ci": _ends(one.figure),
            }
            for one in found.differences
        ],
        "bootstrap": {"level": LEVEL, "resamples": found.resamples, "seed": found.seed, "over": "images"},
    }


def _prediction(score: PredictionScore) -> dict[str, Any]:
    protocols: dict[str, Any] = {name: _protocol(held) for name, held in score.protocols.items()}
    return protocols | {
        "accuracy": score.accuracy.figure.value if score.accuracy else None,
        "detection": _detection(score.accuracy),
        "path": score.path,
        "left_out": asdict(score.left_out),
        "unfinished": None if score.unfinished is None else asdict(score.unfinished),
        "paired_by": dict(score.paired_by),
        "reading": {
            "blank_texts": score.blank_texts,
            "unread_severities": score.unread_severities,
            "unread_answers": list(score.unread_answers),
        },
        "spread": {"bins": BINS, **asdict(score.spread)},
        "examples": asdict(score.examples),
        "per_image": list(_rows(score.columns, detection=score.accuracy is not None)),
    }


def _protocol(held: ProtocolScore) -> dict[str, Any]:
    figures = {"semap": held.semap, "semf1": held.semf1, "csemap": held.csemap, "csemf1": held.csemf1}
    return {
        "images": held.images,
        **{name: None if views is None else _values(views) for name, views in figures.items()},
        "detection_images": held.detection_images,
        "per_threshold": {str(one.threshold): _threshold(one) for one in held.thresholds},
        "ci": {
            name: None if views is None else {view: _ends(one) for view, one in views.items()}
            for name, views in figures.items()
        },
    }


def _threshold(one: ThresholdScore) -> dict[str, Any]:
    return {
        "semap": dict(one.semap),
        "semf1": dict(one.semf1),
        "tp": dict(one.tp),
        "n_pred": one.n_pred,
        "n_true": one.n_true,
        "micro": {view: asdict(micro) for view, micro in one.micro.items()},
    }


def _detection(accuracy: Accuracy | None) -> dict[str, Any] | None:
    if accuracy is None:
        return None
    return {
        "images": accuracy.images,
        "right": accuracy.right,
        "unclear": accuracy.unclear,
        "answers": {source: dict(said) for source, said in accuracy.answers.items()},
        "ci": _ends(accuracy.figure),
    }


def _values(views: Mapping[View, Estimate]) -> dict[View, float | None]:
    return {view: figure.value for view, figure in views.items()}


def _ends(figure: Estimate) -> list[float] | None:
    return list(figure.interval) if figure.interval else None


def _rows(columns: ImageColumns, *, detection: bool) -> Iterator[dict[str, Any]]:
    for place, image in enumerate(columns.images):
        if not columns.scored["paper"][place]:
            continue
        row: dict[str, Any] = {
            "image": image,
            "predicted": columns.predicted[place],
            "n_pred": int(columns.n_pred[place]),
            "n_true": int(columns.n_true[place]),
        }
        for protocol in PROTOCOLS:
            row[protocol] = (
                {
                    name: {view: float(values[protocol][view][place]) for view in VIEWS}
                    for name, values in (("semap", columns.semap), ("semf1", columns.semf1))
                }
                if columns.scored[protocol][place]
                else None
            )
        if detection:
            row["true_source"] = str(columns.true_source[place]) or None
            row["predicted_source"] = str(columns.predicted_source[place]) or None
        yield row


def image_json(name: str, scored: ScoredPair) -> dict[str, Any]:
    """One line of `--per-image`: an image of one prediction file with every match.

    A match is `[predicted, true, similarity]`, indices from 0. `release` has all that are locked, `paper`
    those at each threshold. Without a prediction `release` is None.
    """
    pair = scored.pair
    row: dict[str, Any] = {
        "predictions": name,
        "image": pair.true.image,
        "predicted": pair.predicted.image if pair.predicted else None,
        "n_pred": pair.shape[0],
        "n_true": pair.shape[1],
        "true_source": pair.true.source,
        "predicted_source": pair.predicted.source if pair.predicted else None,
        "release": None,
    }
    for protocol, views in scored.scores.items():
        if protocol == "release" and pair.predicted is None:
            continue
        row[protocol] = {
            view: {
                "semap": score.semap,
                "semf1": score.semf1,
                "tp": [outcome.tp for outcome in score.at],
                "matches": [list(match) for match in score.matches]
                if protocol == "release"
                else [[list(match) for match in outcome.hits] for outcome in score.at],
            }
            for view, score in views.items()
        }
    return row
