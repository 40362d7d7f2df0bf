"""Every reader of what models write, over texts made to make it slow: time in proportion to the length."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest

from tests.growth import check_linear
from uncanny.agents.object_perceiver import object_key
from uncanny.answers.boxes import given_box
from uncanny.answers.forms import ANOMALIES, FORMS, RELATIONS, ListForm
from uncanny.answers.json_text import read_text
from uncanny.answers.lists import read_first, read_list, read_numbers
from uncanny.answers.packed import (
    FINAL_TEXTS,
    JUDGEMENTS,
    PACKED_FORMS,
    PART_FAULTS,
    Numbered,
    read_look,
    read_parts,
)
from uncanny.answers.scores import read_confidence, read_severity
from uncanny.answers.verdicts import read_position, read_realistic, read_source
from uncanny.demo.recognition import Turn, recognize
from uncanny.errors import AnswerError
from uncanny.eval.mcq.score.parser import read_choice
from uncanny.models.error_body import one_line, read_error_body

KEY = "sk-0123456789abcdef"

READERS: dict[str, Callable[[str], object]] = {
    **{f"list of {form.key}": partial(read_list, form=form) for form in FORMS},
    **{
        f"packed {form.key}{' of parts' * (form is PART_FAULTS)}": partial(read_list, form=form)
        for form in PACKED_FORMS
    },
    "parts": lambda text: read_parts(text, {number: (number + 10,) for number in range(1, 7)}),
    "look": read_look,
    "confidence": read_confidence,
    "judgements": lambda text: Numbered(JUDGEMENTS, 40).read(text),
    "final texts": lambda text: Numbered(FINAL_TEXTS, 40).read(text),
    "numbers": read_numbers,
    "box": given_box,
    "text": read_text,
    "severity": read_severity,
    "realistic": read_realistic,
    "position": read_position,
    "source": read_source,
    "object": object_key,
    **{
        f"{question} {form} {parser}": partial(read_choice, question=question, form=form, parser=parser)
        for question in ("q1", "q2")
        for form in ("letter", "json")
        for parser in ("exact", "lenient")
    },
    "demo": lambda text: recognize([Turn("user", text)]),
    "error": lambda text: read_error_body(text.encode("utf-8", "replace"), [KEY]),
    "line": lambda text: one_line(text, [KEY]),
}

# Repeated until the text is long enough; what stands before and behind is there once.
REPEATED = (
    " ", "\t", "\n", "\r\n", "\u2028", "\u3000", "\u200b", "_", "*", "**", "#", "-", "- ", ">", "> ", "`",
    "```\n", "~", "(", ")", "[", "]", "{", "}", "<", "<a>", "<think>", "</think>", '"', "'", "“", "\\",
    "\\u", "/", ":", "：", ",", ".", "@", "@1", "@1. ", "1. ", "1) ", "1", "9.", "a", "no ", "not ", "yes ",
    "yes and ", "n't ", "é", "ﷺ", "İ", "\x00", "\ud800", "verdict:", "verdict: ", "Verdict:\n",
    "**Verdict:** ", "Verdict: Yes\n", "Verdict: Yes, ", "first ", "both more ", "Name: ", "Name: x\n",
    "**Name**: x ", "1. **Name:** x\n", "Severity: ", "Severity: 20 ", "Anomaly 1\n", "### 1.\n", "it is ",
    "it is real ", "it is real. ", "it is as if it is ", "this image is not ", "answer ", "answer: yes ",
    "whether ", "not sure ", "generated ", "generated, ", "cannot tell ", "taken by a camera ", "to be ",
    "very ", "likely ", '{"', '{"a":', '{"a":[', '{"a":1,', '{"answer":', '{"answer":"A"}', '[{"',
    '[{"a":1},', "[[", "{a:", "{'a':", "{ ", '{"anomalies": [', '{"objects": [{"name": "', "[ ", "None ",
    "null,", "//", "// \n", "\\boxed{", "\\text{", "Agent: ", "\nQuestion: ", "<object>",
    "<object></object>", "gives a ", "gives a change away ", "no sign of ", "would ", "sk-", "Bearer ",
    "x", "a:", '[{"a":', "{ a:", "[{},", "1. a\n", "# a\n", "- **a**: b\n",
    "Name: A Phenomenon: B ", "Severity: 1\n", "@1\n",
    '{"entries": [{"ids": [', '{"findings": [{"objects": ["1', "Ids: 1, ", "1, ", "id: ", "1 (", "1 - a",
    "Part: 1\n", '{"part": 1, "doubt": 2}, ', "85%", "85/",
    "Box: [1, 2", "[1, 2, 3, 4], ", "Decision: keep\n", "Objects: 1\n",
    "***", "&amp;", "<title>", "<!--", "A ", "A, ", "(A", "$A", "option ",
)  # fmt: skip
AROUND = (
    ("", ""), ("Verdict:", "x"), ("Verdict: No", "!"), ('{"anomalies": [', "]}"), ('{"anomalies": "', '"}'),
    ("20", "x"), ("Severity", "1"), ("Name: ", ":"), ("answer", "?"), ("A is my answer", "?"),
    ("yes, answer", "?"), ("yes", "?"), ("This image is ", "generated?"), ('{"error": "', '"}'),
    ("```", ""), ('{"anomalies": [{"name": "', ""),
)  # fmt: skip

TEXTS = [("", repeated, "") for repeated in REPEATED]
MANY = [(before, repeated, behind) for before, behind in AROUND[1:] for repeated in REPEATED]


def made(before: str, repeated: str, behind: str, size: int) -> str:
    return before + repeated * (size // len(repeated)) + behind


def slow(reader: str, texts: list[tuple[str, str, str]]) -> list[str]:
    """Which of the texts the reader takes too long for."""

    def read(text: str) -> None:
        with contextlib.suppress(AnswerError, UnicodeError):
            READERS[reader](text)

    failures = []
    for parts in texts:
        try:
            check_linear(read, partial(made, *parts))
        except AssertionError as error:
            failures.append(f"{parts!r}: {error}")
    return failures


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_text_takes_a_reader_long(reader: str) -> None:
    assert not slow(reader, TEXTS)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("reader", READERS)
def test_nor_does_any_of_many(reader: str) -> None:
    assert not slow(reader, MANY)


@pytest.mark.parametrize("repeated", [" ", "_", "*", "\n", "[", '"', "“", "verdict:", '{"anomalies":['])
@pytest.mark.parametrize("reader", READERS)
def test_a_megabyte_is_no_answer_at_once(reader: str, repeated: str) -> None:
    with contextlib.suppress(AnswerError):
        READERS[reader](made("", repeated, "x", 1_000_000))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.key)
def test_too_long_a_list_is_no_answer(form: ListForm[Any]) -> None:
    item = {each.name: {"text": "x", "names": ["x"], "severity": 7}[each.kind] for each in form.fields}
    listed = [
        item | {form.fields[-1 if form.fields[-1].kind == "text" else 1].name: f"x {n}"} for n in range(501)
    ]
    whole, most = [
        (
            orjson.dumps({form.key: items}).decode(),
            f"Here they are: {orjson.dumps({'answer': {form.key: items}}).decode()}",
            orjson.dumps(items).decode(),
        )
        for items in (listed, listed[:500])
    ]
    for text in most:
        assert len(read_list(text, form)) == 500
    for text in whole:
        with pytest.raises(AnswerError, match="more than 500 items"):
            read_list(text, form)
        first = read_first(text, form)
        assert (len(first.items), first.left_out) == (500, 1)


def test_too_long_a_labelled_list_is_no_answer() -> None:
    entry = "@{0}. Name: odd {0}\nPhenomenon: x\nReasoning: x\nSeverity Score: 7\n"
    listed = [entry.format(number) for number in range(1, 502)]
    assert len(read_list("".join(listed[:500]), ANOMALIES)) == 500
    with pytest.raises(AnswerError, match="more than 500 items"):
        read_list("".join(listed), ANOMALIES)
    first = read_first("".join(listed), ANOMALIES)
    assert (first.items, first.left_out) == (read_list("".join(listed[:500]), ANOMALIES), 1)


@pytest.mark.parametrize("form", [ANOMALIES, RELATIONS], ids=lambda form: form.key)
def test_too_many_names_in_one_item_are_no_answer(form: ListForm[Any]) -> None:
    item: dict[str, Any] = {each.name: "x" for each in form.fields} | {"severity": 7}
    for names, right in ([f"n{n}" for n in range(100)], True), ([f"n{n}" for n in range(101)], False):
        answer = orjson.dumps({form.key: [item | {"objects": names}]}).decode()
        for text in (answer, f"Well: {answer}"):
            if right:
                assert len(read_list(text, form)) == 1
            else:
                with pytest.raises(AnswerError, match="100"):
                    read_list(text, form)
