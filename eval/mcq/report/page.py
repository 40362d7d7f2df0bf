"""The HTML report of MCQ scores: one file that needs nothing else and asks nothing of the network.

The control of the MCQ report: Q4 asked again without the image.

The published SalArt-VQA figures, as percentages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from jinja2 import Environment

from uncanny import __version__
from uncanny.eval.common.estimates import interval_words, p_words
from uncanny.eval.common.page import score_page, stamp
from uncanny.eval.common.published import published
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, Item, carries_texts
from uncanny.eval.mcq.report import plots as bars
from uncanny.eval.mcq.report import plots as plot
from uncanny.eval.mcq.report.gallery import gallery
from uncanny.eval.mcq.report.tables import (
    GROUPS,
    cell,
    is_asked,
    main_row,
    mcnemar_rows,
    published_row,
    question_rates,
)
from uncanny.eval.mcq.score.aggregate import grouped
from uncanny.eval.mcq.score.answers import PARSER_VERSION
from uncanny.eval.mcq.score.control import control_scores
from uncanny.eval.mcq.score.matrix import AnswerKey, read_sheets
from uncanny.eval.mcq.score.result import SetScore
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
    matrices = read_sheets(AnswerKey.of(items), asked)
    known = published_scores() if published else {"main": [], "hierarchy": []}
    page = (
        _environment()
        .get_template("mcq.html.j2")
        .render(
            about=_about(items, items_file, result),
            models=result.models,
            result=result,
            items=items,
            rates={name: question_rates(group) for name, group in grouped(matrices).items()},
            controls=controls(items, answers),
            published=known,
            caveat=published_caveat(items),
            scatter=plot.scatter(result.models, known["main"]),
            types=bars.types_of(result.models.values()),
            tests=mcnemar_rows(result.mcnemar),
            gallery=gallery(matrices, asked, items_file=items_file, root=root, overlays=overlays),
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


@dataclass(frozen=True, slots=True)
class Control:
    """One model's figures as `score_no_image` gives them."""

    model: str
    figures: dict[str, Any]


def controls(items: Sequence[Item], answers: Sequence[Answer]) -> list[Control]:
    """A line for each model that was asked without the image; empty where none was.

    Raises `UsageError` where an answer comes twice.
    """
    return [Control(model, figures) for model, figures in control_scores(items, answers).items()]


_THEIRS = "published models were asked with the released texts about the 950 released images"


def published_scores() -> dict[str, Any]:
    """Tables 1, 4, 5, 6 and 7: `main`, `hierarchy`, `q1_detection`, `by_route`, `type_and_disagreement`."""
    return published("mcq_scores")


def whose_texts(items: Sequence[Item]) -> Literal["set", "ours", "mixed"]:
    """Whether the items are asked with their own texts, with ours, or some with these and some with those."""
    own = sum(carries_texts(item) for item in items)
    return "set" if own == len(items) else "ours" if not own else "mixed"


def published_caveat(items: Sequence[Item]) -> str:
    """In what else than the model published rows differ from those of `items`."""
    texts = whose_texts(items)
    if texts == "set":
        return f"Asked with the set's own texts; {_THEIRS}: rows compare only where these items are those."
    asked = "uncanny's own texts" if texts == "ours" else "uncanny's own texts in part"
    return f"Asked with {asked}; {_THEIRS}: for orientation only, rows do not compare."
