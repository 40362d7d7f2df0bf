"""The HTML report of MCQ scores: one file that needs nothing else and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny import __version__
from uncanny.eval.mcq import report_bars as bars
from uncanny.eval.mcq import report_scatter as plot
from uncanny.eval.mcq.humans import grouped
from uncanny.eval.mcq.items import QUESTIONS, Answer, Item
from uncanny.eval.mcq.letters import PARSER_VERSION
from uncanny.eval.mcq.published import published_caveat, published_scores, whose_texts
from uncanny.eval.mcq.report_control import controls
from uncanny.eval.mcq.report_gallery import gallery
from uncanny.eval.mcq.report_table import (
    GROUPS,
    cell,
    interval_words,
    is_asked,
    main_row,
    mcnemar_rows,
    p_words,
    published_row,
    question_rates,
)
from uncanny.eval.mcq.result import SetScore
from uncanny.eval.mcq.sheet import Key, read_sheets
from uncanny.eval.mcq.texts import carries_texts
from uncanny.eval.report.page import score_page
from uncanny.eval.report.run_report import stamp
from uncanny.records.jsonl import write_atomically

SPLIT_NAMES: Mapping[str, str] = {
    "art_dg": "artifact, made directly",
    "art_pg": "artifact, inpainted, paired",
    "ref_real": "real photograph",
    "ref_pg": "before the edit, paired",
}


def write_mcq_report(
    result: SetScore,
    items: Sequence[Item],
    answers: Sequence[Answer],
    *,
    items_file: Path,
    root: Path | None,
    out: Path,
    published: bool = True,
    overlays: Path | None = None,
) -> Path:
    """Write the page to `out` and return it; `items` and `answers` are those that `result` was scored from.

    Pictures are read from where `items_file` and `root` say; one that cannot be read is left out. Q3 pictures
    without a stored overlay are drawn, and kept in `overlays` where that is given. `published=False` leaves
    the published models out. The file appears whole or not at all. Raises `OSError` where it cannot be
    written, `UsageError` where the answers do not fit the items.
    """
    asked = [answer for answer in answers if answer.question in QUESTIONS]
    sheets = read_sheets(Key.of(items), asked)
    known = published_scores() if published else {"main": [], "hierarchy": []}
    page = (
        _environment()
        .get_template("mcq.html.j2")
        .render(
            about=_about(items, items_file, result),
            models=result.models,
            result=result,
            items=items,
            rates={name: question_rates(group) for name, group in grouped(sheets).items()},
            controls=controls(items, answers),
            published=known,
            caveat=published_caveat(items),
            scatter=plot.scatter(result.models, known["main"]),
            types=bars.types_of(result.models.values()),
            tests=mcnemar_rows(result.mcnemar),
            gallery=gallery(sheets, asked, items_file=items_file, root=root, overlays=overlays),
        )
    )
    write_atomically(out, [page.encode()])
    return out


def _about(items: Sequence[Item], items_file: Path, result: SetScore) -> dict[str, Any]:
    own = sum(carries_texts(item) for item in items)
    return {
        "name": items_file.resolve().parent.name,
        "file": items_file.name,
        "splits": [
            (split, name, sum(item.split == split for item in items)) for split, name in SPLIT_NAMES.items()
        ],
        "questions": [
            (question.upper(), sum(item.right(question) is not None for item in items))
            for question in QUESTIONS
        ],
        "texts": whose_texts(items),
        "own_texts": own,
        "parser": f"exact/{PARSER_VERSION}",
        "missing": sum(sum(score.missing.values()) for score in result.models.values()),
        "asked": sum(score.asked for score in result.models.values()),
        "made": stamp(datetime.now(UTC).isoformat()),
        "version": __version__,
    }


def _environment() -> Environment:
    environment = score_page("uncanny.eval.mcq", ("mcq.css",), {"p": p_words, "ends": interval_words})
    environment.globals |= {
        "groups": GROUPS,
        "cell": cell,
        "is_asked": is_asked,
        "main_row": main_row,
        "published_row": published_row,
        "plot": plot,
        "bars": bars,
        "questions": [question.upper() for question in QUESTIONS],
    }
    return environment
