"""Options of drafts name places that the fault does not reach into; without three there is no draft."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.eval.pairs.made_candidates import kept_outcome
from uncanny.answers.boxes import overlap
from uncanny.eval.pairs.drafts import draft_pair
from uncanny.eval.pairs.places import PLACES, place_of
from uncanny.schema import Box


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("box", [(10, 10, 40, 40), (110, 110, 195, 190), (0, 0, 190, 290)])
def test_no_wrong_option_is_where_the_fault_is(box: Box, seed: int) -> None:
    item, _ = draft_pair(kept_outcome(box, (300, 300)), (), seed, Path(), seed)
    assert item.q2 is not None
    assert item.q3 is not None
    for letter, place in item.q3.boxes.items():
        if letter == item.q3.answer:
            continue
        assert place is not None
        left, top, right, bottom = map(int, place)
        assert overlap((left, top, right, bottom), box) == 0
        # Nor does the fault reach into the ninth of the image that the option names.
        number = PLACES.index(str(item.q2.options[letter]).removeprefix("The area "))
        left, top = 100 * (number % 3), 100 * (number // 3)
        assert overlap((left, top, left + 100, top + 100), box) == 0


def test_a_region_is_no_option_under_a_name_that_the_fault_reaches_into() -> None:
    box = (90, 90, 210, 210)
    others = [kept_outcome((0, 0, 60, 60), (300, 300), "the area at the top left").pair]
    assert draft_pair(kept_outcome(box, (300, 300)), others, 0, Path(), 0) == ()
    others = [
        kept_outcome((0, 0, 60, 60), (300, 300), name).pair for name in ("the cup", "the lid", "the jug")
    ]
    item, _ = draft_pair(kept_outcome(box, (300, 300)), others, 0, Path(), 0)
    assert item.q2 is not None
    assert {"The cup", "The lid", "The jug"} < set(item.q2.options.values())


def test_a_fault_that_leaves_fewer_than_three_places_has_no_draft() -> None:
    assert draft_pair(kept_outcome((0, 0, 290, 150), (300, 300)), (), 0, Path(), 0)
    assert draft_pair(kept_outcome((0, 0, 290, 210), (300, 300)), (), 0, Path(), 0) == ()


def test_places_are_named_by_thirds() -> None:
    assert place_of((0, 0, 50, 50), (300, 300)) == "at the top left"
    assert place_of((120, 130, 170, 180), (300, 300)) == "in the middle"
    assert place_of((210, 110, 290, 190), (300, 300)) == "at the right"
    assert len(set(PLACES)) == 9
