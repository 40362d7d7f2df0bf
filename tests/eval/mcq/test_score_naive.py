"""Scores of any answers agree with a plain implementation of the definitions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.mcq.made_sets import TYPES, made_item, scored
from tests.eval.mcq.naive_scores import Marks, naive, naive_detection
from uncanny.eval.mcq.data.items import Answer, Item

SPLITS = st.sampled_from(["art_dg", "art_pg", "ref_real", "ref_pg"])
KINDS = st.one_of(st.none(), st.sampled_from(TYPES))
KEYS = st.tuples(*[st.sampled_from("ABCDE")] * 3)
LETTERS = st.sampled_from([*"ABCDE", "a.", "(B)", "neither", "", "failed", "never asked", "refused"])
WORDS = st.sampled_from(["yes", "No.", "YES", "no", "perhaps", "failed", "never asked", "refused"])


@st.composite
def answered_sets(draw: st.DrawFn) -> tuple[list[Item], list[Answer], dict[str, dict[str, str | None]]]:
    """Items, answers, and what each existing answer says (None: nothing valid) by item and question."""
    items: list[Item] = []
    answers: list[Answer] = []
    choices_of: dict[str, dict[str, str | None]] = {}
    for n, (split, kind, key) in enumerate(
        draw(st.lists(st.tuples(SPLITS, KINDS, KEYS), min_size=1, max_size=25))
    ):
        item = made_item(str(n), split, key, kind)
        items.append(item)
        choices_of[item.id] = {}
        for question in item.questions():
            raw = draw(WORDS if question == "q1" else LETTERS)
            if raw == "failed":
                answers.append(
                    Answer(
                        id=item.id, question=question, raw=None, model="m", outcome="error", error="429: slow"
                    )
                )
            elif raw != "never asked":
                refused = raw == "refused"
                outcome = {"outcome": "refused"} if refused else {}
                answers.append(
                    Answer.model_validate(
                        {"id": item.id, "question": question, "raw": raw, "model": "m", **outcome}
                    )
                )
                plain = raw.strip("().")
                valid = plain.lower() in ("yes", "no") or len(plain) == 1
                choices_of[item.id][question] = (
                    (plain.lower() if question == "q1" else plain.upper()) if valid else None
                )
    return items, answers, choices_of


@given(answered_sets())
def test_any_answers(
    made: tuple[list[Item], list[Answer], dict[str, dict[str, str | None]]],
) -> None:
    items, answers, choices_of = made
    if not answers:
        return
    scores = scored(items, answers, resamples=0)
    marks: dict[str, Marks] = {
        item.id: {
            question: choice == getattr(item, question).answer
            for question, choice in choices_of[item.id].items()
        }
        for item in items
    }
    wanted = naive(items, marks)
    for name in ("splits", "patterns", "hierarchy", "disagreement"):
        assert scores[name] == _near(wanted[name]), name
    assert {kind: of_kind["all_q1_4"] for kind, of_kind in scores["by_type"].items()} == _near(
        wanted["by_type"]
    )
    calls = [
        (item.split.startswith("art"), choices_of[item.id]["q1"])
        for item in items
        if item.split != "ref_pg" and "q1" in choices_of[item.id]
    ]
    assert scores["q1_detection"] == _near(naive_detection(calls))
    choices = [choice for of_item in choices_of.values() for choice in of_item.values()]
    assert sum(scores["invalid"].values()) == choices.count(None)
    assert scores["missing"] == sum(len(item.questions()) for item in items) - len(choices)
    failures = sum(answer.outcome == "error" for answer in answers)
    assert scores["missing_by"].get("429", 0) == failures
    assert sum(scores["refused"].values()) == sum(answer.outcome == "refused" for answer in answers)


def _near(wanted: Any) -> Any:
    if isinstance(wanted, dict):
        return {name: _near(value) for name, value in wanted.items()}
    return pytest.approx(wanted, abs=1e-12) if isinstance(wanted, float) else wanted
