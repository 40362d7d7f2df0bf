"""A walk in the park: a woman, her dog on a lead, a ball, a bench, a tree. Wrong: the dog has five legs."""

from __future__ import annotations

from shapes import box, limb, oval, polygon, ridge, smooth
from sketch import Sketch

COAT, FAR_COAT, DARK = "#b9743a", "#8f5527", "#3a2a22"
SKIN, HAIR = "#e3ac84", "#4a2c20"


def landscape(s: Sketch) -> None:
    s.fade(box(0, 0, 768, 400), (0, 0), (0, 380), ["#a9d3ea", "#eaf4ee"])
    for x, y, size in ((150, 90, 1.0), (560, 70, 0.8), (700, 120, 0.6)):
        cloud = [(x - 60 * size, y, 22 * size), (x - 20 * size, y - 14 * size, 34 * size)]
        for cx, cy, r in [
            *cloud,
            (x + 24 * size, y - 6 * size, 28 * size),
            (x + 60 * size, y + 2, 18 * size),
        ]:
            s.fill(oval(cx, cy, r * 1.25, r * 0.8), "#ffffff", 0.9)
    s.fill(
        ridge([(-20, 330), (120, 285), (300, 320), (470, 270), (640, 310), (800, 280)], 420),
        "#a8c99a",
    )
    s.fill(
        ridge([(-20, 370), (180, 335), (400, 365), (600, 330), (800, 355)], 600),
        "#86b56f",
    )
    s.fade(
        ridge([(-40, 500), (150, 478), (400, 492), (620, 470), (820, 482)], 640),
        (0, 470),
        (0, 576),
        ["#e3d2a8", "#cfb885"],
    )


def tree(s: Sketch) -> None:
    s.fill(oval(677, 440, 88, 10), "#4e7d45", 0.5)
    with s.part("tree"):
        s.fill(polygon((648, 442), (662, 250), (688, 250), (706, 442)), "#7a5438")
        s.fill(polygon((684, 442), (680, 250), (688, 250), (706, 442)), "#654329")
        for x, y, r, c in (
            (675, 120, 82, "#4e8a4c"),
            (618, 178, 64, "#4e8a4c"),
            (732, 180, 66, "#437a43"),
            (672, 195, 74, "#58964f"),
            (650, 105, 46, "#68a658"),
        ):
            s.fill(oval(x, y, r), c)


def bench(s: Sketch) -> None:
    s.fill(oval(524, 436, 95, 9), "#4e7d45", 0.5)
    with s.part("bench"):
        for x in (458, 596):
            s.line(smooth([(x, 432), (x, 372), (x + 6, 318)]), 8, "#3f4a4d")
            s.line(smooth([(x - 14, 434), (x - 12, 386)]), 8, "#3f4a4d")
        for y in (324, 344):
            s.fill(box(442, y, 618, y + 13, 4), "#b98a55")
        s.fill(box(436, 376, 612, 390, 4), "#a97a48")


def woman(s: Sketch) -> None:
    s.fill(oval(142, 520, 80, 11), "#a58f5e", 0.6)
    with s.part("woman"), s.moved(x=-48):
        s.fill(limb([(172, 370, 42), (160, 440, 34), (150, 505, 24)]), "#2f4858")
        s.fill(limb([(204, 370, 42), (214, 440, 34), (218, 505, 24)]), "#38566a")
        s.fill(smooth([(136, 506), (150, 498), (166, 510), (186, 520), (138, 521)], True), "#6e3a2c")
        s.fill(smooth([(204, 506), (218, 498), (234, 510), (254, 520), (206, 521)], True), "#7d4433")
        s.fill(limb([(156, 246, 32), (136, 300, 28), (138, 350, 22)]), "#a93f3a")
        s.fill(oval(138, 364, 11, 14), SKIN)
        s.fill(
            smooth(
                [
                    (150, 232),
                    (188, 222),
                    (222, 234),
                    (230, 300),
                    (236, 386),
                    (188, 396),
                    (142, 386),
                    (148, 300),
                ],
                True,
            ),
            "#c14e46",
        )
        s.fill(box(179, 196, 199, 234, 8), "#cf9770")
        s.fill(oval(182, 168, 38, 42), HAIR)
        s.fill(smooth([(152, 160), (144, 200), (150, 230), (172, 222), (180, 190)], True), HAIR)
        s.fill(oval(192, 176, 29, 34), SKIN)
        s.fill(
            smooth(
                [(160, 166), (172, 140), (200, 136), (220, 152), (206, 158), (186, 160), (172, 176)], True
            ),
            HAIR,
        )
        s.fill(oval(203, 174, 3, 4), DARK)
        s.fill(smooth([(218, 170), (227, 186), (217, 190)], True), SKIN)
        s.line(smooth([(203, 196), (210, 198), (216, 194)]), 2.5, "#a2493f")
        s.fill(limb([(214, 248, 32), (242, 296, 27), (282, 318, 20)]), "#b5463f")
        s.fill(oval(294, 323, 12, 11), SKIN)


