"""The two plots of the semantic page: scores with their intervals (`dots`), and similarities (`spreads`).

`dots` has a line a file and a panel a protocol, `spreads` the pairs that were matched against all that could
have been.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.pages.plots import (
    NARROW,
    WIDE,
    bare_axes,
    colour,
    pixel_axes,
    plain_label,
    plot_twice,
)
from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName, View
from uncanny.eval.semantic.report.rows import METRICS, VIEW_NAMES, amount, ends
from uncanny.eval.semantic.score.result import Metric, PredictionScore, SemanticScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing


# Metric: colour, marker, where it stands in its line.
_STYLES: Mapping[Metric, tuple[str, str, float]] = {"semap": ("a0", "o", -0.17), "semf1": ("a1", "s", 0.17)}
_DOTS_BELOW, _DOTS_ABOVE = 22.0, 24.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the plot: SemAP and SemF1 by protocol and metric."""

    name: str
    scores: Mapping[tuple[ProtocolName, Metric], Estimate]


def dots(score: SemanticScore) -> Markup:
    """A line a file for the view `full`; of a single file a line a view. Empty without any score."""
    lines = lines_of(score)
    if not any(estimate.value is not None for line in lines for estimate in line.scores.values()):
        return Markup("")
    words = "; ".join(
        f"{line.name}, {protocol}, {METRICS[metric]} {amount(estimate.value)}"
        for line in lines
        for (protocol, metric), estimate in line.scores.items()
    )
    tall = len(lines) * (34.0 if len(lines) < 8 else 28.0)
    return plot_twice(
        partial(_draw_dots, lines),
        (WIDE, tall + _DOTS_ABOVE + _DOTS_BELOW),
        (NARROW, 2 * (tall + _DOTS_ABOVE + _DOTS_BELOW) + 8),
        key="dots",
        title="SemAP and SemF1 by protocol",
        words=words,
    )


def lines_of(score: SemanticScore) -> list[Line]:
    """A line a file, in the view `full`; of a single file a line a view."""
    if len(score.predictions) == 1:
        (only,) = score.predictions.values()
        return [Line(VIEW_NAMES[view], _line_scores(only, view)) for view in VIEWS]
    return [Line(name, _line_scores(each, "full")) for name, each in score.predictions.items()]


def _line_scores(prediction: PredictionScore, view: View) -> dict[tuple[ProtocolName, Metric], Estimate]:
    return {
        (protocol, metric): views[view]
        for protocol in PROTOCOLS
        for metric, _, views in prediction.protocols[protocol].by_metric()
        if metric in _STYLES
    }


def fitted(text: str, most: int) -> str:
    """`text` on one line in the width of `most` letters, those of East Asia count twice; cut in the middle.

    What tells names of models apart often is at their end.
    """
    letters = plain_label(text, len(text) + 1)
    if _width(letters) <= most:
        return letters
    head, tail = letters, letters
    while head and _width(head) > most // 2:
        head = head[:-1]
    while tail and _width(tail) > most - 1 - _width(head):
        tail = tail[1:]
    return f"{head.rstrip()}…{tail.lstrip()}"


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _draw_dots(lines: Sequence[Line], figure: Drawing) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    # As long as names of models on hubs get, which differ at their end.
    letters = 16 if narrow else 50
    left = 20 + 6.6 * max(_width(fitted(line.name, letters)) for line in lines)
    left = min(max(left, 56.0), 124.0 if narrow else 350.0)
    tips: dict[str, str] = {}
    if narrow:
        panel = width - left - 14
        tall = (height - 8) / 2 - _DOTS_ABOVE - _DOTS_BELOW
        places = [(left, _DOTS_ABOVE), (left, 2 * _DOTS_ABOVE + _DOTS_BELOW + tall + 8)]
    else:
        panel = (width - left - 36 - 14) / 2
        tall = height - _DOTS_ABOVE - _DOTS_BELOW
        places = [(left, _DOTS_ABOVE), (left + panel + 36, _DOTS_ABOVE)]
    limits = _dot_limits(lines)
    for place, (protocol, (x, y)) in enumerate(zip(PROTOCOLS, places, strict=True)):
        axes = bare_axes(pixel_axes(figure, x, y, panel, tall), grid="x")
        axes.set_xlim(limits)
        axes.set_ylim(len(lines) - 0.5, -0.5)
        axes.locator_params(axis="x", nbins=6 if narrow else 7)
        axes.set_title(protocol, loc="left", pad=7)
        named = narrow or place == 0
        axes.set_yticks(range(len(lines)), [fitted(line.name, letters) if named else "" for line in lines])
        for label in axes.get_yticklabels():
            label.set_color(colour("ink"))
        tips |= _dots(axes, lines, protocol)
    return tips


