"""The HTML page of a stress table: what a detector is blind to, and pictures of edits that it misses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from jinja2 import Environment

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import interval_words, p_words
from uncanny.eval.common.headline import proven
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.common.pixels.difference import AMPLIFIED, difference, grey_picture
from uncanny.eval.common.pixels.masks import read_heat_map
from uncanny.eval.edits.data import mask_sources, read_masks
from uncanny.eval.edits.stress.condition import ConditionScore
from uncanny.eval.edits.stress.data import AS_GIVEN, METRICS, Edits, Predictions
from uncanny.eval.edits.stress.plots import (
    MOST_PHRASES,
    compression_plot,
    curves,
    key_of,
    level_plot,
    phrase_plot,
    phrase_rows,
    precision_recall_plot,
    size_plot,
)
from uncanny.eval.edits.stress.published import published_tables
from uncanny.eval.edits.stress.result import StressResult

# Of one detector; of several each has half as many.
MOST_MISSED: Final = 12
# Of the metrics those that are named on a card.
_ON_CARD: Final = 2
_LOOKED_FOR: Final = 1_000


def write_stress_page(
    result: StressResult, path: Path, *, title: str | None = None, pictures: PicturesMode = "link"
) -> Path:
    """Write the page to `path` and return it; what `StressResult.report` does."""
    views = PageViews(path, pictures)
    drawn, n_phrases = phrase_rows(result.detectors)
    return write_rendered(
        _environment(),
        "stress.html.j2",
        path,
        title=title or "Where detectors are blind",
        result=result,
        detectors=result.detectors,
        several=len(result.detectors) > 1,
        key=key_of(result.detectors),
        headlines=list(result.headlines()),
        overall=result.overall(),
        compared=result.compared(),
        plots={
            "precision_recall": precision_recall_plot(result.detectors),
            "sizes": size_plot(result.detectors),
            "levels": level_plot(result.detectors),
            "phrases": phrase_plot(result.detectors),
            "compression": compression_plot(result.detectors),
        },
        dashed=len({curve.detector for curve in curves(result.detectors)}) > 1,
        n_phrases=n_phrases,
        n_drawn=len(drawn),
        most_phrases=MOST_PHRASES,
        as_given=AS_GIVEN,
        missed={
            name: _missed(
                each.first,
                result.edits,
                next(iter(result.predictions[name].values())),
                views,
                several=len(result.detectors) > 1,
            )
            for name, each in result.detectors.items()
        },
        notes=list(result.notes())[:-1],
        published=published_tables() if result.published else (),
        page_views=views,
    )


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {"p": p_words, "ends": interval_words, "proven": proven}
    return score_page("uncanny.eval.edits.stress", ("pairs.css", "stress.css"), filters)


@dataclass(frozen=True, slots=True)
class Card:
    """An edit taken for real: `layers` are the names of its pictures, `facts` what is known of it."""

    title: str
    shown: Shown
    layers: Sequence[str]
    score: float | None
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Missed:
    """The cards of at most `MOST_MISSED` of `n` missed edits."""

    cards: Sequence[Card]
    n: int
    scored: bool


def _missed(
    score: ConditionScore, edits: Edits, predictions: Predictions, views: PageViews, *, several: bool
) -> Missed:
    """Those first that the detector is surest are real; without scores in the order of the metadata."""
    known, predicted = score.missed
    scores = predictions.scores[predicted]
    surest = np.argsort(np.where(np.isnan(scores), 2.0, scores), kind="stable").tolist()
    # Metadata may come without all of the images.
    order = [p for p in surest[:_LOOKED_FOR] if (edits.root / edits.images[int(known[p])]).is_file()]
    order = (order or surest)[: MOST_MISSED // 2 if several else MOST_MISSED]
    made = []
    for place in order:
        row = int(edits.rows[known[place]])
        made.append(_layers(edits, row, predictions, int(predicted[place])))
    names = [_short(edits.images[place]) for place in known[order].tolist()]
    shown = views.add([View(name, tuple(layers)) for name, layers in zip(names, made, strict=True)])
    cards = [
        Card(
            _short(edits.images[int(known[place])]),
            view,
            [layer.name for layer in layers],
            None if np.isnan(scores[place]) else float(scores[place]),
            _facts(edits, int(edits.rows[known[place]])),
        )
        for place, layers, view in zip(order, made, shown, strict=True)
    ]
    return Missed(cards, score.missed.shape[1], bool((~np.isnan(scores)).any()))


def _short(image: str) -> str:
    """A path that leads out of the root without its folders: they say nothing of the image."""
    path = Path(image)
    return path.name if path.is_absolute() or ".." in path.parts else image


def _layers(edits: Edits, row: int, predictions: Predictions, predicted: int) -> list[Layer]:
    original, edited = edits.column("original")[row], edits.images[row]
    before = None if original is None else Shot(edits.root / original)
    after = Shot(edits.root / edited)
    layers = [] if before is None else [Layer("original", before)]
    layers.append(Layer("edited", after))
    # Third, where a key of the viewer finds it.
    apart = difference(before, after)
    if apart is not None:
        layers.append(Layer(f"difference × {AMPLIFIED}", data=apart))
    mask = edits.column("mask")[row]
    if mask is not None and (drawn := _mask_picture(mask, edits.root)) is not None:
        layers.append(Layer("mask", data=drawn))
    heat_map = predictions.heat_maps[predicted]
    if heat_map is not None and (drawn := _map_picture(predictions.root / heat_map)) is not None:
        layers.append(Layer("heat map", data=drawn))
    return layers


def _mask_picture(source: Any, root: Path) -> bytes | None:
    """White on black; None where it cannot be read."""
    try:
        mask = read_masks(mask_sources(source, root))
    except UsageError:
        return None
    return grey_picture(mask)


def _map_picture(path: Path) -> bytes | None:
    try:
        values = read_heat_map(path)
    except UsageError:
        return None
    return grey_picture(np.rint(values * 255).astype(np.uint8))


def _facts(edits: Edits, row: int) -> list[tuple[str, str]]:
    """What a reader wants to know first: what became what, how, and how much was changed."""
    facts = []
    for before, after in (("label", "edited_label"), ("caption", "edited_caption")):
        texts = edits.column(before)[row], edits.column(after)[row]
        if all(texts):
            facts.append(("edit", " → ".join(texts)))
            break
    for name in ("method", "model", "dataset"):
        if edits.column(name)[row] is not None:
            facts += [(name, str(edits.column(name)[row]))]
    measured = [name for name in METRICS if edits.column(name)[row] is not None][:_ON_CARD]
    facts += [(name.replace("_", " "), _number(edits.column(name)[row])) for name in measured]
    return facts


def _number(value: Any) -> str:
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)
