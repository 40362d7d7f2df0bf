"""SemAP and SemF1 as the authors' released scorer computes them: the published tables.

It deviates from appendix B of the paper: matching knows no threshold, precision stands for average
precision, and an image without predictions or without true anomalies scores 0, even where both are empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from uncanny.eval.metrics.semap import Match, Matrix, Outcome, ViewScore, f1

VERSION = "release/1"


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
    found: list[Match] = []
    for value, predicted, true in cells:
        if predicted in free_rows and true in free_columns:
            free_rows.remove(predicted)
            free_columns.remove(true)
            found.append(Match(predicted, true, value))
    return tuple(found)


def score_release(similarity: Matrix, thresholds: Sequence[float]) -> ViewScore:
    """One image and view. At a threshold: SemAP is TP / |pred|, SemF1 is 2PR/(P + R); 0 for an empty side."""
    matches = match_release(similarity)
    n_pred, n_true = similarity.shape
    outcomes = []
    for threshold in thresholds:
        hits = tuple(match for match in matches if match.similarity >= threshold)
        precision = len(hits) / n_pred if n_pred else 0.0
        outcomes.append(Outcome(hits, precision, f1(len(hits), n_pred, n_true)))
    return ViewScore(tuple(outcomes), matches)
