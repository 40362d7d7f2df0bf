"""A clockmaker's wall with 24 clocks that show the same time. Wrong: one numeral on one of them."""

from __future__ import annotations

import math
import random

from shapes import box, oval, polygon, polyline, smooth
from sketch import Sketch

SIZE = (3600, 2400)
COLUMNS, ROWS = 6, 4
ROMAN = ("XII", "I", "II", "III", "IIII", "V", "VI", "VII", "VIII", "IX", "X", "XI")
ARABIC = ("12", *map(str, range(1, 12)))
WOODS = (
    ("#7d4f2b", "#5a3519"),
    ("#8f6238", "#68431f"),
    ("#5b3826", "#3d2315"),
    ("#a0703f", "#774d25"),
    ("#40302a", "#291d18"),
)
METALS = (("#d8b463", "#92702b"), ("#c9ced1", "#858c91"), ("#c98f62", "#87552f"))
PAINTS = (
    ("#b5483c", "#7d2a22"),
    ("#3f6f8c", "#274b62"),
    ("#54805d", "#345539"),
    ("#d9c390", "#a38a52"),
    ("#37424f", "#20282f"),
)
MAKERS = ("A. LINDNER", "J. MERCER", "H. & F. ROTH", "W. PELL", "E. DUBOIS")
FACES = ("#f7f1e0", "#fbf8f0", "#efe6cd", "#f3efe6", "#e9eef0")
ODD = (3, 2)  # The clock with the fault: column, row.


def numerals(s: Sketch, radius: float, words: tuple[str, ...], code: str, odd: bool, anomalous: bool) -> None:
    size, out = (0.165 * radius, 0.73 * radius) if words is ROMAN else (0.215 * radius, 0.69 * radius)
    for k, word in enumerate(words):
        a = math.tau * k / 12
        middle = (out * math.sin(a), -out * math.cos(a))
        if odd and k == 8:
            with s.part("odd numeral"):
                s.words("6" if anomalous else word, middle, size, code, face="Sans-Bold")
            continue
        turn = math.degrees(a) if words is ROMAN else 0
        with s.moved(*middle, turn=turn if not 90 < turn < 270 else turn + 180):
            s.words(word, (0, 0), size, code, face="Serif-Bold" if words is ROMAN else "Sans-Bold")


def hands(s: Sketch, radius: float, code: str) -> None:
    for turn, length, width in (
        (math.tau * (10 + 9.6 / 60) / 12, 0.43, 0.05),
        (math.tau * 9.6 / 60, 0.62, 0.034),
    ):
        sin, cos = math.sin(turn), math.cos(turn)
        tail = (-0.12 * radius * sin, 0.12 * radius * cos)
        tip = (length * radius * sin, -length * radius * cos)
        w = width * radius
        s.fill(
            polygon(
                tail,
                (tip[0] * 0.75 - w * cos, tip[1] * 0.75 - w * sin),
                tip,
                (tip[0] * 0.75 + w * cos, tip[1] * 0.75 + w * sin),
            ),
            code,
        )
    sin, cos = math.sin(math.tau * 36 / 60), math.cos(math.tau * 36 / 60)
    s.line(
        polyline(
            (-0.16 * radius * sin, 0.16 * radius * cos),
            (0.6 * radius * sin, -0.6 * radius * cos),
        ),
        radius * 0.012,
        "#a33228",
    )
    s.fill(oval(0, 0, radius * 0.05), code)
    s.fill(oval(0, 0, radius * 0.02), "#d8b463")


def dial(s: Sketch, radius: float, chance: random.Random, odd: bool, anomalous: bool) -> None:
    """Face, minute marks, numerals and hands about the origin."""
    face, ink = chance.choice(FACES), chance.choice(("#241d1a", "#1f2733", "#3a2318"))
    s.glow(oval(0, 0, radius), (-radius * 0.3, -radius * 0.4), radius * 1.7, ["#ffffff", face, "#c9bfa6"])
    s.line(oval(0, 0, radius * 0.93), radius * 0.012, ink, 0.8)
    for k in range(60):
        a, long = math.tau * k / 60, 0.05 if k % 5 else 0.08
        sin, cos = math.sin(a), math.cos(a)
        s.line(
            polyline(
                (0.92 * radius * sin, -0.92 * radius * cos),
                ((0.92 - long) * radius * sin, -(0.92 - long) * radius * cos),
            ),
            radius * (0.008 if k % 5 else 0.02),
            ink,
        )
    words = ARABIC if odd or chance.random() < 0.62 else ROMAN
    numerals(s, radius, words, ink, odd, anomalous)
    s.words(chance.choice(MAKERS), (0, -radius * 0.33), radius * 0.075, ink, face="Serif-Bold")
    s.words("LONDON", (0, -radius * 0.24), radius * 0.05, ink, spacing=2)
    hands(s, radius, ink)
    # What the glass reflects, in the same place on all of them.
    s.fade(
        smooth(
            [
                (-radius * 0.78, -radius * 0.2),
                (-radius * 0.2, -radius * 0.8),
                (radius * 0.3, -radius * 0.75),
                (-radius * 0.7, radius * 0.3),
            ],
            True,
        ),
        (-radius, -radius),
        (0, 0),
        ["#ffffff", "#ffffff"],
        mapped=False,
        alpha=0.10,
    )


def ring(s: Sketch, radius: float, colours: tuple[str, str]) -> None:
    light, dark = colours
    s.fade(oval(0, 0, radius), (-radius, -radius), (radius, radius), ["#fff6e0", light, dark])
    s.fade(oval(0, 0, radius * 0.92), (-radius, -radius), (radius, radius), [dark, light, light])
    s.line(oval(0, 0, radius * 0.86), radius * 0.02, dark)


