"""Tables for the terminal and for notebooks."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.tables.forms import best_cells, csv_content
from uncanny.eval.common.tables.table import (
    MISSING,
    NARROW,
    Column,
    Figure,
    Table,
    TableResult,
    data_frame,
    explain_intervals,
)

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
    with pytest.raises(UsageError, match=r"\.\[frames\]"):
        data_frame(("name",), [])


FIGURES = Table(
    ("model", Column("Q1", unit="%", better="higher"), Column("errors", digits=2, better="lower"), "n"),
    (
        ("a_b|c", Share(0.5, 5, 10, (0.2366, 0.7634)), Estimate(-1.25, (-2.5, 0.0)), 1200),
        ("50% & <i>", Share(1.0, 3, 3, (0.4385, 1.0)), Estimate(3.0), 7),
        ("[x]", Share(None, 0, 0), None, 0),
        ("guess", Share(1.0, 3, 3), Estimate(-9.0), 1),
    ),
    "Scores of *all*",
    ("Percent",),
    compared=3,
)


def test_figures_have_their_intervals_beside_them_below_them_or_away() -> None:
    wide = FIGURES.text().splitlines()
    assert wide[1].split() == ["model", "Q1", "errors", "n"]
    assert "50.0 [23.7, 76.3]  −1.25 [−2.50, 0.00]  1,200" in wide[2]
    assert wide[4].split() == ["[x]", MISSING, MISSING, "0"]
    below = FIGURES.text(width=46).splitlines()
    assert max(map(len, below)) <= 46
    assert below[3].split() == ["[23.7,", "76.3]", "[−2.50,", "0.00]"]
    # In two parts, with the names before each; in more the intervals are left out.
    parts = FIGURES.text(width=32).splitlines()
    assert [line.split()[0] for line in parts if line].count("guess") == 2
    assert "[23.7, 76.3]" in FIGURES.text(width=32)
    narrow = FIGURES.text(width=19)
    assert "[23.7" not in narrow
    assert NARROW.split()[0] in narrow
    assert narrow.count("50% & <i>") == 3


def test_csv_has_full_precision_and_the_ends_of_intervals() -> None:
    rows = list(csv.reader(FIGURES.to_csv().splitlines()))
    assert rows[0] == ["model", "Q1", "Q1 low", "Q1 high", "errors", "errors low", "errors high", "n"]
    assert rows[1] == ["a_b|c", "0.5", "0.2366", "0.7634", "-1.25", "-2.5", "0.0", "1200"]
    assert rows[3] == ["[x]", "", "", "", "", "", "", "0"]


def test_markdown_keeps_names_as_they_are_and_marks_the_best_that_compete() -> None:
    lines = FIGURES.to_markdown().splitlines()
    assert lines[0] == r"**Scores of \*all\***"
    assert lines[2] == "| model | Q1 (%) ↑ | errors ↓ | n |"
    assert lines[3] == "| :-- | --: | --: | --: |"
    assert lines[4] == r"| a\_b\|c | 50.0 [23.7, 76.3] | **−1.25** [−2.50, 0.00] | 1,200 |"
    assert lines[5] == r"| 50% &amp; \<i\> | **100.0** [43.9, 100.0] | 3.00 | 7 |"
    assert lines[6].startswith(r"| \[x\] | – |")
    assert lines[7] == "| guess | 100.0 | −9.00 | 1 |"
    assert lines[-1] == "Percent"
    assert "**100.0" not in FIGURES.to_markdown(best=False)


def test_latex_is_a_float_with_rules_and_names_escaped() -> None:
    text = FIGURES.to_latex()
    assert r"\caption{Scores of *all*}" in text
    assert r"    model & Q1 & errors & n \\" in text
    assert r"     & (\%) $\uparrow$ & $\downarrow$ &  \\" in text
    assert r"a\_b\textbar{}c & 50.0 {\scriptsize [23.7, 76.3]} & \textbf{$-$1.25}" in text
    assert r" {\scriptsize [$-$2.50, 0.00]} & 1,200 \\" in text
    assert r"50\% \& \textless{}i\textgreater{} & \textbf{100.0}" in text
    assert "    {[x]} & -- & -- & 0" in text  # else an argument of the line before
    assert text.rstrip().endswith("\\end{table}")
    assert r"\footnotesize Percent." in text
    assert r"\resizebox" in text  # what is wider than its place would be cut off at the edge
    long_name = "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8"
    long_names = replace(FIGURES, rows=((long_name, *FIGURES.rows[0][1:]),))
    assert long_names.to_latex().rstrip().endswith("\\end{table*}")


SHARE, POINTS = Column("", unit="%", better="lower"), Column("", unit="points", signed=True)
ROWS = Table(
    ("", "before", "now", "change"),
    (
        ("faults", Figure(0.5, SHARE), Figure(Share(0.25, 1, 4, (0.1, 0.9)), SHARE), Figure(-0.25, POINTS)),
        ("p", Figure(0.00001, Column("", p_value=True)), Figure(0.0432, Column("", p_value=True)), None),
    ),
)


def test_rows_may_each_be_of_a_kind_of_their_own() -> None:
    lines = ROWS.to_markdown().splitlines()
    assert lines[2] == "| faults ↓ | 50.0 | **25.0** [10.0, 90.0] | −25.0 |"
    assert lines[3] == "| p | \\< 0.0001 | 0.043 | – |"
    head, first, _ = csv.reader(ROWS.to_csv().splitlines())
    assert head == ["", "before", "now", "now low", "now high", "change"]
    assert first == ["faults", "0.5", "0.25", "0.1", "0.9", "-0.25"]
    assert (
        r"    faults $\downarrow$ & 50.0 & \textbf{25.0} {\scriptsize [10.0, 90.0]} & $-$25.0"
        in ROWS.to_latex()
    )


def test_groups_of_rows_compete_among_themselves() -> None:
    column = Column("F1", better="higher")
    rows = (("a", 0.1), ("b", 0.2), ("a", 0.8), ("b", 0.7), ("published", 0.9))
    table = Table(("", column), rows, compared=((0, 1), (2, 3)))
    assert best_cells(table) == {(1, 1), (2, 1)}
    assert not best_cells(Table(("", column), rows, compared=0))


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        (Column("", unit="%"), 0.0001, "<0.1"),
        (Column("", unit="%"), 0.9999, ">99.9"),
        (Column("", unit="%"), 0.0, "0.0"),
        (Column("", unit="%"), 1.0, "100.0"),
        (Column("", digits=2), 0.004, "<0.01"),
        (Column("", digits=2, signed=True), 0.004, "0.00"),
        (Column("", digits=4, significant=True), 0.000012345, "1.234e-05"),
        (Column("", p_value=True), 0.5, "0.5"),
        (Column("", p_value=True), None, MISSING),
    ],
)
def test_what_is_nearly_nothing_is_not_nothing(column: Column, value: float | None, words: str) -> None:
    assert column.show(value).text == words


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("pdflatex") is None and "UNCANNY_LATEX" not in os.environ, reason="needs pdflatex"
)
def test_latex_compiles_whatever_models_are_called(tmp_path: Path) -> None:
    hostile = 'a--b_c^d~e\\f{g}$h&i#j%k<l>m|n"o' + "\N{EN DASH}\N{MINUS SIGN}\N{MULTIPLICATION SIGN}\u202eé"
    wide = Table(
        (hostile, *(Column(f"c{number}", unit="%", better="higher") for number in range(9))),
        tuple((name, *(Share(0.5, 1, 2, (0.1, 0.9)) for _ in range(9))) for name in (hostile, "[a", "*b")),
        hostile,
        (hostile,),
    )
    long = Table(("", "score", "x"), (("meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8" * 2, 0.5, 1),))
    document = r"\documentclass{article}\usepackage{booktabs,graphicx}\begin{document}%s\end{document}"
    tables = "".join(table.to_latex() for table in (FIGURES, wide, long, ROWS))
    (tmp_path / "t.tex").write_text(document % tables, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-3000:]
    assert "Overfull" not in done.stdout


def test_no_spreadsheet_takes_a_name_for_a_formula() -> None:
    names = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(1)", "\tx", "'=1", "''", "it's", "gpt-4o", "'x"]
    table = Table(("model", Column("score")), tuple((name, -1.5) for name in names))
    rows = list(csv.reader(io.StringIO(table.to_csv())))[1:]
    assert [csv_content(name) for name, _ in rows] == names
    assert [name[:1] for name, _ in rows[:5]] == ["'"] * 5
    assert [name for name, _ in rows[7:]] == names[7:]
    assert {score for _, score in rows} == {"-1.5"}


def test_figures_without_an_interval_are_named_with_the_reason() -> None:
    table = Table(
        ("", "n", Column("mine", unit="%")),
        (
            ("  recall", 1, Share(0.5, 1, 2)),
            ("precision", 1, Figure(Estimate(0.5), Column(""))),
            ("F1", 1, Estimate(0.5, (0.1, 0.9))),
            ("IoU", 0, Estimate(None)),
        ),
        notes=("A note.",),
    )
    (explained,) = explain_intervals([table], wanted=100)
    note = "Without an interval: recall (mine), precision (mine). A figure of one image, or one that is"
    assert explained.notes[0] == "A note."
    assert explained.notes[1].startswith(note)
    assert explain_intervals([table], wanted=0) == (table,)
