"""A model on both sides of pairs, against a case by hand and against statsmodels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from uncanny import mcq
from uncanny.eval.mcq.score.matrix import AnswerKey
from uncanny.eval.mcq.score.sides import pair_rows
from uncanny.mcq import Answer, Item

OPTIONS = {"A": "At the cup", "B": "At the plate", "C": "At the wall", "D": "At the floor"}
BOXES = {letter: (10 * at, 0, 10 * at + 8, 8) for at, letter in enumerate("ABCD")}


def item(pair: int, split: str) -> Item:
    answer = "B" if split == "art_pg" else "E"
    return Item.model_validate(
        {
            "id": f"{pair}-{split}",
            "image": f"{pair}-{split}.png",
            "split": split,
            "pair_id": str(pair),
            "q1": {"answer": "yes"} if split == "art_pg" else None,
            "q2": {"options": OPTIONS, "answer": answer},
            "q3": {"boxes": BOXES, "answer": answer},
            "q4": {"options": OPTIONS, "answer": answer},
        }
    )


def answers(items: Sequence[Item], right: dict[str, bool], model: str = "m") -> list[Answer]:
    """Q2–Q4 all right or all wrong, by the id of the item."""
    given = []
    for each in items:
        for question in each.questions():
            truth = str(each.right(question))
            raw = truth if right[each.id] else "D" if question != "q1" else "no"
            given.append(Answer(id=each.id, question=question, raw=raw, model=model))
    return given


ITEMS = [item(pair, split) for pair in range(8) for split in ("art_pg", "ref_pg")]
# Five pairs right on the edited side alone, one on the other alone, one on both, one on neither.
EDITED = [True] * 5 + [False, True, False]
BEFORE = [False] * 5 + [True, True, False]
RIGHT = {
    f"{pair}-{split}": (EDITED if split == "art_pg" else BEFORE)[pair]
    for pair in range(8)
    for split in ("art_pg", "ref_pg")
}


def test_by_hand() -> None:
    scores = mcq.score(ITEMS, answers(ITEMS, RIGHT), resamples=0)
    test = next(each for each in scores.sides if each.question == "all_q2_4")
    assert (test.model, test.first, test.second) == ("m", "art_pg", "ref_pg")
    assert (test.n, test.first_only, test.second_only) == (8, 5, 1)
    # Two-sided exact: 2 · (1 + 6) / 2⁶.
    assert test.p_value == pytest.approx(14 / 64)
    assert test.difference.value == pytest.approx(0.5)
    assert [each.question for each in scores.sides] == ["q2", "q3", "q4", "all_q2_4"]
    assert "The two sides of pairs" in str(scores)
    assert scores.to_json()["sides"]["m"]["q4"]["n"] == 8


def test_against_statsmodels() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    chance = np.random.default_rng(3)
    right = {each.id: bool(chance.integers(2)) for each in ITEMS}
    scores = mcq.score(ITEMS, answers(ITEMS, right), resamples=0)
    test = next(each for each in scores.sides if each.question == "all_q2_4")
    pairs = [(right[f"{pair}-art_pg"], right[f"{pair}-ref_pg"]) for pair in range(8)]
    table = [[pairs.count((a, b)) for b in (True, False)] for a in (True, False)]
    assert test.p_value == pytest.approx(mcnemar(table, exact=True).pvalue)


def test_several_models_are_corrected_together() -> None:
    given = [*answers(ITEMS, RIGHT), *answers(ITEMS, RIGHT, "other")]
    scores = mcq.score(ITEMS, given, resamples=0)
    tests = [each for each in scores.sides if each.question == "q2"]
    assert [each.model for each in tests] == ["m", "other"]
    assert [each.adjusted_p for each in tests] == pytest.approx([28 / 64, 28 / 64])


def test_incomplete_pairs_are_left_out() -> None:
    alone = [*ITEMS, item(8, "art_pg"), item(9, "ref_pg")]
    assert pair_rows(AnswerKey.of(alone)).shape == (2, 8)
    unanswered = [each for each in answers(ITEMS, RIGHT) if each.id != "0-ref_pg"]
    test = mcq.score(ITEMS, unanswered, resamples=0).sides[-1]
    assert (test.n, test.first_only) == (7, 4)


def test_without_pairs_there_is_no_test() -> None:
    alone = [item(1, "art_pg"), item(2, "art_pg")]
    right = {each.id: True for each in alone}
    scores = mcq.score(alone, answers(alone, right), resamples=0)
    assert scores.sides == ()
    assert "sides" not in scores.to_json()
