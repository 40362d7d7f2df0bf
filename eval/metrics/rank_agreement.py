"""How alike two lists of figures rank the same things."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple


class RankAgreement(NamedTuple):
    """Spearman's rho and Kendall's tau-b, −1 to 1; None for fewer than two things, or all equal in a list."""

    spearman: float | None
    kendall: float | None


def rank_agreement(first: Sequence[float], second: Sequence[float]) -> RankAgreement:
    """Of two lists in the same order of things. Raises ValueError where their lengths differ."""
    from scipy.stats import kendalltau, spearmanr  # type: ignore[import-untyped]  # slow to import

    if len(first) != len(second):
        raise ValueError(f"{len(first)} figures against {len(second)}")
    if min(len(set(first)), len(set(second))) < 2:
        return RankAgreement(None, None)
    return RankAgreement(
        _measured(spearmanr(first, second).statistic), _measured(kendalltau(first, second).statistic)
    )


def _measured(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
