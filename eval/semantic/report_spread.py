"""How similar texts are: the pairs that were matched against all that could have been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from uncanny.eval.metrics.semap import VIEWS, View
from uncanny.eval.report.plots import NARROW, WIDE, bare_axes, pixel_axes, plot_twice
from uncanny.eval.report.svg import colour
from uncanny.eval.semantic.report_dots import fitted
from uncanny.eval.semantic.report_words import VIEW_NAMES
from uncanny.eval.semantic.result import SemanticScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Up to so many files all views are drawn, above the view `full` alone.
MOST_IN_VIEWS = 3
_TALL, _ABOVE, _BELOW, _GAP = 104.0, 40.0, 22.0, 28.0


@dataclass(frozen=True, slots=True)
class Panel:
    """One file and view; counts in bins of equal width from 0 to 1."""

    title: str
    matched: Sequence[int]
    every: Sequence[int]


def spreads(score: SemanticScore) -> Markup:
    """A panel a file and view, all on one scale across; empty without any pair."""
    panels = panels_of(score)
    if not any(sum(panel.every) for panel in panels):
        return Markup("")
    wide, narrow = (3, 1) if len(score.predictions) <= MOST_IN_VIEWS else (4, 2)
    words = "; ".join(_words(panel) for panel in panels)
    return plot_twice(
        partial(_draw, panels, score.thresholds, wide),
        (WIDE, _rows(panels, wide) * (_TALL + _ABOVE + _BELOW)),
        (NARROW, _rows(panels, narrow) * (_TALL + _ABOVE + _BELOW)),
        key="spread",
        title="Similarities of matched pairs and of all pairs",
        words=words,
    )


def panels_of(score: SemanticScore) -> list[Panel]:
    many = len(score.predictions) > MOST_IN_VIEWS
    views: Sequence[View] = ("full",) if many else VIEWS
    alone = len(score.predictions) == 1
    found = []
    for name, one in score.predictions.items():
        for view in views:
            title = name if many else VIEW_NAMES[view] if alone else f"{VIEW_NAMES[view]}, {name}"
            found.append(Panel(title, one.spread.matched[view], one.spread.every[view]))
    return found


def _rows(panels: Sequence[Panel], columns: int) -> int:
    return -(-len(panels) // columns)


def _words(panel: Panel) -> str:
    return (
        f"{panel.title}: {sum(panel.matched)} matched of {sum(panel.every)} pairs, medians "
        f"{median_words(panel.matched)} and {median_words(panel.every)}"
    )


def median_words(counts: Sequence[int]) -> str:
    """Where half of the pairs are, to the width of a bin; a dash without pairs."""
    total, seen = sum(counts), 0
    for place, count in enumerate(counts):
        seen += count
        if total and 2 * seen >= total:
            return f"{(place + 0.5) / len(counts):.2f}"
    return "–"


def _limits(panels: Sequence[Panel], thresholds: Sequence[float]) -> tuple[float, float]:
    """All bins with pairs in them and all thresholds, with a rim."""
    filled = [
        place / len(panel.every) for panel in panels for place, count in enumerate(panel.every) if count
    ]
    low, high = min(*filled, *thresholds), max(*filled, *thresholds)
    return max(0.0, low - 0.04), min(1.0, high + 0.06)


def _draw(
    panels: Sequence[Panel], thresholds: Sequence[float], columns: int, figure: Figure
) -> Mapping[str, str]:
    width, _ = figure.get_size_inches() * figure.dpi
    if width < 600:
        columns = 1 if columns == 3 else 2
    across = (width - _GAP * columns) / columns
    limits = _limits(panels, thresholds)
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        top = row * (_TALL + _ABOVE + _BELOW) + _ABOVE
        axes = bare_axes(pixel_axes(figure, _GAP / 2 + column * (across + _GAP), top, across, _TALL))
        axes.set_xlim(limits)
        axes.set_yticks([])
        axes.locator_params(axis="x", nbins=4 if across < 200 else 6)
        _stairs(axes, panel)
        for threshold in thresholds:
            axes.axvline(threshold, color=colour("warn"), linewidth=1.1, linestyle=(0, (4, 3)))
            axes.annotate(
                f"{threshold:g}",
                (threshold, 1),
                (0, 3),
                xycoords=("data", "axes fraction"),
                textcoords="offset points",
                ha="center",
                color=colour("warn"),
                fontsize=11,
            )
        axes.axhline(0, color=colour("edge"), linewidth=1)
        axes.set_title(fitted(panel.title, int(across / 8.4)), loc="left", pad=19)
    return {}


def _stairs(axes: Axes, panel: Panel) -> None:
    """Shares of the pairs, so that a few matched ones can be seen beside many."""
    bins = len(panel.every)
    edges = [place / bins for place in range(bins + 1)]
    highest = 0.0
    for counts, matched in ((panel.matched, True), (panel.every, False)):
        if not (total := sum(counts)):
            continue
        shares = [count / total for count in counts]
        highest = max(highest, *shares)
        if matched:
            axes.stairs(shares, edges, fill=True, color=colour("a0"), alpha=0.45, baseline=0)
        else:
            axes.stairs(shares, edges, color=colour("soft"), linewidth=1.4, baseline=0)
    axes.set_ylim(0, 1.06 * highest or 1)
    if not highest:
        axes.annotate("no pairs", (0.5, 0.5), xycoords="axes fraction", ha="center")
