"""Which finding comes next, against a plain reading of the same rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from uncanny.records.reviews import Decision, majority
from uncanny.service import SHOWS, Show
from uncanny.service.review.queue import Filters, Order, ReviewQueue, Row, Standing

DECISIONS: tuple[Decision, ...] = get_args(Decision)


@dataclass
class Plain:
    row: Row
    votes: dict[str, Decision] = field(default_factory=dict)

    @property
    def tied(self) -> bool:
        counts = sorted(list(self.votes.values()).count(each) for each in set(self.votes.values()))
        return len(counts) > 1 and counts[-1] == counts[-2]


def shown(plain: Plain, show: Show) -> bool:
    decision = majority(plain.votes.values())
    return {
        "todo": "ann" not in plain.votes,
        "all": True,
        "ties": plain.tied,
        "unjudged": decision is None,
        "accepted": decision == "accept",
        "rejected": decision == "reject",
        "unsure": decision == "unsure" and not plain.tied,
        "changed": False,
        "added": False,
    }[show]


rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from([0.0, 0.25, 0.5, 1.0]),
        st.sampled_from([None, "count", "text"]),
        st.dictionaries(st.sampled_from(["ann", "ben", "cid"]), st.sampled_from(DECISIONS)),
    ),
    max_size=14,
)


@given(
    rows,
    st.sampled_from(SHOWS),
    st.sampled_from(["uncertain", "file"]),
    st.sampled_from([None, "count", "none"]),
)
def test_a_queue_goes_once_through_all_that_is_asked_for(
    drawn: list[tuple[int, float, str | None, dict[str, Decision]]],
    show: Show,
    order: Order,
    kind: str | None,
) -> None:
    drawn = sorted(drawn, key=lambda each: each[0])
    plain: list[Plain] = []
    for image, doubt, sort, votes in drawn:
        place = sum(each.row.image == image for each in plain)
        plain.append(Plain(Row(image, place, doubt, sort, ()), votes))
    queue = ReviewQueue([each.row for each in plain])
    for number, each in enumerate(plain):
        queue.set(number, Standing(each.votes, majority(each.votes.values()), each.tied))
    wanted = [
        number
        for number, each in enumerate(plain)
        if shown(each, show) and kind in (None, each.row.kind or "none")
    ]
    if order == "uncertain":
        wanted.sort(key=lambda number: -plain[number].row.doubt)
    filters = Filters(show, order, kind)
    seen: list[int] = []
    at = queue.next(None, "next", filters, "ann")
    while at is not None and at not in seen:
        seen.append(at)
        at = queue.next(at, "next", filters, "ann")
    assert seen == wanted
    assert queue.progress(filters, "ann").left == len(wanted)
    for number, row in enumerate(wanted):
        after = [
            each
            for each in wanted[number + 1 :] + wanted[:number]
            if plain[each].row.image != plain[row].row.image
        ]
        assert queue.next(row, "next-image", filters, "ann") == (after[0] if after else None)
        if show not in ("todo", "unjudged"):
            assert queue.next(row, "previous", filters, "ann") == (wanted[number - 1] if number else None)


def test_back_from_what_is_to_be_done_leads_to_what_has_been_done() -> None:
    queue = ReviewQueue([Row(number, 0, 0.5, None, ()) for number in range(3)])
    queue.set(0, Standing({"ann": "accept"}, "accept"))
    assert queue.next(None, "next", Filters(), "ann") == 1
    assert queue.next(1, "previous", Filters(), "ann") == 0
    assert queue.next(0, "previous", Filters(), "ann") is None


def test_enough_verdicts_end_a_finding_unless_they_tie() -> None:
    queue = ReviewQueue([Row(0, 0, 0.5, None, ()), Row(1, 0, 0.5, None, ())], per_finding=2)
    queue.set(0, Standing({"ann": "accept", "ben": "accept"}, "accept"))
    queue.set(1, Standing({"ann": "accept", "ben": "reject"}, "unsure", tied=True))
    assert queue.next(None, "next", Filters(), "cid") == 1
    assert queue.progress(Filters(), "cid").left == 1


def test_an_added_finding_comes_at_the_end_of_its_image_and_can_go_again() -> None:
    queue = ReviewQueue([Row(0, 0, 0.2, None, ()), Row(1, 0, 0.3, None, ("A",))])
    row = len(queue)
    queue.add([Row(0, 1, 1.0, "count", (), added=True)])
    file = Filters("all", "file")
    assert [queue.next(None, "next", file, None), queue.next(0, "next", file, None)] == [0, row]
    assert queue.next(None, "next", Filters("added"), None) == row
    assert queue.kinds == ["count"]
    queue.set(row, Standing(gone=True))
    assert queue.progress(file, None).findings == 2
    assert queue.next(0, "next", file, None) == 1


def test_an_empty_run_has_nothing_to_review() -> None:
    queue = ReviewQueue([])
    assert queue.next(None, "next", Filters(), "ann") is None
    assert queue.progress(Filters(), "ann").findings == 0
