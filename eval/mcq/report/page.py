"""The HTML report of MCQ scores: one file that needs nothing else and asks nothing of the network.

What was not asked says so in its tables and is never a zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.eval.common.estimates import Estimate, Share, interval_words, p_words
from uncanny.eval.common.headline import proven
from uncanny.eval.common.pages.page import percent, score_page, write_rendered
from uncanny.eval.common.pages.pictures import PageViews, PicturesMode
from uncanny.eval.common.published import texts_notes
from uncanny.eval.mcq.data.items import QUESTIONS, Item, Question
from uncanny.eval.mcq.report import plots
from uncanny.eval.mcq.report.gallery import browse, gallery
from uncanny.eval.mcq.score.aggregate import grouped
from uncanny.eval.mcq.score.controls import RANDOM, is_baseline
from uncanny.eval.mcq.score.matrix import HUMAN, ResponseMatrix
from uncanny.eval.mcq.score.parser import PARSER_VERSION
from uncanny.eval.mcq.score.result import McNemar, McqScores, ModelScore
from uncanny.eval.mcq.score.sides import sides_table
from uncanny.eval.mcq.score.tables import (
    headline,
    missing_words,
    published_caveat,
    published_scores,
    ranked,
    texts_by_model,
    texts_words,
)
from uncanny.eval.metrics.mcq import SPLITS
from uncanny.wording import counted

# Of more models charts are tables, and what each answered to a shown item is folded.
MANY_MODELS = 6
# So many models have their charts in the open.
CHARTS_OPEN = 6
SPLIT_NAMES: Mapping[str, str] = {
    "art_dg": "artifact, made directly",
    "art_pg": "artifact, inpainted, paired",
    "ref_real": "real photograph",
    "ref_pg": "before the edit, paired",
}


def write_page(
    scores: McqScores,
    out: Path,
    *,
    published: bool = True,
    overlays: Path | None = None,
    pictures: PicturesMode = "link",
) -> Path:
    """Write the page of `scores` to `out` and return it.

    Pictures are read from where the scored items say; one that cannot be read is left out. Q3 pictures
    without a stored overlay are drawn, and kept in `overlays` where that is given. `published=False` leaves
    the published models out. Full-size pictures are linked or embedded, as
    `pictures` says. The file appears whole or not at all. Raises OSError where it cannot be written.
    """
    items = scores.item_set
    views = PageViews(out, pictures)
    known = published_scores() if published else {"main": [], "hierarchy": []}
    # The order of the terminal's table and of those for papers: the best first.
    models = {name: scores.models[name] for name in ranked(scores)}
    groups = grouped(scores.responses)
    rates = {name: question_rates(groups[name]) for name in models if name in groups}
    return write_rendered(
        _environment(),
        "mcq.html.j2",
        out,
        about=_about(scores, published=published),
        headline=headline(scores),
        models=models,
        random=RANDOM,
        result=scores,
        items=items,
        rates=rates,
        unread=_unread(rates.values()),
        dots=[
            (name, share)
            for name, score in models.items()
            if (share := score.share("overall", "all_q1_4")) is not None and share.value is not None
        ],
        controls=scores.controls,
        published=known,
        caveat=published_caveat(scores),
        scatter=plots.scatter(models, known["main"]),
        types=list(dict.fromkeys(name for score in scores.models.values() for name in score.by_type)),
        tests=mcnemar_rows(scores.mcnemar),
        unseen_tests=mcnemar_rows(scores.blind),
        sides=sides_table(scores.sides, list(models)),
        gallery=gallery(scores, views, overlays=overlays),
        browser=browse(scores, out, pictures),
        many=len(scores.models) > MANY_MODELS,
        charts_open=CHARTS_OPEN,
        page_views=views,
    )


def _unread(rates: Iterable[Sequence[QuestionRates]]) -> list[tuple[str, int]]:
    """How many answers of all models are missing, invalid or refused; only what there is."""
    every = [rate for of_model in rates for rate in of_model]
    counts = {
        "missing": sum(rate.missing for rate in every),
        "invalid": sum(rate.invalid for rate in every),
        "refused": sum(rate.refused for rate in every),
    }
    return [(what, count) for what, count in counts.items() if count]


def _about(scores: McqScores, *, published: bool) -> dict[str, Any]:
    items = scores.item_set
    people, baselines = HUMAN in scores.models, sum(map(is_baseline, scores.models))
    models = f"{len(scores.models) - people - baselines:,}"
    return {
        "models": ", ".join(
            [models, *["people"] * people, *[counted(baselines, "baseline")] * bool(baselines)]
        ),
        "name": "bundled scenes" if items.bundled else items.file.resolve().parent.name,
        "file": items.file.name,
        "splits": [
            (split, name, sum(item.split == split for item in items)) for split, name in SPLIT_NAMES.items()
        ],
        "questions": [
            (question.upper(), sum(item.right(question) is not None for item in items))
            for question in QUESTIONS
        ],
        "texts": texts_words(scores, published=published),
        "other_texts": list(texts_notes(texts_by_model(scores.answers))),
        "parser": f"exact/{PARSER_VERSION}",
        "stand_ins": any(score.stand_ins for score in scores.models.values()),
        "missing": sum(sum(score.missing.values()) for score in scores.models.values()),
        "asked": sum(score.asked for score in scores.models.values()),
    }


@cache
def _environment() -> Environment:
    environment = score_page(
        "uncanny.eval.mcq",
        ("mcq.css",),
        {
            "p": p_words,
            "proven": proven,
            "ends": interval_words,
            "missing_words": missing_words,
            "points": points,
            "points_ends": points_ends,
        },
        scripts=("items.js",),
    )
    environment.globals |= {
        "groups": GROUPS,
        "cell": cell,
        "is_asked": is_asked,
        "main_row": main_row,
        "published_row": published_row,
        "plots": plots,
        "questions": [question.upper() for question in QUESTIONS],
    }
    return environment


# Heading, split, and its columns as heading and score; those that a model is judged by come first.
GROUPS: tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Images with an artifact",
        "artifact",
        (
            ("All Q1–4", "all_q1_4"),
            ("All Q2–4", "all_q2_4"),
            ("Q1 recall", "q1"),
            ("Q2", "q2"),
            ("Q3", "q3"),
            ("Q4", "q4"),
        ),
    ),
    (
        "Real photographs",
        "ref_real",
        (("All Q1–4", "all_q1_4"), ("All Q2–4", "all_q2_4"), ("Q1 specificity", "q1")),
    ),
    ("Before the edit", "ref_pg", (("All Q2–4", "all_q2_4"),)),
    ("Overall", "overall", (("All Q1–4", "all_q1_4"), ("All Q2–4", "all_q2_4"), ("Q1", "q1"))),
)
_SCORES: Mapping[str, tuple[Question, ...]] = {
    **{question: (question,) for question in QUESTIONS},
    "all_q1_4": QUESTIONS,
    "all_q2_4": QUESTIONS[1:],
}
NOT_ASKED, NO_ANSWER = "not asked", "no answer"


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure: `text` for people, its interval below it, and what it is counted out of."""

    text: str
    interval: str | None = None
    title: str = ""
    empty: bool = False


