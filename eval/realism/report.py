"""The HTML page of a realism check: one file that needs nothing else and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny import __version__
from uncanny.eval.mcq.report_table import interval_words, p_words
from uncanny.eval.published import CAVEATS
from uncanny.eval.realism.human import HUMAN_LABELS
from uncanny.eval.realism.published import published_humans
from uncanny.eval.realism.report_pairs import CASES, shown
from uncanny.eval.realism.report_plots import labels, lines, places
from uncanny.eval.realism.result import RealismScore
from uncanny.eval.report.page import score_page
from uncanny.eval.report.run_report import stamp
from uncanny.records.jsonl import write_atomically


def write_realism_page(
    score: RealismScore,
    path: Path,
    *,
    root: Path | None = None,
    published: bool = False,
    title: str | None = None,
) -> Path:
    """Write the page to `path` and return it.

    Paths of pictures start at `root`, else where the run beside the verdicts says, else at the verdicts' own
    folder; a picture that cannot be read is left out. `published` shows the published figures on people.
    The file appears whole or not at all. Raises `OSError` where it cannot be written.
    """
    rows = lines(score)
    page = (
        _environment()
        .get_template("realism.html.j2")
        .render(
            title=title or "Realism check",
            score=score,
            sets=score.sets,
            several=len(score.sets) > 1,
            rows=rows,
            n_rows=sum(1 + len(one.groups) for one in score.sets.values()),
            plots={"labels": labels(rows), "places": places(rows)},
            shown=shown(score, root),
            humans={name: one.human for name, one in score.sets.items() if one.human is not None},
            published=published_humans() if published else None,
            caveat=CAVEATS["inpainting_scores"],
            about=_about(score),
        )
    )
    write_atomically(path, [page.encode("utf-8", "replace")])
    return path


def _about(score: RealismScore) -> dict[str, Any]:
    verdicts = [verdict for one in score.sets.values() for verdict in one.verdicts.verdicts]
    return {
        "pairs": len({verdict.id for verdict in verdicts}),
        "models": sorted({verdict.model for verdict in verdicts if verdict.model is not None}),
        "prompts": sorted({verdict.prompts for verdict in verdicts if verdict.prompts is not None}),
        "undetermined": sum(one.overall.labels["undetermined"].counts for one in score.sets.values()),
        "notes": sum(bool(verdict.notes) for verdict in verdicts),
        "made": stamp(datetime.now(UTC).isoformat()),
        "version": __version__,
    }


def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {"p": p_words, "ends": interval_words}
    environment = score_page("uncanny.eval.realism", ("realism.css",), filters)
    environment.globals |= {
        "all_cases": CASES,
        "human_labels": HUMAN_LABELS,
        "names": {
            "all": "all",
            "deceiving": "deceiving",
            "intermediate": "intermediate",
            "non_deceiving": "non-deceiving",
        },
    }
    return environment
