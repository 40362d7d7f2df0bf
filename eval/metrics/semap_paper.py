"""SemAP and SemF1 as appendix B of the paper defines them.

What the appendix leaves open: average precision sums over the ranks without interpolation, and an image
without predictions and without true anomalies scores 1, with one side empty 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.eval.metrics.semap import Match, Matrix, Outcome, ViewScore, f1

VERSION = "paper/1"


def confidence_order(severities: Sequence[float | None]) -> tuple[int, ...]:
    """The order in which predictions choose: most confident first, confidence being 100 − severity.

    Equal ones keep the given order. Where any severity is unknown, all keep it: a prediction without one
    cannot be ranked among the others.
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
    found: list[Match] = []
    for predicted in order:
        row, tie = rows[predicted], ties[predicted]
        reached = [true for true in free if row[true] >= threshold]
        if reached:
            # max keeps the first of equal ones, and `free` is in order of indices.
            best = max(reached, key=lambda true: (row[true], tie[true]))
            free.remove(best)
            found.append(Match(predicted, best, row[best]))
    return tuple(found)


def average_precision(hits: Sequence[bool], n_true: int) -> float:
    """Σ_k (R_k − R_{k−1})·P_k over the ranks (B.3), in 0–1; `hits` says of each rank whether it is a hit.

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


def score_paper(
    similarity: Matrix, thresholds: Sequence[float], order: Sequence[int], full: Matrix | None = None
) -> ViewScore:
    """One image and view, matched anew at each threshold. Both sides empty score 1, one empty side 0."""
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
