"""What must hold for any answer whatever."""

from __future__ import annotations

import json
import string
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uncanny.answers.forms import ANOMALIES, FORMS, RELATIONS, ListForm, RelationFinding
from uncanny.answers.lists import read_list, read_severity
from uncanny.errors import AnswerError
from uncanny.schema import Anomaly

json_text = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
    .map(str.strip)
    .filter(lambda text: text.strip("\x00\u200b\u2060\ufeff") == text and bool(text))
)
short_text = st.text("a\\\"{}[],:\n'é", max_size=6).map(lambda text: f"<{text}>")
# Labelled text cannot carry every value: no labels, no line breaks, no Markdown at the edges.
plain_text = st.text(string.ascii_letters + string.digits + " '(){}[],.;/!?\"éß手指ش", max_size=60).map(
    lambda text: " ".join(f"A {text} z".split())
)
plain_name = st.text(string.ascii_letters + " 手", max_size=30).map(
    lambda text: " ".join(f"A{text}z".split())
)
# Texts near to answers: far more of them reach the readers' depths than of arbitrary texts.
pieces = st.sampled_from(
    [
        *(
            '{"anomalies": [',
            "]",
            "}",
            "{",
            "[",
            '"',
            "'",
            ":",
            ",",
            "\\",
            "@1. ",
            "1. ",
            "2) ",
            "### ",
            "**",
        ),
        *("Name: ", "**Name:** ", "Phenomenon: ", "Reasoning: ", "Severity Score: ", "20", "5/100 (a)"),
        *(
            '"name": "A"',
            '"severity": 20',
            '{"answer": ',
            "[]",
            "None",
            "null",
            "```json\n",
            "```",
            "\n",
            "---",
        ),
        *(
            "<think>",
            "</think>",
            "\x00",
            "\ud800",
            "：",
            "“",
            "”",
            "Anomaly 1: ",
            "- ",
            "Objects: a, b",
            "\ufeff",
        ),
    ]
)
near_answers = st.lists(pieces, max_size=40).map("".join)


def anomalies(text: st.SearchStrategy[str], name: st.SearchStrategy[str]) -> st.SearchStrategy[list[Anomaly]]:
    item = st.builds(
        Anomaly,
        name=name,
        phenomenon=text,
        reasoning=text,
        severity=st.integers(0, 100),
        objects=st.lists(name, max_size=3, unique=True).map(tuple),
    )
    return st.lists(item, max_size=5, unique_by=lambda item: orjson.dumps(item.model_dump()))


def as_json(items: list[Anomaly], *, wrapped: bool = False, indent: bool = False) -> str:
    answer: dict[str, Any] = {"anomalies": [item.model_dump(mode="json") for item in items]}
    return json.dumps({"answer": answer} if wrapped else answer, indent=2 if indent else None)


def as_text(items: list[Anomaly], *, separator: str, label: str) -> str:
    blocks = []
    for number, item in enumerate(items, start=1):
        fields = [
            ("Name", item.name),
            ("Phenomenon", item.phenomenon),
            ("Reasoning", item.reasoning),
            ("Severity Score", str(item.severity)),
            *([("Objects", ", ".join(item.objects))] if item.objects else []),
        ]
        blocks.append(
            f"@{number}. " + separator.join(f"{label.format(key)} {value}" for key, value in fields)
        )
    return "\n".join(blocks)


def read_or_none(text: str, form: ListForm[Any] = ANOMALIES) -> tuple[Any, ...] | None:
    try:
        return read_list(text, form)
    except AnswerError as error:
        message = error.message
    assert 0 < len(message) <= 600
    return None


@given(st.one_of(st.text(st.characters()), near_answers), st.sampled_from(FORMS))
@example("\ud800", ANOMALIES)
@example('{"anomalies": [{"name": "\ud800"}]}', ANOMALIES)
@example('{"anomalies": [{"name": "\\ud800"}]}', ANOMALIES)
def test_reads_or_raises_an_answer_error(text: str, form: ListForm[Any]) -> None:
    for item in read_or_none(text, form) or ():
        assert form.model.model_validate_json(item.model_dump_json()) == item


@given(anomalies(json_text, json_text), st.booleans(), st.booleans())
def test_json_round_trip(items: list[Anomaly], wrapped: bool, indent: bool) -> None:
    text = as_json(items, wrapped=wrapped, indent=indent)
    assert read_list(text, ANOMALIES) == tuple(items)
    assert read_list(f"Here it is:\n```json\n{text}\n```\nDone.", ANOMALIES) == tuple(items)


@given(
    anomalies(plain_text, plain_name).filter(bool),
    st.sampled_from(["\n", "\r\n", " ", "\n- ", "\n\n"]),
    st.sampled_from(["{}:", "**{}:**", "**{}**:", "{}："]),
)
def test_text_round_trip(items: list[Anomaly], separator: str, label: str) -> None:
    assert read_list(as_text(items, separator=separator, label=label), ANOMALIES) == tuple(items)


@given(
    anomalies(short_text, short_text), st.booleans(), st.booleans(), st.sampled_from(["", "Sure:\n```json\n"])
)
def test_a_cut_off_json_answer_is_never_another_list(
    items: list[Anomaly], wrapped: bool, indent: bool, before: str
) -> None:
    text = before + as_json(items, wrapped=wrapped, indent=indent)
    for end in range(len(text)):
        assert read_or_none(text[:end]) is None


@given(st.lists(plain_name, min_size=1, max_size=3, unique=True), plain_text)
def test_a_cut_off_relation_is_never_another_list(objects: list[str], text: str) -> None:
    item = RelationFinding(objects=tuple(objects), observed=text, reasoning=text)
    whole = json.dumps({"relations": [item.model_dump(mode="json")]})
    assert read_list(whole, RELATIONS) == (item,)
    for end in range(len(whole)):
        for form in FORMS:
            assert read_or_none(whole[:end], form) is None


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.none(), st.text(st.characters())))
def test_a_severity_is_within_its_range_or_an_error(value: object) -> None:
    severity, message = 0, "severity"
    try:
        severity = read_severity(value)
    except AnswerError as error:
        message = error.message
    assert type(severity) is int
    assert 0 <= severity <= 100
    assert message.startswith("severity")
    assert len(message) <= 120


@given(
    st.integers(0, 100),
    st.sampled_from(["{}", "{}.", "{}/100", "{}.0", "{}%", "**{}** (so)", "Severity: {}"]),
)
def test_a_severity_reads_the_same_however_it_is_written(severity: int, written: str) -> None:
    assert read_severity(severity) == read_severity(float(severity)) == severity
    assert read_severity(written.format(severity)) == severity


@pytest.mark.parametrize("text", ["x" * 1_000_000, "{" * 100_000, "[" * 100_000, '{"anomalies":[' * 100_000])
def test_a_megabyte_and_deep_nesting_are_errors(text: str) -> None:
    with pytest.raises(AnswerError):
        read_list(text, ANOMALIES)
