"""A full wall of books, with a globe, a clock and plants. Wrong: one book leans on nothing."""

from __future__ import annotations

import math
import random

import skia  # type: ignore[import-not-found]  # needed for these scenes only
from shapes import box, oval, polygon, polyline, smooth
from sketch import Sketch

# Drawn on 2,048 × 1,536 and made smaller: larger ones do not reach every model as they are.
SCALE = 0.75
SIZE = (1536, 1152)
WOOD, WOOD_DARK, BACK = "#8a5a36", "#6e4427", "#4a3020"
COLOURS = (
    "#7b2f33", "#2f4a5f", "#c08a3e", "#3f5f4a", "#d9c9a3", "#5a3a55",
    "#a3533a", "#23323f", "#8f9a7a", "#b8b0a0", "#6a4b34", "#35606a",
)  # fmt: skip
BAYS = ((60, 690), (730, 1360), (1400, 1988))
FLOORS = (330, 620, 910, 1200, 1476)
HEIGHT, BOARD = 250, 24


class Row:
    """Books from left to right on one shelf; `x` is where the next one stands."""

    def __init__(self, s: Sketch, chance: random.Random, x: float, floor: float) -> None:
        self.s, self.chance, self.x, self.floor = s, chance, x, floor
        self.foot = x

    def book(self, tall: float | None = None, wide: float | None = None) -> None:
        tall = self.chance.uniform(150, 215) if tall is None else tall
        wide = self.chance.uniform(24, 52) if wide is None else wide
        with self.s.moved(self.x, self.floor):
            spine(self.s, self.chance, tall, wide)
        self.x += wide + 1.5

    def books(self, until: float) -> None:
        while self.x + 52 < until:
            self.book()

    def leaning(self, tall: float, wide: float, angle: float) -> None:
        """A book that leans to the left against the one before it."""
        foot = self.x - 1.5 + tall * math.sin(math.radians(angle))
        self._tilted(foot, tall, wide, angle)

    def leaning_too(self, tall: float, wide: float, angle: float) -> None:
        """A book that lies flat against a leaning one."""
        self._tilted(self.foot + 1, tall, wide, angle)

    def _tilted(self, foot: float, tall: float, wide: float, angle: float) -> None:
        with self.s.moved(foot, self.floor, turn=-angle):
            spine(self.s, self.chance, tall, wide)
        self.foot = foot + wide / math.cos(math.radians(angle))
        self.x = self.foot + 6

    def lying(self, wide: float, count: int) -> None:
        """Books lying on each other."""
        top, left = self.floor, self.x
        for k in range(count):
            thick, inset = self.chance.uniform(26, 38), 9 * k + self.chance.uniform(0, 8)
            code = COLOURS[3 * k + 1]
            self.s.fill(box(left + inset, top - thick, left + wide - inset, top, 3), code)
            for at in (0.14, 0.86):
                x = left + inset + at * (wide - 2 * inset)
                self.s.line(polyline((x, top - thick + 3), (x, top - 3)), 3, "#e5cf94", 0.8, mapped=False)
            top -= thick
        self.x += wide + 8


def spine(s: Sketch, chance: random.Random, tall: float, wide: float) -> None:
    code = chance.choice(COLOURS)
    s.fill(box(0, -tall, wide, 0, 3), code)
    s.fill(box(0, -tall, 4, 0), "#000000", 0.16, mapped=False)
    gold = "#e5cf94" if code not in ("#d9c9a3", "#b8b0a0", "#c08a3e") else "#5a3a22"
    for at in (0.1, 0.86):
        s.line(polyline((5, -tall * at), (wide - 5, -tall * at)), 3, gold, 0.85, mapped=False)
    if chance.random() < 0.6 and wide > 30:
        s.fill(box(7, -tall * 0.72, wide - 7, -tall * 0.46, 2), gold, 0.75, mapped=False)
    else:
        s.line(polyline((wide / 2, -tall * 0.74), (wide / 2, -tall * 0.34)), 4, gold, 0.8, mapped=False)


