"""The findings of a run in the order they are put to people, and which of them a reviewer sees next.

A row a finding, in arrays: what stands in files is read only for the finding that is shown. Everything here
is in memory and takes well below a millisecond at 100,000 findings; a place in the queue is a finding, not a
number, so that verdicts of others never shift it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from uncanny.records.reviews import DECISIONS, Decision
from uncanny.service import Show

Order = Literal["uncertain", "file"]
ORDERS: tuple[Order, ...] = get_args(Order)
Move = Literal["next", "previous", "next-image", "previous-image"]
MOVES: tuple[Move, ...] = get_args(Move)

N = TypeVar("N", bound=np.generic)
Mask = npt.NDArray[np.bool_]
_CODES: Mapping[Decision, int] = {decision: code for code, decision in enumerate(DECISIONS, start=1)}
_CHUNK = 1024


@dataclass(frozen=True, slots=True)
class Filters:
    """Which findings are in a queue and how they are ordered. `kind` "none" is those without one.

    `doubtful`: also findings that the model was not sure enough of. With `sample` people judge the images of
    the run's sample whole: those that are left, with the `show` "all" every one of them.
    `show`: `todo`, what this reviewer has not judged, `unjudged` by anybody, `ties`, or by the decision of
    the majority, which a tie has none of; `changed` were edited by people, `added` by people only.
    """

    show: Show = "todo"
    order: Order = "uncertain"
    kind: str | None = None
    agent: str | None = None
    doubtful: bool = False
    sample: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """A finding as the queue knows it. `image` is the number of its image, `anomaly` its place there.

    `doubtful`: the model was not sure enough of it, so that it is hidden until somebody asks for it.
    """

    image: int
    anomaly: int
    doubt: float
    kind: str | None
    agents: Sequence[str]
    added: bool = False
    doubtful: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """What people say of a finding now."""

    votes: Mapping[str, Decision] = field(default_factory=dict)
    decision: Decision | None = None
    tied: bool = False
    edited: bool = False
    added: bool = False
    # Whoever added it has taken it back: it is no finding any more.
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is: `mine` of `findings` judged by this reviewer, `judged` by anybody; `left` are in the
    queue; the majority's decisions, and `ties`, which are none of these; `mine` by decision in `said`, as
    accept, reject and unsure. `doubtful` findings are those that the model was not sure enough of; the other
    figures count them only where the queue has them."""

    findings: int
    left: int
    mine: int
    judged: int
    accepted: int
    rejected: int
    unsure: int
    ties: int
    said: tuple[int, int, int]
    doubtful: int = 0


