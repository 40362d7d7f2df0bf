"""The HTML report of MCQ scores: one file that needs nothing else and asks nothing of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.eval.common.estimates import interval_words, p_words
from uncanny.eval.common.headline import proven
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import PageViews, PicturesMode
from uncanny.eval.common.published import texts_notes
from uncanny.eval.mcq.data.items import QUESTIONS
from uncanny.eval.mcq.report import plots
from uncanny.eval.mcq.report.browse import browse
from uncanny.eval.mcq.report.gallery import gallery
from uncanny.eval.mcq.report.tables import (
    GROUPS,
    QuestionRates,
    cell,
    is_asked,
    main_row,
    mcnemar_rows,
    points,
    points_ends,
    published_row,
    question_rates,
)
from uncanny.eval.mcq.score.aggregate import grouped
from uncanny.eval.mcq.score.controls import RANDOM, is_baseline
from uncanny.eval.mcq.score.matrix import HUMAN
from uncanny.eval.mcq.score.parser import PARSER_VERSION
from uncanny.eval.mcq.score.result import McqScores
from uncanny.eval.mcq.score.tables import (
    headline,
    missing_words,
    published_caveat,
    published_scores,
    ranked,
    texts_by_model,
    texts_words,
)
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
        types=plots.types_of(scores.models.values()),
        tests=mcnemar_rows(scores.mcnemar),
        unseen_tests=mcnemar_rows(scores.blind),
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
