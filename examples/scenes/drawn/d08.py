"""Canal houses and their reflection, a moored boat. Wrong: one house has another gable in the water."""

from __future__ import annotations

from shapes import box, oval, polygon, polyline, smooth
from sketch import Sketch

SIZE = (1280, 1120)
WATER, QUAY = 560, 516
# Left edge, width, height, wall, gable, rows of windows, columns.
HOUSES = (
    (40, 168, 300, "#8f4a3a", "step", 3, 3),
    (208, 150, 270, "#c9a469", "bell", 3, 2),
    (358, 176, 330, "#5f6f72", "neck", 4, 3),
    (534, 160, 286, "#a8624a", "point", 3, 3),
    (694, 156, 316, "#d8cdb4", "step", 3, 2),
    (850, 184, 280, "#6f4038", "bell", 3, 3),
    (1034, 166, 310, "#b98a62", "step", 4, 3),
)
FALSE = 4
ROOF, TRIM, PANE = "#4c4a4d", "#f2ecdf", "#39474f"


def gable(s: Sketch, kind: str, x: float, wide: float, top: float, wall: str) -> None:
    """What stands on the house's front above `top`."""
    middle = x + wide / 2
    if kind == "step":
        for k in range(4):
            s.fill(box(x + wide * 0.125 * k, top - 24 * (k + 1), x + wide - wide * 0.125 * k, top + 1), wall)
            s.fill(
                box(
                    x + wide * 0.125 * k - 2,
                    top - 24 * (k + 1) - 5,
                    x + wide - wide * 0.125 * k + 2,
                    top - 24 * (k + 1) + 1,
                ),
                TRIM,
            )
            if k:
                s.fill(
                    box(x + wide * 0.125 * k, top - 24 * (k + 1) + 1, x + wide - wide * 0.125 * k, top + 1),
                    wall,
                )
    elif kind == "bell":
        outline = smooth(
            [
                (x, top + 1),
                (x + wide * 0.16, top - 24),
                (x + wide * 0.24, top - 70),
                (middle, top - 104),
                (x + wide * 0.76, top - 70),
                (x + wide * 0.84, top - 24),
                (x + wide, top + 1),
            ]
        )
        s.fill(outline, wall)
        s.line(outline, 6, TRIM)
    elif kind == "neck":
        s.fill(
            polygon(
                (x, top + 1), (x + wide * 0.3, top - 36), (x + wide * 0.7, top - 36), (x + wide, top + 1)
            ),
            wall,
        )
        s.fill(box(x + wide * 0.3, top - 84, x + wide * 0.7, top), wall)
        s.fill(polygon((x + wide * 0.26, top - 84), (middle, top - 112), (x + wide * 0.74, top - 84)), TRIM)
        s.line(polyline((x, top), (x + wide * 0.3, top - 36)), 6, TRIM)
        s.line(polyline((x + wide, top), (x + wide * 0.7, top - 36)), 6, TRIM)
    else:
        s.fill(polygon((x, top + 1), (middle, top - 104), (x + wide, top + 1)), wall)
        s.line(polyline((x, top), (middle, top - 104), (x + wide, top)), 6, TRIM)


def houses(s: Sketch, where: str, false: bool = False) -> None:
    for number, (x, wide, high, wall, kind, rows, columns) in enumerate(HOUSES):
        top = QUAY - high
        with s.part(f"house {number}{where}"):
            s.fill(box(x, top, x + wide, QUAY), wall)
            with s.part(f"gable {number}{where}"):
                gable(s, "point" if false and number == FALSE else kind, x, wide, top, wall)
            s.fill(box(x + wide / 2 - 11, top - 34, x + wide / 2 + 11, top - 4, 3), PANE)
            step = (high - 84) / rows
            for row in range(rows):
                for column in range(columns):
                    px, py = x + wide * (column + 0.5) / columns, top + 16 + step * row
                    s.fill(box(px - 17, py, px + 17, py + step * 0.72), TRIM)
                    s.fill(box(px - 13, py + 4, px + 13, py + step * 0.72 - 4), PANE)
                    s.line(polyline((px, py + 4), (px, py + step * 0.72 - 4)), 2.5, TRIM)
            door = x + wide * 0.5
            s.fill(box(door - 22, QUAY - 66, door + 22, QUAY), TRIM)
            s.fill(box(door - 17, QUAY - 60, door + 17, QUAY), ("#2f5a4c", "#7b2f33", "#27425a")[number % 3])
        s.line(polyline((x, top), (x, QUAY)), 2, "#2a2422", 0.5, mapped=False)


