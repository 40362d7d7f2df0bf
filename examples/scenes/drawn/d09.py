"""A picture gallery in one-point perspective. Wrong: one painting widens with distance."""

from __future__ import annotations

from shapes import Point, polygon, polyline
from sketch import Sketch

SIZE = (1200, 800)
CENTRE, FOCUS, EYE = (600.0, 372.0), 560.0, 1.65
WALL, HEIGHT, FAR, NEAR = 2.4, 3.4, 11.0, 0.9
# Near end, lower edge, length, height; colours from top to bottom.
LEFT = (
    (1.9, 1.1, 0.9, 1.3, ("#7fa8bd", "#d9c79a", "#6f8a5f")),
    (3.4, 1.0, 1.3, 1.4, ("#2f3f55", "#8f5a4a", "#d9a25a")),
    (5.4, 1.2, 0.9, 1.1, ("#c9d2cf", "#7f9a8c", "#3f5a4f")),
    (7.2, 1.0, 1.4, 1.4, ("#e0c48f", "#b5533f", "#5a2f33")),
)
RIGHT = (
    (1.9, 1.0, 1.0, 1.4, ("#d9c9a3", "#5f7f8c", "#2f4a5f")),
    (3.6, 1.1, 1.2, 1.2, ("#a9b8c2", "#c98a5a", "#6a4b34")),
    (5.5, 1.0, 1.1, 1.4, ("#54627f", "#d0a8a0", "#8f4a55")),
    (7.3, 1.1, 1.2, 1.2, ("#cfd8b0", "#7a9a5a", "#4a6a45")),
)


def at(x: float, y: float, z: float) -> Point:
    """Where a point of the room (right, up, away; in metres) lies in the picture."""
    return CENTRE[0] + FOCUS * x / z, CENTRE[1] + FOCUS * (EYE - y) / z


def on_wall(x: float, low: float, high: float, near: float, far: float, turned: bool = False) -> list[Point]:
    """The corners of a rectangle on a side wall; `turned` lets it grow with distance."""
    a, b = (far, near) if turned else (near, far)
    left, right = at(x, low, near)[0], at(x, low, far)[0]
    return [
        (left, at(x, high, a)[1]), (right, at(x, high, b)[1]),
        (right, at(x, low, b)[1]), (left, at(x, low, a)[1]),
    ]  # fmt: skip


def room(s: Sketch) -> None:
    for side, code in ((-WALL, "#d9d3c6"), (WALL, "#cfc8b9")):
        s.fill(polygon(*on_wall(side, 0, HEIGHT, NEAR, FAR)), code)
        s.fill(polygon(*on_wall(side, 0, 0.16, NEAR, FAR)), "#8f8676")
    s.fill(polygon(at(-WALL, 0, NEAR), at(WALL, 0, NEAR), at(WALL, 0, FAR), at(-WALL, 0, FAR)), "#a8835c")
    s.fill(
        polygon(
            at(-WALL, HEIGHT, NEAR), at(WALL, HEIGHT, NEAR), at(WALL, HEIGHT, FAR), at(-WALL, HEIGHT, FAR)
        ),
        "#f1eee6",
    )
    s.fill(
        polygon(at(-WALL, 0, FAR), at(WALL, 0, FAR), at(WALL, HEIGHT, FAR), at(-WALL, HEIGHT, FAR)), "#e3ddd0"
    )
    for k in range(-4, 5):
        s.line(polyline(at(k * 0.6, 0, NEAR), at(k * 0.6, 0, FAR)), 1.5, "#8f6d49")
    for k in range(1, 17):
        z = 1 + k * 0.6
        s.line(polyline(at(-WALL, 0, z), at(WALL, 0, z)), 1.5, "#8f6d49")
    for k in range(6):
        z = 1.6 + 1.6 * k
        corners = (
            at(-0.5, HEIGHT, z),
            at(0.5, HEIGHT, z),
            at(0.5, HEIGHT, z + 0.9),
            at(-0.5, HEIGHT, z + 0.9),
        )
        s.fill(polygon(*corners), "#fffdf4")
        s.line(polyline(*corners, corners[0]), 1.5, "#c9c4b6")
    with s.part("doorway"):
        s.fill(polygon(at(-0.6, 0, FAR), at(0.6, 0, FAR), at(0.6, 2.3, FAR), at(-0.6, 2.3, FAR)), "#6a5a48")
        s.fill(polygon(at(-0.5, 0, FAR), at(0.5, 0, FAR), at(0.5, 2.2, FAR), at(-0.5, 2.2, FAR)), "#3a342e")


def painting(
    s: Sketch,
    x: float,
    near: float,
    low: float,
    long: float,
    high: float,
    codes: tuple[str, ...],
    turned: bool,
) -> None:
    top, far = low + high, near + long
    s.fill(polygon(*on_wall(x, low, top, near, far, turned)), "#a3813f")
    s.fill(polygon(*on_wall(x, low + 0.09, top - 0.09, near + 0.09, far - 0.09, turned)), "#efe8d8")
    step = (high - 0.4) / 3
    for k, code in enumerate(codes):
        upper = top - 0.2 - step * k
        s.fill(polygon(*on_wall(x, upper - step, upper, near + 0.2, far - 0.2, turned)), code)


def block(
    s: Sketch,
    left: float,
    right: float,
    near: float,
    far: float,
    low: float,
    high: float,
    code: str,
    side: str,
    upper: str,
) -> None:
    """A box that stands left of the middle or across it."""
    s.fill(
        polygon(at(left, high, near), at(right, high, near), at(right, high, far), at(left, high, far)), upper
    )
    if left > 0:
        s.fill(
            polygon(at(left, low, near), at(left, high, near), at(left, high, far), at(left, low, far)), side
        )
    if right < 0:
        s.fill(
            polygon(at(right, low, near), at(right, high, near), at(right, high, far), at(right, low, far)),
            side,
        )
    s.fill(
        polygon(at(left, low, near), at(right, low, near), at(right, high, near), at(left, high, near)), code
    )


def bench(s: Sketch, near: float) -> None:
    for z in (near + 1.2, near + 0.1):
        for x in (-0.3, 0.22):
            block(s, x, x + 0.08, z, z + 0.08, 0, 0.38, "#4a4038", "#3a322c", "#4a4038")
    block(s, -0.36, 0.36, near, near + 1.4, 0.38, 0.48, "#6f4a30", "#5a3b26", "#8a5f3e")


def scene(s: Sketch, anomalous: bool) -> None:
    room(s)
    for number in reversed(range(4)):
        near, low, long, high, codes = LEFT[number]
        with s.part(f"left {number}"):
            painting(s, -WALL, near, low, long, high, codes, turned=False)
        near, low, long, high, codes = RIGHT[number]
        with s.part(f"right {number}"):
            painting(s, WALL, near, low, long, high, codes, turned=anomalous and number == 1)
    with s.part("far bench"):
        bench(s, 6.2)
    with s.part("near bench"):
        bench(s, 3.2)
