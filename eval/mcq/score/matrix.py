"""Answers as arrays: one row an image, one column a question, so that every score is a sum over columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, AskedQuestion, Item
from uncanny.eval.mcq.data.texts import changed_since
from uncanny.eval.mcq.score.parser import Parser, read_choice
from uncanny.schema import stand_ins

CODES = {"no": 0, "yes": 1, "A": 0, "B": 1, "C": 2, "D": 3, "E": 4}
INVALID, MISSING = -1, -2
UNSEEN = "not answered"
CHANGED = "question changed since"

RATER_PREFIX = "human/"
HUMAN = "human"

Bools = NDArray[np.bool_]
Codes = NDArray[np.int8]


def is_rater(model: str) -> bool:
    """Whether these answers are one person's."""
    return model == HUMAN or model.startswith(RATER_PREFIX)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerKey:
    """The items as arrays of shape (images,) and (images, 4).

    `codes` are the right answers, -2 where nothing is asked. `groups` has for each item the number of its
    group, None where each is by itself.
    """

    items: tuple[Item, ...]
    rows: Mapping[str, int]
    split: NDArray[np.str_]
    type: NDArray[np.str_]
    codes: Codes
    groups: NDArray[np.int64] | None = None

    @property
    def asked(self) -> Bools:
        return np.not_equal(self.codes, MISSING)

    @classmethod
    def of(cls, items: Iterable[Item], groups: NDArray[np.int64] | None = None) -> AnswerKey:
        """Raises `UsageError` for an id that comes twice."""
        everything = tuple(items)
        rows = {item.id: row for row, item in enumerate(everything)}
        if len(rows) < len(everything):
            twice = next(item.id for row, item in enumerate(everything) if rows[item.id] != row)
            raise UsageError(f"item {twice!r} appears twice", remedy="Give every item its own id.")
        codes = [
            [CODES.get(item.right(question) or "", MISSING) for question in QUESTIONS] for item in everything
        ]
        return cls(
            everything,
            rows,
            np.array([item.split for item in everything], dtype=np.str_),
            np.array([item.artifact_type or "untyped" for item in everything], dtype=np.str_),
            np.array(codes, dtype=np.int8).reshape(-1, len(QUESTIONS)),
            groups,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ResponseMatrix:
    """One model's answers to the questions of a key.

    `codes` are as in the key, `INVALID` for an answer that names no option and `MISSING` for none.
    `reasons` counts the missing answers by why; `unused` counts answers to nothing that is asked. `changed`
    are the missing ones that were given to another question than the item asks now, as ids and questions.
    `stand_ins` counts the answers that came from other models than `model`, by which.
    """

    model: str
    key: AnswerKey
    codes: Codes
    refused: Bools
    reasons: Counter[str] = field(default_factory=Counter)
    unused: int = 0
    changed: tuple[tuple[str, AskedQuestion], ...] = ()
    stand_ins: Counter[str] = field(default_factory=Counter)

    @property
    def right(self) -> Bools:
        return np.equal(self.codes, self.key.codes) & self.key.asked

    @property
    def answered(self) -> Bools:
        return np.not_equal(self.codes, MISSING) & self.key.asked

    @property
    def invalid(self) -> Bools:
        return np.equal(self.codes, INVALID) & self.key.asked


def response_matrices(
    key: AnswerKey, answers: Iterable[Answer], parser: Parser = "exact"
) -> dict[str, ResponseMatrix]:
    """One matrix a model, in the order the models first come.

    An answer takes the place of a failed call for the same question. Raises `UsageError` where one model has
    two answers to the same question, or where no answer at all belongs to the items.
    """
    by_model: dict[str, list[Answer]] = {}
    for answer in answers:
        by_model.setdefault(answer.model, []).append(answer)
    matrices = {model: _matrix(key, model, of_model, parser) for model, of_model in by_model.items()}
    for matrix in matrices.values():
        if key.items and matrix.unused == len(by_model[matrix.model]):
            raise UsageError(
                f"none of the {matrix.unused} answers of {matrix.model!r} belongs to these items",
                remedy="Give the item file that was asked.",
            )
    return matrices


def _matrix(key: AnswerKey, model: str, answers: Sequence[Answer], parser: Parser) -> ResponseMatrix:
    kept: dict[tuple[int, int], Answer] = {}
    outdated: dict[tuple[int, int], Answer] = {}
    unused = 0
    for answer in answers:
        row, column = key.rows.get(answer.id), QUESTIONS.index(answer.question)
        if row is None or key.codes[row, column] == MISSING:
            unused += 1
            continue
        if changed_since(answer, key.items[row]):
            outdated[row, column] = answer
            continue
        before = kept.get((row, column))
        if before is None or failed(before):
            kept[row, column] = answer
        elif not failed(answer):
            raise UsageError(
                f"{model!r} answers {answer.question} of item {answer.id!r} twice",
                remedy="Give answers of one run per model, or different model names.",
            )
    codes = np.full(key.codes.shape, MISSING, dtype=np.int8)
    refused = np.zeros(key.codes.shape, dtype=np.bool_)
    reasons: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for (row, column), answer in kept.items():
        if failed(answer):
            reasons[_reason(answer)] += 1
            continue
        others.update(stand_ins(answer, answer.model))
        refused[row, column] = answer.outcome == "refused"
        codes[row, column] = _code(answer, key.items[row], parser)
    changed = tuple((answer.id, answer.question) for place, answer in outdated.items() if place not in kept)
    if changed:
        reasons[CHANGED] = len(changed)
    unseen = int(key.asked.sum()) - len(kept) - len(changed)
    if unseen:
        reasons[UNSEEN] = unseen
    return ResponseMatrix(model, key, codes, refused, reasons, unused, changed, others)


def failed(answer: Answer) -> bool:
    """Whether there is no answer to read; a refusal is an answer."""
    return answer.outcome == "error" or (answer.raw is None and answer.outcome != "refused")


def _reason(answer: Answer) -> str:
    # Messages name requests and times; what stands before the colon is fit for counting.
    return (answer.error or "no reason given").split(":")[0].strip()


def _code(answer: Answer, item: Item, parser: Parser) -> int:
    if answer.outcome == "refused":
        return INVALID
    choice = read_choice(answer.raw, answer.question, item.answer_form, parser=parser).choice
    return INVALID if choice is None else CODES[choice]
