"""A woman waves from a kitchen table: mug, plant, window. Wrong: six fingers on the raised hand."""

from __future__ import annotations

from shapes import box, limb, oval, polygon, smooth
from sketch import Sketch

SKIN, SHADE, HAIR = "#e8b48e", "#cf9168", "#5b2f22"
JUMPER, JUMPER_DARK = "#e0a33a", "#c2862a"


def room(s: Sketch) -> None:
    s.fade(box(0, 0, 768, 576), (0, 0), (0, 576), ["#5d8f91", "#4a7a7f"])
    with s.part("window"):
        s.fill(box(520, 40, 748, 330, 4), "#f3ede0")
        s.fade(box(536, 56, 732, 314), (0, 56), (0, 314), ["#9fd0ea", "#e6f2ee"])
        s.fill(oval(690, 100, 22), "#fbe7a6")
        s.fill(
            smooth(
                [(536, 260), (590, 226), (650, 256), (700, 230), (732, 246), (732, 314), (536, 314)], True
            ),
            "#8db883",
        )
        s.fill(box(628, 56, 640, 314), "#f3ede0")
        s.fill(box(536, 176, 732, 188), "#f3ede0")
        s.fill(box(508, 322, 760, 340, 3), "#fbf6ea")
    s.fill(
        smooth([(500, 24), (552, 24), (540, 150), (512, 250), (508, 340), (486, 340), (492, 180)], True),
        "#d8694f",
    )
    s.line(smooth([(512, 30), (508, 160), (498, 334)]), 3, "#bd553e")
    s.line(smooth([(534, 30), (526, 140), (508, 240)]), 3, "#bd553e")
    s.line(smooth([(478, 24), (768, 24)]), 9, "#6b4a34")


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


def table(s: Sketch) -> None:
    s.fade(box(0, 520, 768, 576), (0, 520), (0, 576), ["#a8764a", "#8a5d38"])
    s.line(smooth([(0, 521), (768, 521)]), 4, "#c08d5e")
    with s.part("mug"):
        s.line(smooth([(596, 462), (630, 462), (632, 506), (596, 510)]), 12, "#e9e4d6")
        s.fill(box(520, 440, 602, 540, 12), "#f4f0e4")
        s.fill(box(520, 474, 602, 492), "#c9574a")
        s.fill(oval(561, 442, 41, 9), "#ded7c6")
        s.fill(oval(561, 443, 35, 6.5), "#5a3522")
    for dx in (-12, 12):
        s.line(
            smooth([(561 + dx, 426), (555 + dx, 408), (566 + dx, 392), (560 + dx, 372)]),
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
        s.fill(polygon((648, 470), (736, 470), (724, 546), (660, 546)), "#b9603f")
        s.fill(box(642, 460, 742, 482, 5), "#cb7350")


def scene(s: Sketch, anomalous: bool) -> None:
    room(s)
    woman(s, anomalous)
    table(s)
