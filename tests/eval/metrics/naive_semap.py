"""Both protocols once more, from the definitions and in no hurry, to check the real ones by."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from uncanny.eval.metrics.semap import Matrix

Pair = tuple[int, int]


def release_pairs(similarity: Matrix) -> list[Pair]:
    """Take the highest cell, strike out its row and column, and again."""
    left = similarity.copy()
    pairs: list[Pair] = []
    while left.size and left.max() > 0:
        row, column = (int(index) for index in np.unravel_index(np.argmax(left), left.shape))
        pairs.append((row, column))
        left[row, :] = left[:, column] = -1
    return pairs


def release_figures(similarity: Matrix, thresholds: Sequence[float]) -> tuple[float, float]:
    """SemAP and SemF1 of one image."""
    n_pred, n_true = similarity.shape
    if not n_pred or not n_true:
        return 0.0, 0.0
    pairs = release_pairs(similarity)
    precisions, scores = [], []
    for threshold in thresholds:
        tp = sum(float(similarity[pair]) >= threshold for pair in pairs)
        precision, recall = Fraction(tp, n_pred), Fraction(tp, n_true)
        precisions.append(precision)
        scores.append(2 * precision * recall / (precision + recall) if tp else Fraction(0))
    return float(sum(precisions) / len(thresholds)), float(sum(scores) / len(thresholds))


def paper_pairs(
    similarity: Matrix, threshold: float, confidences: Sequence[float], full: Matrix
) -> list[Pair | None]:
    """For each rank the pair that is made, None for a false positive."""
    n_pred, n_true = similarity.shape
    ranking = sorted(range(n_pred), key=lambda index: (-confidences[index], index))
    locked: set[int] = set()
    pairs: list[Pair | None] = []
    for predicted in ranking:
        best: int | None = None
        for true in range(n_true):
            if true in locked or similarity[predicted, true] < threshold:
                continue
            key = (similarity[predicted, true], full[predicted, true])
            if best is None or key > (similarity[predicted, best], full[predicted, best]):
                best = true
        if best is None:
            pairs.append(None)
        else:
            locked.add(best)
            pairs.append((predicted, best))
    return pairs


def paper_figures(
    similarity: Matrix, thresholds: Sequence[float], confidences: Sequence[float], full: Matrix
) -> tuple[float, float]:
    """SemAP and SemF1 of one image."""
    n_pred, n_true = similarity.shape
    if not n_pred and not n_true:
        return 1.0, 1.0
    if not n_pred or not n_true:
        return 0.0, 0.0
    precisions, scores = [], []
    for threshold in thresholds:
        ranks = paper_pairs(similarity, threshold, confidences, full)
        recall_before, area, tp = Fraction(0), Fraction(0), 0
        for rank, pair in enumerate(ranks, start=1):
            tp += pair is not None
            recall = Fraction(tp, n_true)
            area += (recall - recall_before) * Fraction(tp, rank)
            recall_before = recall
        precision, recall = Fraction(tp, n_pred), Fraction(tp, n_true)
        precisions.append(area)
        scores.append(2 * precision * recall / (precision + recall) if tp else Fraction(0))
    return float(sum(precisions) / len(thresholds)), float(sum(scores) / len(thresholds))
