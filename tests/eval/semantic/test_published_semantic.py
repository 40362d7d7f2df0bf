"""AnomReason's tables 1, 2, 4 and 5, as far as they tell without the models: what its text says of them.

SemAP and SemF1 themselves are compared with the authors' released output, see `test_semap_oracle`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from scipy.stats import spearmanr  # type: ignore[import-untyped]

from uncanny.eval.common.published import published

BACKBONES: dict[str, list[dict[str, Any]]] = published("semantic_scores")["backbones"]
GATED: dict[str, dict[str, Any]] = {row["model"]: row for row in published("detection_scores")["rows"]}
MAIN: dict[str, dict[str, Any]] = {row["model"]: row for row in BACKBONES["distilbert-base-uncased"]}
VIEWS = [f"{metric}_{view}" for metric in ("semap", "semf1") for view in ("phe", "rea", "full")]


def test_the_tables_have_the_same_models() -> None:
    assert len(MAIN) == 18
    assert all([row["model"] for row in rows] == list(MAIN) for rows in BACKBONES.values())
    assert list(GATED) == list(MAIN)


@pytest.mark.parametrize("figure", ["semap_full", "semf1_full"])
def test_models_are_ranked_alike_by_all_three_backbones(figure: str) -> None:
    """Appendix: trends are stable across BERTScore models. Rank correlations are at least 0.7."""
    for first, second in combinations(BACKBONES.values(), 2):
        ranks = spearmanr([row[figure] for row in first], [row[figure] for row in second])
        assert ranks.statistic > 0.7


@pytest.mark.parametrize("figure", VIEWS)
def test_explanations_of_wrong_verdicts_count_nothing(figure: str) -> None:
    """Table 2: no classification-aware figure is above the accuracy, nor above the figure of table 1."""
    for model, row in GATED.items():
        assert row[f"c{figure}"] <= min(row["acc"], MAIN[model][figure])


def test_the_trained_model_leads_as_the_text_says() -> None:
    ours, best = MAIN["AnomReasonor-7B"], MAIN["GPT-4o"]
    for row in MAIN.values():
        for view in ("phe", "rea", "full"):
            assert row[f"semap_{view}"] <= ours[f"semap_{view}"]
    assert ours["semf1_full"] < best["semf1_full"]
    assert ours["semf1_rea"] > best["semf1_rea"]
    assert max(GATED.values(), key=lambda row: row["acc"])["model"] == "GPT-4o"
