"""The items on the page of scores: some by how many models get them right, with pictures, and a row for each.

Pictures of rows are linked and not copied here: a thousand small ones would be fifteen megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

import numpy as np
from markupsafe import Markup

from uncanny.errors import UncannyError
from uncanny.eval.common.pages.pictures import (
    LARGE_SIDE,
    Layer,
    Mark,
    PageViews,
    PicturesMode,
    Shot,
    Shown,
    View,
    page_json,
    relative_link,
)
from uncanny.eval.mcq.data.items import QUESTIONS, Item, ItemSet, Question
from uncanny.eval.mcq.data.overlay import overlay_for
from uncanny.eval.mcq.score.controls import is_baseline
from uncanny.eval.mcq.score.matrix import CODES, INVALID, MISSING, ResponseMatrix, is_rater
from uncanny.eval.mcq.score.result import McqScores
from uncanny.images.prepared import thumbnail

MOST_SHOWN = 12
_TITLES: Mapping[Question, str] = {
    "q1": "Q1 Is there an artifact?",
    "q2": "Q2 Where?",
    "q3": "Q3 Which box?",
    "q4": "Q4 What shows it?",
}
# Sets word option E each in their own way.
_NONE = "none of these"
_MOST_RAW = 60

# What was answered, word for word, by model, item and question.
Raw = dict[tuple[str, str, str], str]
State = Literal["right", "wrong", "invalid", "refused", "missing", "unasked"]


@dataclass(frozen=True, slots=True)
class ShownAnswer:
    """One answer as the page shows it; `raw` is the text of an invalid one, shortened."""

    state: State
    text: str
    raw: str = ""


@dataclass(frozen=True, slots=True)
class ShownQuestion:
    """One question: its options as letter, text and whether it is the right one."""

    question: Question
    title: str
    options: tuple[tuple[str, str, bool], ...]


@dataclass(frozen=True, slots=True)
class Card:
    """One item; the layers of `shown` are the image and, where there are boxes, the same as drawn for Q3."""

    item: Item
    shown: Shown
    questions: tuple[ShownQuestion, ...]
    answers: tuple[tuple[str, tuple[ShownAnswer, ...]], ...]


@dataclass(frozen=True, slots=True)
class Gallery:
    """Each list holds at most `MOST_SHOWN` cards of the count beside it; every item is in one of them.

    `judges` are the models that decide. `divided` items are right for some of them, the most evenly split
    ones first; `unfinished` ones have a missing answer of one of them.
    """

    judges: tuple[str, ...]
    everybody: tuple[Card, ...]
    n_everybody: int
    nobody: tuple[Card, ...]
    n_nobody: int
    divided: tuple[Card, ...]
    n_divided: int
    unfinished: tuple[Card, ...]
    n_unfinished: int


def gallery(scores: McqScores, views: PageViews, *, overlays: Path | None) -> Gallery:
    """Choose the items and read their pictures; those hardest for most models come first.

    Baselines and people do not decide, unless there is nobody else. Overlays are drawn into `overlays` where
    that is given.
    """
    judges = judges_of(scores)
    key = judges[0].key
    complete = np.all([(matrix.answered | ~key.asked).all(axis=1) for matrix in judges], axis=0)
    solved = np.array([(matrix.right | ~key.asked).all(axis=1) for matrix in judges])
    correct = np.sum([matrix.right.sum(axis=1) for matrix in judges], axis=0)
    everybody = np.flatnonzero(complete & solved.all(axis=0) & key.asked.any(axis=1))
    nobody = np.flatnonzero(complete & ~solved.any(axis=0))
    nobody = nobody[np.argsort(correct[nobody], kind="stable")]
    share = solved.mean(axis=0)
    divided = np.flatnonzero(complete & solved.any(axis=0) & ~solved.all(axis=0))
    divided = divided[np.argsort(np.abs(share[divided] - 0.5), kind="stable")]
    lists = (everybody, nobody, divided, np.flatnonzero(~complete))
    shown = [rows[:MOST_SHOWN].tolist() for rows in lists]
    cards = iter(_cards([key.items[row] for rows in shown for row in rows], scores, views, overlays))
    by_list = [tuple(islice(cards, len(rows))) for rows in shown]
    return Gallery(
        judges=tuple(matrix.model for matrix in judges),
        everybody=by_list[0],
        n_everybody=len(everybody),
        nobody=by_list[1],
        n_nobody=len(nobody),
        divided=by_list[2],
        n_divided=len(divided),
        unfinished=by_list[3],
        n_unfinished=len(lists[3]),
    )


def judges_of(scores: McqScores) -> list[ResponseMatrix]:
    """The models that decide what is hard: no baselines and no people, unless there is nobody else."""
    matrices = scores.responses
    judges = [matrix for name, matrix in matrices.items() if not (is_baseline(name) or is_rater(name))]
    return judges or list(matrices.values())


def _cards(items: Sequence[Item], scores: McqScores, views: PageViews, overlays: Path | None) -> list[Card]:
    item_set, wanted = scores.item_set, {item.id for item in items}
    raw: Raw = {
        (answer.model, answer.id, answer.question): answer.raw
        for answer in scores.answers
        if answer.id in wanted and answer.raw
    }
    with TemporaryDirectory() as scratch:
        drawn = [_overlay(item, item_set, overlays or Path(scratch)) for item in items]
        # What is drawn for this page alone is not there afterwards, and goes into it.
        shown = views.add(
            [
                _view(item, item_set, overlay, kept=overlay is not None and overlay.parent != Path(scratch))
                for item, overlay in zip(items, drawn, strict=True)
            ]
        )
    return [
        Card(
            item,
            view,
            shown_questions(item),
            tuple((name, answers_of(matrix, item, raw)) for name, matrix in scores.responses.items()),
        )
        for item, view in zip(items, shown, strict=True)
    ]


def _view(item: Item, item_set: ItemSet, overlay: Path | None, *, kept: bool) -> View:
    # The bundled set lies in the installed package: a page does not depend on where that is.
    layers = [Layer("image", Shot(item_set.image_path(item)), passing=item_set.bundled)]
    boxes = item.q3.boxes if item.q3 else {}
    regions = item.q2.options if item.q2 else {}
    right = item.right("q3")
    marks = tuple(
        Mark(f"{letter} ✓" if letter == right else letter, box, text=regions.get(letter, ""))
        for letter, box in sorted(boxes.items())
    )
    if overlay is not None and kept:
        layers.append(Layer("as asked in Q3", Shot(overlay), drawn=True))
    elif overlay is not None:
        layers.append(Layer("as asked in Q3", data=thumbnail(overlay, LARGE_SIDE), drawn=True))
    return View(item.id, tuple(layers), marks)


def _overlay(item: Item, item_set: ItemSet, folder: Path) -> Path | None:
    try:
        return overlay_for(item, item_set, folder)
    except (UncannyError, OSError):
        # A report goes without this picture; the figures do not depend on it.
        return None


def shown_questions(item: Item) -> tuple[ShownQuestion, ...]:
    """All questions of an item, with their options."""
    return tuple(_question(item, question) for question in item.questions())


def _question(item: Item, question: Question) -> ShownQuestion:
    right = item.right(question)
    options: dict[str, str]
    if question == "q1":
        options = {"yes": "", "no": ""}
    elif question == "q3":
        options = {letter: f"box {letter}" for letter in sorted(item.q3.boxes)} if item.q3 else {}
        options["E"] = _NONE
    else:
        choice = item.q2 if question == "q2" else item.q4
        options = {letter: choice.options[letter] for letter in sorted(choice.options)} if choice else {}
        options["E"] = _NONE
    return ShownQuestion(
        question,
        _TITLES[question],
        tuple((letter, text, letter == right) for letter, text in options.items()),
    )


def answers_of(matrix: ResponseMatrix, item: Item, raw: Raw) -> tuple[ShownAnswer, ...]:
    """What a model answered to the four questions of an item."""
    row = matrix.key.rows[item.id]
    return tuple(
        _answer(matrix, row, column, raw.get((matrix.model, item.id, question)) or "")
        for column, question in enumerate(QUESTIONS)
    )


def _answer(matrix: ResponseMatrix, row: int, column: int, raw: str) -> ShownAnswer:
    if not matrix.key.asked[row, column]:
        return ShownAnswer("unasked", "not asked")
    code = int(matrix.codes[row, column])
    if matrix.refused[row, column]:
        return ShownAnswer("refused", "refused", _short(raw))
    if code == MISSING:
        return ShownAnswer("missing", "missing")
    if code == INVALID:
        return ShownAnswer("invalid", "invalid", _short(raw))
    options = ("no", "yes") if column == 0 else tuple("ABCDE")
    text = next(option for option in options if CODES[option] == code)
    return ShownAnswer("right" if matrix.right[row, column] else "wrong", text)


def _short(text: str) -> str:
    return text if len(text) <= _MOST_RAW else text[: _MOST_RAW - 1] + "…"


# Rows, and bytes of what opens from them: a page has to load.
MOST_ROWS: Final = 5000
MOST_BYTES: Final = 8_000_000
# As `items.js` reads them.
STATE_LETTERS: Final[Mapping[State, str]] = {
    "right": "r",
    "wrong": "w",
    "invalid": "i",
    "refused": "f",
    "missing": "m",
    "unasked": "u",
}


@dataclass(frozen=True, slots=True)
class Solvers:
    """How many models get something right, of those with an answer to it. A failed call is not counted."""

    right: int
    answered: int


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item, and the models that get it right as a whole, of those with all answers to it.

    `by_question` has the same for each question, None where it is not asked. `opens` says that the page holds
    what it asks and what was answered.
    """

    item: Item
    whole: Solvers
    by_question: tuple[Solvers | None, ...]
    opens: bool


