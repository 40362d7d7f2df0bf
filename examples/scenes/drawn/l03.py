"""A crowd that waves: 28 people with open hands in the air. Wrong: one hand has six fingers."""

from __future__ import annotations

import math
import random
from itertools import pairwise

from shapes import Point, box, limb, oval, polygon, polyline, smooth
from sketch import Sketch

SIZE = (3600, 2400)
SKIN = (
    ("#f0c8a4", "#c8946c"),
    ("#e2b187", "#b07d55"),
    ("#c68c5e", "#93613a"),
    ("#9c6a43", "#6d4626"),
    ("#6f4a31", "#48301f"),
)
HAIR = ("#2a1d16", "#4a3020", "#7a5230", "#b98a4c", "#1c1a1c", "#8d8a86", "#8a3f24")
CLOTH = (
    "#b5473c", "#2f5f86", "#d3a13a", "#3f7a58", "#6d4a78", "#d8d2c4", "#394250", "#c06a3a", "#4f8b94",
    "#8c3048", "#7d8a4a", "#e0b9a8",
)  # fmt: skip
ROWS = 4
ODD = (2, 1)  # Row and place of the fault.


def dim(code: str) -> str:
    """The colour in shade."""
    return "#" + "".join(f"{int(code[at : at + 2], 16) * 11 // 20:02x}" for at in (1, 3, 5))


def hand(s: Sketch, tones: tuple[str, str], right: bool, fingers: int) -> None:
    """An open palm that faces the viewer: the wrist at the origin, the fingers up, the thumb to the right."""
    light, dark = tones
    side = 1 if right else -1
    tips = []
    for k in range(fingers):
        at = (k / (fingers - 1) - 0.5) * 2
        x = at * 15.5
        long = (35, 42, 40, 29)[round(k * 3 / (fingers - 1))]
        tips.append(((x * side, -32.0), ((x + at * 9) * side, -38.0 - long)))
    thumb = ((12.0 * side, -14.0), (34.0 * side, -36.0))
    width = 8.4 if fingers == 4 else 7.4
    palm = smooth([(-11, 4), (-18, -16), (-17, -36), (0, -42), (17, -36), (18, -16), (11, 4)], True)
    for root, tip in (*tips, thumb):
        s.line(polyline(root, tip), width + 3.2, dark)
    s.line(palm, 3.2, dark)
    for root, tip in (*tips, thumb):
        s.line(polyline(root, tip), width, light)
    s.fill(palm, light)
    s.line(smooth([(-11, -22), (0, -26), (12, -24)]), 1.4, dark, 0.6, mapped=False)
    s.line(smooth([(9 * side, -30), (2 * side, -20), (4 * side, -4)]), 1.4, dark, 0.6, mapped=False)
    for root, tip in tips:
        for part in (0.36, 0.68):
            x, y = root[0] + part * (tip[0] - root[0]), root[1] + part * (tip[1] - root[1])
            s.line(polyline((x - 2.6, y), (x + 2.6, y)), 1.1, dark, 0.55, mapped=False)


def arm(
    s: Sketch, cloth: str, tones: tuple[str, str], side: int, lean: float, odd: bool, anomalous: bool
) -> None:
    """A raised arm from the shoulder; `side` is -1 on the left of the picture. The thumb points inward."""
    elbow = (side * (88 + 26 * lean), -74.0)
    wrist = (side * (96 + 60 * lean), -196.0)
    sleeve = limb(
        [(side * 62, -20, 50), (*elbow, 42), ((elbow[0] + wrist[0]) / 2, (elbow[1] + wrist[1]) / 2, 34)]
    )
    s.fill(limb([(elbow[0], elbow[1], 28), (*wrist, 22)]), tones[1])
    s.fill(limb([(elbow[0] - 2, elbow[1], 24), (wrist[0] - 1, wrist[1], 18)]), tones[0])
    s.line(sleeve, 3, "#000000", 0.28)
    s.fade(sleeve, (elbow[0] - 40, 0), (elbow[0] + 40, 0), [cloth, cloth, dim(cloth)])
    turn = math.degrees(math.atan2(wrist[0] - elbow[0], -(wrist[1] - elbow[1])))
    with s.moved(*wrist, turn=turn), s.part("odd hand" if odd else s.now):
        hand(s, tones, side < 0, 5 if odd and anomalous else 4)


