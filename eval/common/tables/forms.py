"""A `Table` as CSV, Markdown and LaTeX: what goes into a spreadsheet, a README and a paper.

CSV has figures in full precision and columns for the ends of intervals. Markdown is GitHub's. LaTeX needs the
packages booktabs and graphicx; letters of other scripts than Latin need LuaLaTeX or XeLaTeX.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.tables.table import Better, Cell, Column, Figure, Shown, Table, bare_cell
from uncanny.wording import harmless

# From so many columns with intervals on these stand in a line below their figures.
_MANY_INTERVALS: Final = 4
_MANY_COLUMNS: Final = 6
# About so many characters of its widest cells fit into one column of a page with two.
_COLUMN_CHARACTERS: Final = 56
_ARROWS: Final = {"higher": "↑", "lower": "↓"}
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
_MARKDOWN: Final = re.compile(r"[\\`*_{}\[\]<>|~$&#]")
_LATEX: Final[Mapping[str, str]] = {
    "\\": r"\textbackslash{}",
    **{char: f"\\{char}" for char in "{}$&#_%"},
    **{"^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}"},
    **{"|": r"\textbar{}", '"': "''", "–": "--", "—": "---", "−": "$-$", "…": r"\dots{}"},
    **{"·": r"$\cdot$", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "→": r"$\rightarrow$"},
    **{"α": r"$\alpha$", "κ": r"$\kappa$", "λ": r"$\lambda$", "χ": r"$\chi$", "τ": r"$\tau$", "ρ": r"$\rho$"},
    **{"²": r"$^2$", "±": r"$\pm$", "≈": r"$\approx$", "↑": r"$\uparrow$", "↓": r"$\downarrow$"},
    **{"“": "``", "”": "''", "‘": "`", "’": "'", "\u00a0": "~", "°": r"$^\circ$"},
}
# Two of these in a row would become one longer dash.
_DASHES: Final = re.compile("-(?=-)")
_NEGATIVE: Final = re.compile(r"(?<![\w.])-(?=[\d.])")


def csv_text(table: Table) -> str:
    """A head line and a line a row, ended by a line feed; what was not measured is an empty cell.

    Beside a column that has intervals are those of their `low` and `high` ends.
    """
    with_ends = [any(_ends(row[number]) for row in table.rows) for number in range(len(table.columns))]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    heads: list[str] = []
    for heading, ends in zip(table.headings, with_ends, strict=True):
        heads += [heading, *([f"{heading} low", f"{heading} high"] if ends else [])]
    lines.writerow(map(csv_cell, heads))
    for row in table.rows:
        cells: list[object] = []
        for cell, ends in zip(row, with_ends, strict=True):
            cells += [_plain(cell), *(_ends(cell) or (None, None) if ends else ())]
        lines.writerow(map(csv_cell, cells))
    return text.getvalue()


def _plain(cell: Cell) -> str | float | None:
    """The figure or the words of a cell, without an interval."""
    bare = bare_cell(cell)
    return bare.value if isinstance(bare, Estimate | Share) else bare


def csv_cell(value: object) -> object:
    """A cell that no spreadsheet takes for a formula: a text that begins like one has an apostrophe before.

    `csv_content` is the way back. As OWASP advises; names of models and of files may begin so.
    """
    if not isinstance(value, str):
        return value
    begins = value.startswith(_FORMULA) or value[:1] == value[1:2] == "'"
    return f"'{value}" if begins or (value[:1] == "'" and value[1:].startswith(_FORMULA)) else value


def csv_content(cell: str) -> str:
    """The cell without the apostrophe of `csv_cell`."""
    more = cell[1:]
    marked = cell.startswith("'") and (more.startswith(_FORMULA) or more.startswith("'"))
    return more if marked else cell


def _ends(cell: Cell) -> tuple[float, float] | None:
    bare = bare_cell(cell)
    return bare.interval if isinstance(bare, Estimate | Share) else None


def markdown(table: Table, *, best: bool = True) -> str:
    """The title in bold, the table, and the notes as a paragraph each."""
    marks = best_cells(table) if best else frozenset()
    lines = [f"**{_markdown(table.title)}**", ""] if table.title else []
    heads = [each if isinstance(each, str) else f"{each.heading} {_unit(each)}" for each in table.columns]
    lines.append(_markdown_row([_markdown(head) for head in heads]))
    lines.append(_markdown_row([":--", *("--:" for _ in table.columns[1:])]))
    for at, row in enumerate(table.shown):
        cells = [
            _with_interval(cell, _markdown, "**{}**" if (at, number) in marks else "{}", "{}")
            for number, cell in enumerate(row)
        ]
        name = f"{cells[0]}{_row_arrow(table.rows[at])}"
        lines.append(_markdown_row([_indented(row[0].text, name, "&emsp;"), *cells[1:]]))
    for note in table.notes:
        lines += ["", _markdown(note)]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    escaped = _MARKDOWN.sub(lambda match: "&amp;" if match[0] == "&" else f"\\{match[0]}", harmless(text))
    return escaped.strip()


def latex(table: Table, *, best: bool = True) -> str:
    """A float with caption, rules and notes; units and arrows have a line of their own below the headings.

    Intervals stand beside their figures in small type, in wide tables below them. What has more than
    `_MANY_COLUMNS` columns, or names too long for one column of a page, spans both; what is wider than its
    place is made smaller, so that nothing is cut off at the edge.
    """
    marks = best_cells(table) if best else frozenset()
    rows = table.shown
    n_intervals = sum(any(row[number].interval for row in rows) for number in range(len(table.columns)))
    below = n_intervals >= _MANY_INTERVALS
    many = len(table.columns) > _MANY_COLUMNS
    float_name = "table*" if many or _characters(table, below) > _COLUMN_CHARACTERS else "table"
    lines = [rf"\begin{{{float_name}}}[t]", r"  \centering"]
    if table.title:
        lines.append(rf"  \caption{{{_latex(table.title)}}}")
    if many:
        lines.append(r"  \small\setlength{\tabcolsep}{3pt}")
    lines.append(r"  \sbox0{%")
    lines.append(rf"  \begin{{tabular}}{{@{{}}l{'r' * (len(table.columns) - 1)}@{{}}}}")
    lines += [r"    \toprule", *_latex_heads(table), r"    \midrule"]
    for at, row in enumerate(rows):
        cells = [
            _with_interval(
                cell._replace(interval=None) if below else cell,
                _latex if number == 0 else _latex_figure,
                r"\textbf{{{}}}" if (at, number) in marks else "{}",
                r"{{\scriptsize {}}}",
            )
            for number, cell in enumerate(row)
        ]
        arrow = _latex(_row_arrow(table.rows[at]))
        name = f"{cells[0]} {arrow}" if arrow else cells[0]
        lines.append(_latex_row([_indented(row[0].text, name, r"\quad "), *cells[1:]]))
        if below and any(cell.interval for cell in row):
            ends = [rf"{{\scriptsize {_latex_figure(c.interval)}}}" if c.interval else "" for c in row]
            lines += [_latex_row(ends), *([r"    \addlinespace[2pt]"] if at < len(rows) - 1 else [])]
    lines += [r"    \bottomrule", r"  \end{tabular}}%"]
    lines.append(r"  \ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi")
    if table.notes:
        notes = " ".join(
            _latex(note if note.endswith((".", "?", "!")) else f"{note}.") for note in table.notes
        )
        lines += [r"  \par\smallskip", rf"  \parbox{{\linewidth}}{{\footnotesize {notes}}}"]
    return "\n".join([*lines, rf"\end{{{float_name}}}"]) + "\n"


def _characters(table: Table, below: bool) -> float:
    """How wide the table is, roughly: the widest cell of each column, and two characters between columns."""

    def of(cell: Shown) -> float:
        # In small type.
        interval = 0.7 * len(cell.interval or "")
        return max(len(cell.text), interval) if below else len(cell.text) + interval

    columns = zip(*table.shown, strict=True) if table.rows else [()] * len(table.columns)
    return sum(
        max([len(heading), *map(of, cells)]) + 2
        for heading, cells in zip(table.headings, columns, strict=True)
    )


def _latex_heads(table: Table) -> list[str]:
    lines = [_latex_row([_latex(heading) for heading in table.headings])]
    units = ["" if isinstance(each, str) else _unit(each) for each in table.columns]
    return [*lines, *([_latex_row([_latex(unit) for unit in units])] if any(units) else [])]


def _latex_row(cells: list[str]) -> str:
    # A row that begins with a bracket would be read as an argument of the line before.
    first = rf"{{{cells[0]}}}" if cells[0].startswith(("[", "*")) else cells[0]
    return rf"    {' & '.join([first, *cells[1:]])} \\"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in _DASHES.sub("-{}", harmless(text))).strip()


def _latex_figure(text: str) -> str:
    """A figure; a hyphen ahead of digits is a minus."""
    return _latex(_NEGATIVE.sub("−", text))


def _with_interval(cell: Shown, escape: Callable[[str], str], figure: str, ends: str) -> str:
    text = figure.format(escape(cell.text))
    interval = cell.interval and (_latex_figure(cell.interval) if escape is not _markdown else cell.interval)
    return f"{text} {ends.format(interval)}" if interval else text


def _indented(text: str, cell: str, indent: str) -> str:
    """Names of parts are indented by two spaces."""
    return indent * ((len(text) - len(text.lstrip(" "))) // 2) + cell


def _unit(column: Column) -> str:
    """The unit in parentheses, and an arrow that says which end is good."""
    unit = f"({column.unit})" if column.unit else ""
    return f"{unit} {_ARROWS[column.better]}".strip() if column.better else unit


def _row_better(row: Sequence[Cell]) -> Better | None:
    """Which end is good in a row whose figures have forms of their own."""
    forms = (cell.form.better for cell in row if isinstance(cell, Figure))
    return next(filter(None, forms), None)


def _row_arrow(row: Sequence[Cell]) -> str:
    better = _row_better(row)
    return f" {_ARROWS[better]}" if better else ""


def best_cells(table: Table) -> frozenset[tuple[int, int]]:
    """Places, row and column, of the best figures as they are shown; none where all are alike.

    Of a column that says what is better among the rows that compete, of a row of `Figure` cells that say it
    among these. Ties are all best.
    """
    contests: list[tuple[Better, list[tuple[int, int]]]] = [
        (column.better, [(at, number) for at in rows if not isinstance(table.rows[at][number], Figure)])
        for number, column in enumerate(table.columns)
        if isinstance(column, Column) and column.better is not None
        for rows in table.competing
    ]
    for at, row in enumerate(table.rows):
        if (better := _row_better(row)) is not None:
            rivals = [n for n, cell in enumerate(row) if isinstance(cell, Figure) and cell.form.better]
            contests.append((better, [(at, n) for n in rivals]))
    shown = table.shown
    best: set[tuple[int, int]] = set()
    for better, places in contests:
        values = {
            (at, number): value if better == "higher" else -value
            for at, number in places
            if isinstance(value := _plain(table.rows[at][number]), int | float)
        }
        if len({shown[at][number].text for at, number in values}) > 1:
            first, column_of = max(values, key=values.__getitem__)
            words = shown[first][column_of].text
            best |= {(at, number) for at, number in values if shown[at][number].text == words}
    return frozenset(best)