@dataclass(frozen=True, slots=True)
class Browser:
    """Up to `MOST_ROWS` of all `total` items, those that the smallest share of models gets right first.

    Items that no model answers in full come last. So many `judges` are counted. `linked` says whether
    pictures can be shown from their files.
    """

    rows: tuple[ItemRow, ...]
    total: int
    judges: int
    data: Markup
    linked: bool

    @property
    def n_open(self) -> int:
        return sum(row.opens for row in self.rows)


def browse(scores: McqScores, page: Path, pictures: PicturesMode) -> Browser:
    """Every item that was scored, with all answers to it; `page` is where links to pictures start.

    Of more than `MOST_BYTES` of texts the later items are rows that do not open.
    """
    judges = judges_of(scores)
    key = judges[0].key
    solved = np.sum([(matrix.right | ~key.asked).all(axis=1) for matrix in judges], axis=0)
    complete = np.sum([(matrix.answered | ~key.asked).all(axis=1) for matrix in judges], axis=0)
    right = np.sum([matrix.right for matrix in judges], axis=0)
    answered = np.sum([matrix.answered for matrix in judges], axis=0)
    share = np.where(complete > 0, solved / np.maximum(complete, 1), np.inf)
    order = np.argsort(share, kind="stable")[:MOST_ROWS].tolist()
    linked = pictures == "link" and not scores.item_set.bundled
    raw: Raw = {
        (answer.model, answer.id, answer.question): answer.raw for answer in scores.answers if answer.raw
    }
    room = MOST_BYTES
    rows, entries = [], {}
    for row in order:
        item = key.items[row]
        entry = _entry(item, scores, list(scores.responses.values()), raw, page, linked=linked)
        # Names and texts are most of it; JSON adds little.
        room -= len(str(entry))
        if room > 0:
            entries[item.id] = entry
        counts = tuple(
            Solvers(number, of) if asked else None
            for number, of, asked in zip(
                right[row].tolist(), answered[row].tolist(), key.asked[row].tolist(), strict=True
            )
        )
        rows.append(ItemRow(item, Solvers(int(solved[row]), int(complete[row])), counts, room > 0))
    data = page_json({"models": list(scores.responses), "items": entries})
    return Browser(tuple(rows), len(key.items), len(judges), data, linked)


def _entry(
    item: Item,
    scores: McqScores,
    matrices: Sequence[ResponseMatrix],
    raw: Raw,
    page: Path,
    *,
    linked: bool,
) -> dict[str, Any]:
    boxes = item.q3.boxes if item.q3 else {}
    regions = item.q2.options if item.q2 else {}
    return {
        "about": [text for text in (item.split, item.artifact_type, item.pair_id) if text],
        "image": item.image,
        "src": relative_link(page, scores.item_set.image_path(item)) if linked else None,
        "questions": [
            [each.title, [[letter, text, right] for letter, text, right in each.options]]
            for each in shown_questions(item)
        ],
        "boxes": [[letter, list(box), regions.get(letter, "")] for letter, box in sorted(boxes.items())],
        "right": item.right("q3"),
        # A letter for the state, then what was answered, and of what is no answer its words.
        "answers": [
            [f"{STATE_LETTERS[each.state]}{each.raw or each.text}" for each in answers_of(matrix, item, raw)]
            for matrix in matrices
        ],
    }