def face(s: Sketch, chance: random.Random, tones: tuple[str, str]) -> None:
    """About the middle of the head, which is 88 wide and 112 high."""
    hair, long = chance.choice(HAIR), chance.random() < 0.45
    if long:
        s.fill(
            smooth(
                [
                    (-54, -20),
                    (-30, -66),
                    (0, -72),
                    (30, -66),
                    (54, -20),
                    (58, 66),
                    (30, 74),
                    (-30, 74),
                    (-58, 66),
                ],
                True,
            ),
            hair,
        )
    s.fill(box(-19, 30, 19, 78, 10), tones[1])
    for x in (-44, 44):
        s.fill(oval(x, 4, 9, 14), tones[1])
    s.glow(oval(0, 0, 44, 55), (-12, -14), 74, [tones[0], tones[0], tones[1]])
    s.fill(
        smooth([(-46, 0), (-44, -42), (0, -66), (44, -42), (46, 0), (36, -24), (4, -36), (-34, -26)], True),
        hair,
    )
    eye = chance.choice(("#3a2a1e", "#2f4a5f", "#3f5a3a"))
    for x in (-17, 17):
        s.fill(oval(x, -4, 8, 5), "#f6f2ea")
        s.fill(oval(x, -4, 4.2), eye)
        s.fill(oval(x, -4, 2), "#0d0b0a")
        s.line(smooth([(x - 9, -15), (x, -18), (x + 9, -15)]), 3, hair, 0.9)
    s.line(smooth([(-2, 2), (-6, 15), (4, 16)]), 2.2, tones[1])
    if chance.random() < 0.5:
        mouth = smooth([(-17, 26), (0, 31), (17, 26), (0, 42)], True)
        s.fill(mouth, "#7a2a26")
        s.fill(box(-11, 27.5, 11, 32, 2), "#f7f3ea")
    else:
        s.line(smooth([(-15, 28), (0, 35), (15, 28)]), 3.2, "#8c3a34")
    if chance.random() < 0.22:
        for x in (-17, 17):
            s.line(oval(x, -4, 13, 11), 2.6, "#23262c")
        s.line(polyline((-4, -5), (4, -5)), 2.6, "#23262c")


def person(s: Sketch, chance: random.Random, odd: bool, anomalous: bool) -> None:
    """From the middle of the shoulders; the body goes down behind the next row."""
    tones, cloth = chance.choice(SKIN), chance.choice(CLOTH)
    body = smooth([(-90, 300), (-92, 60), (-78, -16), (-24, -34), (24, -34), (78, -16), (92, 60), (90, 300)])
    body.lineTo(90, 2400)
    body.lineTo(-90, 2400)
    body.close()
    arms = chance.choice(((-1,), (1,), (-1, 1), (-1, 1)))
    if odd:
        arms = (1,)
    leans = [chance.uniform(-0.3, 0.25) for _ in range(2)]
    if odd:
        leans = [-0.3, -0.3]
    for side in (-1, 1):
        if side not in arms:  # The hand is behind the back.
            sleeve = limb([(side * 66, 14, 50), (side * 106, 140, 44), (side * 70, 230, 38)])
            s.line(sleeve, 3, "#000000", 0.28)
            s.fade(sleeve, (side * 96 - 34, 0), (side * 96 + 34, 0), [cloth, cloth, dim(cloth)])
    s.line(body, 4, "#000000", 0.3)
    s.fade(body, (-90, 0), (90, 0), [cloth, cloth, dim(cloth)])
    pattern = chance.randrange(4)
    with s.within(body):
        for k in range(7):
            if pattern == 1:
                s.fill(box(-100, 10 + k * 40, 100, 26 + k * 40), "#f3eee2", 0.5, mapped=False)
            elif pattern == 2:
                s.fill(oval(0, 20 + k * 40, 5), "#f3eee2", 0.9, mapped=False)
        trousers = chance.choice(("#2b3340", "#3a4a66", "#4a3d33", "#23262c", "#5a6068"))
        s.fade(box(-100, 262, 100, 2400), (-90, 0), (90, 0), [trousers, dim(trousers)])
        s.fill(box(-100, 256, 100, 276), "#3a2718")
        s.fill(box(-13, 253, 13, 279, 3), "#c9a45a")
        s.line(polyline((0, 282), (0, 2400)), 3, "#000000", 0.4)
    s.fill(polygon((-24, -36), (24, -36), (0, 4)), tones[1])
    s.line(polyline((-26, -36), (0, 6), (26, -36)), 4, "#f3eee2", 0.8)
    with s.moved(0, -98):
        face(s, chance, tones)
    for side, lean in zip((-1, 1), leans, strict=True):
        if side in arms:
            arm(s, cloth, tones, side, lean, odd, anomalous)


