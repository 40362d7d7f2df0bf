"""A waiter before his café: sign, awning, table, bay tree. Wrong: a third arm, and a garbled sign."""

from __future__ import annotations

from shapes import box, limb, oval, polygon, polyline, smooth
from sketch import Sketch

SKIN, HAIR = "#c98d66", "#2a211e"
GOLD = "#f1dca0"
SHIRT, SHIRT_DARK, APRON = "#f4f1ea", "#dcd6c8", "#7b2d34"


def front(s: Sketch) -> None:
    s.fill(box(0, 0, 768, 490), "#e6d3b3")
    for y in range(20, 490, 44):
        s.line(polyline((0, y), (768, y)), 1.5, "#d9c39d")
    s.fill(box(52, 170, 330, 420, 4), "#3f5b52")
    s.fade(box(66, 184, 316, 406), (66, 184), (316, 406), ["#f6dfa2", "#cfa565"])
    for x in (106, 156, 236, 286):
        s.line(polyline((x, 184), (x, 226)), 2.5, "#4b4038")
        s.fill(smooth([(x - 17, 246), (x - 8, 228), (x + 8, 228), (x + 17, 246)], True), "#9a3d34")
    s.fill(box(66, 350, 316, 360), "#8a5f3a")
    for k, x in enumerate(range(86, 300, 34)):
        if k != 3:
            s.fill(box(x - 9, 322, x + 9, 350, 5), ("#b65a3c", "#f0e6d2", "#5c7f86")[k % 3])
    s.fill(box(186, 184, 196, 406), "#3f5b52")
    s.fill(box(560, 184, 700, 490, 4), "#3f5b52")
    s.fade(box(578, 202, 682, 380), (578, 202), (682, 380), ["#cfe0dc", "#9fb9b5"])
    s.fill(box(578, 396, 682, 474, 3), "#33493f")
    s.fill(oval(592, 386, 7), "#d9b45b")
    s.fade(box(0, 484, 768, 576), (0, 484), (0, 576), ["#b8aa98", "#9c8d7b"])
    for x in range(-60, 820, 96):
        s.line(polyline((x + 40, 484), (x, 576)), 2, "#94856f")
    s.line(polyline((0, 526), (768, 526)), 2, "#94856f")


def awning(s: Sketch) -> None:
    with s.part("awning"):
        for k in range(12):
            top, x, code = 40 + 57.3 * k, 24 + 60 * k, ("#a9383c", "#f5ecd9")[k % 2]
            s.fill(polygon((top, 108), (top + 57.3, 108), (x + 60, 162), (x, 162)), code)
            with s.within(box(x, 162, x + 60, 190)):
                s.fill(oval(x + 30, 162, 30, 22), code)


def sign(s: Sketch, anomalous: bool) -> None:
    with s.part("sign board"):
        s.fill(box(170, 22, 598, 98, 8), "#2f463d")
        s.line(box(178, 30, 590, 90, 5), 2.5, "#d9b45b")
    with s.part("lettering"):
        if anomalous:
            garbled(s)
        else:
            s.words("CAFÉ LUNA", (384, 60), 44, GOLD, spacing=7)


def garbled(s: Sketch) -> None:
    places = zip("CAFEÉLUNN", (214, 254, 296, 333, 370, 430, 470, 514, 556), strict=True)
    for k, (letter, x) in enumerate(places):
        with s.moved(x, 60, flip=k in (2, 7)):
            s.words(letter, (0, 0), 44, GOLD)


def bay_tree(s: Sketch) -> None:
    s.fill(oval(724, 548, 40, 8), "#7f715f", 0.6)
    with s.part("bay tree"):
        s.line(polyline((722, 470), (722, 380)), 9, "#6b4a34")
        for dx, dy, r, code in (
            (0, 338, 43, "#3f7546"),
            (-14, 326, 22, "#54905a"),
            (14, 352, 20, "#336238"),
            (9, 313, 13, "#6aa566"),
        ):
            s.fill(oval(722 + dx, dy, r), code)
        s.fill(polygon((690, 462), (754, 462), (746, 548), (698, 548)), "#c3663f")
        s.fill(box(684, 452, 760, 472, 4), "#d67a50")


def table(s: Sketch) -> None:
    s.fill(oval(92, 546, 50, 9), "#7f715f", 0.6)
    s.fill(oval(186, 550, 62, 9), "#7f715f", 0.6)
    with s.part("chair"):
        s.line(polyline((76, 462), (80, 538)), 6, "#3f2f22")
        s.line(polyline((108, 462), (100, 538)), 6, "#3f2f22")
        s.line(smooth([(56, 548), (62, 470), (52, 390), (60, 350)]), 7, "#55402e")
        s.line(polyline((62, 462), (122, 462), (116, 548)), 7, "#55402e")
        s.fill(box(54, 452, 126, 466, 5), "#c9a063")
        s.line(smooth([(54, 400), (50, 372), (60, 350)]), 11, "#c9a063")
    with s.part("table"):
        s.line(polyline((186, 440), (186, 540)), 9, "#33373a")
        s.line(smooth([(140, 552), (160, 540), (186, 536), (212, 540), (232, 552)]), 8, "#33373a")
        s.fill(oval(186, 434, 84, 15), "#ece7dc")
        s.fill(oval(186, 431, 84, 14), "#fbf8f0")
    with s.part("cups"):
        for x in (150, 218):
            s.fill(oval(x, 430, 24, 5), "#d9d2c2")
            s.line(oval(x + 15, 414, 7, 7), 4, "#5c7f86")
            s.fill(smooth([(x - 15, 404), (x + 15, 404), (x + 10, 426), (x - 10, 426)], True), "#6f959c")
            s.fill(oval(x, 404, 14, 4), "#3d2619")


