"""The case table, exhaustively: two first answers, nine pairs of choices, and whatever is missing."""

from __future__ import annotations

from itertools import product

import pytest

from uncanny.answers.verdicts import Position, Realistic
from uncanny.eval.realism.verdicts import CASE_OF, Case, Choice, Label, choice_of, label_of

CHOICES: tuple[Choice, ...] = ("original", "edited", "both")
POSITIONS: tuple[Position | None, ...] = ("first", "second", "both", None)
FIRSTS: tuple[Realistic | None, ...] = ("yes", "no", None)

# As the specification has it, one row for each pair of choices: in one order, in the other.
EXPECTED: dict[tuple[Choice, Choice], tuple[Label, Case | None]] = {
    ("original", "edited"): ("deceiving", 1),
    ("edited", "original"): ("deceiving", 1),
    ("edited", "edited"): ("deceiving", 2),
    ("both", "edited"): ("deceiving", 3),
    ("edited", "both"): ("deceiving", 3),
    ("both", "both"): ("deceiving", 4),
    ("original", "original"): ("intermediate", None),
    ("original", "both"): ("intermediate", None),
    ("both", "original"): ("intermediate", None),
}
SHOWN_AS: dict[tuple[Choice, bool], Position] = {
    ("original", True): "first",
    ("edited", True): "second",
    ("both", True): "both",
    ("original", False): "second",
    ("edited", False): "first",
    ("both", False): "both",
}


def test_the_rows_are_all_there() -> None:
    assert set(EXPECTED) == set(product(CHOICES, CHOICES))
    assert set(CASE_OF) == {frozenset(row) for row in EXPECTED}


@pytest.mark.parametrize(("choice", "original_first"), SHOWN_AS)
def test_the_order_is_undone(choice: Choice, original_first: bool) -> None:
    assert choice_of(SHOWN_AS[choice, original_first], original_first=original_first) == choice


@pytest.mark.parametrize("row", EXPECTED, ids="-".join)
def test_realistic_ones_by_the_table(row: tuple[Choice, Choice]) -> None:
    assert label_of("yes", SHOWN_AS[row[0], True], SHOWN_AS[row[1], False]) == EXPECTED[row]


@pytest.mark.parametrize(("original_first", "edited_first"), list(product(POSITIONS, POSITIONS)))
def test_no_is_enough(original_first: Position | None, edited_first: Position | None) -> None:
    assert label_of("no", original_first, edited_first) == ("non_deceiving", None)


@pytest.mark.parametrize(("original_first", "edited_first"), list(product(POSITIONS, POSITIONS)))
def test_without_a_first_verdict_nothing_is_determined(
    original_first: Position | None, edited_first: Position | None
) -> None:
    assert label_of(None, original_first, edited_first) == ("undetermined", None)


@pytest.mark.parametrize("present", POSITIONS)
def test_without_both_choices_nothing_is_determined(present: Position | None) -> None:
    assert label_of("yes", present, None) == ("undetermined", None)
    assert label_of("yes", None, present) == ("undetermined", None)


@pytest.mark.parametrize(
    ("first", "original_first", "edited_first"), list(product(FIRSTS, POSITIONS, POSITIONS))
)
def test_which_order_was_asked_first_does_not_matter(
    first: Realistic | None, original_first: Position | None, edited_first: Position | None
) -> None:
    """Swapping the orders shows the same images the other way round: first becomes second."""
    turned: dict[Position | None, Position | None] = {
        "first": "second",
        "second": "first",
        "both": "both",
        None: None,
    }
    assert label_of(first, original_first, edited_first) == label_of(
        first, turned[edited_first], turned[original_first]
    )


@pytest.mark.parametrize(
    ("first", "original_first", "edited_first"), list(product(FIRSTS, POSITIONS, POSITIONS))
)
def test_a_case_goes_with_deceiving_alone(
    first: Realistic | None, original_first: Position | None, edited_first: Position | None
) -> None:
    label, case = label_of(first, original_first, edited_first)
    assert (case is not None) == (label == "deceiving")
