"""The HTML page of measured edits: one file that needs nothing else and asks nothing of the network.

Beside the figures it shows edits themselves, from the largest to the smallest: original, edited image, mask,
what was found to have changed, and the difference, flipped by a key in the viewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jinja2 import Environment
from markupsafe import Markup
from numpy.typing import NDArray

from uncanny.errors import ImageError
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.common.pages.plots import (
    NARROW,
    WIDE,
    bare_axes,
    colour,
    pixel_axes,
    plain_label,
    plot_twice,
)
from uncanny.eval.common.pixels.difference import AMPLIFIED, difference, grey_picture
from uncanny.eval.common.tables.table import MISSING, Table
from uncanny.eval.edits.columns import BINNED
from uncanny.eval.edits.data import EditFiles
from uncanny.eval.edits.parameters import MeasureConfig
from uncanny.eval.edits.result import FIDELITY_CAVEAT, EditMeasure, MeasuredEdits
from uncanny.eval.edits.score import mask_of
from uncanny.eval.metrics.edits import BINS, Bin, Cutoffs, squared_difference
from uncanny.images.prepared import read_rgb
from uncanny.wording import counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
            layers.append(Layer("mask", data=grey_picture(mask)))
        changed = parameters.post_edit(squared_difference(before, after))
        layers.append(Layer("post-edit mask", data=grey_picture(changed.mask)))
    apart = difference(original, edited)
    return layers if apart is None else [*layers, Layer(f"difference × {AMPLIFIED}", data=apart)]


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


NAMES: Mapping[str, str] = {
    "mask_ratio": "mask ratio",
    "ssim": "SSIM",
    "mse": "MSE",
    "post_edit_ratio": "post-edit ratio",
    "largest_component_ratio": "largest component",
    "lpips": "LPIPS",
    "dreamsim": "DreamSim",
    "text_similarity": "text similarity",
}
BIN_INKS: Mapping[Bin, str] = {"small": "a1", "medium": "a0", "large": "a4"}
# How many bars a plot has, about; how far it reaches beyond the cut-offs, in widths of the medium bin.
_BARS = 24
_REACH = 6.0
# Pixels.
_THINNEST = 3.0
_HEAD, _FOOT, _PLOT, _GAP = 24.0, 30.0, 110.0, 22.0
_MOST_POINTS = 2000


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure's values over the set, and its cut-offs."""

    name: str
    values: Sequence[float]
    cutoffs: Cutoffs | None


def spreads(edits: MeasuredEdits) -> list[Spread]:
    """Of the figures that were measured; all-black edits are left out."""
    found = []
    for name in BINNED:
        values = [value for each in edits if each.counts and (value := each.figure(name)) is not None]
        if values:
            found.append(Spread(name, values, edits.cutoffs.bins.get(name)))
    return found


@dataclass(frozen=True, slots=True)
class Bar:
    """So many edits with values from `low` to `high`, all of one bin, drawn from `left` to `right`.

    `gathers` says that the bar stands for values beyond the end of the plot.
    """

    low: float
    high: float
    left: float
    right: float
    count: int
    name: Bin | None
    gathers: bool = False


def bars_of(spread: Spread) -> list[Bar]:
    """The bars of a histogram, from left to right: every value is in one, and none reaches over a cut-off.

    Bars of a bin share its width in steps of about the same size. What lies further from the cut-offs than
    `_REACH` times the medium bin is wide is gathered in one bar at that end, so that a few large values leave
    room for the others.
    """
    values = np.sort(np.array(spread.values, dtype=np.float64))
    first, last = float(values[0]), float(values[-1])
    if spread.cutoffs is None:
        groups: list[tuple[Bin | None, NDArray[np.float64], float, float]] = [(None, values, first, last)]
        start, end = first, last
    else:
        low, high = spread.cutoffs
        reach = _REACH * (high - low)
        start, end = max(first, low - reach), min(last, high + reach)
        if not reach or not ((values >= start) & (values <= end)).any():
            start, end = first, last
        groups = [
            ("small", values[values < low], start, min(low, end)),
            ("medium", values[(values >= low) & (values <= high)], max(low, start), min(high, end)),
            ("large", values[values > high], max(high, start), end),
        ]
    step = (end - start) / _BARS or max(abs(first), 1.0) / _BARS
    bars: list[Bar] = []
    for name, group, left, right in groups:
        below, above = group[group < start], group[group > end]
        if len(below):
            bars.append(Bar(first, float(below[-1]), start - 2 * step, start - step, len(below), name, True))
        bars += _steps(group[(group >= start) & (group <= end)], left, right, step, name)
        if len(above):
            bars.append(Bar(float(above[0]), last, end + step, end + 2 * step, len(above), name, True))
    return bars


def _steps(
    values: NDArray[np.float64], left: float, right: float, step: float, name: Bin | None
) -> list[Bar]:
    """The values of one bin in bars that end where the bin does; those without values are left out."""
    if not len(values):
        return []
    if right <= left:  # all values are the same
        return [Bar(left, left, left - step / 2, left + step / 2, len(values), name)]
    counts, edges = np.histogram(values, max(1, round((right - left) / step)), (left, right))
    return [
        Bar(float(low), float(high), float(low), float(high), int(count), name)
        for count, low, high in zip(counts, edges, edges[1:], strict=False)
        if count
    ]


