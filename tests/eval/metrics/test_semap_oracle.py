"""The authors' own run, release protocol: 16 images as matched similarities with the figures they had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from uncanny.eval.metrics.semap import Matrix, ViewScore, score_release

ORACLE = orjson.loads(
    (Path(__file__).parents[2] / "data" / "oracle" / "semap_alpha50_first16.json").read_bytes()
)
ROWS: list[dict[str, Any]] = ORACLE["rows"]
THRESHOLDS: list[float] = ORACLE["thresholds"]


def matrix_of(row: dict[str, Any], shuffle: int) -> Matrix:
    """A matrix of this size whose greedy matching has these similarities, at places picked by `shuffle`.

    Every other cell is below the lowest of them, so that it can neither be taken nor reach a threshold
    before them.
    """
    rng = np.random.default_rng(shuffle)
    matched: list[float] = row["matched_scores"]
    cells = rng.uniform(0.3, min(matched) - 1e-6, size=(row["num_pred"], row["num_gt"]))
    rows = rng.permutation(row["num_pred"])[: len(matched)]
    columns = rng.permutation(row["num_gt"])[: len(matched)]
    cells[rows, columns] = matched
    return cells


def scored(row: dict[str, Any], shuffle: int = 0) -> ViewScore:
    return score_release(matrix_of(row, shuffle), THRESHOLDS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
@pytest.mark.parametrize("shuffle", range(5))
def test_every_figure_of_every_image(row: dict[str, Any], shuffle: int) -> None:
    image_score = scored(row, shuffle)
    assert [match.similarity for match in image_score.matches] == row["matched_scores"]
    assert round(image_score.semap, 4) == row["SemAP"]
    assert round(image_score.semf1, 4) == row["SemF1"]
    for threshold, outcome in zip(THRESHOLDS, image_score.at, strict=True):
        assert outcome.tp == sum(score >= threshold for score in row["matched_scores"])
        assert outcome.semap == outcome.tp / row["num_pred"]
        precision, recall = outcome.tp / row["num_pred"], outcome.tp / row["num_gt"]
        expected = 2 * precision * recall / (precision + recall) if outcome.tp else 0
        assert outcome.semf1 == pytest.approx(expected, abs=1e-12)


def test_totals_of_the_16() -> None:
    scores = [scored(row) for row in ROWS]
    assert [sum(score.at[index].tp for score in scores) for index in range(3)] == [86, 69, 0]
    means = [sum(getattr(score, name) for score in scores) / len(ROWS) for name in ("semap", "semf1")]
    assert means[0] == pytest.approx(sum(row["SemAP"] for row in ROWS) / len(ROWS), abs=5e-5)
    assert means[1] == pytest.approx(sum(row["SemF1"] for row in ROWS) / len(ROWS), abs=5e-5)
