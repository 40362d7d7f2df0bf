"""What is counted over many regions, against masks of whole images."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image, ImageDraw

from uncanny.eval.common.pixels import crops as crops_module
from uncanny.eval.common.pixels.crops import (
    EMPTY,
    Crop,
    crop,
    intersection_area,
    intersection_areas,
    solid_crop,
    union,
)
from uncanny.eval.common.pixels.shapes import Point, box_crop, point_crop, polygon_crop
from uncanny.eval.metrics import RegionProtocol, regions
from uncanny.eval.metrics.regions import (
    instance_counts,
    region_counts,
)

SIDE = 12
SIZE = (SIDE, SIDE)
PLACE = st.integers(-2, SIDE + 2)
BOX = st.tuples(PLACE, PLACE, PLACE, PLACE).map(lambda box: box_crop(box, SIZE))
MASK = arrays(np.bool_, (SIDE, SIDE)).map(crop)
POLYGON = st.lists(st.tuples(PLACE, PLACE), min_size=3, max_size=6).map(lambda each: polygon_crop(each, SIZE))
CROPS = st.lists(BOX | BOX | MASK | POLYGON | st.just(EMPTY), max_size=12)


@pytest.fixture(params=[None, 24])
def bands(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Images in one piece, and a few rows at a time."""
    if request.param is not None:
        monkeypatch.setattr(crops_module, "_BAND", request.param)
        monkeypatch.setattr(regions, "_PAIRS", request.param)


def drawn(crops: list[Crop]) -> list[np.ndarray[tuple[int, int], np.dtype[np.bool_]]]:
    return [each.on(SIZE) for each in crops]


@pytest.mark.usefixtures("bands")
@given(CROPS, CROPS)
def test_what_crops_have_in_common_is_what_their_masks_have(first: list[Crop], second: list[Crop]) -> None:
    expected = [[int((ours & theirs).sum()) for theirs in drawn(second)] for ours in drawn(first)]
    assert intersection_areas(first, second).tolist() == expected
    assert [[intersection_area(ours, theirs) for theirs in second] for ours in first] == expected


@pytest.mark.usefixtures("bands")
@given(CROPS)
def test_the_union_of_crops_is_that_of_their_masks(crops: list[Crop]) -> None:
    whole = union(crops)
    expected = np.any([np.zeros((SIDE, SIDE), dtype=np.bool_), *drawn(crops)], axis=0)
    assert (whole.on(SIZE) == expected).all()
    assert whole.area == expected.sum()
    for each in crops:
        assert each.area == each.on(SIZE).sum()
        assert not each.solid or each.pixels.all()


@pytest.mark.usefixtures("bands")
@given(
    st.lists(BOX, max_size=30),
    CROPS,
    st.sampled_from([0.3, 0.5, 1.0]),
    st.sampled_from(get_args(RegionProtocol)),
)
def test_boxes_count_as_if_they_were_drawn(
    predicted: list[Crop], crops: list[Crop], t: float, protocol: RegionProtocol
) -> None:
    true = [each for each in crops if each.pixels.size]
    ours, theirs = ([each._replace(solid=False) for each in some] for some in (predicted, true))
    weights = [(0.5, 1.0, 0.7)[place % 3] for place in range(len(true))]
    for chosen in (None, weights):
        assert region_counts(predicted, true, chosen) == pytest.approx(region_counts(ours, theirs, chosen))
        counts = instance_counts(predicted, true, t=t, protocol=protocol, weights=chosen)
        drawn_counts = instance_counts(ours, theirs, t=t, protocol=protocol, weights=chosen)
        assert counts == pytest.approx(drawn_counts)


@given(PLACE, PLACE, PLACE, PLACE, st.booleans(), st.integers(0, 3))
def test_upright_rectangles_are_filled_as_pillow_fills_them(
    x0: int, y0: int, x1: int, y1: int, turned: bool, first: int
) -> None:
    """Whatever corner they begin at, and whichever way they go."""
    corners: list[Point] = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
    corners = corners[first:] + corners[:first]
    corners = corners[::-1] if turned else corners
    image = Image.new("1", (SIDE + 8, SIDE + 8))
    ImageDraw.Draw(image).polygon([(x + 4, y + 4) for x, y in corners], outline=1, fill=1)
    expected = np.asarray(image)[4 : 4 + SIDE, 4 : 4 + SIDE]
    region = polygon_crop(corners, SIZE)
    assert (region.on(SIZE) == expected).all()
    assert region.solid or not region.pixels.size


@pytest.mark.parametrize("number", [1_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_thousands_of_boxes_of_a_large_image_are_counted_by_their_corners(number: int) -> None:
    """Drawn, they would be 36 or 360 billion pixels."""
    side = 6_000
    boxes = [box_crop((place % 100, 0, side, side - place // 100), (side, side)) for place in range(number)]
    true = [box_crop((0, 0, side, side // 2), (side, side)), point_crop((side - 1, side - 1), (side, side))]
    assert region_counts(boxes, boxes) == (side**2, side**2, side**2)
    assert region_counts(boxes[1:2], true) == (
        (side - 1) * side // 2 + 1,
        (side - 1) * side,
        side**2 // 2 + 1,
    )
    # Half of a box is in the true one where nothing is missing below.
    right = sum((side // 2) / (side - place // 100) >= 0.5 for place in range(number))
    assert instance_counts(boxes, true) == (right, number, 1, 2)
    assert instance_counts(boxes, boxes) == (number,) * 4
    assert solid_crop(3, 3, 3, 9) is EMPTY
