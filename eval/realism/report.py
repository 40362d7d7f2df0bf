"""The HTML page of a realism check: one file that needs nothing else and asks nothing of the network.

Beside the scores it shows the pairs themselves: those that deceive, the most convincing first, with their
pictures and what the model wrote, and those without a label with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment

from uncanny.agents.realism_judge import CheckName
from uncanny.errors import UncannyError
from uncanny.eval.common.estimates import interval_words, p_words
from uncanny.eval.common.headline import UNTESTED
from uncanny.eval.common.pages.page import score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.common.pixels.difference import AMPLIFIED, difference
from uncanny.eval.common.published import caveat
from uncanny.eval.realism.people import PEOPLE_LABELS, published_people
from uncanny.eval.realism.plots import label_plot, plot_rows, position_plot
from uncanny.eval.realism.result import CASE_WORDS, RealismScore, SetScore
from uncanny.eval.realism.verdicts import Case, Side, Verdict, choice_of
from uncanny.records.run_folder import RunFolder

MOST_SHOWN = 24
MOST_LISTED = 200
_THREADS = 4
_DIFFERENCE: tuple[tuple[str, Side | None], ...] = ((f"difference × {AMPLIFIED}", None),)
# The most convincing edits first.
_ORDER: Mapping[Case | None, int] = {2: 0, 3: 1, 4: 2, 1: 3}
_QUESTIONS: Mapping[CheckName, str] = {
    "first": "Edited image alone, realistic?",
    "original_first": "Original first, more realistic:",
    "edited_first": "Edited first, more realistic:",
}


def write_realism_page(
    score: RealismScore,
    path: Path,
    *,
    root: Path | None = None,
    title: str | None = None,
    pictures: PicturesMode = "link",
) -> Path:
    """Write the page to `path` and return it; what `RealismScore.report` does."""
    rows = plot_rows(score)
    views = PageViews(path, pictures)
    return write_rendered(
        _environment(),
        "realism.html.j2",
        path,
        title=title or "Realism check",
        score=score,
        sets=score.sets,
        several=len(score.sets) > 1,
        untested=UNTESTED,
        rows=rows,
        n_rows=sum(1 + len(each.groups) for each in score.sets.values()),
        plots={"labels": label_plot(rows), "places": position_plot(rows)},
        page_views=views,
        pairs={name: _set_pairs(each, root, views) for name, each in score.sets.items()},
        people={name: each.people for name, each in score.sets.items() if each.people is not None},
        published=published_people() if score.published else None,
        caveat=caveat("inpainting_scores", score.texts),
        about=_about(score),
    )


def _about(score: RealismScore) -> dict[str, Any]:
    verdicts = [verdict for each in score.sets.values() for verdict in each.verdicts.verdicts]
    return {
        "pairs": len({verdict.id for verdict in verdicts}),
        "models": sorted({verdict.model for verdict in verdicts if verdict.model is not None}),
        "prompts": sorted({verdict.prompts for verdict in verdicts if verdict.prompts is not None}),
        "other_texts": list(score.texts_notes()),
        "undetermined": sum(each.overall.labels["undetermined"].counts for each in score.sets.values()),
        "stand_ins": any(each.stand_ins for each in score.sets.values()),
        "notes": sum(bool(verdict.notes) for verdict in verdicts),
    }


@cache
def _environment() -> Environment:
    filters: dict[str, Callable[..., Any]] = {"p": p_words, "ends": interval_words}
    environment = score_page("uncanny.eval.realism", ("pairs.css", "realism.css"), filters)
    environment.globals |= {
        "all_cases": CASE_WORDS,
        "people_labels": PEOPLE_LABELS,
        "names": {
            "all": "all",
            "deceiving": "deceiving",
            "intermediate": "intermediate",
            "non_deceiving": "non-deceiving",
        },
    }
    return environment


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """One question with its verdict as the page words it, and all the model wrote; None where it is gone."""

    question: str
    verdict: str
    raw: str | None


@dataclass(frozen=True, slots=True)
class Card:
    """A pair; `sides` are its pictures as layers of one view, each with its name and the file's size."""

    verdict: Verdict
    shown: Shown
    sides: tuple[tuple[str, Side | None], ...]
    answers: tuple[QuestionWords, ...]


@dataclass(frozen=True, slots=True)
class SetPairs:
    """One set's pairs: `deceiving` holds at most `MOST_SHOWN` cards of `n_deceiving`, and so on."""

    deceiving: tuple[Card, ...]
    n_deceiving: int
    undetermined: tuple[Verdict, ...]
    n_undetermined: int


def _set_pairs(score: SetScore, root: Path | None, views: PageViews) -> SetPairs:
    verdicts = score.verdicts.verdicts
    deceiving = [verdict for verdict in verdicts if verdict.label == "deceiving"]
    deceiving.sort(key=lambda verdict: _ORDER.get(verdict.case, len(_ORDER)))
    without = [verdict for verdict in verdicts if verdict.label == "undetermined"]
    return SetPairs(
        _cards(deceiving[:MOST_SHOWN], root or _image_root(score), views),
        len(deceiving),
        tuple(without[:MOST_LISTED]),
        len(without),
    )


def _image_root(score: SetScore) -> Path:
    """Where image paths start: the root that the run beside the verdicts names, else their folder."""
    if score.verdicts.path is None:
        return Path()
    folder = score.verdicts.path.parent
    try:
        manifest = RunFolder(folder).read_manifest()
    except UncannyError:  # scores do not need the run: the page goes without pictures
        manifest = None
    return folder / (manifest.root or "") if manifest else folder


def _cards(verdicts: Sequence[Verdict], root: Path, views: PageViews) -> tuple[Card, ...]:
    pairs = [(_shot(verdict.original, root), _shot(verdict.edited, root)) for verdict in verdicts]
    with ThreadPoolExecutor(_THREADS) as pool:
        differences = list(pool.map(lambda pair: difference(*pair), pairs))
    shown = views.add(
        [
            _view(verdict, *pair, data)
            for verdict, pair, data in zip(verdicts, pairs, differences, strict=True)
        ]
    )
    return tuple(
        Card(
            verdict,
            view,
            (("original", verdict.original), ("edited", verdict.edited), *_DIFFERENCE[: data is not None]),
            _answers(verdict),
        )
        for verdict, view, data in zip(verdicts, shown, differences, strict=True)
    )


def _shot(side: Side | None, root: Path) -> Shot | None:
    return None if side is None else Shot(root / side.image, side.sha256 or "")


def _view(verdict: Verdict, original: Shot | None, edited: Shot | None, data: bytes | None) -> View:
    layers = [Layer("original", original), Layer("edited", edited)]
    if data is not None:
        layers.append(Layer(f"difference × {AMPLIFIED}", data=data))
    return View(verdict.id, tuple(layers))


def _answers(verdict: Verdict) -> tuple[QuestionWords, ...]:
    """The questions about a pair, in order, with the order of images undone in the words."""
    answers = []
    for key, question in _QUESTIONS.items():
        answer = getattr(verdict, key)
        if answer is None and key not in verdict.raw:
            continue
        if answer is None:
            words = "no verdict"
        elif key == "first":
            words = answer
        else:
            choice = choice_of(answer, original_first=key == "original_first")
            words = "both" if choice == "both" else f"the {choice}"
        answers.append(QuestionWords(question, words, verdict.raw.get(key)))
    return tuple(answers)
