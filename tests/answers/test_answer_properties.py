"""What must hold for any answer whatever."""

from __future__ import annotations

import json
import string
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from uncanny.answers.forms import ANOMALIES, FORMS, LISTED, RELATIONS, ListForm, RelationFinding
from uncanny.answers.lists import read_first, read_list
from uncanny.answers.scores import read_confidence, read_severity
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


@given(st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.lists(st.integers()), near_answers))
@example("85" + " " * 100_000)
@example("9" * 5_000)
@example("Confidence: " * 5_000)
def test_any_value_is_a_confidence_or_none(value: object) -> None:
    confidence = read_confidence(value)
    assert confidence is None or (isinstance(confidence, float) and 0 <= confidence <= 1)


@given(st.integers(0, 100))
def test_a_confidence_is_read_however_it_is_written(number: int) -> None:
    share = number / 100
    forms = (
        str(number),
        f"{number}%",
        f"{number} %",
        f"{number}/100",
        f"Confidence: {number}",
        f"**{number}**",
    )
    more = (
        number,
        f"{number} out of 100",
        f"certainty: {number}/100 (rather sure)",
        f"{number} - plain to see",
    )
    assert {read_confidence(each) for each in (*forms, *more)} == {share}


@given(st.floats(0, 1))
def test_a_share_is_the_confidence_itself(share: float) -> None:
    assert read_confidence(share) == share
    assert read_confidence(f"{share:.4f}") == float(f"{share:.4f}")


@pytest.mark.parametrize(
    "value",
    [
        *("high", "", "7/10", "80-90", "-5", "101", "1e2", "85 or 90", "0.85/1", None, True, [85], {"a": 1}),
        *(-1, 101, 1.5e300, float("nan"), float("inf"), -0.5, "20 of 30"),
    ],
)
def test_what_says_no_confidence_is_none(value: object) -> None:
    assert read_confidence(value) is None


LISTING = """\
@1. Name: Six fingers
Phenomenon: The hand has six fingers.
Reasoning: Hands have five.
Realism: 10
Confidence: {}

@2. Name: No shadow
Phenomenon: The cup casts no shadow.
Reasoning: Light falls from the left.
Realism: 30
"""


@pytest.mark.parametrize(
    ("written", "confidence"), [("85", 0.85), ("85 %", 0.85), ("0.4", 0.4), ("sure", None), ("999", None)]
)
def test_an_entry_without_a_readable_confidence_is_still_one(written: str, confidence: float | None) -> None:
    items = read_list(LISTING.format(written), LISTED)
    assert [each.confidence for each in items] == [confidence, None]
    assert [each.severity for each in items] == [10, 30]
    # Where nobody asked for one, none is read.
    assert [each.confidence for each in read_list(LISTING.format(written), ANOMALIES)] == [None, None]


def test_a_confidence_is_read_from_json_and_from_one_line() -> None:
    item = {"name": "n", "phenomenon": "p", "reasoning": "r", "realism": 5, "certainty": "70%"}
    assert read_list(json.dumps({"anomalies": [item]}), LISTED)[0].confidence == 0.7
    line = "@1. Name: n Phenomenon: p Reasoning: r Realism: 5 Confidence: 60"
    assert read_list(line, LISTED)[0].confidence == 0.6


NOTHING = ("No anomalies", "no anomalies found", "None", "none", "Nothing", "Nothing is wrong", "N/A", "n/a")


@pytest.mark.parametrize("form", [*FORMS, LISTED], ids=lambda form: f"{form.key}-{len(form.fields)}")
@pytest.mark.parametrize("text", [*NOTHING, "Nothing wrong", "Nothing is wrong in this picture", "No {}"])
def test_nothing_is_read_alike_however_it_is_set(text: str, form: ListForm[Any]) -> None:
    text = text.replace("anomalies", "{}").format(form.nouns[-1])
    for written in (
        text,
        f"{text}.",
        f'"{text}."',
        f'"{text}".',
        f"**{text}**",
        f"**{text}.**",
        f"*{text}*.",
    ):
        assert read_list(written, form) == ()
        assert read_first(f" {written}\n", form).items == ()
