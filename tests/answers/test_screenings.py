"""Labels of candidates are read from the JSON that models write, or refused in words they can use."""

from __future__ import annotations

import json

import pytest

from uncanny.answers.screenings import Screening, read_screening, screening_schema
from uncanny.errors import AnswerError

WHOLE = {
    "label": "artifact",
    "kind": "anatomy",
    "where": "left hand of the woman",
    "evidence": "The left hand has six fingers",
    "reason": "A finger was added.",
}


def test_a_whole_answer() -> None:
    expected = Screening(
        "artifact",
        "anatomy",
        "left hand of the woman",
        "The left hand has six fingers",
        "A finger was added.",
    )
    for text in (
        json.dumps({"answer": WHOLE}),
        json.dumps(WHOLE),
        f"<think>{{}}</think>Here:\n```json\n{json.dumps({'answer': WHOLE})}\n```",
    ):
        assert read_screening(text) == expected


def test_kinds_that_are_none() -> None:
    assert read_screening(json.dumps(WHOLE | {"kind": "other"})).kind is None
    assert read_screening(json.dumps({**WHOLE, "label": "Clean", "evidence": ""})) == Screening(
        "clean", None, "left hand of the woman", "", "A finger was added."
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"label": "maybe"}, "none of artifact, clean, unclear"),
        ({"evidence": ""}, "evidence is missing"),
        ({"where": None}, "where is missing"),
        ({"reason": 3}, "reason must be text"),
        ({"reason": "x" * 501}, "more than 500 characters"),
    ],
)
def test_what_cannot_be_used(change: dict[str, object], message: str) -> None:
    with pytest.raises(AnswerError, match=message):
        read_screening(json.dumps({"answer": WHOLE | change}))


def test_no_json() -> None:
    with pytest.raises(AnswerError, match="no JSON object"):
        read_screening("It looks fine to me.")


def test_the_schema_has_what_the_answer_needs() -> None:
    inner = screening_schema()["properties"]["answer"]
    assert inner["required"] == list(WHOLE)
    assert inner["properties"]["label"]["enum"] == ["artifact", "clean", "unclear"]