def globe(s: Sketch, x: float, floor: float) -> None:
    with s.part("globe"):
        s.fill(box(x - 46, floor - 14, x + 46, floor, 4), "#5a3a22")
        s.line(polyline((x, floor - 14), (x, floor - 40)), 10, "#5a3a22")
        s.fill(oval(x, floor - 112, 70), "#5f9fb5")
        with s.within(oval(x, floor - 112, 70)):
            land = "#a9a45e"
            s.fill(
                smooth(
                    [
                        (x - 60, floor - 160),
                        (x - 8, floor - 170),
                        (x - 16, floor - 120),
                        (x - 48, floor - 108),
                    ],
                    True,
                ),
                land,
            )
            s.fill(
                smooth(
                    [(x - 30, floor - 98), (x, floor - 92), (x - 8, floor - 48), (x - 26, floor - 60)], True
                ),
                land,
            )
            s.fill(
                smooth(
                    [
                        (x + 22, floor - 160),
                        (x + 78, floor - 150),
                        (x + 66, floor - 96),
                        (x + 30, floor - 112),
                    ],
                    True,
                ),
                land,
            )
        s.line(
            smooth(
                [
                    (x + 30, floor - 186),
                    (x + 82, floor - 150),
                    (x + 84, floor - 84),
                    (x + 40, floor - 40),
                    (x, floor - 36),
                ]
            ),
            7,
            "#c9a063",
        )


def clock(s: Sketch, x: float, floor: float) -> None:
    with s.part("clock"):
        s.fill(box(x - 70, floor - 12, x + 70, floor, 3), "#6a4530")
        body = smooth(
            [
                (x - 60, floor - 12),
                (x - 60, floor - 110),
                (x, floor - 172),
                (x + 60, floor - 110),
                (x + 60, floor - 12),
            ]
        )
        body.close()
        s.fill(body, "#7d5439")
        s.fill(oval(x, floor - 92, 46), "#f4ecd8")
        for k in range(12):
            a = math.tau * k / 12
            sin, cos = math.sin(a), math.cos(a)
            s.line(
                polyline((x + 36 * sin, floor - 92 - 36 * cos), (x + 41 * sin, floor - 92 - 41 * cos)),
                4 if k % 3 == 0 else 2,
                "#2a211e",
            )
        for hours, length, width in ((7.5 / 12, 22, 5), (0.5, 34, 3.5)):  # Half past seven.
            a = math.tau * hours
            s.line(
                polyline((x, floor - 92), (x + length * math.sin(a), floor - 92 - length * math.cos(a))),
                width,
                "#2a211e",
            )
        s.fill(oval(x, floor - 92, 5), "#2a211e")


def plant(s: Sketch, x: float, floor: float) -> None:
    with s.part("plant"):
        for k, (dx, dy) in enumerate(
            [(-66, -150), (-34, -186), (0, -198), (36, -184), (66, -146), (-16, -140), (20, -138)]
        ):
            tip, side = (x + dx, floor + dy), 16
            s.fill(
                smooth(
                    [
                        (x, floor - 70),
                        (x + dx * 0.4 - side, floor + dy * 0.65),
                        tip,
                        (x + dx * 0.6 + side, floor + dy * 0.6),
                    ],
                    True,
                ),
                ("#4d8a52", "#67a562", "#3a7044")[k % 3],
            )
        s.fill(
            polygon((x - 48, floor - 76), (x + 48, floor - 76), (x + 36, floor), (x - 36, floor)), "#d8d2c4"
        )
        s.fill(box(x - 54, floor - 86, x + 54, floor - 66, 4), "#e8e3d6")


