"""Shapes as pixels: bit by bit those of pycocotools and labelme; OpenCV, shapely and hand-worked cases."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import cv2
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from pycocotools import mask as coco
from shapely.geometry import LinearRing

from uncanny.errors import UsageError
from uncanny.eval.common.pixels.crops import EMPTY, Crop, Mask, Size
from uncanny.eval.common.pixels.shapes import (
    LINE_WIDTH,
    Point,
    box_crop,
    circle_crop,
    coco_box_crop,
    coco_polygon_crop,
    crosses_itself,
    line_crop,
    point_crop,
    polygon_crop,
)

EIGHT = (8, 8)
SIZES = st.sampled_from([(1, 1), (9, 7), (40, 30), (3, 200), (200, 3), (900, 40)])
# Whole, half, fifth and any numbers, within the image and beyond it, as shares of its sides.
ROUNDINGS = st.sampled_from([1, 2, 5, 10, None])


@st.composite
def sized_points(draw: st.DrawFn, least: int = 3, most: int = 9) -> tuple[Size, list[Point]]:
    """An image's size and places in and around it, some of them twice."""
    size, rounding = draw(SIZES), draw(ROUNDINGS)
    share = st.floats(-0.5, 1.5) if draw(st.booleans()) else st.floats(0, 1)

    def place(side: int) -> float:
        value = draw(share) * side
        return value if rounding is None else round(value * rounding) / rounding

    points = [(place(size[0]), place(size[1])) for _ in range(draw(st.integers(least, most)))]
    if len(points) < most and draw(st.booleans()):
        points.insert(draw(st.integers(0, len(points))), draw(st.sampled_from(points)))
    return size, points


def of_pycocotools(segmentation: list[list[float]] | NDArray[np.float64], size: Size) -> Mask:
    encoded = coco.merge(coco.frPyObjects(segmentation, *size[::-1]))
    return np.asarray(coco.decode(encoded), dtype=np.bool_)


def of_pillow(kind: str, points: Sequence[Point], size: Size) -> Mask:
    """What labelme does with Pillow, on a picture of the whole image."""
    image = Image.fromarray(np.zeros(size[::-1], dtype=np.uint8))
    getattr(ImageDraw.Draw(image), kind)(
        points, **({"width": LINE_WIDTH} if kind == "line" else {"outline": 1}), fill=1
    )
    return np.asarray(image) > 0


@given(sized_points())
@example(((30, 20), [(3.0, 2.0), (3.0, 2.0), (9.0, 11.0), (20.0, 4.0)]))
def test_polygons_of_coco_are_those_of_pycocotools(drawn: tuple[Size, list[Point]]) -> None:
    size, points = drawn
    flat = [float(number) for point in points for number in point]
    assert (coco_polygon_crop(points, size).on(size) == of_pycocotools([flat], size)).all()


@given(sized_points(2, 2))
def test_boxes_of_coco_are_those_of_pycocotools(drawn: tuple[Size, list[Point]]) -> None:
    size, ((x, y), (u, v)) = drawn
    box = min(x, u), min(y, v), max(x, u), max(y, v)
    theirs = of_pycocotools(np.array([[box[0], box[1], box[2] - box[0], box[3] - box[1]]]), size)
    # Pycocotools adds width and height to the corner again, which may be off by a hair.
    box = box[0], box[1], box[0] + (box[2] - box[0]), box[1] + (box[3] - box[1])
    assert (coco_box_crop(box, size).on(size) == theirs).all()


def test_a_square_of_coco_has_the_pixels_between_its_corners() -> None:
    square = coco_polygon_crop([(2, 2), (6, 2), (6, 6), (2, 6)], EIGHT)
    assert (square.box, square.area) == ((2, 2, 6, 6), 16)
    assert polygon_crop([(2, 2), (6, 2), (6, 6), (2, 6)], EIGHT).area == 25
    assert coco_polygon_crop([(2.4, 2), (2.4, 6), (6, 6), (6, 2)], EIGHT).area == 16
    assert coco_polygon_crop([(2.6, 2), (2.6, 6), (6, 6), (6, 2)], EIGHT).area == 12
    assert coco_polygon_crop([(9, 9), (12, 9), (12, 12)], EIGHT) is EMPTY
    assert coco_polygon_crop([(1, 1), (1.1, 1), (1.1, 1.1)], EIGHT) is EMPTY


def test_outlines_far_longer_than_the_image_take_neither_time_nor_memory() -> None:
    """Step by step, this outline of twenty thousand edges would be 200 billion places."""
    rng = np.random.default_rng(0)
    corners = [(float(x), float(y)) for x, y in rng.uniform(-1e6, 1e6, (20_000, 2))]
    assert 0 < coco_polygon_crop(corners, (64, 48)).area < 64 * 48


@given(sized_points(3, 9))
def test_polygons_are_filled_as_labelme_fills_them(drawn: tuple[Size, list[Point]]) -> None:
    size, points = drawn
    assert (polygon_crop(points, size).on(size) == of_pillow("polygon", points, size)).all()


@given(sized_points(2, 2))
def test_rectangles_are_filled_as_labelme_fills_them(drawn: tuple[Size, list[Point]]) -> None:
    size, ((x, y), (u, v)) = drawn
    x0, y0, x1, y1 = min(x, u), min(y, v), max(x, u), max(y, v)
    theirs = of_pillow("rectangle", [(x0, y0), (x1, y1)], size)
    assert (polygon_crop([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], size).on(size) == theirs).all()


