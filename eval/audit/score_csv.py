"""An audit as a table for a spreadsheet: a row a generator and assessor."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from uncanny.eval.audit.result import FIGURES, RANKED, AuditResult, Board, PublishedTable

COLUMNS = (
    *("source", "assessor", "rank", "generator", "images"),
    *("failed", "partial", "unreadable", "unclear", "anomalies"),
    *(f"{figure}{end}" for figure in FIGURES for end in ("", "_low", "_high")),
    "like_the_one_before",
)


def audit_csv(result: AuditResult) -> str:
    """With a head line, lowest CAP first, full precision; a cell without a measured value is empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(_rows(result.board))
    if result.against is not None:
        table.writerows(_rows(result.against))
    if result.published is not None:
        table.writerows(_published(result.published))
    return text.getvalue()


def _rows(board: Board) -> Iterator[dict[str, object]]:
    alike = {one.second for one in board.alike}
    for rank, name in enumerate(board.order, 1):
        score = board.generators[name]
        row: dict[str, object] = {
            "source": "own",
            "assessor": " + ".join(score.provenance.models),
            "rank": rank,
            "generator": name,
            "images": score.images,
            "failed": score.left_out.failed,
            "partial": score.left_out.partial,
            "unreadable": score.left_out.unreadable,
            "unclear": score.left_out.unclear,
            "anomalies": score.anomalies,
            "like_the_one_before": "yes" if name in alike else "no" if rank > 1 else "",
        }
        for figure in FIGURES:
            estimate = score.figure(figure)
            low, high = estimate.interval or ("", "")
            value = "" if estimate.value is None else estimate.value
            row |= {figure: value, f"{figure}_low": low, f"{figure}_high": high}
        yield row


def _published(table: PublishedTable) -> Iterator[dict[str, object]]:
    for row in table.rows:
        figures: dict[str, object] = {figure: getattr(row, figure) for figure in RANKED}
        yield {"source": "published", "assessor": row.assessor, "generator": row.generator, **figures}
