"""Faults planted in a picture: what each schedule reports where a single step sees one, and what none can."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

import pytest

from tests.agents.onlooker import Eye, Onlooker, keep_the_first, one_entry_a_fault
from tests.agents.packed_specialists import Rows
from uncanny.agents.steps import ScheduleName

# The bicycle is above the limit.
OBJECTS: Final = ("hand", "cup", "table", "mirror", "bicycle")
LIMITS: Final[dict[str, dict[str, int]]] = {
    "packed": {"max_objects": 4},
    "paper": {"max_objects": 4},
    "single": {},
}

FINGER: Final = "a sixth finger on the hand"
HOVERING: Final = "the cup hovers over the table"
GHOST: Final = "the mirror shows a bicycle where none is"
WHEEL: Final = "a square wheel"
STARS: Final = "stars at noon"
# With the objects that each is about. Of one that is about none only the whole picture tells.
FAULTS: Final[Mapping[str, Sequence[str]]] = {
    FINGER: ("hand",),
    HOVERING: ("cup", "table"),
    GHOST: ("mirror", "bicycle"),
    WHEEL: ("bicycle",),
    STARS: (),
}
EYES: Final[tuple[Eye, ...]] = ("attributes", "relations", "look")
CLOSED_TO_THE_CUP: Final[Collection[tuple[Eye, str]]] = (("attributes", "cup"), ("relations", "cup"))
CLOSED_TO_BOTH: Final = (*CLOSED_TO_THE_CUP, ("attributes", "table"), ("relations", "table"))


class Case(NamedTuple):
    """A fault, the only step that sees it, and whether it is among what each schedule reports."""

    fault: str
    eye: Eye
    packed: bool
    paper: bool
    single: bool
    closed: Collection[tuple[Eye, str]] = ()


YES, NO = True, False
# fmt: off
TABLE: Final = (
    #    the fault  is seen only by  packed paper single
    Case(FINGER,    "attributes",    YES,   YES,  NO),
    # no relation of it is doubted, nor to be compared
    Case(FINGER,    "relations",     NO,    YES,  NO),
    Case(FINGER,    "look",          YES,   NO,   YES),
    # between two objects
    Case(HOVERING,  "attributes",    YES,   YES,  NO),
    Case(HOVERING,  "relations",     NO,    YES,  NO),
    Case(HOVERING,  "look",          YES,   NO,   YES),
    # of which the specialists do not answer about the first, so that the second's have to tell …
    Case(HOVERING,  "attributes",    YES,   YES,  NO,  CLOSED_TO_THE_CUP),
    # … nor about the second: nobody is left but the open look.
    Case(HOVERING,  "attributes",    NO,    NO,   NO,  CLOSED_TO_BOTH),
    Case(HOVERING,  "look",          YES,   NO,   YES, CLOSED_TO_BOTH),
    # what is beside it is seen all the same
    Case(FINGER,    "attributes",    YES,   YES,  NO,  CLOSED_TO_BOTH),
    # between a mirror and an object above the limit
    Case(GHOST,     "relations",     YES,   YES,  NO),
    Case(GHOST,     "look",          YES,   NO,   YES),
    # of an object above the limit, which no specialist is asked about
    Case(WHEEL,     "attributes",    NO,    NO,   NO),
    Case(WHEEL,     "relations",     NO,    NO,   NO),
    Case(WHEEL,     "look",          YES,   NO,   YES),
    # of no single object
    Case(STARS,     "attributes",    NO,    NO,   NO),
    Case(STARS,     "relations",     NO,    NO,   NO),
    Case(STARS,     "look",          YES,   NO,   YES),
)
# fmt: on


def name_of(case: object) -> str | None:
    if not isinstance(case, Case):
        return None
    answering = f", {len(case.closed)} closed" if case.closed else ""
    return f"{case.fault}: {case.eye}{answering}"


def planted(
    case: Case,
    judge: Callable[[Rows], Sequence[object]] | None = one_entry_a_fault,
) -> Onlooker:
    return Onlooker(OBJECTS, FAULTS, {(case.eye, case.fault)}, case.closed, judge, "mirror")


@pytest.mark.parametrize("schedule", ["packed", "paper", "single"])
@pytest.mark.parametrize("case", TABLE, ids=name_of)
async def test_what_a_schedule_reports_of_a_fault_that_one_step_sees(
    case: Case, schedule: ScheduleName
) -> None:
    expected = [case.fault] if getattr(case, schedule) else []
    assert await planted(case).anomalies(schedule, **LIMITS[schedule]) == expected


def test_packed_reports_all_that_the_single_schedule_does() -> None:
    assert all(case.packed >= case.single for case in TABLE)


@pytest.mark.parametrize("case", [case for case in TABLE if case.packed], ids=name_of)
@pytest.mark.parametrize("judge", [keep_the_first, None], ids=["loses count", "does not answer"])
async def test_no_integrator_makes_packed_forget_what_was_seen(
    case: Case, judge: Callable[[Rows], Sequence[object]] | None
) -> None:
    onlooker = planted(case, judge)
    # Seen besides and numbered ahead of it, so that it is this one that is lost count of.
    onlooker.faults = {"an odd room": (), **FAULTS}
    onlooker.sees = {(case.eye, case.fault), ("look", "an odd room")}
    reported = await onlooker.anomalies("packed", **LIMITS["packed"])
    assert case.fault in reported


@pytest.mark.parametrize("seed", range(20))
async def test_all_faults_at_once_each_seen_by_a_step_of_its_own(seed: int) -> None:
    dice = random.Random(seed)
    cases = [case for case in TABLE if not case.closed]
    chosen = [dice.choice([case for case in cases if case.fault == fault]) for fault in FAULTS]
    for schedule in ("packed", "paper", "single"):
        onlooker = Onlooker(OBJECTS, FAULTS, {(case.eye, case.fault) for case in chosen}, mirror="mirror")
        expected = {case.fault for case in chosen if getattr(case, schedule)}
        reported = await onlooker.anomalies(schedule, **LIMITS[schedule])
        assert set(reported) == expected
