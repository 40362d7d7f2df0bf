"""The back of a bar: some 160 glasses and bottles on six shelves. Wrong: one glass has a gap in its stem."""

from __future__ import annotations

import random

import skia  # type: ignore[import-not-found]  # needed for these scenes only
from shapes import box, oval, polygon, polyline, smooth
from sketch import Sketch

SIZE = (3600, 2400)
FLOORS = (372, 756, 1140, 1524, 1908, 2292)
LIGHT, EDGE = "#e9f3f6", "#b9cdd4"
BOTTLES = (
    ("#2f5a3a", "#16301e", "#efe6cf"), ("#7a4a1e", "#40240d", "#e8d8a8"), ("#c9d8da", "#7f979c", "#3f6f8c"),
    ("#6b1f24", "#360d11", "#efe6cf"), ("#c28a2c", "#7d5414", "#7a2420"), ("#3d6f96", "#1b3a54", "#f1efe6"),
)  # fmt: skip
NAMES = ("GIN", "RUM", "PORT", "SHERRY", "COGNAC", "VODKA", "WHISKY", "BITTER", "BRANDY", "ABSINTHE")
ODD = (2, 5)  # Shelf and place of the fault.
Half = list[tuple[float, float]]
BOWLS: dict[str, Half] = {
    "wine": [(42, 232), (50, 196), (50, 164), (34, 128), (5, 112)],
    "balloon": [(46, 232), (66, 186), (66, 156), (44, 120), (5, 106)],
    "flute": [(25, 262), (29, 216), (28, 170), (18, 130), (5, 112)],
    "coupe": [(70, 214), (66, 186), (44, 158), (18, 142), (5, 134)],
}


def solid(half: Half) -> skia.Path:
    """A thing that is the same on both sides of the upright through the origin; heights are above it."""
    left, right = [(-x, -y) for x, y in half], [(x, -y) for x, y in reversed(half)]
    path = smooth(left)
    path.lineTo(*right[0])
    mirrored = smooth(right)
    path.addPath(mirrored, skia.Path.AddPathMode.kExtend_AddPathMode)
    path.close()
    return path


def clear(s: Sketch, path: skia.Path, wide: float, alpha: float = 0.32) -> None:
    """Glass: bright at both edges, with a band of light on the left."""
    s.fade(path, (-wide, 0), (wide, 0), ["#ffffff", "#9fb6bd", "#cfdde1", "#8aa1a8", "#ffffff"], alpha=alpha)
    s.line(path, 2.2, LIGHT, 0.85)


def stemmed(s: Sketch, kind: str, drink: str | None, gap: bool, odd: bool) -> None:
    """A glass with a foot, a stem and a bowl; with a `gap` a piece of the stem is missing."""
    half = BOWLS[kind]
    low, wide, top = half[-1][1], max(x for x, _ in half), half[0][1]
    foot = 44.0 if kind != "flute" else 36.0
    s.fade(oval(0, -6, foot, 7), (-foot, 0), (foot, 0), ["#ffffff", "#9fb6bd", "#dfe9ec"], alpha=0.5)
    s.line(oval(0, -6, foot, 7), 2, LIGHT, 0.9)
    s.fill(polygon((-12, -8), (12, -8), (4, -22), (-4, -22)), EDGE, 0.8)
    upper, lower = low - 40, low - 57
    pieces = [("", 20.0, lower), ("stem piece" if odd else "", lower, upper), ("", upper, low + 2)]
    for name, start, end in pieces:
        if gap and name:
            continue
        with s.part(name or s.now):
            s.fade(box(-4, -end, 4, -start), (-4, 0), (4, 0), ["#ffffff", "#93abb3", "#f4fafb"], alpha=0.95)
    bowl = solid(half)
    if drink is not None:
        level = low + (top - low) * 0.62
        with s.within(bowl):
            s.fade(box(-wide, -level, wide, 0), (-wide, 0), (wide, 0), [drink, drink, "#1c0a0a"], alpha=0.85)
            s.fill(oval(0, -level, wide, 6), "#ffffff", 0.22, mapped=False)
    clear(s, bowl, wide)
    s.line(oval(0, -top, half[0][0], 6), 2.4, LIGHT, 0.95)
    s.line(
        smooth(
            [
                (-half[1][0] + 12, -top + 30),
                (-half[2][0] + 12, -half[2][1]),
                (-half[3][0] + 10, -half[3][1] - 10),
            ]
        ),
        4,
        "#ffffff",
        0.7,
        mapped=False,
    )


