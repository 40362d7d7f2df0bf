"""A lake at dusk: swan, angler in a boat, reeds, moon. Wrong: the swan's reflection faces the other way."""

from __future__ import annotations

from shapes import box, limb, oval, polygon, polyline, ridge, smooth
from sketch import Sketch

WATER = 300


def swan(s: Sketch) -> None:
    """Faces right, about 190 wide, floats on y = 0."""
    s.fill(
        smooth(
            [
                (-92, -46),
                (-70, -40),
                (-20, -62),
                (40, -50),
                (66, -22),
                (54, 2),
                (0, 10),
                (-54, 2),
                (-80, -22),
            ],
            True,
        ),
        "#f7f7f4",
    )
    s.line(smooth([(44, -24), (72, -60), (56, -104), (70, -136), (92, -134)]), 19, "#f7f7f4")
    s.fill(oval(86, -136, 19, 14), "#f7f7f4")
    s.fill(polygon((101, -142), (130, -126), (100, -126)), "#e08a2c")
    s.fill(polygon((98, -145), (108, -138), (98, -128)), "#22252b")
    s.fill(oval(90, -139, 2.6), "#22252b")
    s.fill(smooth([(-84, -44), (-40, -54), (20, -42), (34, -18), (-10, -4), (-56, -14)], True), "#dfe3ea")
    for k in range(3):
        s.line(
            smooth([(-66 + 16 * k, -36 + 7 * k), (-20 + 10 * k, -34 + 7 * k), (16 + 4 * k, -26 + 6 * k)]),
            3,
            "#c3cad6",
            mapped=False,
        )


def boat(s: Sketch) -> None:
    s.fill(limb([(6, -30, 26), (44, -26, 24)]), "#2d3f55")
    s.fill(smooth([(-26, -84), (2, -94), (26, -80), (30, -30), (-24, -28)], True), "#a8493c")
    s.fill(limb([(8, -76, 20), (34, -54, 17), (62, -62, 14)]), "#91392e")
    s.fill(oval(66, -64, 8), "#dba27c")
    s.fill(box(-4, -104, 12, -84, 5), "#c98f6b")
    s.fill(oval(6, -116, 18, 21), "#dba27c")
    s.fill(smooth([(-22, -122), (30, -128), (36, -122), (30, -118), (-20, -114)], True), "#54462f")
    s.fill(smooth([(-12, -122), (-8, -142), (18, -144), (22, -124)], True), "#655539")
    s.fill(oval(15, -112, 2.2), "#2b1d18")
    s.line(smooth([(58, -58), (98, -106), (128, -138)]), 3, "#4b3a28")
    s.line(polyline((128, -138), (128, 0)), 1.4, "#e9e2d4")
    s.fill(oval(128, -3, 4, 5), "#d8463a")
    s.fill(
        smooth(
            [
                (-120, -34),
                (-70, -30),
                (0, -28),
                (70, -30),
                (124, -40),
                (96, -2),
                (60, 8),
                (-60, 8),
                (-98, -2),
            ],
            True,
        ),
        "#7b4b2c",
    )
    s.line(smooth([(-118, -32), (0, -26), (122, -38)]), 6, "#99653e")


def shore(s: Sketch) -> None:
    far = [(-30, 190), (70, 150), (180, 205), (290, 170), (420, 232), (540, 205), (660, 238), (800, 200)]
    near = [(-30, 246), (90, 226), (210, 262), (330, 250), (470, 276), (620, 256), (800, 268)]
    s.fill(ridge(far, WATER), "#6d7fa3")
    s.fill(ridge(near, WATER), "#47597d")


def reeds(s: Sketch) -> None:
    with s.part("reeds"):
        for k in range(11):
            x, lean, high = 18 + 15 * k, (k % 4 - 1.5) * 12, 120 + (k * 47) % 90
            s.line(
                smooth([(x, 590), (x + lean * 0.3, 576 - high * 0.5), (x + lean, 576 - high)]), 5, "#2e4a3a"
            )
            if k % 2:
                s.line(smooth([(x + lean * 0.94, 578 - high), (x + lean * 1.05, 546 - high)]), 12, "#5d3d27")


def ripples(s: Sketch) -> None:
    rows = [
        (60, 330, 80),
        (520, 330, 90),
        (130, 420, 70),
        (680, 400, 70),
        (640, 470, 60),
        (330, 500, 110),
        (640, 556, 120),
    ]
    for x, y, w in rows:
        s.line(smooth([(x - w / 2, y), (x, y - 2), (x + w / 2, y)]), 2.5, "#ffffff", 0.28, mapped=False)


def scene(s: Sketch, anomalous: bool) -> None:
    s.fade(box(0, 0, 768, WATER), (0, 0), (0, WATER), ["#39436e", "#8e7fa6", "#d9a3b0"])
    with s.part("moon"):
        s.fill(oval(690, 92, 40), "#fbeecb")
    s.fill(oval(677, 82, 9), "#ecdcb0")
    s.fill(oval(702, 104, 6), "#ecdcb0")
    shore(s)
    s.fade(box(0, WATER, 768, 576), (0, WATER), (0, 576), ["#c79aa8", "#7c7299", "#343d63"])
    with s.upside_down(WATER, 0.45):
        shore(s)
    with s.part("moon reflection"):
        for k in range(-3, 4):  # The moon stands 208 above the water line; its image lies 208 below.
            half = (40**2 - (k * 12) ** 2) ** 0.5 + 3
            s.fill(oval(690 + (-1) ** k * 3, 508 + k * 12, half, 4.5), "#fbeecb", 0.55)
    with s.part("boat reflection"), s.upside_down(352, 0.5), s.moved(228, 352):
        boat(s)
    with s.part("boat"), s.moved(228, 352):
        boat(s)
    with s.part("swan reflection"), s.upside_down(402, 0.6), s.moved(490, 396, flip=anomalous):
        swan(s)
    with s.part("swan"), s.moved(490, 396):
        swan(s)
    ripples(s)
    reeds(s)
