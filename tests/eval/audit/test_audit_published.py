"""The published table from annotations: sets with the printed means give all 30 rows back, to rounding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.eval.audit.annotation_sets import record, written
from uncanny.eval.audit.run import audit
from uncanny.eval.audit.score.result import PublishedRow
from uncanny.eval.audit.score.score import ASSESSORS, published_table
from uncanny.eval.metrics.audit import RANKED

PROMPTS = 246
TABLE = published_table()


def totals(row: PublishedRow) -> tuple[int, int, int]:
    """How many images, anomalies, and their summed severities have the row's three figures.

    As few images as possible, but at least the 246 of the paper: one row cannot be had with just these.
    """
    for images in range(PROMPTS, 2 * PROMPTS):
        for anomalies in range(int((row.af - 0.005) * images), int((row.af + 0.005) * images) + 2):
            af = anomalies / images
            low = max(row.mai - 0.005, (row.cap - 0.005) / af)
            high = min(row.mai + 0.005, (row.cap + 0.005) / af)
            severities = round(100 * (anomalies - images * (low + high) / 2))
            mai = (anomalies - severities / 100) / images
            if (printed(mai), printed(af), printed(mai * af)) == (row.mai, row.af, row.cap):
                return images, anomalies, severities
    raise AssertionError(row)


def printed(value: float) -> float:
    return round(value, 2)


def reconstruct(row: PublishedRow, seed: int) -> list[dict[str, Any]]:
    """Anomalies spread over images and severities over anomalies at random, with exactly these totals."""
    images, anomalies, severity_sum = totals(row)
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(anomalies, np.full(images, 1 / images))
    severities = np.full(anomalies, severity_sum // anomalies)
    severities[: severity_sum % anomalies] += 1
    shift = rng.integers(0, 15, anomalies // 2)
    severities[: len(shift)] += shift
    severities[len(shift) : 2 * len(shift)] -= shift
    parts = np.split(rng.permutation(severities), np.cumsum(counts)[:-1])
    return [record(f"{index:04}.png", part.tolist()) for index, part in enumerate(parts)]


@pytest.mark.slow
def test_all_thirty_rows(tmp_path: Path) -> None:
    places: dict[str, dict[str, Path]] = {assessor: {} for assessor in ASSESSORS}
    for seed, row in enumerate(TABLE.rows):
        file = tmp_path / row.assessor / f"{seed}.jsonl"
        places[row.assessor][row.generator] = written(file, reconstruct(row, seed))
    first, second = (places[assessor] for assessor in ASSESSORS)
    result = audit(first, against=second, resamples=0)
    assert result.against is not None
    leaderboards = dict(zip(ASSESSORS, (result.leaderboard, result.against), strict=True))
    assert len(TABLE.rows) == 30
    for row in TABLE.rows:
        score = leaderboards[row.assessor].generators[row.generator]
        assert score.images >= PROMPTS
        scores = [printed(score.metric(figure).value or 0) for figure in RANKED]
        assert scores == [row.mai, row.af, row.cap], row
        assert score.cap.value == (score.mai.value or 0) * (score.af.value or 0)
        assert score.u_mean.value == pytest.approx(row.mai / row.af, abs=0.002)
        assert 0.63 <= printed(score.u_mean.value or 0) <= 0.76
    for assessor, leaderboard in leaderboards.items():
        by_cap = sorted((row.cap, row.generator) for row in TABLE.rows if row.assessor == assessor)
        assert [leaderboard.generators[name].cap.value for name in leaderboard.order] == pytest.approx(
            [cap for cap, _ in by_cap], abs=0.005
        )


def test_cap_is_the_product_in_every_printed_row() -> None:
    for row in TABLE.rows:
        slack = 0.005 * (row.mai + row.af) + 0.005
        assert row.cap == pytest.approx(row.mai * row.af, abs=slack), row


def test_the_published_assessors_agree_little() -> None:
    """Figures as SciPy gives them; CAP by hand from the ranks, which have no ties."""
    caps = [[row.cap for row in TABLE.rows if row.assessor == assessor] for assessor in ASSESSORS]
    ranks = [np.argsort(np.argsort(column)) for column in caps]
    by_hand = 1 - 6 * int(((ranks[0] - ranks[1]) ** 2).sum()) / (15 * (15**2 - 1))
    agreement = {one.metric: one for one in TABLE.agreement}
    assert agreement["cap"].spearman == pytest.approx(by_hand)
    signs = [
        np.sign((caps[0][i] - caps[0][j]) * (caps[1][i] - caps[1][j])) for i in range(15) for j in range(i)
    ]
    assert agreement["cap"].kendall == pytest.approx(float(np.mean(signs)))
    assert by_hand == pytest.approx(0.382, abs=0.001)
    assert all(one.generators == 15 for one in TABLE.agreement)


def test_names_are_those_of_the_generators_papers_and_the_printed_ones_are_told() -> None:
    names = {row.generator for row in TABLE.rows}
    assert {"Qwen-Image", "HiDream-I1-Fast", "HiDream-I1-Dev", "Lumina-Image 2.0"} == set(TABLE.as_printed)
    assert set(TABLE.as_printed) <= names
    assert "Lumina-Image 2.0 is printed 'Lumina lmage V2'" in TABLE.names_note