@dataclass(frozen=True, slots=True)
class QuestionRates:
    """One question of one model: counts out of `asked`; no rates where nothing is asked."""

    asked: int
    missing: int
    invalid: int
    refused: int

    def words(self, count: int) -> str:
        return f"{count:,} ({percent(count / self.asked)})" if self.asked else NOT_ASKED


def main_row(score: ModelScore, items: Sequence[Item]) -> list[Cell]:
    """One model's line of the main table."""
    return [
        cell(score.share(split, name), asked=is_asked(items, split, name))
        for _, split, columns in GROUPS
        for _, name in columns
    ]


def published_row(row: Mapping[str, Any]) -> list[Cell]:
    """A published model in the same columns; a dash where nothing was published."""
    values = [row.get(f"{split}_{name}") for _, split, columns in GROUPS for _, name in columns]
    return [
        Cell("–", title="not published", empty=True) if value is None else Cell(percent(value / 100))
        for value in values
    ]


def cell(share: Share | None, *, asked: bool) -> Cell:
    """A share in percent with its interval; in words where there is nothing to count out of."""
    if share is None or share.value is None:
        return Cell(NO_ANSWER if asked else NOT_ASKED, empty=True)
    return Cell(percent(share.value), interval_words(share), f"{share.counts:,} of {share.out_of:,}")


def is_asked(items: Iterable[Item], split: str, score: str) -> bool:
    """Whether any item of the split, or union of splits, has the questions that a score is made of."""
    wanted = set(_SCORES[score])
    members = SPLITS.get(split) or tuple(name for names in SPLITS.values() for name in names)
    return any(item.split in members and wanted <= set(item.questions()) for item in items)


def question_rates(matrices: Sequence[ResponseMatrix]) -> list[QuestionRates]:
    """Missing, invalid and refused answers of one model, or of several raters together, by question."""
    rates = []
    for column in range(len(QUESTIONS)):
        asked = sum(int(matrix.key.asked[:, column].sum()) for matrix in matrices)
        answered = sum(int(matrix.answered[:, column].sum()) for matrix in matrices)
        invalid = sum(int(matrix.invalid[:, column].sum()) for matrix in matrices)
        refused = sum(int(matrix.refused[:, column].sum()) for matrix in matrices)
        rates.append(QuestionRates(asked, asked - answered, invalid, refused))
    return rates


def points(difference: Estimate) -> str:
    """A difference of shares in points, with its sign."""
    return NO_ANSWER if difference.value is None else f"{100 * difference.value:+.1f}"


def points_ends(difference: Estimate) -> str:
    """The two ends of its interval; empty where there is none."""
    ends = difference.interval
    return f"{100 * ends[0]:+.1f} to {100 * ends[1]:+.1f}" if ends else ""


def mcnemar_rows(tests: Iterable[McNemar]) -> list[tuple[str, str, dict[str, McNemar]]]:
    """McNemar's tests by pair of models, in their order: first, second, and a test for each question."""
    pairs: dict[tuple[str, str], dict[str, McNemar]] = {}
    for test in tests:
        pairs.setdefault((test.first, test.second), {})[test.question] = test
    return [(first, second, of_pair) for (first, second), of_pair in pairs.items()]
