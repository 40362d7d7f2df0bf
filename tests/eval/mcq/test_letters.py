"""Reading raw answers: a corpus with the specified reading of each, and the exact rule against a list of all
texts it allows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.eval.mcq.data.items import AnswerForm, Question
from uncanny.eval.mcq.score.parser import Parser, read_choice

CORPUS = Path(__file__).parents[2] / "data" / "mcq" / "raw_answers.jsonl"
LINES: list[dict[str, Any]] = [orjson.loads(line) for line in CORPUS.read_bytes().splitlines()]


@pytest.mark.parametrize("line", LINES, ids=[f"{n}-{line['raw'][:20]!a}" for n, line in enumerate(LINES)])
def test_corpus(line: dict[str, Any]) -> None:
    asked = (line["raw"], line["question"], line["form"])
    exact = read_choice(*asked)
    assert exact.choice == line["exact"]
    assert exact.rule == ("exact" if line["exact"] else None)
    lenient = read_choice(*asked, parser="lenient")
    assert lenient.choice == line["lenient"]
    assert lenient.rule == ("exact" if line["exact"] else "lenient" if line["lenient"] else None)


def test_corpus_is_large_and_covers_every_way_of_reading() -> None:
    assert len(LINES) >= 90
    seen = {(line["form"], bool(line["exact"]), bool(line["lenient"])) for line in LINES}
    assert seen == {
        (form, *kind)
        for form in get_args(AnswerForm)
        for kind in ((True, True), (False, True), (False, False))
    }


def _allowed_presence() -> Iterator[tuple[str, str]]:
    for word in ("yes", "no"):
        for letters in product(*((letter, letter.upper()) for letter in word)):
            for stop in ("", "."):
                yield "".join(letters) + stop, word


def _allowed_letters() -> Iterator[tuple[str, str]]:
    for letter in "ABCDEabcde":
        for text in (letter, letter + ".", f"({letter})", f"*{letter}*", f"**{letter}**"):
            yield text, letter.upper()
        for quote in ("'", '"', "`"):
            yield quote + letter + quote, letter.upper()


PRESENCE, LETTERS = dict(_allowed_presence()), dict(_allowed_letters())
PIECES = st.sampled_from(
    [
        *"ABCDEFabcdef .()*'\"`\n\t{}АＡſ\u200b\u00a0",
        *("**", "yes", "no", "YES", "is", "not", "x"),
        *("<think>", "</think>", '{"answer": "', '"}', "\\boxed{"),
    ]
)
TEXTS = st.one_of(st.text(max_size=12), st.lists(PIECES, max_size=9).map("".join))


def _by_list(raw: str, question: Question) -> str | None:
    text = raw.strip()
    if text.startswith("<think>") and "</think>" in text:
        text = text.partition("</think>")[2].strip()
    return (PRESENCE if question == "q1" else LETTERS).get(text)


@given(TEXTS, st.sampled_from(get_args(Question)))
def test_exact_rule_is_the_list(raw: str, question: Question) -> None:
    assert read_choice(raw, question, "letter").choice == _by_list(raw, question)


@given(st.sampled_from([*PRESENCE, *LETTERS]), st.sampled_from(["", " ", "\n", "\t "]), st.booleans())
def test_everything_on_the_list_is_read(text: str, space: str, thoughts: bool) -> None:
    question: Question = "q1" if text in PRESENCE else "q3"
    raw = space + ("<think>it is C</think>" if thoughts else "") + space + text + space
    assert read_choice(raw, question, "letter").choice == (PRESENCE | LETTERS)[text]
    packed = orjson.dumps({"answer": space + text}).decode()
    assert read_choice(raw + packed, question, "json").choice == (PRESENCE | LETTERS)[text]


@given(TEXTS, st.sampled_from(get_args(Question)), st.sampled_from(get_args(AnswerForm)))
def test_never_raises_and_lenient_only_adds(raw: str, question: Question, form: AnswerForm) -> None:
    exact = read_choice(raw, question, form)
    lenient = read_choice(raw, question, form, parser="lenient")
    assert lenient.choice in (None, "yes", "no") if question == "q1" else lenient.choice in (None, *"ABCDE")
    if exact.choice is not None:
        assert lenient == exact


HOSTILE = (
    "{" * 50_000,
    '{"answer":' * 5_000,
    "[" * 50_000,
    '{"a":"' + "x" * 100_000,
    "<think>" * 20_000,
    '{"answer": ' + "9" * 5_000 + "}",
    "A" * 100_000,
    "**" * 50_000,
    "(" * 100_000 + "A",
)


@pytest.mark.parametrize("raw", HOSTILE, ids=lambda raw: f"{raw[:12]}×{len(raw)}")
@pytest.mark.parametrize("parser", get_args(Parser))
@pytest.mark.parametrize("form", get_args(AnswerForm))
def test_hostile_answers_are_invalid(raw: str, form: AnswerForm, parser: Parser) -> None:
    assert read_choice(raw, "q2", form, parser=parser).choice is None


def test_no_answer_reads_as_invalid() -> None:
    assert read_choice(None, "q1", "letter", parser="lenient").choice is None


def test_sixth_option_where_it_is_offered() -> None:
    assert read_choice("F.", "q4", "letter", letters="ABCDEF").choice == "F"
    assert read_choice("F.", "q4", "letter").choice is None