def photograph(s: Sketch, x: float, floor: float) -> None:
    with s.part("photograph"):
        s.fill(box(x - 62, floor - 164, x + 62, floor, 4), "#caa45c")
        s.fill(box(x - 50, floor - 152, x + 50, floor - 12), "#f2ecdf")
        s.fill(box(x - 38, floor - 138, x + 38, floor - 26), "#9db7c4")
        with s.within(box(x - 38, floor - 138, x + 38, floor - 26)):
            s.fill(
                polygon(
                    (x - 60, floor - 26),
                    (x - 14, floor - 100),
                    (x + 22, floor - 50),
                    (x + 34, floor - 64),
                    (x + 70, floor - 26),
                ),
                "#66745f",
            )


def vase(s: Sketch, x: float, floor: float) -> None:
    with s.part("vase"):
        half = [(16, 178), (14, 150), (38, 124), (54, 70), (40, 20), (28, 0)]
        outline = smooth([(x - dx, floor - dy) for dx, dy in half])
        mirrored = smooth([(x + dx, floor - dy) for dx, dy in reversed(half)])
        outline.addPath(mirrored, skia.Path.AddPathMode.kExtend_AddPathMode)
        outline.close()
        s.fill(outline, "#c9d6d8")
        s.line(smooth([(x - 49, floor - 90), (x, floor - 80), (x + 49, floor - 90)]), 6, "#466b86")
        s.line(smooth([(x - 53, floor - 70), (x, floor - 58), (x + 53, floor - 70)]), 6, "#466b86")


def case(s: Sketch) -> None:
    s.fill(box(0, 0, 2048, 1536), "#d8cfbe")
    s.fill(box(20, 30, 2028, 1520, 4), WOOD_DARK)
    for left, right in BAYS:
        s.fill(box(left, 60, right, 1476), BACK)


def boards(s: Sketch) -> None:
    for left, right in BAYS:
        for floor in FLOORS:
            s.fill(box(left, floor, right, floor + BOARD), WOOD)
            s.fill(box(left, floor + BOARD - 5, right, floor + BOARD), WOOD_DARK)
    for left, right in ((20, 60), (690, 730), (1360, 1400), (1988, 2028)):
        s.fill(box(left, 40, right, 1480), WOOD)
        s.fill(box(right - 5, 40, right, 1480), WOOD_DARK)
    s.fill(box(20, 30, 2028, 64, 3), WOOD)
    s.fill(box(20, 1476, 2028, 1524, 3), WOOD)


def scene(s: Sketch, anomalous: bool) -> None:
    with s.moved(scale=SCALE):
        case(s)
        for bay, (left, right) in enumerate(BAYS):
            for level, floor in enumerate(FLOORS):
                row = Row(s, random.Random(100 * bay + level), left + 4, floor)
                fill(s, row, (bay, level), right, anomalous)
        boards(s)


def fill(s: Sketch, row: Row, place: tuple[int, int], right: float, anomalous: bool) -> None:
    match place:
        case (0, 1):
            row.books(right - 240)
            globe(s, right - 112, row.floor)
        case (0, 3):
            row.books(right - 320)
            row.book(206, 40)
            row.leaning(190, 36, 11)
            row.leaning_too(178, 34, 11)
        case (1, 0):
            row.books(right - 250)
            row.book(204, 34)
            row.leaning(186, 34, 14)
        case (1, 2):
            row.books(right - 430)
            row.book(212, 44)
            if anomalous:
                row.x += 62
            with s.part("leaning book"):
                row.leaning(196, 40, 17)
            if not anomalous:
                row.x += 62
            row.x += 70
            row.books(right - 8)
        case (1, 4):
            plant(s, row.x + 90, row.floor)
            row.x += 190
            row.books(right)
        case (2, 1):
            row.books(row.x + 190)
            clock(s, row.x + 100, row.floor)
            row.x += 200
            row.books(right)
        case (2, 2):
            vase(s, row.x + 76, row.floor)
            row.x += 150
            row.books(right)
        case (2, 3):
            with s.part("pile"):
                row.lying(210, 4)
            row.books(right)
        case (0, 4):
            photograph(s, row.x + 80, row.floor)
            row.x += 164
            row.books(right)
        case _:
            row.books(right)