def round_clock(s: Sketch, r: float, chance: random.Random) -> None:
    s.shade(oval(18, 25, r), 16, 0.5)
    ring(s, r, chance.choice(WOODS + PAINTS + METALS))


def octagon(s: Sketch, r: float, chance: random.Random) -> None:
    light, dark = chance.choice(WOODS)
    at = [
        (1.06 * r * math.cos(math.tau * (k + 0.5) / 8), 1.06 * r * math.sin(math.tau * (k + 0.5) / 8))
        for k in range(8)
    ]
    s.shade(polygon(*[(x + 18, y + 25) for x, y in at]), 16, 0.5)
    s.fade(polygon(*at), (-r, -r), (r, r), [light, light, dark])
    for (x, y), (u, v) in zip(at, at[1:] + at[:1], strict=True):
        s.line(polyline((x, y), (x * 0.88, y * 0.88)), 2, dark)
        s.line(polyline((x, y), (u, v)), 3, dark, 0.7)
    ring(s, r * 0.93, METALS[0])


def square(s: Sketch, r: float, chance: random.Random) -> None:
    light, dark = chance.choice(WOODS + PAINTS)
    s.shade(box(-r + 18, -r + 25, r + 18, r + 25, 28), 16, 0.5)
    s.fade(box(-r, -r, r, r, 25), (-r, -r), (r, r), [light, light, dark])
    s.line(box(-r + 14, -r + 14, r - 14, r - 14, 14), 5, dark)
    for x in (-1, 1):
        for y in (-1, 1):
            s.fill(oval(x * r * 0.84, y * r * 0.84, r * 0.06), METALS[0][0])
    ring(s, r * 0.95, METALS[chance.randrange(3)])


def sun(s: Sketch, r: float, chance: random.Random) -> None:
    light, dark = METALS[chance.randrange(3)]
    rays = []
    for k in range(48):
        a, far = math.tau * k / 48, (1.16 if k % 4 == 0 else 1.04) if k % 2 == 0 else 0.86
        rays.append((far * r * math.cos(a), far * r * math.sin(a)))
    s.shade(polygon(*[(x + 16, y + 21) for x, y in rays]), 14, 0.5)
    s.fade(polygon(*rays), (-r, -r), (r, r), ["#fff3cf", light, dark])
    s.line(polygon(*rays), 1.5, dark, 0.7)
    ring(s, r * 0.86, (light, dark))


def pendulum(s: Sketch, r: float, chance: random.Random) -> None:
    """A case with a roof above the dial and a pendulum below it; the dial is higher than the middle."""
    light, dark = chance.choice(WOODS)
    s.shade(box(-r * 0.8 + 18, -r * 0.84 + 25, r * 0.8 + 18, r * 1.18 + 25, 10), 16, 0.5)
    s.fade(box(-r * 0.8, -r * 0.84, r * 0.8, r * 1.18, 6), (-r, 0), (r, 0), [light, light, dark])
    roof = polygon(
        (-r * 0.92, -r * 0.86),
        (0, -r * 1.26),
        (r * 0.92, -r * 0.86),
        (r * 0.92, -r * 0.78),
        (-r * 0.92, -r * 0.78),
    )
    s.fade(roof, (0, -r * 1.26), (0, -r * 0.78), [light, dark])
    window = box(-r * 0.5, r * 0.52, r * 0.5, r * 1.08, 4)
    s.fill(window, "#1d1512")
    swing = chance.uniform(-0.22, 0.22) * r
    with s.within(window):
        s.line(polyline((0, r * 0.3), (swing, r * 0.9)), r * 0.035, METALS[0][0])
    s.glow(oval(swing, r * 0.92, r * 0.12), (swing - 4, r * 0.88), r * 0.16, ["#fff3cf", *METALS[0]])
    s.line(window, 5, METALS[0][1])


SHAPES = (round_clock, octagon, square, sun, pendulum, round_clock)


def wall(s: Sketch) -> None:
    s.fade(box(0, 0, 3600, 2400), (0, 0), (3600, 2400), ["#54705f", "#466152", "#33493e"])
    for k in range(15):
        s.fill(box(k * 240 + 60, 0, k * 240 + 180, 2400), "#7a9682", 0.16)
        for j in range(17):
            with s.moved(k * 240, j * 150 + 75 * (k % 2)):
                for turn in (0, 120, 240):
                    with s.moved(turn=turn):
                        s.fill(smooth([(0, 0), (-11, -18), (0, -38), (11, -18)], True), "#8fa890", 0.3)


def scene(s: Sketch, anomalous: bool) -> None:
    wall(s)
    chance = random.Random(41)
    for row in range(ROWS):
        for column in range(COLUMNS):
            odd = (column, row) == ODD
            x = 300 + column * 600 + chance.uniform(-24, 24)
            y = 300 + row * 600 + chance.uniform(-18, 18)
            r = chance.uniform(190, 224)
            shape = SHAPES[(column * 2 + row * 3 + chance.randrange(2)) % len(SHAPES)]
            name = "odd clock" if odd else f"clock {column}-{row}"
            with s.moved(x, y), s.part(name):
                if odd:
                    r, shape = 220, octagon
                shape(s, r, chance)
                if shape is pendulum:
                    with s.moved(0, -r * 0.2):
                        ring(s, r * 0.66, METALS[0])
                        dial(s, r * 0.58, chance, odd, anomalous)
                else:
                    dial(s, r * (0.72 if shape is sun else 0.8), chance, odd, anomalous)
