"""The HTML page of measured edits: one file that needs nothing else and asks nothing of the network.

Beside the figures it shows edits themselves, from the largest to the smallest: original, edited image, mask,
what was found to have changed, and the difference, flipped by a key in the viewer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from jinja2 import Environment

from uncanny.errors import ImageError
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.common.pixels.difference import AMPLIFIED, difference, grey_picture
from uncanny.eval.common.tables.table import MISSING, Table
from uncanny.eval.edits.data import EditFiles
from uncanny.eval.edits.parameters import MeasureConfig
from uncanny.eval.edits.plots import NAMES, mask_plot, spread_plot, spreads
from uncanny.eval.edits.result import FIDELITY_CAVEAT, EditMeasure, MeasuredEdits
from uncanny.eval.edits.score import mask_of
from uncanny.eval.metrics.edits import BINS, Mask, squared_difference
from uncanny.images.prepared import read_rgb

MOST_SHOWN: Final = 24
MOST_LISTED: Final = 200
# Each holds both pictures of an edit at full size.
_THREADS: Final = 2


@dataclass(frozen=True, slots=True)
class Card:
    """An edit; `layers` are the names of its pictures, in the order of the view's."""

    edit: EditMeasure
    method: str | None
    shown: Shown
    layers: tuple[str, ...]
    figures: tuple[tuple[str, str], ...]


def write_edits_page(
    edits: MeasuredEdits, path: Path, *, title: str | None = None, pictures: PicturesMode = "link"
) -> Path:
    """Write the page to `path` and return it; what `MeasuredEdits.report` does."""
    views = PageViews(path, pictures)
    chosen = _examples(edits)
    failed = [each for each in edits if each.status == "failed"]
    partly = [each for each in edits if each.status == "partial"]
    figures, *more = edits.tables()
    return write_rendered(
        _environment(),
        "edits.html.j2",
        path,
        title=title or "Edits",
        edits=edits,
        figures=Table(figures.columns, figures.rows, figures.title),
        fidelity=Table(more[0].columns, more[0].rows) if more else None,
        caveat=FIDELITY_CAVEAT,
        bins=_bin_table(edits),
        n_counted=sum(each.counts for each in edits),
        n_black=sum(bool(each.all_black) for each in edits),
        shapes=edits.to_json()["shapes"],
        not_asked=edits.not_asked,
        reasons={
            name: why for name, why in edits.reasons().items() if name not in ("pair", *edits.not_asked)
        },
        plots={"spread": spread_plot(spreads(edits)), "masks": mask_plot(edits)},
        page_views=views,
        cards=_cards(chosen, edits.parameters, views),
        failed=failed[:MOST_LISTED],
        n_failed=len(failed),
        partly=partly[:MOST_LISTED],
        n_partly=len(partly),
        parameters=edits.parameters,
    )


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {"figure": _short}
    return score_page("uncanny.eval.edits", ("pairs.css", "edits.css"), filters)


def _short(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3g}"


def _bin_table(edits: MeasuredEdits) -> Table:
    rows = []
    for name, ends in edits.cutoffs.bins.items():
        counts = (sum(each.bins.get(name) == each_bin for each in edits) for each_bin in BINS)
        label = NAMES.get(name, name.replace("_", " "))
        rows.append((label, f"{ends.low:.4g}", f"{ends.high:.4g}", *(f"{count:,}" for count in counts)))
    return Table(("figure", "small below", "large above", *BINS), tuple(rows))


def _examples(edits: MeasuredEdits) -> list[tuple[EditMeasure, EditFiles]]:
    """Evenly from the edit that changed most to the one that changed least."""
    measured = [pair for pair in zip(edits, edits.files, strict=True) if pair[0].status != "failed"]
    measured.sort(key=lambda pair: -(pair[0].post_edit_ratio or 0.0))
    if len(measured) <= MOST_SHOWN:
        return measured
    places = np.linspace(0, len(measured) - 1, MOST_SHOWN).round().astype(int)
    return [measured[place] for place in places.tolist()]


def _cards(
    chosen: Sequence[tuple[EditMeasure, EditFiles]], parameters: MeasureConfig, views: PageViews
) -> tuple[Card, ...]:
    with ThreadPoolExecutor(_THREADS) as pool:
        layers = list(pool.map(lambda pair: _layers(pair[1], parameters), chosen))
    shown = views.add([View(edit.id, tuple(each)) for (edit, _), each in zip(chosen, layers, strict=True)])
    return tuple(
        Card(edit, files.pair.method, view, tuple(layer.name for layer in each), _figures(edit))
        for (edit, files), view, each in zip(chosen, shown, layers, strict=True)
    )


def _layers(files: EditFiles, parameters: MeasureConfig) -> list[Layer]:
    original, edited = Shot(files.original), Shot(files.edited)
    layers = [Layer("original", original), Layer("edited", edited)]
    try:
        before, after = (np.asarray(read_rgb(path)[0]) for path in (files.original, files.edited))
    except ImageError:  # gone since it was measured: the page shows what there is
        return layers
    if before.shape == after.shape:
        mask, _ = mask_of(files, before)
        if mask is not None:
            layers.append(Layer("mask", data=_white_on_black(mask)))
        changed = parameters.post_edit(squared_difference(before, after))
        layers.append(Layer("post-edit mask", data=_white_on_black(changed.mask)))
    apart = difference(original, edited)
    return layers if apart is None else [*layers, Layer(f"difference × {AMPLIFIED}", data=apart)]


def _white_on_black(mask: Mask) -> bytes | None:
    return grey_picture(mask.astype(np.uint8) * 255)


def _figures(edit: EditMeasure) -> tuple[tuple[str, str], ...]:
    """What was measured, with the bin."""
    figures: list[tuple[str, str]] = []
    for name, words in NAMES.items():
        value = edit.figure(name)
        if value is not None:
            bin_name = edit.bins.get(name)
            figures.append((words, f"{value:.3g}" + (f", {bin_name}" if bin_name else "")))
    if edit.components:
        words = "1 component" if edit.components == 1 else f"{edit.components:,} components"
        clusters = "1 cluster" if edit.clusters == 1 else f"{edit.clusters:,} clusters"
        figures.append(("where", f"{words} in {clusters}"))
    return tuple(figures)
