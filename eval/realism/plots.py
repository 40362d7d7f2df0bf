"""The plots of the realism page: shares of labels, and how often the first place is chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from uncanny.eval.common.estimates import p_words
from uncanny.eval.common.pages.page import figure_words, percent
from uncanny.eval.common.pages.plots import (
    NARROW,
    WIDE,
    bare_axes,
    colour,
    pixel_axes,
    plain_label,
    plot_twice,
)
from uncanny.eval.realism.result import GroupScore, RealismScore
from uncanny.eval.realism.verdicts import Label

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DRAWN: Mapping[Label, tuple[str, str]] = {
    "deceiving": ("deceiving", "a0"),
    "intermediate": ("intermediate", "a1"),
    "non_deceiving": ("non-deceiving", "a5"),
}
# Groups beyond are in the table alone.
MOST_ROWS = 40
_ROW, _HEAD, _FOOT = 27.0, 26.0, 22.0


@dataclass(frozen=True, slots=True)
class PlotRow:
    """One row of a plot; `whole` marks the scores of all pairs of a set."""

    name: str
    score: GroupScore
    whole: bool


def plot_rows(score: RealismScore) -> list[PlotRow]:
    """Each set, followed by its groups."""
    rows = []
    for name, each in score.sets.items():
        rows.append(PlotRow(name if len(score.sets) > 1 else "all pairs", each.overall, whole=True))
        rows += [PlotRow(group, score, whole=False) for group, score in each.groups.items()]
    return rows[:MOST_ROWS]


def label_plot(rows: Sequence[PlotRow]) -> Markup:
    """The share of each label with its interval; empty where no pair has a label."""
    if not any(row.score.labels["deceiving"].out_of for row in rows):
        return Markup("")
    words = "; ".join(
        f"{row.name}: "
        + ", ".join(f"{DRAWN[label][0]} {figure_words(row.score.labels[label])}" for label in DRAWN)
        for row in rows
    )
    tall = _ROW * len(rows)
    return plot_twice(
        partial(_draw_labels, rows),
        (WIDE, tall + _HEAD + _FOOT),
        (NARROW, 3 * (tall + _HEAD + 8) + _FOOT),
        key="labels",
        title="Share of each label among the pairs with a label",
        words=words,
    )


def _draw_labels(rows: Sequence[PlotRow], figure: Figure) -> Mapping[str, str]:
    width, _ = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    tips: dict[str, str] = {}
    margin, tall = _margin(rows, narrow), _ROW * len(rows)
    room = width - margin if narrow else (width - margin) / 3
    for place, (label, (heading, ink)) in enumerate(DRAWN.items()):
        left = margin if narrow else margin + place * room
        top = _HEAD + (place * (tall + _HEAD + 8) if narrow else 0)
        axes = bare_axes(pixel_axes(figure, left, top, room - 10, tall), grid="x")
        axes.set_title(heading, loc="left", pad=7)
        _scale(axes, len(rows), named=place == 2 or not narrow, most=1.3)
        if narrow or place == 0:
            _names(axes, rows, narrow)
        for number, row in enumerate(rows):
            tips |= _bar(axes, number, row, label, ink)
    return tips


def _bar(axes: Axes, number: int, row: PlotRow, label: Label, ink: str) -> Mapping[str, str]:
    share = row.score.labels[label]
    if share.value is None:
        axes.text(0.02, number, "no label", va="center", color=colour("soft"), fontsize=11.5)
        return {}
    key = f"{label}-{number}"
    axes.barh(number, share.value, 0.62, color=colour(ink), alpha=1.0 if row.whole else 0.62, gid=key)
    if share.interval is not None:
        axes.plot(share.interval, (number, number), color=colour("ink"), linewidth=1.5)
    end = max(share.value, share.interval[1] if share.interval else 0.0)
    axes.annotate(
        percent(share.value),
        (end, number),
        (6, 0),
        textcoords="offset points",
        va="center",
        fontsize=11.5,
        fontweight="bold" if row.whole else "normal",
    )
    return {key: f"{row.name}: {DRAWN[label][0]} {figure_words(share)}"}


def _scale(axes: Axes, rows: int, *, named: bool, most: float) -> None:
    axes.set_xlim(0, most)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"] if named else ["", "", ""])
    axes.set_yticks([])


def _name(row: PlotRow, narrow: bool) -> str:
    return plain_label(row.name, 15 if narrow else 30)


def _margin(rows: Sequence[PlotRow], narrow: bool) -> float:
    return 16 + 7.6 * max(len(_name(row, narrow)) for row in rows)


def _names(axes: Axes, rows: Sequence[PlotRow], narrow: bool) -> None:
    axes.set_yticks(range(len(rows)), [_name(row, narrow) for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(colour("ink"))
        label.set_fontweight("bold" if row.whole else "normal")


def position_plot(rows: Sequence[PlotRow]) -> Markup:
    """How often "first" is chosen against "second", with its interval; empty where neither ever was."""
    drawn = [row for row in rows if row.score.position_bias.first_share is not None]
    if not drawn:
        return Markup("")
    words = "; ".join(f"{row.name}: {_bias_words(row)}" for row in drawn)
    height = _ROW * len(drawn) + _HEAD + _FOOT
    return plot_twice(
        partial(_draw_positions, drawn),
        (WIDE, height),
        (NARROW, height),
        key="places",
        title="How often the first place is chosen, against the second",
        words=words,
    )


def _draw_positions(rows: Sequence[PlotRow], figure: Figure) -> Mapping[str, str]:
    width, _ = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    margin, beside = _margin(rows, narrow), 18 + 7.2 * max(len(_beside(row, narrow)) for row in rows)
    axes = pixel_axes(figure, margin, _HEAD, width - margin - beside, _ROW * len(rows))
    bare_axes(axes, grid="x")
    _scale(axes, len(rows), named=True, most=1.0)
    _names(axes, rows, narrow)
    axes.axvline(0.5, color=colour("edge"), linewidth=1.2, linestyle=(0, (4, 3)))
    always = "" if narrow else "always "
    axes.set_title(f"{always}second", loc="left", pad=7, fontweight="normal", color=colour("soft"))
    axes.set_title(f"{always}first", loc="right", pad=7, fontweight="normal", color=colour("soft"))
    tips = {}
    for number, row in enumerate(rows):
        bias = row.score.position_bias
        assert bias.first_share is not None
        assert bias.interval is not None
        ink = colour("accent")
        axes.plot(bias.interval, (number, number), color=ink, linewidth=3, alpha=0.4, solid_capstyle="round")
        axes.plot(
            [bias.first_share], [number], "o", color=ink, markersize=8, clip_on=False, gid=f"at-{number}"
        )
        tips[f"at-{number}"] = f"{row.name}: {_bias_words(row)}"
        axes.annotate(
            _beside(row, narrow),
            (1, number),
            (14, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    return tips


def _beside(row: PlotRow, narrow: bool) -> str:
    bias = row.score.position_bias
    return f"{bias.second:,} : {bias.first:,}" if narrow else _bias_words(row)


def _bias_words(row: PlotRow) -> str:
    bias = row.score.position_bias
    return f"first {bias.first:,}, second {bias.second:,}, both {bias.both:,}; {p_words(bias.p_value)}"
