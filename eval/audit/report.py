"""The HTML page of an audit: one file that needs nothing else and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny import __version__
from uncanny.eval.audit import report_words as words
from uncanny.eval.audit.report_board import left_out, matrix, published_rows, rows, scale, shared_names
from uncanny.eval.audit.report_plane import plane
from uncanny.eval.audit.report_ranks import ranks
from uncanny.eval.audit.report_severity import severities
from uncanny.eval.audit.report_worst import shots
from uncanny.eval.audit.result import AuditResult
from uncanny.eval.published import CAVEATS
from uncanny.eval.report.page import score_page
from uncanny.eval.report.run_report import stamp
from uncanny.records.jsonl import write_atomically


def write_audit_page(result: AuditResult, path: Path, *, title: str | None = None) -> Path:
    """Write the page to `path` and return it.

    Pictures of the worst images are read from where the result says; one that cannot be read is left out.
    The file appears whole or not at all. Raises `OSError` where it cannot be written.
    """
    board = result.board
    page = (
        _environment()
        .get_template("audit.html.j2")
        .render(
            title=title or "Generator audit",
            result=result,
            board=board,
            rows=rows(board),
            scale=scale(board),
            rivals=words.rivals(board) if board.order else [],
            left_out=left_out(board),
            matrix=matrix(board),
            shared=(shared := shared_names(board)),
            shared_most=max((value or 0 for _, by in shared for value in by), default=0),
            shots=shots(board),
            plots=_plots(result),
            second=rows(result.against) if result.against else None,
            second_scale=scale(result.against) if result.against else None,
            published=published_rows(result),
            caveat=CAVEATS["generator_audit"],
            about=_about(result),
        )
    )
    write_atomically(path, [page.encode("utf-8", "replace")])
    return path


def _plots(result: AuditResult) -> dict[str, Any]:
    board = result.board
    return {
        "plane": plane(board),
        "severities": severities(board),
        "ranks": ranks(board, result.against) if result.against else "",
    }


def _about(result: AuditResult) -> dict[str, Any]:
    scores = list(result.board.generators.values())
    return {
        "images": sum(score.images for score in scores),
        "anomalies": sum(score.anomalies for score in scores),
        "left_out": sum(score.left_out.total for score in scores),
        "models": words.distinct(scores, "models"),
        "prompts": words.distinct(scores, "prompts"),
        "level": words.level_words(result.level),
        "pairing": words.pairing_words(result),
        "made": stamp(datetime.now(UTC).isoformat()),
        "version": __version__,
    }


def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {
        "amount": words.amount,
        "ends": words.ends,
        "signed": words.signed,
    }
    environment = score_page("uncanny.eval.audit", ("audit.css",), filters)
    environment.globals |= {"signed_ends": words.signed_ends, "difference_words": words.difference_words}
    return environment
