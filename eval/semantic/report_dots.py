"""The plot of SemAP and SemF1 with their intervals, a line a model, a panel a protocol."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from uncanny.eval.metrics.semap import PROTOCOLS, VIEWS, ProtocolName
from uncanny.eval.report.plots import NARROW, WIDE, bare_axes, pixel_axes, plain_label, plot_twice
from uncanny.eval.report.svg import colour
from uncanny.eval.semantic.report_words import METRICS, VIEW_NAMES, amount, ends
from uncanny.eval.semantic.result import Figure, SemanticScore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

# Metric: colour, marker, where it stands in its line.
_STYLES: Mapping[str, tuple[str, str, float]] = {"semap": ("a0", "o", -0.17), "semf1": ("a1", "s", 0.17)}
_BELOW, _ABOVE = 22.0, 24.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the plot: figures by protocol and metric."""

    name: str
    figures: Mapping[tuple[ProtocolName, str], Figure]


def dots(score: SemanticScore) -> Markup:
    """A line a file for the view `full`; of a single file a line a view. Empty without any figure."""
    lines = lines_of(score)
    if not any(figure.value is not None for line in lines for figure in line.figures.values()):
        return Markup("")
    words = "; ".join(
        f"{line.name}, {protocol}, {METRICS[metric]} {amount(figure.value)}"
        for line in lines
        for (protocol, metric), figure in line.figures.items()
    )
    tall = len(lines) * (34.0 if len(lines) < 8 else 28.0)
    return plot_twice(
        partial(_draw, lines),
        (WIDE, tall + _ABOVE + _BELOW),
        (NARROW, 2 * (tall + _ABOVE + _BELOW) + 8),
        key="dots",
        title="SemAP and SemF1 by protocol",
        words=words,
    )


def lines_of(score: SemanticScore) -> list[Line]:
    if len(score.predictions) == 1:
        (only,) = score.predictions.values()
        return [
            Line(
                VIEW_NAMES[view],
                {
                    (protocol, metric): getattr(only.protocols[protocol], metric)[view]
                    for protocol in PROTOCOLS
                    for metric in _STYLES
                },
            )
            for view in VIEWS
        ]
    return [
        Line(
            name,
            {
                (protocol, metric): getattr(one.protocols[protocol], metric)["full"]
                for protocol in PROTOCOLS
                for metric in _STYLES
            },
        )
        for name, one in score.predictions.items()
    ]


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


def _draw(lines: Sequence[Line], figure: Drawing) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    letters = 16 if narrow else 30
    left = 20 + 6.6 * max(_width(fitted(line.name, letters)) for line in lines)
    left = min(max(left, 56.0), 124.0 if narrow else 230.0)
    tips: dict[str, str] = {}
    if narrow:
        panel = width - left - 14
        tall = (height - 8) / 2 - _ABOVE - _BELOW
        places = [(left, _ABOVE), (left, 2 * _ABOVE + _BELOW + tall + 8)]
    else:
        panel = (width - left - 36 - 14) / 2
        tall = height - _ABOVE - _BELOW
        places = [(left, _ABOVE), (left + panel + 36, _ABOVE)]
    limits = _limits(lines)
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
            held = line.figures[protocol, metric]
            if held.value is None:
                if metric == "semap":
                    axes.annotate(
                        "no image counts", (axes.get_xlim()[0], row), (6, -4), textcoords="offset points"
                    )
                continue
            y = row + shift
            if held.interval is not None:
                axes.plot(
                    held.interval, (y, y), color=colour(ink), linewidth=3, alpha=0.4, solid_capstyle="round"
                )
            gid = f"dot-{protocol}-{metric}-{row}"
            axes.plot([held.value], [y], marker, color=colour(ink), markersize=7.5, clip_on=False, gid=gid)
            interval = f" ({ends(held)})" if held.interval else ""
            tips[gid] = f"{line.name}, {protocol}: {METRICS[metric]} {amount(held.value)}{interval}"
    return tips


def _limits(lines: Sequence[Line]) -> tuple[float, float]:
    """Around all figures and intervals, the same for both protocols, inside 0–1 but for a rim."""
    held = [figure for line in lines for figure in line.figures.values() if figure.value is not None]
    found = [figure.value for figure in held if figure.value is not None]
    found += [end for figure in held if figure.interval for end in figure.interval]
    low, high = min(found), max(found)
    room = max(0.02, 0.08 * (high - low))
    return max(-0.01, low - room), min(1.01, high + room)
