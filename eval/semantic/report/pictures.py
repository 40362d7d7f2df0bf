"""The pictures of the examples on the page, each with what is predicted and what is true at its places.

A record names its image from the run's folder, from the run's root, or from the folder of the file; the
first of predictions and truth whose file is there gives the picture. Records in memory have none.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from uncanny.errors import UncannyError
from uncanny.eval.common.anomalies.image import ImagePair
from uncanny.eval.common.anomalies.read import ScoredAnomaly, ScoredImage
from uncanny.eval.common.inputs.runs import ReadRun, open_annotations
from uncanny.eval.common.pages.pictures import Layer, Mark, PageViews, Shot, Shown, View
from uncanny.eval.semantic.score.result import SemanticScore


def example_pictures(score: SemanticScore, views: PageViews) -> dict[str, dict[str, Shown]]:
    """By predictions, then by the image's name in the truth."""
    truth = _place(score.truth.path)
    shown = {}
    for name, prediction in score.predictions.items():
        place, pairs = _place(prediction.path), prediction.examples.pairs
        added = views.add([_view(pair, place, truth) for pair in pairs.values()])
        shown[name] = dict(zip(pairs, added, strict=True))
    return shown


def _place(origin: str) -> ReadRun | None:
    try:
        # No file has a name that the system cannot hold, which pathlib raises for.
        return open_annotations(Path(origin)) if os.path.exists(origin) else None  # noqa: PTH110
    except UncannyError:  # scores do not need the run: the page goes without pictures
        return None


def _view(pair: ImagePair, predictions: ReadRun | None, truth: ReadRun | None) -> View:
    shots = [_shot(pair.predicted, predictions), _shot(pair.true, truth)]
    shot = next((shot for shot in shots if shot is not None and shot.path.is_file()), None)
    predicted = pair.predicted.anomalies if pair.predicted else ()
    marks = (*_marks(predicted, "predicted"), *_marks(pair.true.anomalies, "true"))
    return View(pair.true.image, (Layer("image", shot),), marks)


def _shot(image: ScoredImage | None, place: ReadRun | None) -> Shot | None:
    if image is None or place is None:
        return None
    return Shot(place.picture(image.image), image.sha256 or ("" if place.is_run else None))


def _marks(anomalies: Sequence[ScoredAnomaly], group: str) -> tuple[Mark, ...]:
    return tuple(
        Mark(each.name or each.phenomenon, each.box, each.severity, each.phenomenon, group)
        for each in anomalies
    )
