"""Tables for the terminal and for notebooks."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from uncanny.errors import UsageError
from uncanny.eval.common.tables import MISSING, Table, TableResult, data_frame

LONG = "openai-compatible/a-model-whose-name-is-longer-than-a-terminal-is-wide-and-must-be-read-whole/v2"
TABLE = Table(("Model", "Q1", "Q2"), ((LONG, "91.3", MISSING), ("b", "7.0", "100.0")), "Scores", ("n = 5",))


def test_names_are_never_cut_and_numbers_stand_to_the_right() -> None:
    title, head, first, second, note = TABLE.text(width=40).splitlines()
    assert (title, note) == ("Scores", "n = 5")
    assert first.startswith(f"{LONG}  91.3")
    assert first.endswith(MISSING)
    ends = [head.index("Q1") + 2, first.index("91.3") + 4, second.index("7.0") + 3]
    assert len(set(ends)) == 1


def test_wide_characters_keep_the_columns_in_line() -> None:
    lines = Table(("Name", "n"), (("指", "1"), ("ab", "2"))).text().splitlines()
    assert lines[1:] == ["指    1", "ab    2"]


def test_text_cannot_steer_the_terminal() -> None:
    hostile = "a\nb\x1b[2J\u202e"
    text = Table((hostile, "n"), ((hostile, hostile),), hostile, (hostile,)).text()
    assert len(text.splitlines()) == 4
    assert not set(text) & {"\x1b", "\u202e"}
    assert text.count("a\\nb\\x1b[2J\\u202e") == 5


def test_html_shows_hostile_names_as_text() -> None:
    html = Table(("<b>", "n"), (("</td><script>alert(1)</script>", "1"),), "a & b", ("<i>",)).html()
    assert "<script>" not in html
    assert "&lt;/td&gt;&lt;script&gt;" in html
    assert "<caption>a &amp; b</caption>" in html
    assert "<p>&lt;i&gt;</p>" in html


def test_a_result_shows_all_its_tables() -> None:
    @dataclass(frozen=True, slots=True)
    class Result(TableResult):
        name: str

        def tables(self) -> tuple[Table, ...]:
            return TABLE, Table((self.name,), ())

    assert str(Result("x")) == f"{TABLE.text()}\n\nx"
    assert Result("x")._repr_html_() == TABLE.html() + Table(("x",), ()).html()


def test_long_notes_are_wrapped() -> None:
    lines = Table(("Name", "n"), (), notes=("word " * 30,)).text(width=40).splitlines()
    assert max(map(len, lines)) <= 40
    assert not lines[1].startswith(" ")
    assert all(line.startswith("  word") for line in lines[2:])


def test_a_data_frame_leaves_unmeasured_cells_empty() -> None:
    frame = data_frame(("name", "value"), [{"name": "a", "value": 0.5, "more": 1}, {"name": "b"}])
    assert list(frame.columns) == ["name", "value"]
    assert frame["value"].isna().tolist() == [False, True]
    assert list(data_frame(("name",), []).columns) == ["name"]


def test_a_missing_pandas_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"uncanny\[frames\]"):
        data_frame(("name",), [])
