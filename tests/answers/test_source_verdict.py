"""Raw answers to "was it generated?", with what each must be read as; what is not clear is nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.answers.source_verdict import NO, YES, read_source

CASES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parent / "source_verdicts.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[str(case["raw"])[:50] for case in CASES])
def test_reads_as_expected(case: dict[str, Any]) -> None:
    assert read_source(case["raw"]) == case["source"]


def test_the_corpus_has_enough_of_each() -> None:
    counts = Counter(case["source"] for case in CASES)
    assert len(CASES) == len({case["raw"] for case in CASES}) >= 100
    assert min(counts["generated"], counts["real"], counts[None]) >= 25


@pytest.mark.parametrize("word", sorted(YES | NO))
def test_yes_and_no_of_every_language_by_themselves(word: str) -> None:
    expected = "generated" if word in YES else "real"
    for raw in (word, word.upper(), f" {word}. ", f"**{word.capitalize()}**", f'{{"answer": "{word}"}}'):
        assert read_source(raw) == expected, raw


def test_no_word_is_yes_and_no() -> None:
    assert not YES & NO


@given(st.text(max_size=300))
def test_never_raises(raw: str) -> None:
    assert read_source(raw) in ("generated", "real", None)


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
            ),
            *(", ", ". ", "\n", "**", "{", '"', "}", "answer: ", "whether", "a", "I cannot tell"),
        ]
    ),
    max_size=14,
)


@given(_PIECES)
def test_reads_the_same_whatever_the_case_and_the_spaces_around(pieces: list[str]) -> None:
    raw = " ".join(pieces)
    read = read_source(raw)
    assert read_source(f"\n  {raw} \n") == read
    assert read_source(raw.upper()) == read


def test_long_answers_take_no_time_that_matters() -> None:
    for piece in ("it is not ", "this image is likely ", "yes, no, ", "real photo, ", "{", "answer: "):
        assert read_source(piece * 1_000) in ("real", None)
