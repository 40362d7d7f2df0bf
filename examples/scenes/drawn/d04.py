"""A cyclist on a lane: bicycle, church, sheep. Wrong: the front fork is missing."""

from __future__ import annotations

from shapes import box, limb, oval, polygon, polyline, ridge, smooth, wheel
from sketch import Sketch

SKIN, FRAME, TYRE = "#d99f78", "#c23b34", "#2b2d33"
REAR, FRONT, RADIUS = (276, 444), (520, 444), 76
CRANK, SADDLE, HEAD = (372, 446), (338, 318), (476, 316)


def country(s: Sketch) -> None:
    s.fade(box(0, 0, 768, 576), (0, 0), (0, 420), ["#8fc6e8", "#f5efdc"])
    for x, y, size in ((120, 96, 1.1), (330, 70, 0.7), (690, 84, 0.8)):
        for dx, dy, r in ((-44, 4, 22), (-14, -8, 32), (22, -4, 28), (52, 6, 18)):
            s.fill(oval(x + dx * size, y + dy * size, r * size * 1.2, r * size * 0.75), "#ffffff", 0.92)
    s.fill(
        ridge([(-20, 340), (140, 270), (330, 320), (520, 260), (660, 300), (800, 330)], 470),
        "#b9cf8f",
    )
    s.fill(
        ridge([(-20, 400), (200, 350), (460, 384), (680, 350), (800, 372)], 540),
        "#94b86c",
    )
    s.fade(box(0, 478, 768, 576), (0, 478), (0, 576), ["#8d8f93", "#75777c"])
    s.fill(box(0, 472, 768, 482), "#d9d3bd")
    for k in range(6):
        s.fill(box(20 + 140 * k, 548, 90 + 140 * k, 556, 3), "#e9e6da")


def church(s: Sketch) -> None:
    s.fill(oval(650, 353, 92, 9), "#6f8a4f", 0.5)
    with s.part("church"):
        s.fill(box(612, 262, 716, 352), "#efe4cf")
        s.fill(polygon((600, 264), (664, 220), (728, 264)), "#a9573f")
        s.fill(box(580, 200, 624, 352), "#e2d5bc")
        s.fill(polygon((574, 202), (602, 126), (630, 202)), "#8f4634")
        s.line(polyline((602, 128), (602, 104)), 3, "#54463a")
        s.line(polyline((594, 112), (610, 112)), 3, "#54463a")
        s.fill(oval(602, 228, 11), "#ffffff")
        s.line(polyline((602, 220), (602, 228), (608, 231)), 2, "#3a342e")
        s.fill(box(592, 312, 612, 352, 9), "#6d4a34")
        for x in (640, 668, 696):
            s.fill(box(x - 8, 286, x + 8, 322, 8), "#7fa3b5")


def sheep(s: Sketch) -> None:
    s.fill(oval(109, 454, 52, 7), "#5f7d44", 0.5)
    with s.part("sheep"):
        for x in (78, 94, 122, 138):
            s.line(polyline((x, 424), (x, 452)), 7, "#3b3733")
        for dx, dy, r in ((0, 0, 26), (-24, 4, 20), (26, 2, 22), (-10, -14, 20), (14, -14, 20)):
            s.fill(oval(106 + dx, 412 + dy, r, r * 0.85), "#f6f2e8")
        s.fill(oval(146, 398, 13, 17), "#3b3733")
        s.fill(oval(134, 390, 9, 4), "#3b3733")
        s.fill(oval(150, 394, 2), "#ffffff")


def wheels(s: Sketch) -> None:
    for centre, name in ((REAR, "rear wheel"), (FRONT, "front wheel")):
        with s.part(name):
            s.line(wheel(*centre, RADIUS - 6, 16), 1.6, "#9aa0a6")
            s.line(oval(*centre, RADIUS), 10, TYRE)
            s.line(oval(*centre, RADIUS - 8), 3, "#c9ced3")
            s.fill(oval(*centre, 7), "#5b6066")


def frame(s: Sketch, fork: bool) -> None:
    with s.part("frame"):
        s.line(polyline(CRANK, REAR, (345, 342), CRANK, (484, 342), (345, 342)), 8, FRAME)
        s.line(polyline(HEAD, (488, 352)), 10, FRAME)
        s.line(polyline((345, 342), SADDLE), 6, "#5b6066")
        s.fill(smooth([(306, 312), (338, 306), (368, 312), (344, 322), (312, 324)], True), "#33261f")
        s.line(smooth([HEAD, (472, 296), (492, 290), (512, 298), (510, 314)]), 6, "#5b6066")
        s.line(polyline((372, 446), (276, 444)), 2.5, "#44474c")
        s.fill(oval(*CRANK, 17), "#5b6066")
        s.fill(oval(*CRANK, 8), "#c9ced3")
    if fork:
        with s.part("fork"):
            s.line(smooth([(488, 352), (502, 400), FRONT]), 8, FRAME)


def leg(s: Sketch, knee: tuple[float, float], pedal: tuple[float, float], code: str) -> None:
    s.line(polyline(CRANK, pedal), 6, "#44474c")
    s.fill(limb([(346, 302, 46), (*knee, 36), (pedal[0] - 6, pedal[1] - 24, 22)]), code)
    s.fill(
        smooth(
            [
                (pedal[0] - 20, pedal[1] - 20),
                (pedal[0], pedal[1] - 22),
                (pedal[0] + 28, pedal[1] - 6),
                (pedal[0] - 20, pedal[1] - 2),
            ],
            True,
        ),
        "#f0ece2",
    )


def rider(s: Sketch) -> None:
    with s.part("cyclist"):
        s.fill(limb([(396, 196, 26), (440, 250, 22), (500, 288, 17)]), "#1f6a70")
        s.fill(oval(506, 292, 11), SKIN)
        s.fill(limb([(352, 296, 62), (372, 240, 66), (396, 194, 54)]), "#2a868c")
        leg(s, (436, 372), (384, 484), "#39435c")
        s.fill(limb([(408, 166, 24), (402, 190, 28)]), "#c08a64")
        s.fill(oval(420, 138, 31, 35), SKIN)
        s.fill(
            smooth([(388, 130), (396, 96), (430, 90), (456, 112), (458, 124), (420, 122)], True), "#f0b429"
        )
        s.line(smooth([(394, 118), (424, 110), (454, 116)]), 4, "#d0951a")
        s.line(smooth([(404, 130), (408, 158), (424, 172)]), 3, "#4a4038")
        s.fill(oval(436, 136, 3.2, 4), "#2a1d18")
        s.fill(smooth([(448, 132), (459, 149), (447, 153)], True), SKIN)
        s.line(smooth([(434, 158), (442, 160), (448, 155)]), 2.5, "#97473c")
        s.fill(limb([(392, 202, 30), (424, 262, 25), (492, 294, 18)]), "#33979c")
        s.fill(oval(500, 297, 12), SKIN)


def scene(s: Sketch, anomalous: bool) -> None:
    country(s)
    church(s)
    sheep(s)
    s.fill(oval(400, 524, 220, 9), "#55575c", 0.5)
    with s.part("cyclist"):
        leg(s, (424, 350), (360, 408), "#2a3246")
    wheels(s)
    frame(s, fork=not anomalous)
    rider(s)
