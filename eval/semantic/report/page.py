"""The HTML page of semantic scores: one file that needs nothing else and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.eval.common.estimates import p_words
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import PageViews, PicturesMode
from uncanny.eval.common.published import caveat, texts_notes
from uncanny.eval.common.similarity.weights import measure_rows, measure_words
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS
from uncanny.eval.semantic.report import rows, words
from uncanny.eval.semantic.report.pictures import example_pictures
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
        comparison=words.comparison_words(score),
        dots=dots(score),
        spreads=spreads(score),
        in_views=len(score.predictions) <= MOST_IN_VIEWS,
        detection=rows.has_detection(score),
        pairs=rows.pairs_of(score),
        tables=rows.matrices_of(score),
        listed=len(rows.pairs_of(score)) <= rows.MOST_LISTED,
        lists={name: rows.left_out_lists(each) for name, each in score.predictions.items()},
        published=rows.published_rows(score) if score.published else [],
        published_detection=rows.published_detection_rows(score) if score.published else [],
        published_source=rows.published_source(),
        caveat=caveat("semantic_scores", score.texts),
        other_texts=list(texts_notes(score.texts)),
        measure=measure_words(score.measure),
        measure_rows=measure_rows(score.measure),
        made=made,
    )


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "amount": words.amount,
        "ends": words.ends,
        "signed": words.signed,
        "p": p_words,
        "tau": lambda value: f"{value:g}",
    }
    environment = score_page("uncanny.eval.semantic", ("semantic.css",), filters)
    environment.globals |= {
        "protocols": PROTOCOLS,
        "all_views": VIEWS,
        # In tables what the headline is of comes first.
        "views": sorted(VIEWS, key=lambda view: view != "full"),
        "view_names": words.VIEW_NAMES,
        "metric_names": words.METRICS,
        "signed_ends": words.signed_ends,
        "difference_words": words.difference_words,
        "reached": words.reached,
        "rules": words.RULES,
    }
    return environment
