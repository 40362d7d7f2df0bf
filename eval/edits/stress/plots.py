"""The plots of a stress page: recall by size, by level and by phrase, and under compression."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from markupsafe import Markup

from uncanny.eval.common.estimates import Estimate, Share, p_words
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
from uncanny.eval.edits.stress.condition import ConditionScore, DetectorScore
from uncanny.eval.edits.stress.data import AS_GIVEN, SIMILARITIES
from uncanny.eval.edits.stress.factors import Factor, Group

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Drawn = Share | Estimate

# Detectors and rows beyond are in the tables alone.
MOST_DETECTORS: Final = 6
MOST_LEVELS: Final = 24
MOST_PHRASES: Final = 24
_INKS: Final = ("a0", "a1", "a2", "a3", "a4", "a5")
_PANEL_TALL, _HEAD, _FOOT = 150.0, 40.0, 26.0
_ROW, _GAP = 24.0, 34.0
_COMPRESSED: Final = re.compile(r"(jpeg|webp)-(\d+)")


def key_of(detectors: Mapping[str, DetectorScore]) -> list[tuple[str, str]]:
    """Detector and colour, for the legend."""
    return list(zip(list(detectors)[:MOST_DETECTORS], _INKS, strict=False))


def precision_recall_plot(detectors: Mapping[str, DetectorScore]) -> Markup:
    """Precision against recall over all thresholds; empty where no detector has scores of both classes."""
    shown = {
        name: each
        for name, each in list(detectors.items())[:MOST_DETECTORS]
        if each.first.precision_recall.value is not None
    }
    if not shown:
        return Markup("")
    inks = dict(key_of(detectors))
    words = "; ".join(f"{name}: AP {figure_words(_area(each))}" for name, each in shown.items())
    panel = _HEAD + 260 + 2 * _FOOT
    return plot_twice(
        partial(_draw_precision_recall, shown, inks),
        (0.6 * WIDE, panel),
        (NARROW, panel),
        key="precision-recall",
        title="Precision against recall",
        words=words,
    )


def _area(each: DetectorScore) -> Estimate:
    area = each.first.precision_recall
    return Estimate(area.value, area.interval)


def _draw_precision_recall(
    detectors: Mapping[str, DetectorScore], inks: Mapping[str, str], figure: Figure
) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    axes = pixel_axes(figure, 46, _HEAD, width - 46 - 24, height - _HEAD - 2 * _FOOT)
    bare_axes(axes, grid="both")
    axes.set_xlim(0, 1.01)
    axes.set_ylim(0, 1.02)
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"])
    axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
    axes.set_title("precision, %", loc="left", pad=10)
    axes.set_xlabel("recall of edits")
    tips: dict[str, str] = {}
    for number, (name, each) in enumerate(detectors.items()):
        curve, ink = each.first.precision_recall.curve.thinned(), colour(inks[name])
        gid = f"pr-{number}"
        axes.plot(
            [0, *curve.recall],
            [curve.precision[0], *curve.precision],
            color=ink,
            linewidth=1.8,
            drawstyle="steps-pre",
            gid=gid,
        )
        tips[gid] = f"{name}: average precision {figure_words(_area(each))}"
    guessing = next(iter(detectors.values())).first.precision_recall.guessing or 0.0
    axes.axhline(guessing, color=colour("soft"), linewidth=1, linestyle=(0, (4, 3)))
    axes.annotate(
        "guessing",
        *((1, guessing), (-4, -12)),
        textcoords="offset points",
        ha="right",
        fontsize=10.5,
        color=colour("soft"),
    )
    return tips


def size_plot(detectors: Mapping[str, DetectorScore]) -> Markup:
    """Recall of small, medium and large edits by each metric, with intervals; empty without any."""
    shown = dict(list(detectors.items())[:MOST_DETECTORS])
    names = [
        name
        for name, factor in next(iter(shown.values())).first.factors.items()
        if factor.kind == "bins" and any(group.recall.out_of for group in factor.groups)
    ]
    if not names:
        return Markup("")
    words = "; ".join(
        f"{detector}, {name}: "
        + ", ".join(f"{group.name} {figure_words(group.recall)}" for group in each.factor(name).groups)
        for detector, each in shown.items()
        for name in names
    )
    panel = _HEAD + _PANEL_TALL + _FOOT
    across = min(4, len(names))
    return plot_twice(
        partial(_draw_sizes, shown, names),
        (WIDE, panel * -(-len(names) // across)),
        (NARROW, panel * -(-len(names) // 2)),
        key="sizes",
        title="Recall of edits by their size",
        words=words,
    )


def _draw_sizes(
    detectors: Mapping[str, DetectorScore], names: Sequence[str], figure: Figure
) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    across = min(2 if narrow else 4, len(names))
    rows = -(-len(names) // across)
    panel, room = height / rows, width / across
    tips: dict[str, str] = {}
    for place, name in enumerate(names):
        column, row = place % across, place // across
        left = 34.0 if column == 0 else 20.0
        axes = pixel_axes(
            figure, column * room + left, row * panel + _HEAD, room - left - 10, panel - _HEAD - _FOOT
        )
        bare_axes(axes, grid="y")
        factor = next(iter(detectors.values())).factor(name)
        axes.set_title(plain_label(name.replace("_", " "), 18 if narrow else 34), loc="left", pad=20)
        _below_title(axes, factor, narrow)
        axes.set_xlim(-0.5, 2.5)
        axes.set_ylim(0, 1.02)
        axes.set_xticks(range(3), ["small", "medium", "large"])
        axes.set_yticks([0, 0.5, 1], ["0", "50", "100"] if column == 0 else ["", "", ""])
        for number, (detector, score) in enumerate(detectors.items()):
            shift = (number - (len(detectors) - 1) / 2) * min(0.16, 0.7 / len(detectors))
            groups = [group for group in score.factor(name).groups if group.recall.value is not None]
            places = [("small", "medium", "large").index(group.name) + shift for group in groups]
            ink = colour(_INKS[number])
            recalls = [group.recall.value or 0.0 for group in groups]
            axes.plot(places, recalls, color=ink, linewidth=1, alpha=0.5)
            for x, group in zip(places, groups, strict=True):
                key = f"size-{place}-{number}-{group.name}"
                _dot(axes, x, group.recall, ink, key, upright=True)
                label = score.factor(name).label(group)
                tips[key] = f"{detector}, {name} {label}: {figure_words(group.recall)}"
    return tips


def _below_title(axes: Axes, factor: Factor, narrow: bool) -> None:
    """How strong the association is, and which way round the metric runs."""
    hint = "small = most changed" if factor.name in SIMILARITIES else ""
    if factor.test is not None and factor.test.cramers_v is not None:
        strength = f"V {factor.test.cramers_v:.2f}, {p_words(factor.adjusted_p)}"
    else:
        strength = ""
    axes.annotate(
        strength if narrow else "; ".join(filter(None, (strength, hint))),
        *((0, 1), (0, 7)),
        xycoords="axes fraction",
        textcoords="offset points",
        fontsize=10.5,
        color=colour("soft"),
        annotation_clip=False,
    )


class Row(NamedTuple):
    """A line of a plot: a group with its recall by detector, or a heading with none."""

    name: str
    recalls: Mapping[str, Share]


def level_plot(detectors: Mapping[str, DetectorScore]) -> Markup:
    """Recall by data source, method, model and further columns; empty where there are none."""
    shown = dict(list(detectors.items())[:MOST_DETECTORS])
    rows: list[Row] = []
    for name, factor in next(iter(shown.values())).first.factors.items():
        if factor.kind == "levels":
            rows.append(Row(name.replace("_", " "), {}))
            groups = sorted(factor.groups, key=lambda group: group.recall.value or 0.0)[:MOST_LEVELS]
            rows += [_row(shown, name, group.name) for group in groups]
            if factor.unknown.out_of:
                unknown = {each: score.factor(name).unknown for each, score in shown.items()}
                rows.append(Row("unknown", unknown))
    return _row_plot(rows, list(shown), "levels", "Recall of edits by what is known of them")


def phrase_rows(detectors: Mapping[str, DetectorScore]) -> tuple[list[Row], int]:
    """The phrases that are drawn, of the first detector's order, and how many there are in all."""
    shown = dict(list(detectors.items())[:MOST_DETECTORS])
    factor = next(iter(shown.values())).first.factors.get("directional")
    if factor is None:
        return [], 0
    groups: Sequence[Group] = factor.groups
    if len(groups) > MOST_PHRASES:
        half = MOST_PHRASES // 2
        groups = [*groups[:half], *groups[-half:]]
    return [_row(shown, "directional", group.name) for group in groups], len(factor.groups)


