"""Paths for drawings: smooth closed and open curves, limbs, ovals, boxes."""

from __future__ import annotations

import math
from itertools import pairwise

import skia  # type: ignore[import-not-found]  # needed for these scenes only

Point = tuple[float, float]


def smooth(points: list[Point], closed: bool = False) -> skia.Path:
    """A curve through all points (Catmull–Rom)."""
    count = len(points)
    path = skia.Path()
    path.moveTo(*points[0])
    for i in range(count if closed else count - 1):
        if closed:
            a, b, c, d = (points[(i + k) % count] for k in (-1, 0, 1, 2))
        else:
            a, b = points[max(i - 1, 0)], points[i]
            c, d = points[i + 1], points[min(i + 2, count - 1)]
        path.cubicTo(
            b[0] + (c[0] - a[0]) / 6, b[1] + (c[1] - a[1]) / 6,
            c[0] - (d[0] - b[0]) / 6, c[1] - (d[1] - b[1]) / 6,
            c[0], c[1],
        )  # fmt: skip
    if closed:
        path.close()
    return path


def ridge(points: list[Point], bottom: float) -> skia.Path:
    """The ground below a skyline: a curve through the points, then straight down to `bottom` and back."""
    path = smooth(points)
    path.lineTo(points[-1][0], bottom)
    path.lineTo(points[0][0], bottom)
    path.close()
    return path


def polygon(*points: Point) -> skia.Path:
    path = skia.Path()
    path.addPoly([skia.Point(*point) for point in points], True)
    return path


def polyline(*points: Point) -> skia.Path:
    path = skia.Path()
    path.addPoly([skia.Point(*point) for point in points], False)
    return path


def oval(x: float, y: float, rx: float, ry: float | None = None) -> skia.Path:
    path = skia.Path()
    height = rx if ry is None else ry
    path.addOval(skia.Rect.MakeLTRB(x - rx, y - height, x + rx, y + height))
    return path


def box(x0: float, y0: float, x1: float, y1: float, corner: float = 0) -> skia.Path:
    path = skia.Path()
    path.addRoundRect(skia.Rect.MakeLTRB(x0, y0, x1, y1), corner, corner)
    return path


def limb(joints: list[tuple[float, float, float]]) -> skia.Path:
    """A tapering limb through (x, y, width) joints with round ends."""
    path = skia.Path()
    for x, y, width in joints:
        path.addOval(skia.Rect.MakeLTRB(x - width / 2, y - width / 2, x + width / 2, y + width / 2))
    for (x0, y0, w0), (x1, y1, w1) in pairwise(joints):
        length = math.hypot(x1 - x0, y1 - y0) or 1.0
        nx, ny = (y1 - y0) / length / 2, -(x1 - x0) / length / 2
        piece = polygon(
            (x0 + nx * w0, y0 + ny * w0), (x1 + nx * w1, y1 + ny * w1),
            (x1 - nx * w1, y1 - ny * w1), (x0 - nx * w0, y0 - ny * w0),
        )  # fmt: skip
        path = skia.Op(path, piece, skia.PathOp.kUnion_PathOp) or path
    return path


def wheel(x: float, y: float, radius: float, spokes: int) -> skia.Path:
    """The spokes of a wheel, as one path."""
    path = skia.Path()
    for k in range(spokes):
        angle = math.tau * k / spokes
        path.moveTo(x, y)
        path.lineTo(x + radius * math.cos(angle), y + radius * math.sin(angle))
    return path
