"""SemAP and SemF1: what both protocols share (AnomReason, section 3.3 and appendix B).

A protocol is a pure function of one image's similarity matrix, shape (predicted, true), each cell in 0–1.
The paper's appendix and the authors' code disagree, so there are two: `semap_release` is what the published
tables show, `semap_paper` what appendix B says. Their figures are never mixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]

View = Literal["phe", "rea", "full"]
ProtocolName = Literal["release", "paper"]

VIEWS: tuple[View, ...] = get_args(View)
PROTOCOLS: tuple[ProtocolName, ...] = get_args(ProtocolName)
THRESHOLDS = (0.7, 0.8, 0.9)
BALANCE = 0.5


class Match(NamedTuple):
    """A predicted anomaly and the true one it is taken for, by their indices from 0."""

    predicted: int
    true: int
    similarity: float


class Outcome(NamedTuple):
    """One image, view and threshold. `semap` and `semf1` lie in 0–1, higher is better.

    `hits` are the true positives, each with its truth; in `paper` in order of confidence.
    """

    hits: tuple[Match, ...]
    semap: float
    semf1: float

    @property
    def tp(self) -> int:
        return len(self.hits)


@dataclass(frozen=True, slots=True)
class ViewScore:
    """One image and view: `at` has an outcome for each threshold, in the order they were given.

    `semap` and `semf1` are their means over the thresholds. `matches` are the pairs to show: in `release`
    all that were locked, whatever their similarity, best first; in `paper` those at the lowest threshold.
    """

    at: tuple[Outcome, ...]
    matches: tuple[Match, ...]

    @property
    def semap(self) -> float:
        return sum(one.semap for one in self.at) / len(self.at)

    @property
    def semf1(self) -> float:
        return sum(one.semf1 for one in self.at) / len(self.at)


def full_similarity(phenomenon: Matrix, reasoning: Matrix, balance: float = BALANCE) -> Matrix:
    """λ·phe + (1 − λ)·rea, cell by cell (appendix B.1); `balance` is λ, in 0–1."""
    mixed: Matrix = balance * phenomenon + (1 - balance) * reasoning
    return mixed


def f1(tp: int, n_pred: int, n_true: int) -> float:
    """2PR/(P + R) in 0–1, as 2·TP / (|pred| + |true|); 0 where nothing is predicted and nothing is true."""
    total = n_pred + n_true
    return 2 * tp / total if total else 0.0


def unmatched(matches: Sequence[Match], count: int, side: Literal["predicted", "true"]) -> tuple[int, ...]:
    """The indices below `count` that no match has on this side."""
    taken = {getattr(match, side) for match in matches}
    return tuple(index for index in range(count) if index not in taken)
