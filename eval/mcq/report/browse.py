"""Every item of a set on the page of its scores: a row each, and what opens from it, made by a script.

Pictures are linked and not copied here: a thousand small ones would be fifteen megabytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from markupsafe import Markup

from uncanny.eval.common.pages.pictures import PicturesMode, page_json, relative_link
from uncanny.eval.mcq.data.items import Item
from uncanny.eval.mcq.report.gallery import Raw, State, answers_of, judges_of, shown_questions
from uncanny.eval.mcq.score.matrix import ResponseMatrix
from uncanny.eval.mcq.score.result import McqScores

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
    """How many models get something right, of those with an answer to it: a failed call is no wrong one."""

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
