"""A woman waves from a kitchen table: mug, plant, window. Wrong: six fingers on the raised hand."""

from __future__ import annotations

import skia  # type: ignore[import-not-found]  # needed for these scenes only
from shapes import box, limb, oval, polygon, polyline, ridge, smooth
from sketch import Sketch

SKIN, SHADE, HAIR = "#e8b48e", "#cf9168", "#5b2f22"
JUMPER, JUMPER_DARK = "#e0a33a", "#c2862a"


def room(s: Sketch) -> None:
    s.fade(box(0, 0, 768, 576), (0, 0), (0, 576), ["#5d8f91", "#4a7a7f"])
    with s.part("window"):
        s.fill(box(520, 40, 748, 330, 4), "#f3ede0")
        s.fade(box(536, 56, 732, 314), (0, 56), (0, 314), ["#9fd0ea", "#e6f2ee"])
        s.fill(oval(690, 100, 22), "#fbe7a6")
        s.fill(ridge([(536, 262), (590, 230), (650, 258), (700, 234), (732, 248)], 314), "#8db883")
        s.fill(box(628, 56, 640, 314), "#f3ede0")
        s.fill(box(536, 176, 732, 188), "#f3ede0")
        s.fill(box(508, 322, 760, 340, 3), "#fbf6ea")
    s.line(polyline((478, 20), (768, 20)), 8, "#6b4a34")
    s.fill(oval(474, 20, 9), "#6b4a34")
    curtain = smooth([(552, 32), (550, 130), (534, 240), (540, 356)])
    for x, y in ((490, 358), (484, 240), (492, 130), (496, 32)):
        curtain.lineTo(x, y)
    curtain.close()
    s.fill(curtain, "#d8694f")
    s.line(smooth([(514, 40), (512, 160), (504, 280), (506, 350)]), 3, "#bd553e")
    s.line(smooth([(534, 40), (531, 150), (518, 260), (522, 350)]), 3, "#bd553e")
    for x in (502, 524, 546):
        s.line(oval(x, 24, 6, 9), 2.5, "#c9a063")


def hand(s: Sketch, fingers: int) -> None:
    """A raised right hand, palm to the viewer, wrist at the origin, thumb towards +x."""
    s.fill(limb([(20, -34, 30), (52, -66, 23), (66, -88, 19)]), SKIN)
    spread, step = 18.0, 1 / (fingers - 1)
    lengths = {4: (62, 78, 82, 72), 5: (58, 72, 82, 80, 70)}[fingers]
    for k, length in enumerate(lengths):
        along = k * step * 2 - 1
        name = "extra finger" if fingers == 5 and k == 1 else "hand"
        with s.part(name), s.moved(along * 32, -80 + abs(along) * 7, turn=along * spread):
            s.fill(limb([(0, 16, 17), (0, -length * 0.5, 16), (0, -length, 13)]), SKIN)
            s.line(smooth([(-5, -length * 0.45), (5, -length * 0.45)]), 1.8, SHADE, mapped=False)
    s.fill(smooth([(-26, -4), (-42, -46), (-40, -84), (0, -96), (38, -86), (40, -40), (26, -4)], True), SKIN)
    s.line(smooth([(-28, -66), (0, -58), (30, -70)]), 2.2, SHADE, mapped=False)
    s.line(smooth([(24, -76), (4, -44), (6, -16)]), 2.2, SHADE, mapped=False)


