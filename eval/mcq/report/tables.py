"""The tables of the MCQ report as words: what was not asked says so and is never a zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uncanny.eval.common.estimates import Estimate, Share, interval_words
from uncanny.eval.common.pages.page import percent
from uncanny.eval.mcq.data.items import QUESTIONS, Item, Question
from uncanny.eval.mcq.score.matrix import ResponseMatrix
from uncanny.eval.mcq.score.result import McNemar, ModelScore
from uncanny.eval.metrics.mcq import SPLITS

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