def phrase_plot(detectors: Mapping[str, DetectorScore]) -> Markup:
    """Recall by directional edit, the most missed first; of many the two ends. Empty where there are none."""
    rows, _ = phrase_rows(detectors)
    names = list(detectors)[:MOST_DETECTORS]
    return _row_plot(rows, names, "phrases", "Recall of edits by what became what", most=44)


def _row(detectors: Mapping[str, DetectorScore], factor: str, name: str) -> Row:
    recalls = {}
    for detector, score in detectors.items():
        groups = score.first.factors[factor].groups if factor in score.first.factors else ()
        for group in groups:
            if group.name == name:
                recalls[detector] = group.recall
    return Row(name, recalls)


def _row_plot(
    rows: Sequence[Row], detectors: Sequence[str], key: str, title: str, *, most: int = 30
) -> Markup:
    if not rows:
        return Markup("")
    words = "; ".join(
        f"{row.name}: " + ", ".join(f"{name} {figure_words(share)}" for name, share in row.recalls.items())
        for row in rows
        if row.recalls
    )
    tall = _ROW + 5 * (len(detectors) - 1)
    height = tall * len(rows) + _FOOT + 10
    return plot_twice(
        partial(_draw_rows, rows, detectors, most),
        (WIDE, height),
        (NARROW, height),
        key=key,
        title=title,
        words=words,
    )


