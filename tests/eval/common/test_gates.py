"""Gates: strict conditions, nothing unmeasured passes, and JUnit XML that holds any text."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncanny.errors import UsageError
from uncanny.eval.common.gates import Condition, Measured, Subject, judge, read_conditions

FIGURES = ("visible", "af", "kind:text")


def test_conditions_are_read_as_written() -> None:
    texts = [
        "worse",
        "kind:text:worse",
        "visible>0.2",
        " upper:visible > 0.25",
        "lower:kind:text<3",
        "kind:text>.6",
    ]
    assert read_conditions(texts, FIGURES) == (
        Condition("worse", None),
        Condition("kind:text:worse", "kind:text"),
        Condition("visible>0.2", "visible", 0.2),
        Condition(" upper:visible > 0.25", "visible", 0.25, True, "upper"),
        Condition("lower:kind:text<3", "kind:text", 3.0, False, "lower"),
        Condition("kind:text>.6", "kind:text", 0.6),
    )


@pytest.mark.parametrize(
    "text",
    [
        *("", "better", "visible", "visible>", ">0.2", "visible>=0.2", "visible>-1", "visible>1e9"),
        *("visible>nan", "visible>0.2>0.1", "upper:worse", "lower:upper:af>1", "kind:>1", "kind:txt>1"),
        *("af>1,5", "af>\u0661", "visible:worse:worse", "WORSE", "af>20%"),
        *("af>1 0", "af>0. 5", "w orse", "vis ible>1", "up per:af>1", "kind: text>1"),
    ],
)
def test_anything_else_is_refused_with_the_grammar(text: str) -> None:
    with pytest.raises(UsageError, match="Write worse, FIGURE:worse, FIGURE>NUMBER") as caught:
        read_conditions(["worse", text], FIGURES)
    assert "visible, af, kind:KIND" in str(caught.value)


@given(st.text())
def test_no_text_is_half_understood(text: str) -> None:
    try:
        (condition,) = read_conditions([text], FIGURES)
    except UsageError:
        return
    assert condition.figure in (None, *FIGURES)
    assert (condition.limit is None) is ("worse" in text)


MEASURED = st.builds(
    Measured,
    st.one_of(st.none(), st.floats(0, 2)),
    st.one_of(st.none(), st.tuples(st.floats(0, 1), st.floats(1, 2))),
    st.sampled_from([None, True, False]),
)


@given(st.dictionaries(st.sampled_from(FIGURES), MEASURED), st.sampled_from(["", "no release"]))
def test_nothing_unmeasured_passes(figures: dict[str, Measured], why: str) -> None:
    subject = Subject("ours", figures, FIGURES, why)
    texts = ["worse", "af:worse", "af>1", "lower:af>0.5", "upper:af<1.5"]
    worse, af, level, lower, upper = judge(read_conditions(texts, FIGURES), [subject], "s").outcomes
    each = figures.get("af", Measured())
    assert af.passed is (each.worse is False)
    assert worse.passed is all(figures.get(name, Measured()).worse is False for name in FIGURES)
    assert level.passed is (each.value is not None and each.value <= 1)
    ends = each.interval if each.value is not None else None
    assert lower.passed is (ends is not None and ends[0] <= 0.5)
    assert upper.passed is (ends is not None and ends[1] >= 1.5)


def test_the_worst_of_several_subjects_decides() -> None:
    good, bad, blind = (
        Measured(value, worse=worse) for value, worse in ((0.1, False), (0.9, True), (None, None))
    )
    (condition,) = read_conditions(["af>0.5"], FIGURES)

    def state(*measured: Measured) -> str:
        subjects = [Subject(str(place), {"af": each}, ("af",)) for place, each in enumerate(measured)]
        return judge([condition], subjects, "s").outcomes[0].state

    assert [state(good, good), state(good, blind), state(good, blind, bad), state()] == [
        *("clear", "unmeasured", "holds", "unmeasured")
    ]


@given(st.text(), st.text())
def test_the_junit_file_is_xml_whatever_things_are_called(name: str, change: str) -> None:
    hostile = Subject(name, {"af": Measured(1.0, None, True, change=change)}, ("af",))
    result = judge(read_conditions(["worse", "af>2", "visible>1"], FIGURES), [hostile], "uncanny.audit")
    root = ElementTree.fromstring(result.junit())
    (suite,) = root
    cases = list(suite)
    assert [case.get("name") for case in cases] == ["worse", "af>2", "visible>1"]
    assert [[child.tag for child in case] for case in cases] == [["failure"], ["system-out"], ["error"]]
    for element in (root, suite):
        assert [element.get(key) for key in ("tests", "failures", "errors", "skipped")] == [
            "3",
            "1",
            "1",
            "0",
        ]
    assert not result.passed


def test_markup_and_control_characters_stay_text(tmp_path: Path) -> None:
    name = "</testcase>]]>&<\x00\x1b\ud800"
    subject = Subject(name, {"af": Measured(1.0)}, ("af",))
    out = judge(read_conditions(["af>2"], FIGURES), [subject], "s").write_junit(tmp_path / "gate.xml")
    said = ElementTree.parse(out).find("testsuite/testcase/system-out")
    assert said is not None
    assert said.text == "</testcase>]]>&<\ufffd\ufffd\ufffd: af is 1, not above 2"


@pytest.mark.parametrize("text", ["visible", "kind:text", "worse than"])
def test_a_condition_that_a_shell_cut_off_says_to_quote_it(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_conditions([text], FIGURES)
    assert ("Quote > and <" in str(caught.value)) is (text in FIGURES)
