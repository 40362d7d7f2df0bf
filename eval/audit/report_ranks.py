"""How two assessors rank the same generators, as lines between two columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from markupsafe import Markup

from uncanny.eval.audit.result import Board
from uncanny.eval.report.plots import NARROW, bare_axes, pixel_axes, plain_label, plot_twice
from uncanny.eval.report.svg import colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def ranks(board: Board, against: Board) -> Markup:
    """Each generator's rank by one assessor, left, and the other, right; empty below two of them."""
    both = [name for name in board.order if _ranked(board, name) and _ranked(against, name)]
    if len(both) < 2:
        return Markup("")
    other = [name for name in against.order if name in both]
    words = "; ".join(f"{name}: {place}, then {other.index(name) + 1}" for place, name in enumerate(both, 1))
    height = 20.0 + 24.0 * len(both)
    return plot_twice(
        partial(_draw_ranks, both, other),
        (720, height),
        (NARROW, height),
        key="ranks",
        title="Rank by the first and by the second assessor",
        words=words,
    )


def _ranked(board: Board, name: str) -> bool:
    return name in board.generators and board.generators[name].cap.value is not None


def _draw_ranks(first: Sequence[str], second: Sequence[str], figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    margin, most = (120, 14) if width < 400 else (250, 30)
    axes = bare_axes(pixel_axes(figure, margin, 4, width - 2 * margin, height - 8))
    axes.set_axis_off()
    axes.set_xlim(-0.04, 1.04)
    axes.set_ylim(len(first) + 0.5, 0.5)
    tips = {}
    for place, name in enumerate(first, 1):
        there = second.index(name) + 1
        ink = colour("edge") if place == there else colour("accent" if there < place else "warn")
        axes.plot([0, 1], [place, there], "o-", color=ink, linewidth=1.6, markersize=5, gid=f"rank-{place}")
        tips[f"rank-{place}"] = f"{name}: {place}, then {there}"
        shown = plain_label(name, most)
        for x, y, side, text in (
            (0, place, "right", f"{shown}  {place}"),
            (1, there, "left", f"{there}  {shown}"),
        ):
            axes.annotate(
                text,
                (x, y),
                (-8 if side == "right" else 8, 0),
                textcoords="offset points",
                ha=side,
                va="center",
                annotation_clip=False,
            )
    return tips