def _draw_rows(rows: Sequence[Row], detectors: Sequence[str], most: int, figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    names = [_both_ends(row.name, 18 if narrow else most) for row in rows]
    margin = 14 + 7.0 * max(map(len, names))
    beside = 54.0 if narrow else 190.0
    axes = pixel_axes(figure, margin, 8, width - margin - beside, height - _FOOT - 10)
    bare_axes(axes, grid="x")
    axes.set_xlim(0, 1)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"])
    axes.set_yticks(range(len(rows)), names)
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(colour("ink"))
        label.set_fontweight("normal" if row.recalls else "bold")
    tips: dict[str, str] = {}
    for place, row in enumerate(rows):
        for number, detector in enumerate(detectors):
            share = row.recalls.get(detector)
            if share is None or share.value is None:
                continue
            y = place + (number - (len(detectors) - 1) / 2) * 0.7 / len(detectors)
            gid = f"row-{place}-{number}"
            _dot(axes, share.value, share, colour(_INKS[number]), gid, upright=False, at=y)
            tips[gid] = f"{row.name}, {detector}: {figure_words(share)}"
        first = next(iter(row.recalls.values()), None)
        if first is None:
            continue
        if len(detectors) == 1:
            text = percent(first.value) + ("" if narrow else f", {first.counts:,} of {first.out_of:,}")
        else:
            text = f"{first.out_of:,}" + ("" if narrow else " edits")
        axes.annotate(
            text,
            *((1, place), (10, 0)),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
            fontsize=11,
            color=colour("ink" if len(detectors) == 1 else "soft"),
        )
    return tips


def _both_ends(name: str, most: int) -> str:
    """A name cut in its middle: versions of a model differ at the end."""
    text = plain_label(name, 10 * most)
    if len(text) <= most:
        return text
    tail = most // 2 - 1
    return f"{text[: most - tail - 1].rstrip()}…{text[-tail:].lstrip()}"


def _dot(
    axes: Axes, value: float, share: Drawn, ink: str, gid: str, *, upright: bool, at: float = 0.0
) -> None:
    """A value with its interval: at `value` across where it stands upright, else at `at` down."""
    assert share.value is not None
    if share.interval is not None:
        ends = share.interval
        line = ((value, value), ends) if upright else (ends, (at, at))
        axes.plot(*line, color=ink, linewidth=3, alpha=0.4, solid_capstyle="round", clip_on=False)
    point = ([value], [share.value]) if upright else ([share.value], [at])
    axes.plot(*point, "o", color=ink, markersize=6, clip_on=False, gid=gid)


class Curve(NamedTuple):
    """A detector's figures under one codec, by quality, the images as given first."""

    detector: str
    codec: str
    points: Sequence[tuple[str, ConditionScore]]


_FIGURES: Final = ("recall of edits", "recall of real images", "AUC", "IoU")


def curves(detectors: Mapping[str, DetectorScore]) -> list[Curve]:
    """A curve a detector and codec that has at least one quality."""
    found = []
    for name, detector in list(detectors.items())[:MOST_DETECTORS]:
        for codec in ("jpeg", "webp"):
            points = []
            for condition, score in detector.conditions.items():
                match = _COMPRESSED.fullmatch(condition)
                if match is not None and match[1] == codec:
                    points.append((int(match[2]), score))
            points.sort(key=lambda point: -point[0])
            before = [(AS_GIVEN, detector.conditions[AS_GIVEN])] if AS_GIVEN in detector.conditions else []
            if points:
                after = [(str(quality), score) for quality, score in points]
                found.append(Curve(name, codec, [*before, *after]))
    return found


def compression_plot(detectors: Mapping[str, DetectorScore]) -> Markup:
    """Recall, AUC and IoU as files are compressed harder; empty without such predictions."""
    drawn = curves(detectors)
    if not drawn:
        return Markup("")
    figures = [name for name in _FIGURES if any(_figure(s, name) for curve in drawn for _, s in curve.points)]
    words = "; ".join(
        f"{curve.detector}, {curve.codec} {quality}, {name}: {figure_words(value)}"
        for curve in drawn
        for quality, score in curve.points
        for name in figures
        if (value := _figure(score, name)) is not None
    )
    panel = _HEAD + 170 + _FOOT
    return plot_twice(
        partial(_draw_curves, drawn, figures),
        (WIDE, panel * (2 if len(figures) == 4 else 1)),
        (NARROW, panel * len(figures)),
        key="compression",
        title="Detection as files are compressed",
        words=words,
    )


def _figure(score: ConditionScore, name: str) -> Drawn | None:
    if name == "recall of edits":
        value: Drawn = score.classes["generated"].recall
    elif name == "recall of real images":
        value = score.classes["real"].recall
    elif name == "AUC":
        value = Estimate(score.auc.value, score.auc.interval)
    else:
        value = Estimate(None) if score.localization is None else score.localization.iou
    return None if value.value is None else value


def _draw_curves(drawn: Sequence[Curve], figures: Sequence[str], figure: Figure) -> Mapping[str, str]:
    width, height = figure.get_size_inches() * figure.dpi
    across = 1 if width < 600 else 2 if len(figures) == 4 else len(figures)
    rows = -(-len(figures) // across)
    panel, room = height / rows, width / across
    labels = {quality for curve in drawn for quality, _ in curve.points}
    qualities = sorted(labels, key=lambda label: -1000 if label == AS_GIVEN else -int(label))
    tips: dict[str, str] = {}
    detectors = list(dict.fromkeys(curve.detector for curve in drawn))
    for place, name in enumerate(figures):
        column, row = place % across, place // across
        axes = pixel_axes(
            figure, column * room + 36, row * panel + _HEAD, room - 36 - 64, panel - _HEAD - _FOOT
        )
        bare_axes(axes, grid="y")
        axes.set_title(name, loc="left", pad=8)
        axes.set_xlim(-0.3, len(qualities) - 0.7)
        axes.set_ylim(0, 1.02)
        axes.set_xticks(range(len(qualities)), qualities)
        axes.set_yticks([0, 0.5, 1], ["0", "50", "100"])
        ends: list[tuple[float, float, str, str]] = []
        for number, curve in enumerate(drawn):
            points = [
                (qualities.index(quality), quality, value)
                for quality, score in curve.points
                if (value := _figure(score, name)) is not None
            ]
            if all(quality == AS_GIVEN for _, quality, _ in points):
                continue
            # One detector: a colour a codec. Several: a colour a detector, and WebP dashed.
            ink = colour(_INKS[number if len(detectors) == 1 else detectors.index(curve.detector)])
            shift = 0.05 if curve.codec == "webp" else -0.05
            style = (0, (4, 3)) if len(detectors) > 1 and curve.codec == "webp" else "solid"
            xs = [x + shift for x, _, _ in points]
            ys = [value.value or 0.0 for _, _, value in points]
            axes.plot(xs, ys, color=ink, linewidth=1.6, linestyle=style)
            for x, quality, value in points:
                gid = f"curve-{place}-{number}-{x}"
                _dot(axes, x + shift, value, ink, gid, upright=True)
                tips[gid] = f"{curve.detector}, {curve.codec}, {quality}: {name} {figure_words(value)}"
            if points and len(detectors) == 1:
                last = points[-1][2].value
                assert last is not None
                ends.append((last, xs[-1], {"jpeg": "JPEG", "webp": "WebP"}[curve.codec], ink))
        _end_labels(axes, ends)
    return tips


def _end_labels(axes: Axes, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Names beside the last points, moved apart where they would lie on one another or on the axis below."""
    least, lowest, y = 0.11, 0.06, 2.0
    heights = []
    for value, *_ in sorted(ends, reverse=True):
        y = min(value, y - least)
        heights.append(y)
    for place in range(len(heights) - 1, -1, -1):
        heights[place] = max(heights[place], lowest)
        lowest = heights[place] + least
    for (_, x, text, ink), y in zip(sorted(ends, reverse=True), heights, strict=True):
        axes.annotate(
            text,
            *((x, y), (12, 0)),
            textcoords="offset points",
            va="center",
            color=ink,
            fontsize=11,
            annotation_clip=False,
        )
