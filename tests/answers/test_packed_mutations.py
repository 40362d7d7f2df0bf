"""Answers of the packed schedule, spoiled at random: read, or an AnswerError, and never anything else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from uncanny.answers.boxes import BOX_FORMATS, BoxFormatName, GivenBox, given_box, pixels
from uncanny.answers.forms import ListForm
from uncanny.answers.lists import read_list
from uncanny.answers.packed import (
    FAULTS,
    FINAL_TEXTS,
    INVENTORY,
    JUDGEMENTS,
    Numbered,
    asked_in,
    read_look,
    read_parts,
)
from uncanny.errors import AnswerError

PARTS: Final = {0: (), 4: (1,), 5: (), 6: (2, 3)}
COUNT: Final = 3
SIZE: Final = (1000, 500)
LINES: Final = [
    line
    for path in sorted((Path(__file__).parent / "corpus" / "packed").glob("*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]
TEXTS: Final = sorted({str(json.loads(line)["text"]) for line in LINES})

values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-2, 1_001),
        st.floats(),
        st.sampled_from(["", "5", "4-6", "keep", "drop", "#1", "\ud800", "∞", "9" * 400]),
        st.text(max_size=8),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=5), st.dictionaries(st.sampled_from(["x", "x0", "ids", "box"]), inner)
    ),
    max_leaves=6,
)
KEYS: Final = ("objects", "part", "doubt", "confidence", "sort",
               "observed", "explanation", "ids", "why", "decision", "phenomenon", "reasoning",
               "realism", "kind", "name", "description", "box", "box_2d", "bbox_2d", "bbox")  # fmt: skip
items = st.dictionaries(st.sampled_from(KEYS), values, max_size=len(KEYS))
odd_answers = st.builds(
    lambda key, listed: json.dumps({"answer": {key: listed}}),
    st.sampled_from(["findings", "entries", "anomalies", "inventory"]),
    st.one_of(st.lists(st.one_of(items, values), max_size=4), values),
)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A text of the corpus with pieces cut out, doubled, exchanged or put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(len(text), start + 40)))
        piece = text[start:end]
        put = draw(
            st.one_of(
                st.just(""),
                st.just(piece * 2),
                st.just(piece[::-1]),
                st.sampled_from(
                    ["[", "]", "{", "}", '"', ",", ":", "\\", "null", "-1", "1e999", "\n", "@1. "]
                ),
                st.text(max_size=3),
            )
        )
        text = text[:start] + put + text[end:]
    return text


def check_items(read: tuple[BaseModel, ...]) -> None:
    for item in read:
        given: GivenBox | None = getattr(item, "box", None)
        for form in BOX_FORMATS.values():
            box = given and pixels(given, form, sent=SIZE, original=SIZE)
            assert not box or (0 <= box[0] < box[2] <= SIZE[0] and 0 <= box[1] < box[3] <= SIZE[1])
        orjson.dumps(item.model_dump(exclude={"box"}))  # what is read can be written


def check_all_readers(text: str, form: BoxFormatName) -> None:
    def check(error: AnswerError) -> None:
        assert 0 < len(error.message) <= 600

    try:
        answer = read_parts(text, PARTS)
        check_items(answer.items)
        assert answer.invalid.keys() == answer.set_aside.keys() <= PARTS.keys()
        for item in (*answer.items, *(each for items in answer.set_aside.values() for each in items)):
            assert item.part in PARTS
            assert item.doubt in (0, *PARTS[item.part])
            assert item.confidence is None or 0 <= item.confidence <= 1
        assert not {item.part for item in answer.items} & answer.invalid.keys()
    except AnswerError as error:
        check(error)
    try:
        look = read_look(text)
        check_items(look.faults)
        check_items(look.inventory)
    except AnswerError as error:
        check(error)
    forms: tuple[ListForm[Any], ...] = (INVENTORY, FAULTS)
    for each in forms:
        try:
            check_items(read_list(text, asked_in(each, form)))
        except AnswerError as error:
            check(error)
    for reader in (Numbered(JUDGEMENTS, COUNT), Numbered(FINAL_TEXTS, COUNT)):
        entries: Any = ()
        missing: tuple[int, ...] = ()
        try:
            entries = reader.read(text)
        except AnswerError as error:
            check(error)
            entries, missing = reader.best or (), reader.missing
        check_items(entries)
        if entries:
            accounted = [number for entry in entries for number in entry.ids]
            assert sorted([*accounted, *missing]) == [1, 2, 3]


formats = st.sampled_from(sorted(BOX_FORMATS))


@settings(max_examples=300)
@given(mutated(), formats)
def test_a_spoiled_answer_is_read_or_an_answer_error(text: str, form: BoxFormatName) -> None:
    check_all_readers(text, form)


@settings(max_examples=300)
@given(odd_answers, formats)
def test_odd_values_are_read_or_an_answer_error(text: str, form: BoxFormatName) -> None:
    check_all_readers(text, form)


@pytest.mark.slow
@settings(max_examples=5_000)
@given(st.one_of(mutated(), odd_answers), formats)
def test_so_are_thousands(text: str, form: BoxFormatName) -> None:
    check_all_readers(text, form)


@given(values)
def test_whatever_stands_for_a_box_is_one_or_none(value: object) -> None:
    given = given_box(value)
    for form in BOX_FORMATS.values():
        box = given and pixels(given, form, sent=SIZE, original=SIZE)
        assert not box or (0 <= box[0] < box[2] <= SIZE[0] and 0 <= box[1] < box[3] <= SIZE[1])


def test_an_answer_cut_off_anywhere_is_never_another_list() -> None:
    odd = {"observed": "odd [1]", "explanation": "{no}", "box": [1, 2, 3, 4]}
    faults = [{"part": number, **odd} for number in PARTS]
    whole = json.dumps({"answer": {"findings": faults}})
    assert len(read_parts(whole, PARTS).items) == 4
    for end in range(len(whole)):
        with pytest.raises(AnswerError):
            read_parts(whole[:end], PARTS)
    things = [{"name": "cup", "description": "there"}]
    both = json.dumps({"answer": {"findings": [odd], "inventory": things}})
    look = read_look(both)
    assert (len(look.faults), len(look.inventory)) == (1, 1)
    for end in range(len(both)):
        with pytest.raises(AnswerError):
            read_look(both[:end])