def spread_plot(drawn: Sequence[Spread]) -> Markup:
    """A histogram a figure, coloured by bin; empty where nothing was measured."""
    if not drawn:
        return Markup("")
    words = "; ".join(f"{NAMES[each.name]}: {_words(each)}" for each in drawn)
    tall = _HEAD + _PLOT + _FOOT + _GAP
    return plot_twice(
        partial(_draw_spreads, drawn),
        (WIDE, -(-len(drawn) // 3) * tall),
        (NARROW, len(drawn) * tall),
        key="spread",
        title="How many edits have which value of each figure",
        words=words,
    )


def _words(spread: Spread) -> str:
    low, high = min(spread.values), max(spread.values)
    words = f"{len(spread.values):,} edits from {low:.3g} to {high:.3g}"
    return words if spread.cutoffs is None else f"{words}, cut-offs {_ends(spread.cutoffs)}"


def _ends(cutoffs: Cutoffs) -> str:
    return f"{cutoffs.low:.3g} and {cutoffs.high:.3g}"


def _draw_spreads(drawn: Sequence[Spread], figure: Figure) -> Mapping[str, str]:
    width = figure.get_size_inches()[0] * figure.dpi
    columns = 1 if width < 600 else 3
    room, tall = width / columns, _HEAD + _PLOT + _FOOT + _GAP
    tips: dict[str, str] = {}
    for place, spread in enumerate(drawn):
        row, column = divmod(place, columns)
        axes = pixel_axes(figure, column * room + 34, row * tall + _HEAD, room - 56, _PLOT)
        tips |= _draw_spread(bare_axes(axes, grid="y"), spread)
    return tips


def _draw_spread(axes: Axes, spread: Spread) -> Mapping[str, str]:
    from matplotlib.ticker import MaxNLocator

    bars = bars_of(spread)
    axes.set_title(NAMES[spread.name], loc="left", pad=7)
    if spread.cutoffs is not None:
        words = f"cut-offs {spread.cutoffs.low:.3g}, {spread.cutoffs.high:.3g}"
        axes.set_title(words, loc="right", pad=7, fontweight="normal", color=colour("soft"), fontsize=11)
    left, right = min(bar.left for bar in bars), max(bar.right for bar in bars)
    thin = (right - left) * _THINNEST / axes.bbox.width
    tips = {}
    for place, bar in enumerate(bars):
        key = f"{spread.name}-{place}"
        ink = colour("a0" if bar.name is None else BIN_INKS[bar.name])
        # A bin that is hardly as wide as a pixel is seen, too.
        wide = max(bar.right - bar.left, thin)
        axes.bar(
            (bar.left + bar.right) / 2,
            bar.count,
            wide,
            color=ink,
            gid=key,
            linewidth=0,
            alpha=0.6 if bar.gathers else None,
            zorder=2.5 if wide == thin else 2,
        )
        span = f"{bar.low:.3g}" if bar.low == bar.high else f"{bar.low:.3g} to {bar.high:.3g}"
        tips[key] = f"{NAMES[spread.name]} {span}: {counted(bar.count, 'edit')}"
    for end in spread.cutoffs or ():
        if left <= end <= right:
            axes.axvline(end, color=colour("ink"), linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(left, right)
    axes.set_ylim(0, 1.08 * max(bar.count for bar in bars))
    # Bars that gather stand a bar's width off the rest, which has the scale.
    start = 2 * bars[0].right - bars[0].left if bars[0].gathers else left
    stop = 2 * bars[-1].left - bars[-1].right if bars[-1].gathers else right
    ticks = [each for each in MaxNLocator(4).tick_values(start, stop) if start <= each <= stop]
    axes.set_xticks([*ticks, *((bar.left + bar.right) / 2 for bar in bars if bar.gathers)])
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.4g}" if value in ticks else "…")
    # Without its 0, which would stand on the first label below.
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, prune="lower"))
    return tips


def mask_plot(edits: MeasuredEdits) -> Markup:
    """What was to change, the mask, against what did; empty with fewer than two edits with a mask."""
    points = [
        (each.id, each.mask_ratio, each.post_edit_ratio)
        for each in edits
        if each.counts and each.mask_ratio is not None and each.post_edit_ratio is not None
    ]
    if len(points) < 2:
        return Markup("")
    drawn = points[:: -(-len(points) // _MOST_POINTS)]
    beyond = sum(after > meant for _, meant, after in points)
    return plot_twice(
        partial(_draw_masks, drawn),
        (WIDE, 330),
        (NARROW, 330),
        key="masks",
        title="Share of the image that the mask covers, and share that changed",
        words=f"{len(points):,} edits; of {beyond:,} more changed than the mask covers",
    )


def _draw_masks(points: Sequence[tuple[str, float, float]], figure: Figure) -> Mapping[str, str]:
    width, height = (float(each) * figure.dpi for each in figure.get_size_inches())
    axes = bare_axes(pixel_axes(figure, 58, 14, width - 78, height - 62), grid="both")
    most = max(max(meant, after) for _, meant, after in points) * 1.05 or 1.0
    axes.plot((0, most), (0, most), color=colour("edge"), linewidth=1.2, linestyle=(0, (4, 3)))
    tips = {}
    for place, (name, meant, after) in enumerate(points):
        key = f"edit-{place}"
        axes.plot([meant], [after], "o", color=colour("a0"), alpha=0.75, markersize=7, clip_on=False, gid=key)
        tips[key] = f"{plain_label(name, 60)}: mask {meant:.3g}, changed {after:.3g}"
    axes.set_xlim(0, most)
    axes.set_ylim(0, most)
    axes.tick_params(axis="x", pad=11)
    axes.set_xlabel("mask ratio")
    axes.set_ylabel("post-edit ratio")
    return tips
