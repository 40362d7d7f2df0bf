"""What an MCQ run says of itself in the end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from uncanny.cli.summary import MOST_FAILURES, spending_lines
from uncanny.cli.terminal import layout
from uncanny.eval.mcq.items import Answer
from uncanny.eval.mcq.run import McqJob
from uncanny.records.jsonl import read_records
from uncanny.runs.run import RunEnd


@dataclass(frozen=True, slots=True)
class McqSummary:
    """Counts, failures, and what to do next. There is no page: `uncanny mcq score` writes it."""

    job: McqJob
    items: str

    @property
    def answers(self) -> Path:
        return self.job.folder.path / "answers.jsonl"

    def page(self) -> Path | None:
        return None

    def as_json(self, end: RunEnd, page: Path | None) -> dict[str, Any]:
        return {
            "run": str(self.job.folder.path),
            "state": end.manifest.get("state"),
            "answers": str(self.answers),
            "report": None if page is None else str(page),
            "totals": end.manifest.get("totals"),
            "failures": [
                {"id": answer.id, "question": answer.question, "error": answer.error}
                for answer in read_records(self.answers, Answer)
                if answer.outcome == "error"
            ],
            "warnings": end.progress.warnings,
            "error": None if end.error is None else str(end.error),
        }

    def text(self, end: RunEnd, page: Path | None) -> str:  # noqa: ARG002  one protocol for all runs
        progress = end.progress
        left = progress.total - progress.done
        counts = ", ".join(f"{progress.statuses[kind]:,} {kind}" for kind in progress.kinds)
        lines = [f"Asked    {progress.total:,}: {counts}" + (f", {left:,} not done" if left else "")]
        failed = [
            f"  {answer.id} {answer.question}: {answer.error}"
            for answer in read_records(self.answers, Answer)
            if answer.outcome == "error"
        ]
        if failed:
            lines = ["Without an answer:", *failed[:MOST_FAILURES], *_more(failed), "", *lines]
        return layout(
            [
                *lines,
                *spending_lines(end),
                "",
                f"Answers  {self.answers}",
                f"Score    uncanny mcq score {self.items} {self.answers}",
            ]
        )


def _more(failed: list[str]) -> list[str]:
    return [f"  … and {len(failed) - MOST_FAILURES:,} more"] if len(failed) > MOST_FAILURES else []