def head(s: Sketch) -> None:
    s.fill(box(425, 236, 455, 278, 12), "#b0764f")
    s.fill(oval(440, 206, 37, 45), SKIN)
    s.fill(oval(402, 210, 7, 10), SKIN)
    s.fill(oval(478, 210, 7, 10), SKIN)
    s.fill(
        smooth(
            [(400, 200), (402, 164), (438, 148), (476, 162), (480, 200), (470, 182), (440, 176), (412, 182)],
            True,
        ),
        HAIR,
    )
    for x in (426, 454):
        s.fill(oval(x, 205, 4, 5), "#1d1614")
        s.line(polyline((x - 8, 193), (x + 8, 192)), 3.5, HAIR)
    s.line(smooth([(440, 206), (444, 220), (437, 222)]), 2.5, "#a56d49")
    s.fill(smooth([(418, 230), (440, 225), (462, 230), (440, 233)], True), HAIR)
    s.line(smooth([(430, 238), (440, 241), (450, 238)]), 2.5, "#8d4136")


def waiter(s: Sketch, anomalous: bool) -> None:
    s.fill(oval(440, 552, 76, 9), "#7f715f", 0.6)
    with s.part("waiter"):
        s.fill(limb([(420, 430, 46), (416, 490, 36), (414, 534, 28)]), "#23262b")
        s.fill(limb([(460, 430, 46), (464, 490, 36), (466, 534, 28)]), "#2b2f35")
        s.fill(smooth([(394, 548), (400, 534), (426, 534), (430, 550)], True), "#191a1d")
        s.fill(smooth([(450, 550), (454, 534), (480, 534), (486, 548)], True), "#191a1d")
        s.fill(limb([(480, 292, 38), (540, 346, 32)]), SHIRT_DARK)
        s.fill(limb([(540, 346, 32), (563, 304, 25)]), SHIRT_DARK)
        s.fill(
            smooth(
                [(398, 278), (440, 264), (482, 278), (492, 340), (488, 424), (392, 424), (388, 340)], True
            ),
            SHIRT,
        )
        s.fill(polygon((424, 266), (440, 290), (456, 266), (440, 272)), SHIRT_DARK)
        s.fill(polygon((424, 282), (440, 290), (424, 298)), "#1d1d20")
        s.fill(polygon((456, 282), (440, 290), (456, 298)), "#1d1d20")
        s.fill(smooth([(390, 366), (440, 372), (490, 366), (498, 496), (440, 506), (382, 496)], True), APRON)
        s.fill(box(412, 412, 468, 446, 5), "#692329")
        head(s)
    if anomalous:
        with s.part("third arm"):
            s.fill(limb([(382, 338, 28), (348, 372, 29), (318, 330, 23)]), SHIRT_DARK)
            open_hand(s, 316, 318, -22)
    with s.part("waiter"):
        s.fill(limb([(400, 294, 38), (372, 356, 31), (392, 414, 25)]), "#ebe6da")
        s.fill(oval(396, 424, 13, 14), SKIN)
    with s.part("tray"), s.moved(y=46):
        s.fill(oval(566, 238, 74, 9), "#8f979c")
        s.fill(oval(566, 234, 74, 9), "#c9d0d4")
        s.fill(
            smooth(
                [
                    (528, 190),
                    (534, 176),
                    (534, 146),
                    (544, 146),
                    (544, 176),
                    (550, 190),
                    (550, 232),
                    (528, 232),
                ],
                True,
            ),
            "#3c6b4a",
        )
        s.fill(box(528, 196, 550, 220), "#f0e6d2")
        for x in (580, 612):
            s.fill(polygon((x - 12, 184), (x + 12, 184), (x + 9, 232), (x - 9, 232)), "#e8f0f0", 0.9)
            s.fill(polygon((x - 11, 200), (x + 11, 200), (x + 9, 230), (x - 9, 230)), "#d98a3a", 0.9)
    with s.part("waiter"), s.moved(y=46):
        s.fill(oval(564, 248, 17, 9), SKIN)


def open_hand(s: Sketch, x: float, y: float, turn: float) -> None:
    """A small hand with four fingers and a thumb, pointing up from the wrist."""
    with s.moved(x, y, turn):
        for k in range(4):
            s.fill(limb([(-9 + 6 * k, -12, 6), (-13 + 9 * k, -34 + abs(k - 1.5) * 3, 5)]), SKIN)
        s.fill(limb([(9, -4, 7), (20, -16, 6)]), SKIN)
        s.fill(oval(0, -8, 13, 14), SKIN)


def scene(s: Sketch, anomalous: bool) -> None:
    front(s)
    awning(s)
    sign(s, anomalous)
    bay_tree(s)
    table(s)
    waiter(s, anomalous)
