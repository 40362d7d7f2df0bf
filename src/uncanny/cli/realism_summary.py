"""What a realism run says of itself in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncanny.cli.summary import MOST_FAILURES, skipped_lines, spending_lines
from uncanny.cli.terminal import layout
from uncanny.eval.realism.records import Verdict
from uncanny.eval.realism.run import RealismJob
from uncanny.graphs.ugda_cases import LABELS
from uncanny.records.jsonl import read_records
from uncanny.runs.run import RunEnd


@dataclass(frozen=True, slots=True)
class RealismSummary:
    """Counts, pairs without a label, and what to do next. There is no page: it belongs to the scores."""

    job: RealismJob

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:
        verdicts = list(self._verdicts())
        return {
            "run": str(self.job.folder.path),
            "state": end.manifest.get("state"),
            "verdicts": str(self.job.verdicts),
            "report": None if page is None else str(page),
            "totals": end.manifest.get("totals"),
            "labels": _labels(verdicts),
            "failures": [
                {
                    "id": verdict.id,
                    "outcome": verdict.outcome,
                    "errors": [error.model_dump() for error in verdict.errors],
                }
                for verdict in verdicts
                if verdict.outcome in ("failed", "unusable")
            ],
            "skipped": dict(end.progress.skipped.counts) if end.progress.skipped else {},
            "warnings": end.progress.warnings,
            "error": None if end.error is None else str(end.error),
        }

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002  one protocol for all runs
        progress = end.progress
        verdicts = list(self._verdicts())
        left = progress.total - progress.done
        counts = ", ".join(
            f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds if progress.statuses[kind]
        )
        labels = ", ".join(f"{count:,} {label}" for label, count in _labels(verdicts).items())
        lines = [
            f"Pairs    {progress.total:,}: {counts or 'none done'}"
            + (f", {left:,} not done" if left else ""),
            *skipped_lines(end),
            f"Labels   {labels}",
        ]
        odd = [_why(verdict) for verdict in verdicts if verdict.outcome not in (None, "judged")]
        if odd:
            more = [f"  … and {len(odd) - MOST_FAILURES:,} more"] if len(odd) > MOST_FAILURES else []
            lines = ["Without a label:", *odd[:MOST_FAILURES], *more, "", *lines]
        return layout(
            [
                *lines,
                *spending_lines(end),
                "",
                f"Verdicts {self.job.verdicts}",
                f"Score    uncanny realism score {self.job.folder.path}",
            ]
        )

    def _verdicts(self) -> Iterator[Verdict]:
        return read_records(self.job.verdicts, Verdict)


def _labels(verdicts: list[Verdict]) -> dict[str, int]:
    found = Counter(verdict.label for verdict in verdicts)
    return {label: found[label] for label in LABELS}


def _why(verdict: Verdict) -> str:
    first = verdict.errors[0]
    more = f" (and {len(verdict.errors) - 1} more)" if len(verdict.errors) > 1 else ""
    return f"  {verdict.id} {verdict.outcome}, {first.asked}: {first.message}{more}"