class ReviewQueue:
    """Rows are numbered from 0 in the order they were added; `image` numbers must not fall."""

    def __init__(
        self, rows: Sequence[Row], per_finding: int | None = None, *, ties_are_open: bool = True
    ) -> None:
        """With `per_finding` a finding that has as many verdicts is not asked for again, unless they tie and
        `ties_are_open`, so that one more verdict decides."""
        self._per_finding, self._ties_are_open = per_finding, ties_are_open
        self._kinds: dict[str | None, int] = {None: 0}
        self._agents: dict[str, int] = {}
        self._votes: dict[str, npt.NDArray[np.int8]] = {}
        self.image = np.array([row.image for row in rows], np.int32)
        self.anomaly = np.array([row.anomaly for row in rows], np.int32)
        self._doubt = np.array([row.doubt for row in rows], np.float32)
        self._kind = np.array([self._kind_code(row.kind) for row in rows], np.int16)
        self._agent = np.array([self._agent_bits(row.agents) for row in rows], np.uint64)
        count = len(rows)
        self._counts = np.zeros((count, 1 + len(DECISIONS)), np.int32)
        self._decision = np.zeros(count, np.int8)
        self._tied, self._edited, self._gone = (np.zeros(count, np.bool_) for _ in range(3))
        self._added = np.array([row.added for row in rows], np.bool_)
        self._doubtful = np.array([row.doubtful for row in rows], np.bool_)
        self._rows: dict[Order, npt.NDArray[np.intp]] = {}
        # Where a row is in an order; empty where rows came since it was made.
        self._places: dict[Order, npt.NDArray[np.intp]] = {}
        self._ordered("file")  # now, so that the first page need not wait for it

    def __len__(self) -> int:
        return len(self.image)

    @property
    def kinds(self) -> list[str]:
        return sorted(kind for kind in self._kinds if kind is not None)

    @property
    def agents(self) -> list[str]:
        return sorted(self._agents)

    @property
    def reviewers(self) -> list[str]:
        return sorted(name for name, votes in self._votes.items() if votes.any())

    def votes_by_row(self) -> npt.NDArray[np.int32]:
        """How many accept, reject and are unsure, a row a finding."""
        return self._counts[:, 1:]

    def is_gone(self, row: int) -> bool:
        return bool(self._gone[row])

    def add(self, rows: Sequence[Row]) -> None:
        """Further findings, at the end of their images in the file's order; the first is row `len(self)`."""
        if not rows:
            return
        more = len(rows)

        def longer(array: npt.NDArray[N], values: Sequence[int] | Sequence[float]) -> npt.NDArray[N]:
            return np.concatenate([array, np.array(values, array.dtype)])

        nothing = [0] * more
        self.image = longer(self.image, [row.image for row in rows])
        self.anomaly = longer(self.anomaly, [row.anomaly for row in rows])
        self._doubt = longer(self._doubt, [row.doubt for row in rows])
        self._kind = longer(self._kind, [self._kind_code(row.kind) for row in rows])
        self._agent = longer(self._agent, [self._agent_bits(row.agents) for row in rows])
        self._counts = np.vstack([self._counts, np.zeros((more, self._counts.shape[1]), np.int32)])
        self._decision = longer(self._decision, nothing)
        self._tied, self._edited, self._gone = (
            longer(each, nothing) for each in (self._tied, self._edited, self._gone)
        )
        self._added = longer(self._added, [row.added for row in rows])
        self._doubtful = longer(self._doubtful, [row.doubtful for row in rows])
        self._votes = {name: longer(votes, nothing) for name, votes in self._votes.items()}
        self._places = {}

    def set(self, row: int, standing: Standing) -> None:
        """What stands of a finding now, in place of what stood before."""
        for votes in self._votes.values():
            votes[row] = 0
        self._counts[row] = 0
        for reviewer, decision in standing.votes.items():
            if reviewer not in self._votes:
                self._votes[reviewer] = np.zeros(len(self), np.int8)
            self._votes[reviewer][row] = _CODES[decision]
            self._counts[row, _CODES[decision]] += 1
        self._decision[row] = 0 if standing.decision is None else _CODES[standing.decision]
        self._tied[row], self._edited[row] = standing.tied, standing.edited
        self._gone[row] = standing.gone

    def next(self, row: int | None, move: Move, filters: Filters, reviewer: str | None) -> int | None:
        """The row that `move` leads to from `row`; None for none left.

        Where `row` is None it leads ahead from the start, and back from the end. Ahead it goes round to the
        start, so that what was passed over comes again; back it ends at the start. Back from what is to be
        done leads through what has been done, too.
        """
        places, rows = self._ordered(filters.order)
        ahead = move in ("next", "next-image")
        wanted = self._mask(
            filters if ahead or filters.show not in ("todo", "unjudged") else _all(filters), reviewer
        )
        if row is not None and move in ("next-image", "previous-image"):
            wanted &= self.image != self.image[row]
        elif row is not None:
            wanted[row] = False
        start = (-1 if ahead else len(rows)) if row is None else int(places[row])
        if ahead:
            place = _first(wanted, rows[start + 1 :])
            return _first(wanted, rows[: start + 1]) if place is None else place
        place = _first(wanted, rows[:start][::-1]) if start > 0 else None
        if place is None or move == "previous" or filters.order != "file":
            return place
        return _first(wanted & (self.image == self.image[place]), rows)  # an image begins with its first

    def leads_back_to(self, row: int, filters: Filters, reviewer: str | None) -> bool:
        return bool(self._mask(_all(filters), reviewer)[row])

    def page(self, row: int | None, filters: Filters, reviewer: str | None, limit: int) -> list[int]:
        """The rows of the queue behind `row`, be that in it or not; all for None."""
        places, rows = self._ordered(filters.order)
        behind = rows[0 if row is None else int(places[row]) + 1 :]
        page: list[int] = []
        wanted = self._mask(filters, reviewer)
        for start in range(0, len(behind), _CHUNK):
            some = behind[start : start + _CHUNK]
            page += (int(each) for each in some[wanted[some]])
            if len(page) >= limit:
                break
        return page[:limit]

    def shown(self, rows: Sequence[int], filters: Filters) -> list[int]:
        """Of the rows of one image those that are shown, in the order of its findings."""
        there = (row for row in rows if not self._gone[row] and (filters.doubtful or not self._doubtful[row]))
        return sorted(there, key=lambda row: int(self.anomaly[row]))

    def has_judged(self, row: int, reviewer: str | None) -> bool:
        return reviewer in self._votes and bool(self._votes[reviewer][row])

    def progress(
        self, filters: Filters, reviewer: str | None, images: Sequence[int] | None = None
    ) -> Progress:
        """With `images` only their findings count; `left` is of the whole queue."""
        there = self._there(filters)
        known = ~self._gone
        if images is not None:
            those = np.isin(self.image, np.array(images, np.int32))
            there, known = there & those, known & those
        by_decision = np.bincount(self._decision[there & ~self._tied], minlength=1 + len(DECISIONS))
        ties = int((self._tied & there).sum())
        mine = self._votes.get(reviewer) if reviewer is not None else None
        said = np.bincount([] if mine is None else mine[there], minlength=1 + len(DECISIONS))
        return Progress(
            findings=int(there.sum()),
            left=int(self._mask(filters, reviewer).sum()),
            mine=int(said[1:].sum()),
            judged=int(by_decision[1:].sum()) + ties,
            accepted=int(by_decision[_CODES["accept"]]),
            rejected=int(by_decision[_CODES["reject"]]),
            unsure=int(by_decision[_CODES["unsure"]]),
            ties=ties,
            said=(int(said[1]), int(said[2]), int(said[3])),
            doubtful=int((self._doubtful & known).sum()),
        )

    def is_doubtful(self, row: int) -> bool:
        return bool(self._doubtful[row])

    def _there(self, filters: Filters) -> Mask:
        return ~self._gone if filters.doubtful else ~(self._gone | self._doubtful)

    def _mask(self, filters: Filters, reviewer: str | None) -> Mask:
        wanted = self._shown(filters.show, reviewer) & self._there(filters)
        if filters.kind is not None:
            code = self._kinds.get(None if filters.kind == "none" else filters.kind, -1)
            wanted &= self._kind == code
        if filters.agent is not None:
            wanted &= (self._agent & np.uint64(self._agents.get(filters.agent, 0))) != 0
        return wanted

    def _shown(self, show: Show, reviewer: str | None) -> Mask:
        match show:
            case "todo":
                mine = self._votes.get(reviewer) if reviewer is not None else None
                wanted = np.ones(len(self), np.bool_) if mine is None else mine == 0
                if self._per_finding is not None:
                    few = self._counts.sum(axis=1) < self._per_finding
                    wanted &= (few | self._tied) if self._ties_are_open else few
                return wanted
            case "all":
                return np.ones(len(self), np.bool_)
            case "ties":
                return self._tied.copy()
            case "unjudged":
                return np.equal(self._decision, 0)
            case "changed":
                return self._edited.copy()
            case "added":
                return self._added.copy()
            case "accepted":
                return np.equal(self._decision, _CODES["accept"])
            case "rejected":
                return np.equal(self._decision, _CODES["reject"])
            case "unsure":
                return np.equal(self._decision, _CODES["unsure"]) & ~self._tied

    def _ordered(self, order: Order) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """The place of each row, and the row at each place."""
        if not self._places:
            in_file = np.lexsort((self.anomaly, self.image))
            uncertain = in_file[np.argsort(-self._doubt[in_file], kind="stable")]
            self._rows = {"file": in_file, "uncertain": uncertain}
            for name, rows in self._rows.items():
                self._places[name] = np.empty(len(rows), np.intp)
                self._places[name][rows] = np.arange(len(rows))
        return self._places[order], self._rows[order]

    def _kind_code(self, kind: str | None) -> int:
        return self._kinds.setdefault(kind, len(self._kinds))

    def _agent_bits(self, agents: Sequence[str]) -> int:
        """A bit an agent; of more than 64, which no tool has, the later ones cannot be asked for."""
        bits = 0
        for name in agents:
            if name not in self._agents and len(self._agents) < 64:
                self._agents[name] = 1 << len(self._agents)
            bits |= self._agents.get(name, 0)
        return bits


def _all(filters: Filters) -> Filters:
    return replace(filters, show="all")


def _first(wanted: Mask, rows: npt.NDArray[np.intp]) -> int | None:
    """The first of `rows` that is wanted; a little at a time, as it is near as a rule."""
    for start in range(0, len(rows), _CHUNK):
        some = rows[start : start + _CHUNK]
        hits = np.flatnonzero(wanted[some])
        if len(hits):
            return int(some[hits[0]])
    return None
