"""Scores as the JSON of `semantic --json`.

Beside the keys of the format, by prediction: `path`, `left_out`, `unfinished`, `paired_by`, `reading`,
`detection`, `spread`, `examples`, and `per_image`, a row an image; by protocol `ci`, `detection_images`, and
`micro` at each threshold. At the top: `measure`, `no_comparison` (why published figures do not compare, or
null), `lambda`, `thresholds`, `protocols` (their versions), `truth`, `differences`, `bootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from uncanny.eval.metrics import semap_paper, semap_release
from uncanny.eval.metrics.bootstrap import LEVEL
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName, View
from uncanny.eval.semantic.gather import BINS
from uncanny.eval.semantic.result import (
    Accuracy,
    Figure,
    ImageColumns,
    PredictionScore,
    ProtocolScore,
    SemanticScore,
    ThresholdScore,
)
from uncanny.eval.semantic.score_image import ScoredPair

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


def _values(views: Mapping[View, Figure]) -> dict[View, float | None]:
    return {view: figure.value for view, figure in views.items()}


def _ends(figure: Figure) -> list[float] | None:
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
