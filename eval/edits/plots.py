"""The plots of the page of measured edits: how figures are spread, and what was meant beside what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from uncanny.eval.common.plots import NARROW, WIDE, bare_axes, colour, pixel_axes, plain_label, plot_twice
from uncanny.eval.edits.columns import BINNED
from uncanny.eval.edits.result import MeasuredEdits
from uncanny.eval.metrics.edits import Bin, Cutoffs, bin_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
_BARS = 24
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

    values = np.array(spread.values, dtype=np.float64)
    counts, edges = np.histogram(values, _BARS)
    axes.set_title(NAMES[spread.name], loc="left", pad=7)
    if spread.cutoffs is not None:
        words = f"cut-offs {spread.cutoffs.low:.2g}, {spread.cutoffs.high:.2g}"
        axes.set_title(words, loc="right", pad=7, fontweight="normal", color=colour("soft"), fontsize=11)
    tips = {}
    for place, count in enumerate(counts.tolist()):
        if not count:
            continue
        left, right = float(edges[place]), float(edges[place + 1])
        name = bin_of((left + right) / 2, spread.cutoffs)
        key = f"{spread.name}-{place}"
        ink = colour("a0" if name is None else BIN_INKS[name])
        axes.bar(left, count, right - left, align="edge", color=ink, gid=key, linewidth=0)
        tips[key] = f"{NAMES[spread.name]} {left:.3g} to {right:.3g}: {count:,} edits"
    for end in spread.cutoffs or ():
        if edges[0] <= end <= edges[-1]:
            axes.axvline(end, color=colour("ink"), linewidth=1, linestyle=(0, (4, 3)))
    axes.set_xlim(float(edges[0]), float(edges[-1]))
    axes.set_ylim(0, 1.08 * max(1, int(counts.max())))
    axes.locator_params(axis="x", nbins=5)
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
