"""A crowd that waves: 110 people, most with an open hand in the air. Wrong: one hand has six fingers."""

from __future__ import annotations

import math
import random

from shapes import box, limb, oval, polygon, polyline, smooth
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
ROWS = 7
ODD = (3, 9)  # Row and place of the fault.


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
    s.fade(sleeve, (elbow[0] - 40, 0), (elbow[0] + 40, 0), [cloth, cloth, "#20242c"])
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
    s.line(body, 4, "#000000", 0.3)
    s.fade(body, (-90, 0), (90, 0), [cloth, cloth, "#20242c"])
    pattern = chance.randrange(4)
    with s.within(body):
        for k in range(24):
            if pattern == 1:
                s.fill(box(-100, 10 + k * 40, 100, 26 + k * 40), "#f3eee2", 0.5, mapped=False)
            elif pattern == 2:
                s.fill(oval(0, 20 + k * 40, 5), "#f3eee2", 0.9, mapped=False)
    s.fill(polygon((-24, -36), (24, -36), (0, 4)), tones[1])
    for side in (-1, 1):
        if side not in arms:
            sleeve = limb([(side * 68, 14, 50), (side * 84, 130, 44), (side * 84, 2400, 40)])
            s.fade(sleeve, (side * 84 - 30, 0), (side * 84 + 30, 0), [cloth, cloth, "#20242c"])
            s.line(sleeve, 3, "#000000", 0.28)
    with s.moved(0, -98):
        face(s, chance, tones)
    for side, lean in zip((-1, 1), leans, strict=True):
        if side in arms:
            arm(s, cloth, tones, side, lean, odd, anomalous)


def scene(s: Sketch, anomalous: bool) -> None:
    s.fade(box(0, 0, 3600, 2400), (0, 0), (0, 900), ["#8fb8d8", "#d6e3e6", "#a9b7a0"])
    for k in range(9):
        x = k * 420 - 60
        s.fade(
            box(x, 60 + 30 * (k % 3), x + 380, 700),
            (0, 60),
            (0, 700),
            [("#c9a78a", "#b9b2a4", "#d0bd98")[k % 3], "#8d7c6c"],
        )
        for j in range(20):
            left, top = x + 34 + (j % 5) * 66, 110 + 30 * (k % 3) + (j // 5) * 110
            s.fill(box(left, top, left + 40, top + 66, 3), "#4f5f70")
            s.line(box(left, top, left + 40, top + 66, 3), 4, "#efe8da")
    chance = random.Random(17)
    for row in range(ROWS):
        count = 16
        for place in range(count):
            odd = (row, place) == ODD
            x = 60 + place * 235 + (118 if row % 2 else 0) + chance.uniform(-22, 22)
            y = 560 + row * 300 + chance.uniform(-14, 14)
            with s.moved(x, y, scale=0.86), s.part("odd person" if odd else f"person {row}-{place}"):
                person(s, chance, odd, anomalous)
