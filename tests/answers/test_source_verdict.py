"""Raw answers to "was it generated?", with what each must be read as; null is asked about once more."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.verdicts import source_of

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "source_verdicts.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[str(case["raw"])[:50] for case in CASES])
def test_reads_as_expected(case: dict[str, Any]) -> None:
    assert source_of(case["raw"]) == case["source"]


def test_the_corpus_has_enough_of_each() -> None:
    counts = Counter(case["source"] for case in CASES)
    assert len(CASES) == len({case["raw"] for case in CASES}) >= 100
    assert min(counts["generated"], counts["real"], counts[None]) >= 25


@given(st.text(max_size=300))
def test_any_text_is_a_verdict_or_an_answer_error(raw: str) -> None:
    assert source_of(raw) in ("generated", "real", None)


@given(st.text(), st.sampled_from(["Yes", "No"]))
def test_whatever_stands_before_the_verdict_line_does_not_matter(before: str, word: str) -> None:
    if "think" not in before and "reasoning" not in before:
        assert source_of(f"{before}\nVerdict: {word}") == ("generated" if word == "Yes" else "real")


_PIECES = st.lists(
    st.sampled_from(
        [
            *(
                "yes",
                "no",
                "not",
                "it is",
                "this image is",
                "real",
                "AI-generated",
                "photo",
                "maybe",
                "likely",
                "Verdict:",
            ),
            *(", ", ". ", "\n", "**", "{", '"', "}", "answer: ", "whether", "a", "I cannot tell"),
        ]
    ),
    max_size=14,
)


@given(_PIECES)
def test_reads_the_same_whatever_the_case_and_the_spaces_around(pieces: list[str]) -> None:
    raw = " ".join(pieces)
    source = source_of(raw)
    assert source_of(f"\n  {raw} \n") == source
    assert source_of(raw.upper()) == source


def test_long_answers_take_no_time_that_matters() -> None:
    for piece in ("it is not ", "this image is likely ", "yes, no, ", "real photo, ", "{", "answer: "):
        assert source_of(piece * 1_000) in ("real", None)