def quay(s: Sketch) -> None:
    s.fill(box(-10, QUAY, 1290, WATER), "#8d8478")
    s.fill(box(-10, QUAY, 1290, QUAY + 9), "#aaa193")
    for k in range(17):
        s.line(polyline((-30 + 80 * k, QUAY + 10), (-30 + 80 * k, QUAY + 26)), 1.5, "#746c61")
        s.line(polyline((10 + 80 * k, QUAY + 26), (10 + 80 * k, WATER)), 1.5, "#746c61")
    s.line(polyline((-10, QUAY + 26), (1290, QUAY + 26)), 1.5, "#746c61")


def street(s: Sketch, where: str) -> None:
    for x in (200, 842):
        with s.part(f"lamp {x}{where}"):
            s.line(polyline((x, QUAY + 2), (x, QUAY - 118)), 6, "#22302c")
            s.fill(
                polygon((x - 11, QUAY - 140), (x + 11, QUAY - 140), (x + 8, QUAY - 118), (x - 8, QUAY - 118)),
                "#f3dfa0",
            )
            s.fill(polygon((x - 14, QUAY - 139), (x, QUAY - 152), (x + 14, QUAY - 139)), "#22302c")
    with s.part(f"tree{where}"):
        s.line(polyline((1228, QUAY + 2), (1228, QUAY - 150)), 13, "#5d4532")
        for dx, dy, r, code in (
            (0, -190, 62, "#5b8050"),
            (-30, -160, 40, "#4d7246"),
            (26, -226, 40, "#6d9360"),
        ):
            s.fill(oval(1228 + dx, QUAY + dy, r), code)


def boat(s: Sketch) -> None:
    """Floats on y = 0."""
    s.fill(polygon((-150, -46), (150, -46), (126, 0), (-126, 0)), "#2f4a3f")
    s.fill(box(-154, -54, 154, -42, 4), "#d9c9a3")
    s.fill(box(-84, -92, 60, -54, 5), "#b5533f")
    for x in (-58, -16, 26):
        s.fill(box(x - 13, -84, x + 13, -64, 3), "#cfe0e0")
    s.line(polyline((104, -54), (104, -132)), 4, "#5d4532")
    s.fill(polygon((106, -130), (140, -121), (106, -112)), "#b3423a")


def scene(s: Sketch, anomalous: bool) -> None:
    s.fade(box(0, 0, 1280, WATER), (0, 0), (0, WATER), ["#a9c3d2", "#e9e3d2"])
    houses(s, "")
    quay(s)
    street(s, "")
    s.fade(box(0, WATER, 1280, 1120), (0, WATER), (0, 2 * WATER), ["#e9e3d2", "#a9c3d2"])
    with s.upside_down(WATER, 1):
        houses(s, " in water", anomalous)
        quay(s)
        street(s, " in water")
    with s.part("boat in water"), s.upside_down(640, 1), s.moved(330, 640):
        boat(s)
    s.fade(box(0, WATER, 1280, 1120), (0, WATER), (0, 1120), ["#3f565d", "#3a5058"], mapped=False, alpha=0.55)
    for k in range(34):
        x, y = (k * 397) % 1240 + 20, 590 + (k * 151) % 500
        s.line(polyline((x - 26 - k % 5 * 8, y), (x + 26 + k % 5 * 8, y)), 2, "#dfe6e4", 0.28, mapped=False)
    with s.part("boat"), s.moved(330, 640):
        boat(s)
