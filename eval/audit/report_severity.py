"""How severe each generator's anomalies are, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup

from uncanny.eval.audit.result import Board, GeneratorScore
from uncanny.eval.report.plots import NARROW, WIDE, bare_axes, pixel_axes, plain_label, plot_twice
from uncanny.eval.report.svg import colour

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Labels at the ends of a panel stay inside it: the next panel begins there.
_SIDES: tuple[Literal["left", "center", "right"], ...] = ("left", "center", "right")


def severities(board: Board) -> Markup:
    """Anomalies an image by severity, a panel a generator, all on one scale; empty without anomalies."""
    scores = [board.generators[name] for name in board.order if board.generators[name].images]
    if not any(score.anomalies for score in scores):
        return Markup("")
    wide, narrow = _columns(len(scores), 5), _columns(len(scores), 2)
    words = "; ".join(
        f"{score.name}: " + ", ".join(f"{value:.2f}" for value in by_severity(score)) for score in scores
    )
    rows = {columns: -(-len(scores) // columns) for columns in (wide, narrow)}
    return plot_twice(
        partial(_draw_severities, scores),
        (min(WIDE, 420.0 * wide), 22 + (148.0 if wide > 3 else 210.0) * rows[wide]),
        (NARROW, 22 + 138.0 * rows[narrow]),
        key="severities",
        title="Anomalies an image by severity in steps of ten, from 0 to 100",
        words=words,
    )


def _columns(panels: int, most: int) -> int:
    """As few as fill no more rows than `most` columns would."""
    return -(-panels // -(-panels // most))


def by_severity(score: GeneratorScore) -> list[float]:
    """Anomalies an image in ten bins of severity, 0–9 first; 100 counts in the last one."""
    counts = [0] * 10
    for severity, count in enumerate(score.severities):
        counts[min(severity // 10, 9)] += count
    return [count / score.images for count in counts]


def _draw_severities(scores: Sequence[GeneratorScore], figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    columns = _columns(len(scores), 2 if width < 400 else 5)
    rows = -(-len(scores) // columns)
    left, gap, above = 34.0, 16.0, 24.0
    panel = (width - left - gap * (columns - 1) - 8) / columns
    tall = (height - 22) / rows
    top = 1.08 * max(value for score in scores for value in by_severity(score))
    tips = {}
    for place, score in enumerate(scores):
        row, column = divmod(place, columns)
        axes = pixel_axes(figure, left + column * (panel + gap), row * tall + above, panel, tall - above - 20)
        bare_axes(axes, grid="y")
        values = by_severity(score)
        for step, value in enumerate(values):
            axes.bar(step + 0.5, value, 0.86, color=colour(f"s{step // 2}"), gid=f"bar-{place}-{step}")
            tips[f"bar-{place}-{step}"] = (
                f"{score.name}, severity {10 * step}–{10 * step + 9 + (step == 9)}: {value:.2f} an image"
            )
        axes.set_xlim(0, 10)
        axes.set_ylim(0, top)
        axes.locator_params(axis="y", nbins=3)
        axes.set_xticks([0, 5, 10], ["0", "50", "100"])
        for label, side in zip(axes.get_xticklabels(), _SIDES, strict=True):
            label.set_horizontalalignment(side)
        if column:
            axes.set_yticklabels([])
        name = plain_label(score.name, int(panel / 8) - 2)
        axes.set_title(f"{place + 1}  {name}", loc="left", pad=5)
    figure.text(0.5, 5 / height, "severity, 0 unreal to 100 real", ha="center", color=colour("soft"))
    return tips
