"""What questions say: our wording where a set has none, a set's own word for word."""

from __future__ import annotations

import re
from typing import Any

import pytest

from uncanny.eval.mcq.data.items import QUESTIONS, Item
from uncanny.eval.mcq.data.texts import (
    carries_texts,
    prompt_id,
    question_digest,
    question_text,
    system_text,
)

BARE: dict[str, Any] = {
    "id": "a",
    "image": "a.png",
    "split": "art_dg",
    "artifact_type": "count",
    "q1": {"answer": "yes"},
    "q2": {"options": {"B": "b", "A": "the $5 <sign>", "C": 'a "quoted" part', "D": "d"}, "answer": "A"},
    "q3": {"boxes": {k: (n, 0, n + 1, 1) for n, k in enumerate("ABCD")}, "answer": "A"},
    "q4": {"options": dict(zip("ABCD", "wxyz", strict=True)), "answer": "A"},
}


def item(**changed: Any) -> Item:
    return Item.model_validate(BARE | changed)


def options(text: str) -> dict[str, str]:
    return dict(re.findall(r"^([A-F])\. (.*)$", text, re.MULTILINE))


def test_options_stand_in_order_as_they_are_with_e_at_the_end() -> None:
    texts = options(question_text(item(), "q2"))
    assert list(texts) == list("ABCDE")
    assert texts == {**item().q2.options, "E": "none of these places"}  # type: ignore[union-attr]
    assert options(question_text(item(), "q4"))["E"] == "none of these descriptions"


def test_an_option_is_one_line_whatever_is_in_it() -> None:
    broken = item(q4={"options": {**BARE["q4"]["options"], "B": "two\n\nB. lines"}, "answer": "A"})
    assert options(question_text(broken, "q4"))["B"] == "two B. lines"


def test_the_control_has_a_further_option_f() -> None:
    texts = options(question_text(item(), "q4_no_image"))
    assert list(texts) == list("ABCDEF")
    assert {key: texts[key] for key in "ABCDE"} == options(question_text(item(), "q4"))


def test_no_question_tells_the_key_or_another_question() -> None:
    texts = {question: question_text(item(), question) for question in QUESTIONS}
    other = item(
        q1={"answer": "no"},
        **{q: {**BARE[q], "answer": "E"} for q in ("q2", "q3", "q4")},
        artifact_type="other",
    )
    assert texts == {question: question_text(other, question) for question in QUESTIONS}
    assert "the $5 <sign>" not in texts["q1"] + texts["q3"] + texts["q4"]


def test_own_texts_are_taken_as_they_are() -> None:
    own = item(system="  S $x\n", prompts={question: f" {question} ${{y}}\n" for question in QUESTIONS})
    assert carries_texts(own)
    assert system_text(own) == "  S $x\n"
    for question in QUESTIONS:
        assert question_text(own, question) == f" {question} ${{y}}\n"
        assert prompt_id(own, question).startswith(f"own:{question}@")
    assert question_text(own, "q4_no_image") == question_text(item(), "q4_no_image")
    assert not prompt_id(own, "q4_no_image").startswith("own:")


def test_own_texts_without_a_system_text_go_without_ours() -> None:
    assert system_text(item(prompts={"q1": "?"})) == ""
    assert system_text(item())
    assert not carries_texts(item())


def test_our_prompts_are_named_with_their_hash() -> None:
    name, _, digest = prompt_id(item(), "q1").partition("@")
    assert (name, len(digest)) == ("q1", 8)


@pytest.mark.parametrize(
    ("changed", "which"),
    [
        ({"image": "b.png"}, {"q1", "q2", "q3", "q4"}),
        ({"q2": {**BARE["q2"], "options": {**BARE["q2"]["options"], "D": "e"}}}, {"q2"}),
        ({"q3": {**BARE["q3"], "boxes": {**BARE["q3"]["boxes"], "D": (3, 0, 5, 1)}}}, {"q3"}),
        ({"system": "s", "prompts": {"q1": "?"}}, {"q1", "q2", "q3", "q4"}),
        ({"q1": {"answer": "no"}, "q2": {**BARE["q2"], "answer": "E"}, "artifact_type": "other"}, set()),
    ],
    ids=["image", "options", "boxes", "texts", "key"],
)
def test_a_question_is_another_one_when_what_is_asked_changes(
    changed: dict[str, Any], which: set[str]
) -> None:
    before, after = item(), item(**changed)
    others = {q for q in QUESTIONS if question_digest(before, q) != question_digest(after, q)}
    assert others == which