@given(sized_points(2, 2))
@example((EIGHT, [(4.0, 4.0), (4.0, 4.0)]))
def test_circles_are_filled_as_labelme_fills_them(drawn: tuple[Size, list[Point]]) -> None:
    size, ((x, y), (u, v)) = drawn
    radius = math.sqrt((x - u) ** 2 + (y - v) ** 2)
    theirs = of_pillow("ellipse", [(x - radius, y - radius), (x + radius, y + radius)], size)
    assert (circle_crop((x, y), radius, size).on(size) == theirs).all()


@given(sized_points(2, 5))
def test_lines_are_drawn_as_labelme_draws_them(drawn: tuple[Size, list[Point]]) -> None:
    size, points = drawn
    assert (line_crop(points, size).on(size) == of_pillow("line", points, size)).all()


def test_circles_and_lines_by_hand() -> None:
    """A circle of radius 2 has rows of 3, 5, 5, 5 and 3 pixels; a line is ten wide."""
    assert circle_crop((3, 3), 2, EIGHT).pixels.sum(axis=1).tolist() == [3, 5, 5, 5, 3]
    assert circle_crop((4, 4), 4, (9, 9)).area == 61
    assert circle_crop((3, 3), 0, EIGHT) is EMPTY
    assert circle_crop((20, 3), 2, EIGHT) is EMPTY
    assert line_crop([(20, 20), (29, 20)], (60, 40)).area == 100
    assert line_crop([(20, 60), (29, 60)], (60, 40)) is EMPTY


def test_a_polygon_is_filled_with_its_outline() -> None:
    square = polygon_crop([(1, 1), (3, 1), (3, 3), (1, 3)], EIGHT)
    assert square.box == (1, 1, 4, 4)
    assert square.area == 9
    assert polygon_crop([(1.9, 1.2), (3.9, 1), (3.5, 3.5), (1, 3)], EIGHT).on(EIGHT).tolist() == (
        square.on(EIGHT).tolist()
    )


@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19)), min_size=3, max_size=8))
def test_polygons_are_those_of_opencv_but_for_the_outline(points: list[tuple[int, int]]) -> None:
    theirs = np.zeros((20, 20), dtype=np.uint8)
    cv2.fillPoly(theirs, [np.array(points, dtype=np.int32)], 1)
    outline = np.zeros_like(theirs)
    cv2.polylines(outline, [np.array(points, dtype=np.int32)], True, 1, thickness=3)
    differs = polygon_crop(points, (20, 20)).on((20, 20)) != (theirs > 0)
    assert not (differs & (outline == 0)).any()


def test_what_lies_outside_is_cut_off() -> None:
    assert polygon_crop([(-5, -5), (2, -5), (2, 2), (-5, 2)], EIGHT).box == (0, 0, 3, 3)
    assert polygon_crop([(10, 10), (12, 10), (12, 12)], EIGHT) is EMPTY
    assert box_crop((1, 1, 6, 6), EIGHT).area == 25
    assert box_crop((1.5, 1.5, 5.5, 5.5), EIGHT).box == (1, 1, 6, 6)
    assert box_crop((-3, 6, 2, 20), EIGHT).box == (0, 6, 2, 8)
    assert box_crop((8, 0, 9, 1), EIGHT) is EMPTY
    assert point_crop((7.9, 0), EIGHT).box == (7, 0, 8, 1)
    assert point_crop((8, 0), EIGHT) is EMPTY


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=8, unique=True))
def test_an_outline_that_crosses_itself_is_not_simple(points: list[tuple[int, int]]) -> None:
    if crosses_itself(points):
        assert not LinearRing(points).is_simple


def test_a_bow_tie_crosses_itself_and_a_square_does_not() -> None:
    assert crosses_itself([(0, 0), (4, 4), (4, 0), (0, 4)])
    assert not crosses_itself([(0, 0), (4, 0), (4, 4), (0, 4)])
    assert not crosses_itself([(0, 0), (4, 0), (0, 4)])


def test_crossings_are_found_among_as_many_corners_as_there_are() -> None:
    turns = np.linspace(0, 2 * np.pi, 100_001)[:-1]
    circle = np.stack([500 + 400 * np.cos(turns), 500 + 400 * np.sin(turns)], axis=1)
    assert crosses_itself(circle) is False  # type: ignore[arg-type]
    circle[50_000] = 950, 900
    assert crosses_itself(circle) is True  # type: ignore[arg-type]


def test_nothing_is_said_of_crossings_where_all_edges_lie_along_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    corners = [(i + 2_000 * (i % 2), i + 2_000 * (i % 2)) for i in range(2_000)]
    assert crosses_itself(corners) is False
    monkeypatch.setattr("uncanny.eval.common.pixels.shapes._MOST_PAIRS", 1 << 20)
    assert crosses_itself(corners) is None


@pytest.mark.parametrize("fill", [polygon_crop, coco_polygon_crop])
def test_a_polygon_has_three_corners(fill: Callable[[Sequence[Point], Size], Crop]) -> None:
    with pytest.raises(ValueError, match="three corners and more, not 2"):
        fill([(2, 3), (4, 3)], EIGHT)


def test_sizes_that_are_only_claimed_are_not_written_out() -> None:
    corners: list[Point] = [(0, 0), (5, 0), (5, 5)]
    for size in ((10**300, 8), (8, 10**300)):
        for draw in (
            partial(box_crop, (0, 0, 5, 5)),
            partial(polygon_crop, corners),
            partial(coco_polygon_crop, corners),
            partial(circle_crop, (1, 1), 2),
        ):
            with pytest.raises(UsageError, match=r"10\^300") as caught:
                draw(size)
            assert len(str(caught.value)) < 100
