"""SemAP and SemF1 of one image and view: AnomReason, section 3.3 and appendix B.

Every function is of one similarity matrix, shape (predicted, true), each cell in 0–1; scores lie in 0–1,
higher is better. The paper's appendix and the authors' released scorer disagree, so there are two protocols,
and their scores are never mixed:

- `release` (`score_release`) is what the published tables show. It deviates from appendix B: matching knows
  no threshold, precision stands for average precision, and an image with an empty side scores 0, even where
  both are empty.
- `paper` (`score_paper`) is what appendix B says. What it leaves open: average precision sums over the ranks
  without interpolation, and an image without predictions and without true anomalies scores 1, with one side
  empty 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics import BALANCE

Matrix = NDArray[np.float64]

View = Literal["phe", "rea", "full"]
ProtocolName = Literal["release", "paper"]

VIEWS: tuple[View, ...] = get_args(View)
PROTOCOLS: tuple[ProtocolName, ...] = get_args(ProtocolName)
# In signatures: scores of different versions of a protocol do not compare.
VERSIONS: Mapping[ProtocolName, str] = {"release": "release/1", "paper": "paper/1"}


class Match(NamedTuple):
    """A predicted anomaly and the true one it is taken for, by their indices from 0."""

    predicted: int
    true: int
    similarity: float


class Outcome(NamedTuple):
    """One image, view and threshold.

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
    """One image and view: `at` has an outcome for each threshold, in the order they came in.

    `semap` and `semf1` are their means over the thresholds. `matches` are the pairs to show: in `release`
    all that were locked, whatever their similarity, best first; in `paper` those at the lowest threshold.
    """

    at: tuple[Outcome, ...]
    matches: tuple[Match, ...]

    @property
    def semap(self) -> float:
        return sum(outcome.semap for outcome in self.at) / len(self.at)

    @property
    def semf1(self) -> float:
        return sum(outcome.semf1 for outcome in self.at) / len(self.at)


def full_similarity(phenomenon: Matrix, reasoning: Matrix, balance: float = BALANCE) -> Matrix:
    """λ·phe + (1 − λ)·rea, cell by cell (appendix B.1); `balance` is λ, in 0–1."""
    mixed: Matrix = balance * phenomenon + (1 - balance) * reasoning
    return mixed


def f1(tp: int, n_pred: int, n_true: int) -> float:
    """2PR/(P + R), as 2·TP / (|pred| + |true|); 0 where nothing is predicted and nothing is true."""
    total = n_pred + n_true
    return 2 * tp / total if total else 0.0


def unmatched(matches: Sequence[Match], count: int, side: Literal["predicted", "true"]) -> tuple[int, ...]:
    """The indices below `count` that no match has on this side."""
    taken = {getattr(match, side) for match in matches}
    return tuple(index for index in range(count) if index not in taken)


def score_release(similarity: Matrix, thresholds: Sequence[float]) -> ViewScore:
    """The released scorer. At a threshold SemAP is TP / |pred|, SemF1 is 2PR/(P + R); 0 for an empty side."""
    matches = match_release(similarity)
    n_pred, n_true = similarity.shape
    outcomes = []
    for threshold in thresholds:
        hits = tuple(match for match in matches if match.similarity >= threshold)
        precision = len(hits) / n_pred if n_pred else 0.0
        outcomes.append(Outcome(hits, precision, f1(len(hits), n_pred, n_true)))
    return ViewScore(tuple(outcomes), matches)


def match_release(similarity: Matrix) -> tuple[Match, ...]:
    """One-to-one, greedy over the whole matrix: the highest cell first, while it is above 0.

    Of equal cells the smaller prediction goes first, then the smaller truth. Without ties the order of
    predictions and truths does not matter. Best first; empty where a side is empty.
    """
    rows: list[list[float]] = similarity.tolist()
    # A stable sort keeps equal cells in order of rows, then columns.
    cells = sorted(
        (
            (value, predicted, true)
            for predicted, row in enumerate(rows)
            for true, value in enumerate(row)
            if value > 0
        ),
        key=lambda cell: -cell[0],
    )
    free_rows, free_columns = set(range(len(rows))), set(range(similarity.shape[1]))
    matches: list[Match] = []
    for value, predicted, true in cells:
        if predicted in free_rows and true in free_columns:
            free_rows.remove(predicted)
            free_columns.remove(true)
            matches.append(Match(predicted, true, value))
    return tuple(matches)


def score_paper(
    similarity: Matrix, thresholds: Sequence[float], order: Sequence[int], full: Matrix | None = None
) -> ViewScore:
    """Appendix B, matched anew at each threshold. SemAP is the average precision, SemF1 2PR/(P + R).

    `order` is that of `confidence_order`, `full` the matrix that breaks ties, as in `match_paper`. Both sides
    empty score 1, one empty side 0.
    """
    n_pred, n_true = similarity.shape
    outcomes = []
    for threshold in thresholds:
        hits = match_paper(similarity, threshold, order, full)
        chosen = {match.predicted for match in hits}
        ap = average_precision([predicted in chosen for predicted in order], n_true)
        score = f1(len(hits), n_pred, n_true) if n_pred or n_true else 1.0
        outcomes.append(Outcome(hits, ap, score))
    lowest = min(range(len(thresholds)), key=lambda index: thresholds[index])
    return ViewScore(tuple(outcomes), outcomes[lowest].hits)


def confidence_order(severities: Sequence[float | None]) -> tuple[int, ...]:
    """The order in which predictions choose: most confident first, confidence being 100 − severity.

    Equal ones keep their order. Where any severity is unknown, all keep it: a prediction without one cannot
    be ranked among the others.
    """
    known = [severity for severity in severities if severity is not None]
    if len(known) < len(severities):
        return tuple(range(len(severities)))
    return tuple(sorted(range(len(known)), key=lambda index: known[index]))


def match_paper(
    similarity: Matrix, threshold: float, order: Sequence[int], full: Matrix | None = None
) -> tuple[Match, ...]:
    """One-to-one at one threshold: each prediction takes the most similar free truth that reaches it (B.2).

    Of equally similar truths it takes the one with the higher `full` similarity, then the smaller index.
    `full` is the similarity of the view `full`, or None where `similarity` is that view. In `order`.
    """
    rows: list[list[float]] = similarity.tolist()
    ties: list[list[float]] = rows if full is None else full.tolist()
    free = list(range(similarity.shape[1]))
    matches: list[Match] = []
    for predicted in order:
        row, tie = rows[predicted], ties[predicted]
        reached = [true for true in free if row[true] >= threshold]
        if reached:
            # max keeps the first of equal ones, and `free` is in order of indices.
            best = max(reached, key=lambda true: (row[true], tie[true]))
            free.remove(best)
            matches.append(Match(predicted, best, row[best]))
    return tuple(matches)


def average_precision(hits: Sequence[bool], n_true: int) -> float:
    """Σ_k (R_k − R_{k−1})·P_k over the ranks (B.3); `hits` says of each rank whether it is a hit.

    1 where there is nothing to find and nothing was predicted, 0 where only one of them is so.
    """
    if not hits or not n_true:
        return float(not hits and not n_true)
    tp, total = 0, 0.0
    for rank, hit in enumerate(hits, start=1):
        if hit:
            tp += 1
            total += tp / rank
    return total / n_true