def _dots(axes: Axes, lines: Sequence[Line], protocol: ProtocolName) -> Mapping[str, str]:
    tips = {}
    for row, line in enumerate(lines):
        if row:
            axes.axhline(row - 0.5, color=colour("line"), linewidth=0.7)
        for metric, (ink, marker, shift) in _STYLES.items():
            estimate = line.scores[protocol, metric]
            if estimate.value is None:
                if metric == "semap":
                    axes.annotate(
                        "no image counts", (axes.get_xlim()[0], row), (6, -4), textcoords="offset points"
                    )
                continue
            y = row + shift
            if estimate.interval is not None:
                style: dict[str, Any] = {"linewidth": 3, "alpha": 0.4, "solid_capstyle": "round"}
                axes.plot(estimate.interval, (y, y), color=colour(ink), **style)
            gid = f"dot-{protocol}-{metric}-{row}"
            axes.plot(
                [estimate.value], [y], marker, color=colour(ink), markersize=7.5, clip_on=False, gid=gid
            )
            interval = f" ({ends(estimate)})" if estimate.interval else ""
            tips[gid] = f"{line.name}, {protocol}: {METRICS[metric]} {amount(estimate.value)}{interval}"
    return tips


def _dot_limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Around all scores and intervals, the same for both protocols, inside 0–1 but for a rim."""
    estimates = [estimate for line in lines for estimate in line.scores.values()]
    values = [estimate.value for estimate in estimates if estimate.value is not None]
    values += [end for estimate in estimates for end in estimate.interval or ()]
    low, high = min(values), max(values)
    room = max(0.02, 0.08 * (high - low))
    return max(-0.01, low - room), min(1.01, high + room)


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
    """A panel a file and view, all on one scale both ways; empty without any pair."""
    panels = panels_of(score)
    if not any(sum(panel.every) for panel in panels):
        return Markup("")
    wide, narrow = (3, 1) if len(score.predictions) <= MOST_IN_VIEWS else (4, 2)
    words = "; ".join(
        f"{panel.title}: {sum(panel.matched)} matched of {sum(panel.every)} pairs, medians "
        f"{median_words(panel.matched)} and {median_words(panel.every)}"
        for panel in panels
    )
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
    panels = []
    for name, prediction in score.predictions.items():
        for view in views:
            title = name if many else VIEW_NAMES[view] if alone else f"{VIEW_NAMES[view]}, {name}"
            panels.append(Panel(title, prediction.spread.matched[view], prediction.spread.every[view]))
    return panels


def _rows(panels: Sequence[Panel], columns: int) -> int:
    return -(-len(panels) // columns)


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
    panels: Sequence[Panel], thresholds: Sequence[float], columns: int, figure: Drawing
) -> Mapping[str, str]:
    width, _ = figure.get_size_inches() * figure.dpi
    if width < 600:
        columns = 1 if columns == 3 else 2
    across = (width - _GAP * columns) / columns
    limits = _limits(panels, thresholds)
    highest = max(
        max(_shares(counts), default=0.0) for each in panels for counts in (each.matched, each.every)
    )
    for place, panel in enumerate(panels):
        row, column = divmod(place, columns)
        top = row * (_TALL + _ABOVE + _BELOW) + _ABOVE
        axes = bare_axes(pixel_axes(figure, _GAP / 2 + column * (across + _GAP), top, across, _TALL))
        axes.set_xlim(limits)
        axes.set_ylim(0, 1.06 * highest or 1)
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


def _shares(counts: Sequence[int]) -> list[float]:
    """Shares of the pairs, so that a few matched ones can be seen beside many; empty without a pair."""
    total = sum(counts)
    return [count / total for count in counts] if total else []


def _stairs(axes: Axes, panel: Panel) -> None:
    bins = len(panel.every)
    edges = [place / bins for place in range(bins + 1)]
    if shares := _shares(panel.matched):
        axes.stairs(shares, edges, fill=True, color=colour("a0"), alpha=0.45, baseline=0)
    if shares := _shares(panel.every):
        axes.stairs(shares, edges, color=colour("soft"), linewidth=1.4, baseline=0)
    else:
        axes.annotate("no pairs", (0.5, 0.5), xycoords="axes fraction", ha="center")
