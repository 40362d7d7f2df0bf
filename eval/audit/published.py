"""The published audit of 15 generators by two assessors."""

from __future__ import annotations

from uncanny.eval.audit.result import RANKED, Agreement, PublishedRow, PublishedTable
from uncanny.eval.metrics.rank_agreement import rank_agreement
from uncanny.eval.published import published

SOURCE = "the AnomReason paper, table 3: 246 prompts a generator"
ASSESSORS = ("AnomReasonor", "AnomAgent")


def published_table() -> PublishedTable:
    """Table 3 of the AnomReason paper, in its order, and how its assessors agree on the ranks."""
    held = published("generator_audit")
    rows = tuple(
        PublishedRow(row["generator"], assessor, **row[assessor])
        for row in held["rows"]
        for assessor in ASSESSORS
    )
    return PublishedTable(SOURCE, rows, tuple(_agreement(held["rows"])))


def _agreement(rows: list[dict[str, dict[str, float]]]) -> list[Agreement]:
    first, second = ASSESSORS
    found = []
    for figure in RANKED:
        ranks = rank_agreement([row[first][figure] for row in rows], [row[second][figure] for row in rows])
        found.append(Agreement(figure, len(rows), ranks.spearman, ranks.kendall))
    return found
