"""Which parts of an image are enlarged: within it, few, larger than in the whole, and always the same."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from uncanny.agents.common.closer_look import evenly
from uncanny.agents.common.regions import (
    CONTEXT,
    LEAST_SCALE,
    LEAST_SCALE_OF_LARGE,
    MOST_ENLARGED,
    MOST_PIECES,
    Place,
    View,
    choose_regions,
    closest_region,
    grown,
    pieces,
    regions_of,
    shows,
)
from uncanny.answers.boxes import area
from uncanny.images.parts import Survey
from uncanny.schema import Box, Region

USUAL = View((1024, 1024), (1024, 1024), 1024)
LARGE = View((4000, 3000), (1000, 750), 1024)


def anything(_box: Box) -> float:
    return 1.0


@st.composite
def views(draw: st.DrawFn) -> View:
    width, height = draw(st.integers(40, 6000)), draw(st.integers(40, 6000))
    reduced = draw(st.sampled_from([1.0, 1.1, 1.3, 2.0, 3.7]))
    shown = (max(1, round(width / reduced)), max(1, round(height / reduced)))
    return View((width, height), shown, draw(st.sampled_from([336, 512, 768, 1024, 1568])))


def boxes(view: View) -> st.SearchStrategy[Box]:
    width, height = view.size

    def box(x: float, y: float, w: float, h: float) -> Box:
        x0, y0 = int(x * (width - 1)), int(y * (height - 1))
        return x0, y0, min(width, x0 + 1 + int(w * width)), min(height, y0 + 1 + int(h * height))

    share, extent = st.floats(0, 1), st.one_of(st.floats(0, 0.1), st.floats(0, 1))
    return st.builds(box, share, share, extent, extent)


@st.composite
def scenes(draw: st.DrawFn) -> tuple[list[Place], list[Place], View, int]:
    view = draw(views())
    doubted = [Place(box) for box in draw(st.lists(boxes(view), max_size=8))]
    things = draw(st.lists(boxes(view), max_size=14))
    named = [Place(box, f"thing {number}") for number, box in enumerate(things)]
    return doubted, named, view, draw(st.integers(0, 14))


def spotted(box: Box) -> float:
    """Detail here and there, none in a quarter of all boxes."""
    return float((box[0] * 31 + box[1] * 17) % 4)


def is_worth_it(box: Box, view: View) -> bool:
    own = grown(box, view, "object")
    return max(own[2] - own[0], own[3] - own[1]) <= view.widest("object")


@given(scenes(), st.sampled_from([anything, spotted, None]))
def test_regions_are_within_the_image_few_larger_than_in_the_whole_and_always_the_same(
    scene: tuple[list[Place], list[Place], View, int], detail: Callable[[Box], float] | None
) -> None:
    doubted, things, view, most = scene
    regions = choose_regions(doubted, things, view, most, detail)
    assert regions == choose_regions(doubted, things, view, most, detail)
    assert [each.number for each in regions] == list(range(1, len(regions) + 1))
    assert len(regions) <= most
    whys = [each.why for each in regions]
    assert whys == sorted(whys, key=lambda why: why != "finding")
    for each in regions:
        x0, y0, x1, y1 = each.box
        assert 0 <= x0 < x1 <= view.size[0]
        assert 0 <= y0 < y1 <= view.size[1]
        least = LEAST_SCALE_OF_LARGE if view.is_large or each.why != "object" else LEAST_SCALE
        assert each.scale is not None
        # But for a pixel that was rounded.
        assert each.scale >= 0.98 * least
        assert view.side_of(each.box, each.why) <= view.side(each.why)
        assert view.side_of(each.box, each.why) <= MOST_ENLARGED * max(x1 - x0, y1 - y0)
    if not view.is_large and (doubted or things):
        assert not [each for each in regions if each.why == "tile"]


@given(scenes())
def test_every_place_that_can_be_enlarged_is_in_a_region_while_there_is_room(
    scene: tuple[list[Place], list[Place], View, int],
) -> None:
    doubted, things, view, most = scene
    regions = choose_regions(doubted, things, view, most, anything)
    findings = [each for each in regions if each.why == "finding"]
    placed = [each for each in regions if each.why != "tile"]
    for place in doubted:
        if view.own_scale(place.box) is not None and len(findings) < most:
            assert closest_region(place.box, findings) is not None
    named = {place.name: place.box for place in things}
    for name, box in named.items():
        holding = [each for each in placed if name in each.objects]
        if view.is_large:
            # What a tile shows of it: its middle, or as much as there is room for.
            x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
            for b in (each.box for each in holding):
                assert (b[0] <= x < b[2] and b[1] <= y < b[3]) or shows(box, b)
            continue
        # A name stands with a part that shows the thing, and with one alone.
        assert len(holding) <= 1
        assert all(shows(each.box, box) for each in holding)
        if len(placed) < most and is_worth_it(box, view):
            assert holding
    assert {name for each in regions for name in each.objects} <= named.keys()


@given(scenes())
@example(([], [], View((501, 889), (385, 684), 1024), 12))
def test_tiles_show_what_has_detail_or_things_and_what_no_doubted_place_shows(
    scene: tuple[list[Place], list[Place], View, int],
) -> None:
    doubted, _things, view, most = scene
    half = view.size[0] // 2

    def right(box: Box) -> float:
        """Detail in the right half alone."""
        return float(box[2] > half)

    regions = choose_regions(doubted, [], view, most, right)
    findings = [each for each in regions if each.why == "finding"]
    tiles = [each for each in regions if each.why == "tile"]
    for each in tiles:
        assert each.box[2] > half
        assert not each.objects
        # A part that shows it as close makes a tile needless; one that shows it from afar does not.
        close = [other for other in findings if (other.scale or 0) >= 0.5 * (each.scale or 0)]
        assert not any(shows(other.box, each.box) for other in close)
    assert len({each.box for each in tiles}) == len(tiles)
    if not doubted and view.is_large and view.part >= 1024 and most >= 12 and min(view.size) > 500:
        assert tiles


@given(views(), st.data())
def test_a_box_is_shown_with_its_surroundings(view: View, data: st.DataObject) -> None:
    box = data.draw(boxes(view))
    own = grown(box, view, "object")
    assert shows(own, box)
    assert own[0] <= box[0] < box[2] <= own[2]
    assert own[1] <= box[1] < box[3] <= own[3]
    for low, high, side in ((0, 2, view.size[0]), (1, 3, view.size[1])):
        length = box[high] - box[low]
        assert own[high] - own[low] >= min(side, length * (1 + 2 * CONTEXT))


@given(views(), st.data())
def test_a_large_doubted_place_is_enlarged_as_one_or_in_a_few_pieces(view: View, data: st.DataObject) -> None:
    box = data.draw(boxes(view))
    parts = pieces(box, view)
    assert len(parts) <= MOST_PIECES
    assert (min(each[0] for each in parts), max(each[2] for each in parts)) == (box[0], box[2])
    assert (min(each[1] for each in parts), max(each[3] for each in parts)) == (box[1], box[3])
    assert sum(map(area, parts)) == area(box)
    most = view.widest("finding")
    if max(box[2] - box[0], box[3] - box[1]) <= math.floor(most):
        assert parts == [box]
        assert view.own_scale(box) is not None
    if len(parts) > 1:
        assert all(view.own_scale(each) is not None for each in parts)
        regions = choose_regions([Place(each) for each in parts], [], view, 12, None)
        assert regions_of(box, regions, view) == regions or closest_region(box, regions) is not None


def test_a_part_that_takes_in_a_neighbor_still_shows_what_it_showed() -> None:
    view = View((257, 40), (257, 40), 768)
    things = [Place((x, 0, x + 1, 1), f"thing {n}") for n, x in enumerate([192, 0, 0, 0, 0, 0, 256, 64])]
    (region,) = choose_regions([], things, view, 1, anything)
    held = {each.name: each.box for each in things if each.name}
    assert region.objects
    assert all(shows(region.box, held[name]) for name in region.objects)


def test_a_thing_that_a_doubted_place_of_a_large_image_shows_keeps_its_name() -> None:
    doubted = [Place((1000 * n, 0, 1000 * n + 1000, 1000)) for n in range(4)]
    cup = Place((400, 400, 500, 500), "cup")
    regions = choose_regions(doubted, [cup], LARGE, 4, anything)
    assert next(each.objects for each in regions if each.why == "finding") == ("cup",)


def test_a_huge_image_is_cut_into_few_tiles_at_once() -> None:
    for size, shown in (((10_000, 10_000), (64, 64)), ((1, 10_000_000), (1, 1344))):
        regions = choose_regions([], [], View(size, shown, max(shown)), 12, anything)
        assert 9 <= len(regions) <= 12


def test_a_wide_finding_leaves_the_tiles_at_full_resolution_where_they_are() -> None:
    view = View((6000, 4000), (1344, 896), 1024)
    wide = Place((1500, 1000, 3900, 2600))
    with_it, without = (choose_regions(each, [], view, 60, anything) for each in ([wide], []))
    assert [each.box for each in with_it if each.why == "tile"] == [each.box for each in without]


def test_hills_as_wide_as_the_picture_are_seen_in_two_parts() -> None:
    hills, view = (0, 210, 1024, 300), View((1024, 678), (1024, 678), 1024)
    assert view.own_scale(hills) is None
    regions = choose_regions([Place(each) for each in pieces(hills, view)], [], view, 12, None)
    assert [each.scale for each in regions] == [1.5, 1.5]
    assert regions_of(hills, regions, view) == regions
    assert regions_of((0, 228, 510, 300), regions, view) == regions[:1]


def test_neighbors_are_in_one_part_by_name_and_others_in_their_own() -> None:
    near = [Place((100, 100, 140, 140), "cup"), Place((150, 100, 190, 140), "spoon")]
    far = Place((800, 800, 840, 840), "clock")
    first, second = choose_regions([], [*near, far], USUAL, 12, anything)
    assert (first.objects, second.objects) == (("cup", "spoon"), ("clock",))
    assert all(shows(first.box, place.box) for place in near)


def test_what_a_doubted_place_shows_needs_no_part_of_its_own() -> None:
    (region,) = choose_regions(
        [Place((100, 100, 140, 140))], [Place((110, 110, 150, 150), "cup")], USUAL, 12, anything
    )
    assert (region.why, region.objects) == ("finding", ("cup",))


def test_a_doubted_place_keeps_its_close_view_beside_a_large_one() -> None:
    small, large = Place((300, 300, 310, 310)), Place((100, 100, 900, 900))
    regions = choose_regions([large, small], [], LARGE, 12, None)
    assert [shows(each.box, small.box) for each in regions] == [True, True]
    closest = closest_region(small.box, regions)
    assert closest is not None
    assert closest.number == 2


def test_the_same_name_twice_stands_once_with_its_part() -> None:
    (region,) = choose_regions([], [Place((100, 100, 140, 140), "cup")] * 2, USUAL, 12, anything)
    assert region.objects == ("cup",)


@pytest.mark.parametrize(
    ("box", "view", "enlarged"),
    [
        ((0, 0, 1024, 1024), USUAL, False),
        ((100, 100, 250, 250), USUAL, True),
        ((100, 100, 400, 400), USUAL, False),
        # Of a large image there is more in the file.
        ((100, 100, 1600, 1600), LARGE, True),
    ],
)
def test_what_would_not_be_enlarged_is_left_out(box: Box, view: View, enlarged: bool) -> None:
    regions = choose_regions([], [Place(box, "thing")], view, 12, lambda _: 0.0)
    assert bool(regions) is enlarged


def test_a_large_image_is_looked_at_in_tiles_where_nothing_is_named() -> None:
    thing = Place((0, 0, 800, 800), "thing")
    regions = choose_regions([], [thing], LARGE, 12, anything)
    tiles = [each for each in regions if each.why == "tile"]
    assert 6 <= len(tiles) <= 11
    covered = np.zeros(LARGE.size[::-1], dtype=bool)
    for each in regions:
        covered[each.box[1] : each.box[3], each.box[0] : each.box[2]] = True
    assert covered.mean() > 0.95
    assert not [each for each in choose_regions([], [thing], LARGE, 12, None) if each.why == "tile"]
    # Eight places leave room for four.
    places = [Place((500 * n, 100, 500 * n + 60, 160)) for n in range(8)]
    whys = [each.why for each in choose_regions(places, [], LARGE, 12, anything)]
    assert whys.count("finding") == 8
    assert 1 <= whys.count("tile") <= 4


def test_sky_is_not_looked_at() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, (3000, 4000), dtype=np.uint8)
    pixels[:1500] = 200
    survey = Survey(Image.fromarray(pixels))
    tiles = choose_regions([], [], LARGE, 12, survey.detail)
    assert tiles
    assert all(each.box[3] > 1500 for each in tiles)
    flat = Survey(Image.new("L", (4000, 3000), 7))
    assert choose_regions([], [], LARGE, 12, flat.detail) == []


def test_the_closest_region_is_the_one_that_shows_a_place_largest() -> None:
    def region(number: int, box: Box, scale: float | None) -> Region:
        return Region(number=number, box=box, why="tile", scale=scale)

    wide, near = region(1, (0, 0, 400, 400), 2.5), region(2, (100, 100, 200, 200), 4.0)
    assert closest_region((110, 110, 120, 120), [wide, near]) == near
    assert closest_region((150, 150, 260, 260), [wide, near]) == wide
    assert closest_region((350, 350, 600, 600), [wide, near]) is None
    assert closest_region((0, 0, 10, 10), []) is None
    same = region(3, (100, 100, 200, 200), 4.0)
    assert closest_region((110, 110, 120, 120), [same, near]) == near


@given(st.lists(st.integers(), max_size=40))
def test_batches_are_of_equal_size_and_of_four_at_most(numbers: list[int]) -> None:
    batches = evenly(numbers)
    assert [number for batch in batches for number in batch] == numbers
    sizes = [len(batch) for batch in batches]
    assert len(batches) == -(-len(numbers) // 4)
    assert not sizes or (max(sizes) <= 4 and max(sizes) - min(sizes) <= 1)
