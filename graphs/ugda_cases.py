"""From the answers of the three questions to a label: the case table as data.

Source: SAGI, supplementary, section 1.6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, get_args

from uncanny.answers.verdicts import Position, Realistic

Choice = Literal["original", "edited", "both"]
Label = Literal["deceiving", "intermediate", "non_deceiving", "undetermined"]
Case = Literal[1, 2, 3, 4]
LABELS: Final[tuple[Label, ...]] = get_args(Label)
CASES: Final[tuple[Case, ...]] = get_args(Case)

# What both orders chose, either way round: the case in which the image deceives, None where it does not.
CASE_OF: Final[Mapping[frozenset[Choice], Case | None]] = {
    frozenset({"original", "edited"}): 1,  # the choice follows the position
    frozenset({"edited"}): 2,  # consistently prefers the edit
    frozenset({"both", "edited"}): 3,
    frozenset({"both"}): 4,  # cannot tell
    frozenset({"original"}): None,
    frozenset({"original", "both"}): None,
}


class Labelled(NamedTuple):
    """`case` is None but for `deceiving`."""

    label: Label
    case: Case | None


UNDETERMINED: Final = Labelled("undetermined", None)


def choice_of(position: Position, *, original_first: bool) -> Choice:
    """Which image was chosen, the order undone."""
    if position == "both":
        return "both"
    return "original" if (position == "first") == original_first else "edited"


def label_of(
    first: Realistic | None, original_first: Position | None, edited_first: Position | None
) -> Labelled:
    """The label of a pair; None is a verdict that is missing.

    After `no` nothing else counts. After a missing first verdict, or with one missing choice, nothing is
    guessed, not even where every value of the missing choice would give the same label.
    """
    if first == "no":
        return Labelled("non_deceiving", None)
    if first is None or original_first is None or edited_first is None:
        return UNDETERMINED
    chosen = frozenset(
        {choice_of(original_first, original_first=True), choice_of(edited_first, original_first=False)}
    )
    case = CASE_OF[chosen]
    return Labelled("intermediate" if case is None else "deceiving", case)
