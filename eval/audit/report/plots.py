"""The plots of the audit page: how often and how bad, how severe, how two assessors rank, and trends.

Each is drawn for wide screens and for phones, and says in words what it shows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup

from uncanny.eval.audit.score.result import GeneratorScore, Leaderboard
from uncanny.eval.audit.score.tables import FIGURE_FORMS, amount, trend_words
from uncanny.eval.common.pages.plots import (
    NARROW,
    WIDE,
    bare_axes,
    colour,
    pixel_axes,
    plain_label,
    plot_twice,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from uncanny.eval.audit.score.trend import Trend
    from uncanny.eval.trust.figures import FigureName


# So many releases have points that can be told apart, each with its words.
MOST_WITH_TIPS = 200
_ROOM = 0.14
_LABEL = 15.0


@dataclass(frozen=True, slots=True)
class Spot:
    """A generator in the plane; `rank` counts from 1."""

    rank: int
    score: GeneratorScore
    af: float
    mai: float


def plot_plane(leaderboard: Leaderboard, own: Collection[str] = ()) -> Markup:
    """AF across, MAI up, both with intervals, and lines of equal CAP; empty without any scores.

    Generators in `own` have another colour and their name in bold.
    """
    spots = spots_of(leaderboard)
    if not spots:
        return Markup("")
    words = "; ".join(
        f"{spot.rank} {spot.score.name}: AF {amount(spot.af)}, MAI {amount(spot.mai)},"
        f" CAP {amount(spot.score.cap.value)}"
        for spot in spots
    )
    return plot_twice(
        partial(_draw_plane, spots, own),
        # Taller where labels would else stand on each other.
        (WIDE, max(520.0, 90 + _LABEL * len(spots))),
        (NARROW, max(380.0, 90 + _LABEL * len(spots))),
        key="plane",
        title="Anomaly frequency and mean implausibility of each generator",
        words=words,
    )


def spots_of(leaderboard: Leaderboard) -> list[Spot]:
    """The generators that have both scores, in the order of the leaderboard."""
    return [
        Spot(rank, score, score.af.value, score.mai.value)
        for rank, score in enumerate((leaderboard.generators[name] for name in leaderboard.ranked), 1)
        if score.af.value is not None and score.mai.value is not None
    ]


def _draw_plane(spots: Sequence[Spot], own: Collection[str], figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    room = 34 if narrow else 40 + 7.2 * max(len(_shown(spot)) for spot in spots)
    axes = pixel_axes(figure, 46, 26, width - 46 - room, height - 26 - 42)
    bare_axes(axes)
    axes.set_xlim(_limits([spot.af for spot in spots], [spot.score.af.interval for spot in spots]))
    axes.set_ylim(_limits([spot.mai for spot in spots], [spot.score.mai.interval for spot in spots]))
    axes.set_xlabel("anomalies an image (AF)")
    axes.set_ylabel("implausibility an image (MAI)")
    _contours(axes)
    for place, spot in enumerate(spots):
        ink = colour("a1" if spot.score.name in own else "accent")
        for across, interval in ((True, spot.score.af.interval), (False, spot.score.mai.interval)):
            if interval is not None:
                xs, ys = (interval, (spot.mai,) * 2) if across else ((spot.af,) * 2, interval)
                axes.plot(xs, ys, color=ink, linewidth=1.2, alpha=0.45, zorder=3)
        axes.plot(
            [spot.af],
            [spot.mai],
            "o",
            markersize=8.5 if not narrow else 7,
            color=ink,
            markeredgecolor=colour("panel"),
            zorder=4,
            clip_on=False,
            gid=f"spot-{place}",
        )
    _label_at_the_side(axes, spots, own, narrow)
    return {
        f"spot-{place}": f"{spot.rank} {spot.score.name}: CAP {amount(spot.score.cap.value)} = "
        f"MAI {amount(spot.mai)} × AF {amount(spot.af)}"
        for place, spot in enumerate(spots)
    }


def _shown(spot: Spot) -> str:
    return plain_label(spot.score.name, 30)


def _limits(values: Sequence[float], intervals: Sequence[tuple[float, float] | None]) -> tuple[float, float]:
    """Around all values and intervals with some room; never below 0, and never without extent."""
    ends = [*values, *(end for interval in intervals if interval for end in interval)]
    low, high = min(ends), max(ends)
    if high <= 0:
        return 0.0, 1.0
    room = max(_ROOM * (high - low), 0.08 * high)
    return max(0.0, low - room), high + room


def _contours(axes: Axes) -> None:
    """Lines of equal MAI · AF, darker ground where it is worse, named where they leave at the top or left."""
    import numpy as np
    from matplotlib.ticker import MaxNLocator

    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    levels = MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]).tick_values(left * bottom, right * top)
    first = True
    for level in levels:
        if not left * bottom < level < right * top or level <= 0:
            continue
        across = np.geomspace(max(left, level / top, 1e-9), right, 80)
        line = np.clip(level / across, bottom, top)
        axes.fill_between(across, line, top, color=colour("bad"), alpha=0.035, linewidth=0, zorder=1)
        inside = level / across >= bottom
        axes.plot(across[inside], (level / across)[inside], color=colour("edge"), linewidth=0.8, zorder=2)
        text = f"CAP {level:g}" if first else f"{level:g}"
        first = False
        if level / top >= left:
            axes.annotate(
                text,
                (level / top, top),
                (0, 5),
                textcoords="offset points",
                ha="center",
                color=colour("soft"),
            )
        else:
            axes.annotate(
                text, (left, level / left), (4, 4), textcoords="offset points", color=colour("soft")
            )


def _label_at_the_side(axes: Axes, spots: Sequence[Spot], own: Collection[str], narrow: bool) -> None:
    """Names in a column on the right in the order of the points' heights, a line from each to its point."""
    to_pixels, back = axes.transData, axes.transData.inverted()
    ordered = sorted(spots, key=lambda spot: (spot.mai, -spot.rank))
    targets = [float(to_pixels.transform((spot.af, spot.mai))[1]) for spot in ordered]
    box = axes.get_window_extent()
    heights = spread(targets, _LABEL + (0 if narrow else 4), float(box.y0) + 6, float(box.y1) - 6)
    for spot, height in zip(ordered, heights, strict=True):
        end = back.transform((box.x1, height))
        axes.annotate(
            "",
            (spot.af, spot.mai),
            (float(end[0]), float(end[1])),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": colour("edge"),
                "linewidth": 0.7,
                "alpha": 0.55,
                "shrinkB": 4,
                "shrinkA": 0,
            },
            zorder=2.5,
        )
        axes.annotate(
            f"{spot.rank}" if narrow else f"{spot.rank}  {_shown(spot)}",
            (float(end[0]), float(end[1])),
            (6, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
            fontsize=12 if not narrow else 11.5,
            fontweight="bold" if spot.score.name in own or (not own and spot.rank == 1) else "normal",
            color=colour("a1" if spot.score.name in own else "ink"),
        )


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places nearest to `targets`, which ascends, at least `gap` apart and within `low` to `high`.

    The gap shrinks where there is no room for it.
    """
    import numpy as np
    from scipy.optimize import isotonic_regression  # type: ignore[import-untyped]

    if not targets:
        return []
    gap = min(gap, (high - low) / max(len(targets) - 1, 1))
    steps = gap * np.arange(len(targets))
    # Without the steps, places at least a gap apart are places that ascend.
    placed = isotonic_regression(np.asarray(targets) - steps).x
    return [float(place) for place in np.clip(placed, low, high - steps[-1]) + steps]


def plot_ranks(leaderboard: Leaderboard, against: Leaderboard) -> Markup:
    """Each generator's rank by one assessor, left, and the other, right; empty below two of them."""
    first = [name for name in leaderboard.measured if name in against.measured]
    if len(first) < 2:
        return Markup("")
    second = [name for name in against.ranked if name in first]
    words = "; ".join(
        f"{name}: {place}, then {second.index(name) + 1}" for place, name in enumerate(first, 1)
    )
    height = 20.0 + 24.0 * len(first)
    return plot_twice(
        partial(_draw_ranks, first, second),
        (720, height),
        (NARROW, height),
        key="ranks",
        title="Rank by the first and by the second assessor",
        words=words,
    )


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


# Labels at the ends of a panel stay inside it: the next panel begins there.
_SIDES: tuple[Literal["left", "center", "right"], ...] = ("left", "center", "right")


def plot_severities(leaderboard: Leaderboard) -> Markup:
    """Anomalies an image by severity, a panel a generator, all on one scale; empty without anomalies."""
    scores = [
        leaderboard.generators[name] for name in leaderboard.ranked if leaderboard.generators[name].images
    ]
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
        title="Anomalies an image by realism in steps of ten, from 0 to 100",
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
                f"{score.name}, realism {10 * step}–{10 * step + 9 + (step == 9)}: {value:.2f} an image"
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
    figure.text(0.5, 5 / height, "realism, 0 unreal to 100 real", ha="center", color=colour("soft"))
    return tips


def plot_trend(trend: Trend, key: str) -> Markup:
    """A generator's figures over its releases, a panel a figure, with intervals and where each changed."""
    words = f"{trend_words(trend)} " + "; ".join(
        f"{label}: " + ", ".join(_trend_words(trend, label, what) for what in FIGURE_FORMS)
        for label in trend.labels
    )
    return plot_twice(
        partial(_draw_trend, trend),
        (WIDE, 2 * 190.0),
        (NARROW, len(FIGURE_FORMS) * 165.0),
        key=f"trend-{key}",
        title=f"Figures of {trend.name} over {len(trend.labels)} releases",
        words=words,
    )


def _trend_words(trend: Trend, label: str, what: FigureName) -> str:
    form = FIGURE_FORMS[what]
    return f"{form.head} {form.write(trend.figure(label, what).value)}"


def _draw_trend(trend: Trend, figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    columns = 1 if width < 600 else 2
    left, gap, above, below = 44.0, 56.0, 26.0, 30.0
    panel = (width - left - gap * (columns - 1) - 14) / columns
    tall = height / -(-len(FIGURE_FORMS) // columns)
    changed, tips = trend.proven(), {}
    # So many names as stand side by side; the first and the last always do.
    step = max(1, -(-len(trend.labels) * 62 // int(panel)))
    ticks = [place for place in range(len(trend.labels)) if (len(trend.labels) - 1 - place) % step == 0]
    for number, (what, form) in enumerate(FIGURE_FORMS.items()):
        row, column = divmod(number, columns)
        axes = pixel_axes(
            figure, left + column * (panel + gap), row * tall + above, panel, tall - above - below
        )
        bare_axes(axes, grid="y")
        scale = 100 if form.kind == "share" else 1
        drawn = [(place, trend.figure(label, what)) for place, label in enumerate(trend.labels)]
        known = [
            (place, scale * each.value, each.interval) for place, each in drawn if each.value is not None
        ]
        axes.plot([place for place, *_ in known], [value for _, value, _ in known], color=colour("edge"))
        since = changed[what].place if what in changed else len(trend.labels)
        for ink, own in (
            (colour("accent"), [each for each in known if each[0] < since]),
            (colour("a1"), [each for each in known if each[0] >= since]),
        ):
            bars = [(place, scale * each[0], scale * each[1]) for place, _, each in own if each is not None]
            if bars:
                axes.vlines(*zip(*bars, strict=True), color=ink, alpha=0.45, zorder=3)
            if len(known) > MOST_WITH_TIPS:
                places, values = [place for place, *_ in own], [value for _, value, _ in own]
                axes.plot(places, values, "o", markersize=2, color=ink, zorder=4, clip_on=False)
                continue
            for place, value, _ in own:
                gid, label = f"release-{what}-{place}", trend.labels[place]
                axes.plot([place], [value], "o", markersize=7, color=ink, zorder=4, clip_on=False, gid=gid)
                tips[gid] = f"{label}: {_trend_words(trend, label, what)}"
        if what in changed:
            axes.axvline(changed[what].place - 0.5, color=colour("soft"), linewidth=1, linestyle="--")
        axes.set_xlim(-0.5, len(trend.labels) - 0.5)
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="y", nbins=4)
        axes.set_xticks(ticks, [plain_label(trend.labels[place], 9) for place in ticks])
        axes.set_title(f"{form.head}, %" if form.kind == "share" else form.head, loc="left", pad=5)
    return tips