def body(s: Sketch) -> None:
    s.fill(
        smooth([(246, 226), (238, 330), (268, 396), (416, 396), (446, 330), (436, 214), (342, 132)], True),
        HAIR,
    )
    s.fill(
        smooth([(214, 590), (222, 440), (262, 396), (342, 380), (424, 396), (466, 440), (476, 590)], True),
        JUMPER,
    )
    s.fill(box(312, 330, 370, 410, 24), SHADE)
    s.line(smooth([(302, 396), (340, 412), (382, 396)]), 13, JUMPER_DARK)
    s.fill(oval(341, 262, 72, 88), SKIN)
    s.fill(
        smooth(
            [
                (262, 262),
                (268, 186),
                (342, 146),
                (420, 190),
                (424, 266),
                (400, 226),
                (352, 196),
                (306, 216),
                (276, 250),
            ],
            True,
        ),
        HAIR,
    )
    for x in (314, 368):
        s.fill(oval(x, 262, 7, 9), "#33211b")
        s.fill(oval(x + 2.5, 258, 2.4), "#ffffff")
        s.line(smooth([(x - 14, 240), (x, 234), (x + 14, 239)]), 4, HAIR)
        s.fill(oval(x + (-16 if x < 341 else 16), 290, 13, 8), "#e08f74", 0.5)
    s.line(smooth([(342, 264), (348, 288), (338, 291)]), 3, SHADE)
    s.fill(smooth([(316, 312), (341, 317), (368, 311), (360, 328), (341, 334), (324, 328)], True), "#b5483f")
    s.fill(smooth([(322, 315), (341, 318), (362, 314), (356, 321), (341, 323), (328, 321)], True), "#fffaf3")


def woman(s: Sketch, anomalous: bool) -> None:
    with s.part("woman"):
        body(s)
        s.fill(limb([(444, 440, 66), (480, 520, 60), (440, 566, 52)]), JUMPER_DARK)
        s.fill(limb([(244, 440, 66), (168, 486, 58), (150, 356, 44)]), JUMPER_DARK)
        s.fill(limb([(150, 356, 46), (149, 336, 45)]), "#f0bb58")
        s.fill(limb([(149, 318, 33), (148, 290, 32)]), SKIN)
    with s.part("hand"), s.moved(148, 292, turn=-4):
        hand(s, 5 if anomalous else 4)


def smooth_band(x0: float, x1: float, y0: float, y1: float) -> skia.Path:
    """A band round a mug, seen a little from above."""
    middle = (x0 + x1) / 2
    path = smooth([(x0, y0), (middle, y0 + 9), (x1, y0)])
    path.lineTo(x1, y1)
    path.quadTo(middle, y1 + 18, x0, y1)
    path.close()
    return path


def table(s: Sketch) -> None:
    s.fade(box(0, 520, 768, 576), (0, 520), (0, 576), ["#a8764a", "#8a5d38"])
    s.line(smooth([(0, 521), (768, 521)]), 4, "#c08d5e")
    with s.part("mug"):
        s.line(smooth([(568, 462), (598, 464), (600, 504), (568, 510)]), 11, "#e9e4d6")
        s.fill(box(494, 442, 576, 530), "#f4f0e4")
        s.fill(oval(535, 530, 41, 10), "#f4f0e4")
        s.fill(smooth_band(494, 576, 474, 492), "#c9574a")
        s.fill(oval(535, 442, 41, 10), "#ded7c6")
        s.fill(oval(535, 444, 35, 7), "#5a3522")
    for dx in (-12, 12):
        s.line(
            smooth([(535 + dx, 426), (529 + dx, 408), (540 + dx, 392), (534 + dx, 372)]),
            4,
            "#ffffff",
            0.45,
            mapped=False,
        )
    with s.part("plant"):
        for k, (dx, dy) in enumerate(
            [(-52, -96), (-26, -128), (8, -140), (38, -118), (60, -88), (-8, -92), (26, -84)]
        ):
            code = ("#3f7d4a", "#56985a", "#2f6a40")[k % 3]
            s.fill(
                smooth(
                    [
                        (690, 476),
                        (690 + dx * 0.25 - 14, 476 + dy * 0.6),
                        (690 + dx, 476 + dy),
                        (690 + dx * 0.55 + 14, 476 + dy * 0.5),
                    ],
                    True,
                ),
                code,
            )
        s.fill(polygon((648, 470), (736, 470), (724, 540), (660, 540)), "#b9603f")
        s.fill(box(642, 460, 742, 482, 5), "#cb7350")


def scene(s: Sketch, anomalous: bool) -> None:
    room(s)
    woman(s, anomalous)
    table(s)
