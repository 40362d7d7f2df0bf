"""Semantic scores as the JSON of `semantic --json`.

Beside the keys of the format, by prediction: `path`, `prompts` (ids of the texts asked with), `left_out`,
`unfinished`, `paired_by`, `reading`, `detection`, `spread`, `examples`, and `per_image`, a row an image; by
protocol `ci`, `detection_images`, and `micro` at each threshold. At the top: `measure`, `no_comparison` (why
published scores do not compare, or null), `lambda`, `thresholds`, `protocols` (their versions), `truth`,
`differences`, `bootstrap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from uncanny.eval.common.estimates import Estimate, interval_json
from uncanny.eval.common.score_json import about
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.eval.metrics.semap import PROTOCOLS, VERSIONS, View
from uncanny.eval.semantic.score.result import (
    BINS,
    Accuracy,
    Examples,
    ImageScore,
    PredictionScore,
    ProtocolScore,
    SemanticScore,
    ThresholdScore,
)


def score_json(score: SemanticScore) -> dict[str, Any]:
    """Everything; scores in 0–1, None where there is nothing to take them over."""
    return {
        "predictions": {name: _prediction(each) for name, each in score.predictions.items()},
        "backbone": score.measure.get("backbone"),
        "num_layers": score.measure.get("num_layers"),
        "signature": score.signature,
        "measure": dict(score.measure),
        "no_comparison": score.no_comparison,
        "lambda": score.balance,
        "thresholds": list(score.thresholds),
        "protocols": dict(VERSIONS),
        "truth": asdict(score.truth),
        "differences": [
            {
                "first": difference.first,
                "second": difference.second,
                "protocol": difference.protocol,
                "metric": difference.metric,
                "view": difference.view,
                "images": difference.images,
                "difference": difference.estimate.value,
                "ci": interval_json(difference.estimate),
                "p_value": difference.p_value,
                "adjusted_p": difference.adjusted_p,
                "cohens_d": difference.cohens_d,
            }
            for difference in score.differences
        ],
        "about": about(
            {"truth": score.truth.digest},
            score.texts,
            resamples=score.resamples,
            seed=score.seed,
            groups=score.groups,
        ),
        "bootstrap": {"level": LEVEL, "resamples": score.resamples, "seed": score.seed, "over": "images"},
    }


def _prediction(score: PredictionScore) -> dict[str, Any]:
    protocols: dict[str, Any] = {name: _protocol(each) for name, each in score.protocols.items()}
    detection = score.accuracy is not None
    return protocols | {
        "accuracy": score.accuracy.estimate.value if score.accuracy else None,
        "detection": _detection(score.accuracy),
        "path": score.path,
        "prompts": list(score.texts),
        "left_out": _plain(asdict(score.left_out)),
        "unfinished": None if score.unfinished is None else asdict(score.unfinished),
        "paired_by": dict(score.paired_by),
        "reading": {
            "blank_texts": score.blank_texts,
            "unread_severities": score.unread_severities,
            "unread_answers": list(score.unread_answers),
        },
        "spread": {"bins": BINS, **_plain(asdict(score.spread))},
        "examples": _examples(score.examples),
        "per_image": [_image(image, detection=detection) for image in score.per_image()],
    }


def _examples(examples: Examples) -> dict[str, Any]:
    # Whole images are for the page, and their texts are there as examples already.
    content = asdict(replace(examples, pairs={}))
    return {key: _plain(value) for key, value in content.items() if key != "pairs"}


def _plain(value: Any) -> Any:
    """With lists for tuples, as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _protocol(score: ProtocolScore) -> dict[str, Any]:
    metrics = {"semap": score.semap, "semf1": score.semf1, "csemap": score.csemap, "csemf1": score.csemf1}
    return {
        "images": score.images,
        **{name: None if views is None else _values(views) for name, views in metrics.items()},
        "detection_images": score.detection_images,
        "per_threshold": {str(each.threshold): _threshold(each) for each in score.thresholds},
        "ci": {
            name: None if views is None else {view: interval_json(each) for view, each in views.items()}
            for name, views in metrics.items()
        },
    }


def _values(views: Mapping[View, Estimate]) -> dict[View, float | None]:
    return {view: estimate.value for view, estimate in views.items()}


def _threshold(score: ThresholdScore) -> dict[str, Any]:
    return {
        "semap": dict(score.semap),
        "semf1": dict(score.semf1),
        "tp": dict(score.tp),
        "n_pred": score.n_pred,
        "n_true": score.n_true,
        "micro": {view: asdict(micro) for view, micro in score.micro.items()},
    }


def _detection(accuracy: Accuracy | None) -> dict[str, Any] | None:
    if accuracy is None:
        return None
    return {
        "images": accuracy.images,
        "right": accuracy.right,
        "unclear": accuracy.unclear,
        "answers": {source: dict(answers) for source, answers in accuracy.answers.items()},
        "ci": interval_json(accuracy.estimate),
    }


def _image(image: ImageScore, *, detection: bool) -> dict[str, Any]:
    row: dict[str, Any] = {
        "image": image.image,
        "predicted": image.predicted,
        "n_pred": image.n_pred,
        "n_true": image.n_true,
    }
    for protocol in PROTOCOLS:
        scored = image.semap[protocol] is not None
        row[protocol] = {"semap": image.semap[protocol], "semf1": image.semf1[protocol]} if scored else None
    if detection:
        row |= {"true_source": image.true_source, "predicted_source": image.predicted_source}
    return row
