"""The HTML page of semantic scores: one file that needs nothing else and asks nothing of the network.

A record names its image from the run's folder, from the run's root, or from the folder of the file; the
first of predictions and truth whose file is there gives the picture. Records in memory have none.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.errors import UncannyError
from uncanny.eval.common.anomalies.image import ImagePair
from uncanny.eval.common.anomalies.read import ScoredAnomaly, ScoredImage
from uncanny.eval.common.estimates import p_words
from uncanny.eval.common.inputs.runs import ReadRun, open_annotations
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, Mark, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.common.published import caveat, published, texts_notes
from uncanny.eval.common.similarity.weights import measure_rows, measure_words
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS
from uncanny.eval.semantic.report import rows
from uncanny.eval.semantic.report.plots import MOST_IN_VIEWS, dots, spreads
from uncanny.eval.semantic.score.result import SemanticScore


def write_semantic_page(
    score: SemanticScore,
    path: Path,
    *,
    title: str | None = None,
    made: datetime | None = None,
    pictures: PicturesMode = "link",
) -> Path:
    """Write the page to `path` and return it; the same score and `made`, by default now, give the same bytes.

    Full-size pictures are linked or embedded, as `pictures` says. The file appears whole or not at all.
    Raises `OSError` where it cannot be written.
    """
    score = rows.best_first(score)
    views = PageViews(path, pictures)
    return write_rendered(
        _environment(),
        "semantic.html.j2",
        path,
        title=title or "Semantic score",
        score=score,
        models=score.predictions,
        shots=example_pictures(score, views),
        page_views=views,
        headline=rows.headline(score),
        comparison=rows.comparison_words(score),
        dots=dots(score),
        spreads=spreads(score),
        in_views=len(score.predictions) <= MOST_IN_VIEWS,
        detection=any(each.accuracy is not None for each in score.predictions.values()),
        pairs=rows.pairs_of(score),
        tables=rows.matrices_of(score),
        listed=len(rows.pairs_of(score)) <= rows.MOST_LISTED,
        lists={name: rows.left_out_lists(each) for name, each in score.predictions.items()},
        published=rows.published_rows(score) if score.published else [],
        published_detection=rows.published_detection_rows(score) if score.published else [],
        published_source=published("semantic_scores")["source"],
        caveat=caveat("semantic_scores", score.texts),
        other_texts=list(texts_notes(score.texts)),
        measure=measure_words(score.measure),
        measure_rows=measure_rows(score.measure),
        made=made,
    )


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "amount": rows.amount,
        "ends": rows.ends,
        "signed": rows.signed,
        "p": p_words,
        "tau": lambda value: f"{value:g}",
    }
    environment = score_page("uncanny.eval.semantic", ("semantic.css",), filters)
    environment.globals |= {
        "protocols": PROTOCOLS,
        "all_views": VIEWS,
        # In tables what the headline is of comes first.
        "views": sorted(VIEWS, key=lambda view: view != "full"),
        "view_names": rows.VIEW_NAMES,
        "metric_names": rows.METRICS,
        "signed_ends": rows.signed_ends,
        "difference_words": rows.difference_words,
        "reached": rows.reached,
        "rules": rows.RULES,
    }
    return environment


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