def leg(s: Sketch, x: float, top: float, code: str, hind: bool) -> None:
    knee = -12 if hind else 4
    s.fill(
        limb(
            [
                (x, top, 40 if hind else 32),
                (x + (6 if hind else 0), top + 40, 24),
                (x + knee, top + 70, 17),
                (x + (knee if hind else 2), top + 104, 15),
            ]
        ),
        code,
    )
    s.fill(oval(x + (knee if hind else 2) + 7, top + 107, 15, 8), code)


def dog(s: Sketch, anomalous: bool) -> None:
    s.fill(oval(440, 520, 130, 12), "#a58f5e", 0.6)
    with s.part("dog"):
        s.line(smooth([(334, 396), (308, 374), (298, 346), (306, 322)]), 15, COAT)
        leg(s, 384, 404, FAR_COAT, True)
        leg(s, 504, 404, FAR_COAT, False)
        if anomalous:
            with s.part("fifth leg"):
                leg(s, 432, 412, COAT, False)
        s.fill(
            smooth(
                [
                    (332, 392),
                    (372, 372),
                    (440, 376),
                    (500, 364),
                    (534, 372),
                    (536, 416),
                    (506, 444),
                    (440, 440),
                    (380, 446),
                    (340, 434),
                ],
                True,
            ),
            COAT,
        )
        s.fill(
            smooth([(396, 440), (440, 436), (500, 442), (470, 428), (420, 428)], True),
            "#a3632f",
            mapped=False,
        )
        leg(s, 354, 408, COAT, True)
        leg(s, 528, 406, COAT, False)
        s.fill(limb([(514, 386, 62), (548, 346, 46)]), COAT)
        s.fill(oval(562, 328, 35, 30), COAT)
        s.fill(smooth([(570, 316), (606, 322), (618, 334), (606, 348), (570, 352)], True), "#c98a50")
        s.fill(oval(615, 328, 8, 7), DARK)
        s.line(smooth([(608, 344), (592, 348), (580, 344)]), 2.5, DARK)
        s.fill(oval(576, 318, 4.5, 5), DARK)
        s.fill(
            smooth([(540, 306), (556, 304), (560, 330), (548, 362), (532, 356), (530, 326)], True), FAR_COAT
        )
        with s.within(limb([(514, 386, 62), (548, 346, 46)])):
            s.line(smooth([(516, 352), (540, 372), (576, 372)]), 9, "#2f6f8f")
    with s.part("lead"):
        s.line(smooth([(248, 324), (330, 376), (450, 372), (532, 362)]), 3.5, "#5a2d24")


def ball(s: Sketch) -> None:
    s.fill(oval(688, 531, 30, 6), "#a58f5e", 0.6)
    with s.part("ball"):
        s.fill(oval(688, 504, 27), "#e2b33c")
        s.line(smooth([(664, 494), (684, 506), (712, 500)]), 5, "#ffffff")
        s.fill(oval(679, 493, 7, 5), "#f4d98a")


def scene(s: Sketch, anomalous: bool) -> None:
    landscape(s)
    tree(s)
    bench(s)
    woman(s)
    dog(s, anomalous)
    ball(s)
