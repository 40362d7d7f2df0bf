"""A kitchen corner: calendar, jars on a shelf, kettle, bowl. Wrong: a date stands twice in the calendar."""

from __future__ import annotations

from shapes import box, oval, polygon, polyline, smooth
from sketch import Sketch

SIZE = (640, 480)
INK, RED = "#2f3438", "#b3423a"


def calendar(s: Sketch, anomalous: bool) -> None:
    s.fill(oval(196, 44, 4), "#8a8f92")
    s.line(polyline((196, 44), (150, 66)), 1.5, "#8a8f92")
    s.line(polyline((196, 44), (242, 66)), 1.5, "#8a8f92")
    with s.part("calendar"):
        s.fill(box(70, 64, 322, 318, 3), "#fdfbf4")
        s.fill(box(70, 64, 322, 108, 3), "#3f7f8c")
        s.words("MAY", (196, 86), 26, "#fdfbf4", spacing=6, face="Sans-Bold")
        for column, day in enumerate(("Mo", "Tu", "We", "Th", "Fr", "Sa", "Su")):
            s.words(day, (96 + 33.4 * column, 126), 13, RED if column == 6 else INK, face="Sans-Bold")
        s.line(polyline((80, 140), (312, 140)), 1.2, "#b9b4a6")
        for day in range(1, 32):
            place = day + 1  # The first is a Wednesday.
            x, y = 96 + 33.4 * (place % 7), 160 + 34 * (place // 7)
            wrong = anomalous and day == 22
            with s.part("day" if day == 22 else "calendar"):
                if day == 22:
                    s.fill(box(x - 14, y - 13, x + 14, y + 13), "#fdfbf4")
                text = "21" if wrong else str(day)
                s.words(text, (x, y), 16, RED if place % 7 == 6 else INK, face="Sans")


def shelf(s: Sketch) -> None:
    for x in (392, 566):
        s.fill(polygon((x, 188), (x + 12, 188), (x + 12, 232)), "#5b4230")
    s.fill(box(372, 176, 604, 190, 2), "#9a6d45")
    with s.part("jars"):
        for x, name, code in ((416, "RICE", "#efe6cf"), (488, "TEA", "#6b4a2f"), (560, "SALT", "#f4f4f1")):
            s.fill(box(x - 28, 96, x + 28, 176, 7), "#cfe0e0")
            s.fill(box(x - 24, 118, x + 24, 172, 5), code)
            s.fill(box(x - 24, 128, x + 24, 152, 2), "#fdfbf4")
            s.line(box(x - 24, 128, x + 24, 152, 2), 1, "#b9b4a6")
            s.words(name, (x, 140), 13, INK, face="Sans-Bold")
            s.fill(box(x - 30, 84, x + 30, 98, 4), "#b3423a")


def counter(s: Sketch) -> None:
    s.fill(box(0, 400, 640, 480), "#8f6a48")
    s.fill(box(0, 400, 640, 412), "#b98d62")
    with s.part("kettle"):
        s.line(smooth([(424, 318), (428, 262), (484, 246), (540, 262), (544, 318)]), 9, "#33373a")
        s.fill(
            smooth([(540, 356), (566, 336), (590, 300), (602, 304), (580, 352), (548, 384)], True), "#4f7f88"
        )
        body = smooth([(420, 410), (404, 372), (424, 316), (484, 300), (544, 316), (564, 372), (548, 410)])
        body.close()
        s.fill(body, "#5c929c")
        s.fill(smooth([(448, 308), (484, 292), (520, 308), (484, 314)], True), "#477680")
        s.fill(oval(484, 290, 8), "#33373a")
    with s.part("bowl"):
        s.fill(oval(280, 356, 62, 10), "#b9ab90")
        for x, code in ((252, "#c9503c"), (308, "#d9a23c"), (280, "#a8b545")):
            s.fill(oval(x, 350, 23, 22), code)
        body = smooth([(218, 356), (232, 396), (262, 410), (298, 410), (328, 396), (342, 356)])
        body.quadTo(280, 376, 218, 356)
        body.close()
        s.fill(body, "#d5b48c")
    with s.part("board"):
        s.fill(box(52, 334, 150, 402, 8), "#c99a66")
        s.fill(oval(134, 350, 6), "#e6ddc9")


def scene(s: Sketch, anomalous: bool) -> None:
    s.fill(box(0, 0, 640, 480), "#e6ddc9")
    for y in (340, 370):
        s.line(polyline((0, y), (640, y)), 1.2, "#d2c7af")
    for x in range(10, 640, 48):
        s.line(polyline((x, 340), (x, 400)), 1.2, "#d2c7af")
    with s.moved(y=-16):
        calendar(s, anomalous)
    shelf(s)
    counter(s)
