"""The HTML page of a realism check: one file that needs nothing else and asks nothing of the network.

Beside the scores it shows the pairs themselves: those that deceive, the most convincing first, with their
pictures and what the model wrote, and those without a label with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from markupsafe import Markup

from uncanny.agents.realism_judge import CheckName
from uncanny.errors import UncannyError
from uncanny.eval.common.estimates import interval_words, p_words
from uncanny.eval.common.headline import UNTESTED
from uncanny.eval.common.pages.page import figure_words, percent, score_page, write_rendered
from uncanny.eval.common.pages.pictures import Layer, PageViews, PicturesMode, Shot, Shown, View
from uncanny.eval.common.pages.plots import (
    NARROW,
    WIDE,
    bare_axes,
    colour,
    pixel_axes,
    plain_label,
    plot_twice,
)
from uncanny.eval.common.pixels.difference import AMPLIFIED, difference
from uncanny.eval.common.published import caveat
from uncanny.eval.realism.people import PEOPLE_LABELS, published_people
from uncanny.eval.realism.result import CASE_WORDS, GroupScore, RealismScore, SetScore
from uncanny.eval.realism.verdicts import Case, Label, Side, Verdict, choice_of
from uncanny.records.run_folder import RunFolder

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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


DRAWN: Mapping[Label, tuple[str, str]] = {
    "deceiving": ("deceiving", "a0"),
    "intermediate": ("intermediate", "a1"),
    "non_deceiving": ("non-deceiving", "a5"),
}
# Groups beyond are in the table alone.
MOST_ROWS = 40
_ROW, _HEAD, _FOOT = 27.0, 26.0, 22.0


@dataclass(frozen=True, slots=True)
class PlotRow:
    """One row of a plot; `whole` marks the scores of all pairs of a set."""

    name: str
    score: GroupScore
    whole: bool


def plot_rows(score: RealismScore) -> list[PlotRow]:
    """Each set, followed by its groups."""
    rows = []
    for name, each in score.sets.items():
        rows.append(PlotRow(name if len(score.sets) > 1 else "all pairs", each.overall, whole=True))
        rows += [PlotRow(group, score, whole=False) for group, score in each.groups.items()]
    return rows[:MOST_ROWS]


def label_plot(rows: Sequence[PlotRow]) -> Markup:
    """The share of each label with its interval; empty where no pair has a label."""
    if not any(row.score.labels["deceiving"].out_of for row in rows):
        return Markup("")
    words = "; ".join(
        f"{row.name}: "
        + ", ".join(f"{DRAWN[label][0]} {figure_words(row.score.labels[label])}" for label in DRAWN)
        for row in rows
    )
    tall = _ROW * len(rows)
    return plot_twice(
        partial(_draw_labels, rows),
        (WIDE, tall + _HEAD + _FOOT),
        (NARROW, 3 * (tall + _HEAD + 8) + _FOOT),
        key="labels",
        title="Share of each label among the pairs with a label",
        words=words,
    )


def _draw_labels(rows: Sequence[PlotRow], figure: Figure) -> Mapping[str, str]:
    width, _ = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    tips: dict[str, str] = {}
    margin, tall = _margin(rows, narrow), _ROW * len(rows)
    room = width - margin if narrow else (width - margin) / 3
    for place, (label, (heading, ink)) in enumerate(DRAWN.items()):
        left = margin if narrow else margin + place * room
        top = _HEAD + (place * (tall + _HEAD + 8) if narrow else 0)
        axes = bare_axes(pixel_axes(figure, left, top, room - 10, tall), grid="x")
        axes.set_title(heading, loc="left", pad=7)
        _scale(axes, len(rows), named=place == 2 or not narrow, most=1.3)
        if narrow or place == 0:
            _names(axes, rows, narrow)
        for number, row in enumerate(rows):
            tips |= _bar(axes, number, row, label, ink)
    return tips


def _bar(axes: Axes, number: int, row: PlotRow, label: Label, ink: str) -> Mapping[str, str]:
    share = row.score.labels[label]
    if share.value is None:
        axes.text(0.02, number, "no label", va="center", color=colour("soft"), fontsize=11.5)
        return {}
    key = f"{label}-{number}"
    axes.barh(number, share.value, 0.62, color=colour(ink), alpha=1.0 if row.whole else 0.62, gid=key)
    if share.interval is not None:
        axes.plot(share.interval, (number, number), color=colour("ink"), linewidth=1.5)
    end = max(share.value, share.interval[1] if share.interval else 0.0)
    axes.annotate(
        percent(share.value),
        (end, number),
        (6, 0),
        textcoords="offset points",
        va="center",
        fontsize=11.5,
        fontweight="bold" if row.whole else "normal",
    )
    return {key: f"{row.name}: {DRAWN[label][0]} {figure_words(share)}"}


def _scale(axes: Axes, rows: int, *, named: bool, most: float) -> None:
    axes.set_xlim(0, most)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_xticks([0, 0.5, 1], ["0", "50", "100 %"] if named else ["", "", ""])
    axes.set_yticks([])


def _name(row: PlotRow, narrow: bool) -> str:
    return plain_label(row.name, 15 if narrow else 30)


def _margin(rows: Sequence[PlotRow], narrow: bool) -> float:
    return 16 + 7.6 * max(len(_name(row, narrow)) for row in rows)


def _names(axes: Axes, rows: Sequence[PlotRow], narrow: bool) -> None:
    axes.set_yticks(range(len(rows)), [_name(row, narrow) for row in rows])
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color(colour("ink"))
        label.set_fontweight("bold" if row.whole else "normal")


def position_plot(rows: Sequence[PlotRow]) -> Markup:
    """How often "first" is chosen against "second", with its interval; empty where neither ever was."""
    drawn = [row for row in rows if row.score.position_bias.first_share is not None]
    if not drawn:
        return Markup("")
    words = "; ".join(f"{row.name}: {_bias_words(row)}" for row in drawn)
    height = _ROW * len(drawn) + _HEAD + _FOOT
    return plot_twice(
        partial(_draw_positions, drawn),
        (WIDE, height),
        (NARROW, height),
        key="places",
        title="How often the first place is chosen, against the second",
        words=words,
    )


def _draw_positions(rows: Sequence[PlotRow], figure: Figure) -> Mapping[str, str]:
    width, _ = figure.get_size_inches() * figure.dpi
    narrow = width < 600
    margin, beside = _margin(rows, narrow), 18 + 7.2 * max(len(_beside(row, narrow)) for row in rows)
    axes = pixel_axes(figure, margin, _HEAD, width - margin - beside, _ROW * len(rows))
    bare_axes(axes, grid="x")
    _scale(axes, len(rows), named=True, most=1.0)
    _names(axes, rows, narrow)
    axes.axvline(0.5, color=colour("edge"), linewidth=1.2, linestyle=(0, (4, 3)))
    always = "" if narrow else "always "
    axes.set_title(f"{always}second", loc="left", pad=7, fontweight="normal", color=colour("soft"))
    axes.set_title(f"{always}first", loc="right", pad=7, fontweight="normal", color=colour("soft"))
    tips = {}
    for number, row in enumerate(rows):
        bias = row.score.position_bias
        assert bias.first_share is not None
        assert bias.interval is not None
        ink = colour("accent")
        axes.plot(bias.interval, (number, number), color=ink, linewidth=3, alpha=0.4, solid_capstyle="round")
        axes.plot(
            [bias.first_share], [number], "o", color=ink, markersize=8, clip_on=False, gid=f"at-{number}"
        )
        tips[f"at-{number}"] = f"{row.name}: {_bias_words(row)}"
        axes.annotate(
            _beside(row, narrow),
            (1, number),
            (14, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )
    return tips


def _beside(row: PlotRow, narrow: bool) -> str:
    bias = row.score.position_bias
    return f"{bias.second:,} : {bias.first:,}" if narrow else _bias_words(row)


def _bias_words(row: PlotRow) -> str:
    bias = row.score.position_bias
    return f"first {bias.first:,}, second {bias.second:,}, both {bias.both:,}; {p_words(bias.p_value)}"
