"""A model on the two sides of pairs: the edited image, and the same image before the edit.

On `art_pg` the right answer to Q2–Q4 is the region with the artifact, on `ref_pg` it is E. A model that names
the region on both sides does not see the artifact. SalArt-VQA (section 5) reports both splits; the test
between them is ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal

import numpy as np

from uncanny.eval.common.tables.paired import conditions_table
from uncanny.eval.common.tables.table import Table
from uncanny.eval.mcq.data.items import QUESTIONS, Question
from uncanny.eval.mcq.score.matrix import AnswerKey, ResponseMatrix
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.intervals import Codes
from uncanny.eval.metrics.paired import PairedTest, paired_tests
from uncanny.wording import counted

Asked = Literal[Question, "all_q2_4"]
ASKED: Final[tuple[Asked, ...]] = ("q2", "q3", "q4", "all_q2_4")
_SIDES: Final = ("art_pg", "ref_pg")
_LABELS: Final[Mapping[str, str]] = {"q2": "Q2", "q3": "Q3", "q4": "Q4", "all_q2_4": "all Q2–4"}


@dataclass(frozen=True, slots=True)
class SidesTest(PairedTest):
    """One `model` on both sides of `n` pairs, for one `question` or `all_q2_4`; see `PairedTest`.

    `first` is art_pg and `second` ref_pg. `adjusted_p` is corrected for all models with this question.
    """

    model: str
    question: str


def sides_tests(matrices: Sequence[ResponseMatrix]) -> tuple[SidesTest, ...]:
    """Each model on art_pg against itself on ref_pg, over the pairs whose two sides it answered.

    Empty where the items have no pairs of these splits.
    """
    if not matrices:
        return ()
    rows = pair_rows(matrices[0].key)
    if not rows.size:
        return ()
    tests: list[SidesTest] = []
    for question in ASKED:
        columns = slice(1, 4) if question == "all_q2_4" else [QUESTIONS.index(question)]
        of_question = [_test(matrix, rows, columns) for matrix in matrices]
        adjusted = holm([test.p_value for test in of_question])
        for matrix, test, p in zip(matrices, of_question, adjusted, strict=True):
            values = {each.name: getattr(test, each.name) for each in fields(test)}
            tests.append(SidesTest(**{**values, "adjusted_p": p}, model=matrix.model, question=question))
    return tuple(tests)


def pair_rows(key: AnswerKey) -> Codes:
    """The rows of the two items of each pair, shape (2, pairs), art_pg first.

    A `pair_id` without one item of each side, or with several, is left out.
    """
    pairs: dict[str, dict[str, list[int]]] = {}
    for row, item in enumerate(key.items):
        if item.pair_id is not None and item.split in _SIDES:
            pairs.setdefault(item.pair_id, {}).setdefault(item.split, []).append(row)
    rows = [
        [sides[side][0] for side in _SIDES]
        for sides in pairs.values()
        if all(len(sides.get(side, ())) == 1 for side in _SIDES)
    ]
    return np.array(rows, dtype=np.int64).reshape(-1, 2).T


def _test(matrix: ResponseMatrix, rows: Codes, columns: Any) -> PairedTest:
    right = np.asarray(matrix.right[:, columns].all(axis=1))[rows]
    answered = np.asarray(matrix.answered[:, columns].all(axis=1))[rows]
    groups = None
    if matrix.key.groups is not None:
        # Pairs of one original belong together; a pair by itself is one case.
        codes = matrix.key.groups[rows[0]]
        groups = codes if len(np.unique(codes)) < len(codes) else None
    (test,) = paired_tests(_SIDES, right, answered, groups)
    return test


def sides_table(tests: Iterable[SidesTest], ranked: Sequence[str]) -> Table | None:
    """A line a model and question, models in the order of `ranked`; None without a test."""
    every = list(tests)
    named = {
        f"{test.model}, {_LABELS[test.question]}": replace(test)
        for name in ranked
        for test in every
        if test.model == name
    }
    return conditions_table(
        named,
        "The two sides of pairs",
        "pairs",
        "only edited",
        "only before",
        "Difference in shares right, edited image (art_pg) minus the image before the edit (ref_pg), with "
        "95 % intervals (Newcombe, paired); pairs of which only one side is right; exact McNemar test, "
        f"corrected by Holm for {counted(len({test.model for test in every}), 'model')}; Cohen's g.",
    )


def sides_json(tests: Iterable[SidesTest]) -> dict[str, dict[str, Any]]:
    """The tests by model and question."""
    by_model: dict[str, dict[str, Any]] = {}
    for test in tests:
        by_model.setdefault(test.model, {})[test.question] = test.to_json()
    return by_model
