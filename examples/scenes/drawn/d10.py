"""A viaduct in the mist, a train on it, firs before it. Wrong: one pier ends above the ground."""

from __future__ import annotations

from itertools import pairwise

import skia  # type: ignore[import-not-found]  # needed for these scenes only
from shapes import box, oval, polygon, polyline, ridge, smooth
from sketch import Sketch

SIZE = (1024, 640)
STONE, SHADE = "#b3bbbe", "#a6afb3"
DECK, SPAN, PIER, FIRST = 214, 104, 26, 66
GROUND = [
    (-20, 300),
    (60, 330),
    (170, 420),
    (300, 476),
    (430, 500),
    (560, 498),
    (700, 470),
    (830, 416),
    (950, 326),
    (1044, 290),
]
FALSE = 5


def ground_at(x: float) -> float:
    for (x0, y0), (x1, y1) in pairwise(GROUND):
        if x0 <= x <= x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return 300


def viaduct(s: Sketch, anomalous: bool) -> None:
    with s.part("viaduct"):
        s.fill(box(-10, DECK, 1034, DECK + 26), STONE)
        s.fill(box(-10, DECK - 8, 1034, DECK + 2), SHADE)
        for k in range(10):
            left = FIRST - PIER / 2 + SPAN * k
            with s.part(f"pier {k}"):
                foot = DECK + 118 if anomalous and k == FALSE else ground_at(left + PIER / 2) + 30
                s.fill(
                    polygon(
                        (left, DECK + 20), (left + PIER, DECK + 20), (left + PIER + 4, foot), (left - 4, foot)
                    ),
                    STONE,
                )
                s.fill(
                    polygon(
                        (left + PIER * 0.62, DECK + 20),
                        (left + PIER, DECK + 20),
                        (left + PIER + 4, foot),
                        (left + PIER * 0.62, foot),
                    ),
                    SHADE,
                )
        for k in range(-1, 10):
            left, right = FIRST + PIER / 2 + SPAN * k, FIRST - PIER / 2 + SPAN * (k + 1)
            arch = skia.Path()
            arch.moveTo(left, DECK + 24)
            arch.lineTo(left, DECK + 74)
            arch.arcTo(skia.Rect.MakeLTRB(left, DECK + 36, right, DECK + 112), 180, 180, False)
            arch.lineTo(right, DECK + 24)
            arch.close()
            s.fill(arch, STONE)


def train(s: Sketch) -> None:
    with s.part("train"):
        for k in range(4):
            x = 250 + 92 * k
            s.fill(box(x, DECK - 44, x + 86, DECK - 14, 5), "#8f9da3")
            for j in range(4):
                s.fill(box(x + 8 + 19 * j, DECK - 37, x + 21 + 19 * j, DECK - 25, 2), "#c3ccd0")
            for j in (16, 70):
                s.fill(oval(x + j, DECK - 14, 6), "#7d8b91")
            if k < 3:
                s.line(polyline((x + 86, DECK - 19), (x + 92, DECK - 19)), 3, "#7d8b91")


def firs(s: Sketch) -> None:
    places = (
        (92, 250, "#5c6d6b"), (170, 190, "#657775"), (34, 170, "#6c7e7c"),
        (958, 230, "#5c6d6b"), (884, 170, "#657775"), (1004, 160, "#6c7e7c"),
    )  # fmt: skip
    for x, high, code in places:
        with s.part("left firs" if x < 512 else "right firs"):
            s.line(polyline((x, 640), (x, 640 - high * 0.6)), 8, "#56615f")
            for k in range(5):
                top, wide = 640 - high + high * 0.17 * k, high * (0.1 + 0.055 * k)
                s.fill(polygon((x, top), (x + wide, top + high * 0.26), (x - wide, top + high * 0.26)), code)


def cottage(s: Sketch) -> None:
    with s.part("cottage"):
        s.fill(box(726, 504, 802, 556), "#aeb4b2")
        s.fill(polygon((714, 508), (764, 468), (814, 508)), "#8c9496")
        s.fill(box(740, 520, 756, 536), "#c9cfcc")
        s.fill(box(774, 522, 792, 556), "#8c9496")
        s.fill(polygon((782, 470), (796, 470), (796, 496), (782, 484)), "#9ba2a3")


def scene(s: Sketch, anomalous: bool) -> None:
    s.fade(box(0, 0, 1024, 640), (0, 0), (0, 500), ["#d3dadd", "#c6cfd2"])
    s.fill(
        ridge([(-20, 210), (140, 150), (320, 230), (520, 180), (720, 240), (900, 160), (1044, 220)], 640),
        "#c8d0d3",
    )
    s.fill(ridge([(-20, 290), (180, 300), (400, 390), (620, 380), (840, 310), (1044, 270)], 640), "#c1cacd")
    viaduct(s, anomalous)
    train(s)
    s.fill(ridge(GROUND, 640), "#b7c1c2")
    s.fill(ridge([(-20, 470), (160, 520), (380, 556), (640, 560), (860, 530), (1044, 480)], 640), "#a3b0ae")
    s.fill(smooth([(300, 640), (420, 590), (470, 566), (520, 566), (500, 592), (470, 640)], True), "#cfd7d9")
    cottage(s)
    firs(s)