def tumbler(s: Sketch, tall: float, wide: float, drink: str | None) -> None:
    body = polygon((-wide, -tall), (wide, -tall), (wide * 0.84, -4), (-wide * 0.84, -4))
    if drink is not None:
        with s.within(body):
            s.fade(
                box(-wide, -tall * 0.6, wide, -14),
                (-wide, 0),
                (wide, 0),
                [drink, drink, "#2a1408"],
                alpha=0.85,
            )
    clear(s, body, wide)
    s.line(oval(0, -tall, wide, 7), 2.4, LIGHT, 0.95)
    for k in range(-3, 4):
        s.line(polyline((k * wide * 0.24, -tall * 0.42), (k * wide * 0.22, -12)), 2, LIGHT, 0.5, mapped=False)
    s.fill(box(-wide * 0.82, -14, wide * 0.82, -4, 3), EDGE, 0.7)


def bottle(s: Sketch, chance: random.Random) -> None:
    light, dark, paper = chance.choice(BOTTLES)
    wide, tall = chance.uniform(38, 48), chance.uniform(196, 226)
    neck = chance.uniform(286, 318)
    half = [
        (13, neck),
        (13, tall + 46),
        (20, tall + 24),
        (wide - 4, tall),
        (wide, tall - 26),
        (wide, 30),
        (wide, 8),
        (wide - 8, 2),
    ]
    body = solid(half)
    s.fade(body, (-wide, 0), (wide, 0), [dark, light, light, dark])
    s.line(body, 2, "#000000", 0.35)
    s.fade(box(-15, -neck - 14, 15, -neck + 18, 4), (-15, 0), (15, 0), [paper, "#ffffff", "#5a4a30"])
    s.line(smooth([(-wide + 11, -tall + 10), (-wide + 11, -40)]), 5, "#ffffff", 0.4, mapped=False)
    s.fade(box(-wide + 1, -148, wide - 1, -52), (-wide, 0), (wide, 0), ["#b8ab8c", paper, paper, "#8f8468"])
    ink = "#f3ecd8" if paper in ("#3f6f8c", "#7a2420") else "#3a2318"
    name = chance.choice(NAMES)
    for y in (-138, -62):
        s.line(polyline((-wide + 8, y), (wide - 8, y)), 2, ink, 0.8, mapped=False)
    s.words(name, (0, -102), min(22.0, (2 * wide - 12) / (len(name) * 0.78)), ink, face="Serif-Bold")


def wall(s: Sketch) -> None:
    s.fade(box(0, 0, 3600, 2400), (0, 0), (0, 2400), ["#4b2f2a", "#2b1a19"])
    for k in range(30):
        for j in range(21):
            x, y = k * 124.0 + (62 if j % 2 else 0) - 62, j * 118.0
            s.fade(
                box(x + 2, y + 2, x + 122, y + 116, 4),
                (x, y),
                (x + 124, y + 116),
                [("#6a3a34", "#63362f", "#70413a")[(k * 7 + j * 3) % 3], "#4a2824"],
            )


def scene(s: Sketch, anomalous: bool) -> None:
    wall(s)
    drinks = (None, None, None, "#8c1f2e", "#e2c05a", "#d98a2c")
    for level, floor in enumerate(FLOORS):
        chance = random.Random(60 + level)
        s.fill(box(0, floor + 16, 3600, floor + 60), "#000000", 0.28, mapped=False)
        s.fade(
            box(0, floor - 8, 3600, floor + 20),
            (0, floor - 8),
            (0, floor + 20),
            ["#b98a55", "#8a5c30", "#4f3218"],
        )
        x, place = 70.0, 0
        while x < 3560:
            odd = (level, place) == ODD
            kind = ("wine", "tumbler", "coupe", "bottle", "flute", "balloon", "bottle", "glass")[
                (place // 5 + level * 3) % 8
            ]
            if odd:
                kind = "wine"
            drink = None if odd else chance.choice(drinks)
            s.shade(oval(x + 8, floor + 1, 46, 6), 5, 0.4)
            with s.moved(x, floor), s.part("odd glass" if odd else f"{kind} {level}-{place}"):
                if kind == "bottle":
                    bottle(s, chance)
                elif kind in BOWLS:
                    stemmed(s, kind, drink, odd and anomalous, odd)
                else:
                    tumbler(s, *((118, 44) if kind == "tumbler" else (190, 36)), drink)
            x += {"coupe": 158, "balloon": 150, "bottle": 118}.get(kind, 116)
            place += 1