def house(s: Sketch, x: float, top: float, wall: str, chance: random.Random) -> None:
    """A front with a cornice and rows of windows, some with shutters, a curtain or a plant."""
    s.fade(box(x, top, x + 560, 1300), (0, top), (0, 1300), [wall, "#8d7c6c"])
    s.fill(box(x - 10, top - 16, x + 570, top + 16), "#efe8da")
    s.fill(box(x - 4, top + 16, x + 564, top + 26), "#000000", 0.25)
    for j in range(16):
        left, above = x + 50 + (j % 4) * 124, top + 70 + (j // 4) * 210
        s.fill(box(left - 9, above - 9, left + 97, above + 145, 3), "#efe8da")
        s.fade(
            box(left, above, left + 88, above + 136),
            (left, above),
            (left + 88, above + 136),
            ["#7f95a8", "#3f4d5c"],
        )
        kind = chance.randrange(4)
        if kind == 0:
            s.fill(box(left, above, left + 30, above + 136), "#e9e2d2", 0.8)
            s.fill(box(left + 58, above, left + 88, above + 136), "#e9e2d2", 0.8)
        elif kind == 1:
            for m in range(7):
                s.fill(oval(left + 8 + m * 12, above + 122 - 6 * (m % 2), 11), "#4c7a45")
                s.fill(oval(left + 10 + m * 12, above + 114 - 6 * (m % 3), 5), "#d0526a")
        elif kind == 2:
            s.fill(box(left, above, left + 88, above + 48), "#d8c9a4")
            for m in range(4):
                s.line(polyline((left, above + 10 + m * 12), (left + 88, above + 10 + m * 12)), 2, "#a8966c")
        s.line(polyline((left + 44, above), (left + 44, above + 136)), 5, "#efe8da")
        s.line(polyline((left, above + 60), (left + 88, above + 60)), 5, "#efe8da")
        s.fill(box(left - 16, above + 145, left + 104, above + 157), "#d9cfbc")


def bunting(s: Sketch, start: Point, end: Point, sag: float, count: int) -> None:
    """A string of flags between two points."""
    at = [
        (
            start[0] + (end[0] - start[0]) * k / count,
            start[1] + (end[1] - start[1]) * k / count + sag * 4 * k / count * (1 - k / count),
        )
        for k in range(count + 1)
    ]
    s.line(smooth(at), 4, "#3a3530")
    for k, ((x, y), (u, v)) in enumerate(pairwise(at)):
        a, b = (x * 0.8 + u * 0.2, y * 0.8 + v * 0.2), (x * 0.2 + u * 0.8, y * 0.2 + v * 0.8)
        s.fill(polygon(a, b, ((x + u) / 2, (y + v) / 2 + 74)), CLOTH[k * 5 % len(CLOTH)])


def scene(s: Sketch, anomalous: bool) -> None:
    s.fade(box(0, 0, 3600, 2400), (0, 0), (0, 900), ["#8fb8d8", "#d6e3e6", "#a9b7a0"])
    chance = random.Random(8)
    for k in range(6):
        house(s, k * 620 - 40, 90 + 40 * (k % 3), ("#c9a78a", "#b9b2a4", "#d0bd98")[k % 3], chance)
    bunting(s, (-40, 150), (1824, 90), 180, 17)
    bunting(s, (1824, 90), (3640, 170), 160, 16)
    chance = random.Random(17)
    for row in range(ROWS):
        for place in range(7):
            odd = (row, place) == ODD
            x = 130 + place * 530 + (265 if row % 2 else 0) + chance.uniform(-30, 30)
            y = 850 + row * 440 + chance.uniform(-24, 24)
            with s.moved(x, y, scale=1.5), s.part("odd person" if odd else f"person {row}-{place}"):
                person(s, chance, odd, anomalous)
