"""Semantic scores as the JSON of `semantic --json`.

Beside the keys of the format, by prediction: `path`, `prompts` (ids of the texts asked with), `left_out`,
`unfinished`, `paired_by`, `reading`, `detection`, `spread`, `examples`, and `per_image`, a row an image; by
protocol `ci`, `detection_images`, and `micro` at each threshold. At the top: `measure`, `no_comparison` (why
published scores do not compare, or null), `lambda`, `thresholds`, `protocols` (their versions), `truth`,
`differences`, `bootstrap`.
"""

from __future__ import annotations

from typing import Any, Final

from uncanny.eval.common.json_fields import as_json, intervals_json, json_of
from uncanny.eval.common.score_json import about
from uncanny.eval.metrics.intervals import LEVEL
from uncanny.eval.metrics.semap import PROTOCOLS, VERSIONS
from uncanny.eval.semantic.score.result import (
    BINS,
    Accuracy,
    ImageScore,
    PredictionScore,
    ProtocolScore,
    SemanticScore,
)

_DIFFERENCE: Final = (
    "first second protocol metric view images difference=estimate p_value adjusted_p cohens_d"
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
        "truth": as_json(score.truth),
        "differences": [json_of(difference, _DIFFERENCE) for difference in score.differences],
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
        **json_of(score, "path prompts=texts left_out unfinished paired_by"),
        "reading": json_of(score, "blank_texts unread_severities unread_answers"),
        "spread": {"bins": BINS, **as_json(score.spread)},
        "examples": json_of(score.examples, "best worst missed matched missed_total"),
        "per_image": [_image(image, detection=detection) for image in score.per_image()],
    }


def _protocol(score: ProtocolScore) -> dict[str, Any]:
    metrics = {name: getattr(score, name) for name in ("semap", "semf1", "csemap", "csemf1")}
    return {
        "images": score.images,
        **as_json(metrics),
        "detection_images": score.detection_images,
        "per_threshold": {
            str(each.threshold): json_of(each, "semap semf1 tp n_pred n_true micro")
            for each in score.thresholds
        },
        "ci": intervals_json(metrics),
    }


def _detection(accuracy: Accuracy | None) -> dict[str, Any] | None:
    return None if accuracy is None else json_of(accuracy, "images right unclear answers ci=estimate")


def _image(image: ImageScore, *, detection: bool) -> dict[str, Any]:
    row = json_of(image, "image predicted n_pred n_true")
    for protocol in PROTOCOLS:
        scored = image.semap[protocol] is not None
        row[protocol] = {"semap": image.semap[protocol], "semf1": image.semf1[protocol]} if scored else None
    if detection:
        row |= json_of(image, "true_source predicted_source")
    return row
