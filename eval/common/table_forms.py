"""A `Table` as CSV, Markdown and LaTeX: what goes into a spreadsheet, a README and a paper.

CSV has figures in full precision and columns for the ends of intervals. Markdown is GitHub's. LaTeX needs the
packages booktabs and graphicx; letters of other scripts than Latin need LuaLaTeX or XeLaTeX.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from typing import Final

from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.tables import Cell, Column, Shown, Table
from uncanny.wording import harmless

# From so many columns with intervals on these stand in a line below their figures.
_MANY_INTERVALS: Final = 4
_MANY_COLUMNS: Final = 6
_ARROWS: Final = {"higher": "↑", "lower": "↓"}
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
    lines.writerow(heads)
    for row in table.rows:
        cells: list[object] = []
        for cell, ends in zip(row, with_ends, strict=True):
            value = cell.value if isinstance(cell, Estimate | Share) else cell
            cells += [value, *(_ends(cell) or (None, None) if ends else ())]
        lines.writerow(cells)
    return text.getvalue()


def _ends(cell: Cell) -> tuple[float, float] | None:
    return cell.interval if isinstance(cell, Estimate | Share) else None


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
        lines.append(_markdown_row([_indented(row[0].text, cells[0], "&emsp;"), *cells[1:]]))
    for note in table.notes:
        lines += ["", _markdown(note)]
    return "\n".join(lines) + "\n"


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown(text: str) -> str:
    escaped = _MARKDOWN.sub(lambda found: "&amp;" if found[0] == "&" else f"\\{found[0]}", harmless(text))
    return escaped.strip()


def latex(table: Table, *, best: bool = True) -> str:
    """A float with caption, rules and notes; units and arrows have a line of their own below the headings.

    Intervals stand beside their figures in small type, in wide tables below them. What has more than
    `_MANY_COLUMNS` columns spans both columns of a page, and is made smaller where it is still too wide.
    """
    marks = best_cells(table) if best else frozenset()
    rows = table.shown
    n_intervals = sum(any(row[number].interval for row in rows) for number in range(len(table.columns)))
    below = n_intervals >= _MANY_INTERVALS
    wide = len(table.columns) > _MANY_COLUMNS
    float_name = "table*" if wide else "table"
    lines = [rf"\begin{{{float_name}}}[t]", r"  \centering"]
    if table.title:
        lines.append(rf"  \caption{{{_latex(table.title)}}}")
    if wide:
        lines += [r"  \small\setlength{\tabcolsep}{3pt}", r"  \sbox0{%"]
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
        lines.append(_latex_row([_indented(row[0].text, cells[0], r"\quad "), *cells[1:]]))
        if below and any(cell.interval for cell in row):
            ends = [rf"{{\scriptsize {_latex_figure(c.interval)}}}" if c.interval else "" for c in row]
            lines += [_latex_row(ends), *([r"    \addlinespace[2pt]"] if at < len(rows) - 1 else [])]
    lines += [r"    \bottomrule", r"  \end{tabular}" + ("}%" if wide else "")]
    if wide:
        lines.append(r"  \ifdim\wd0>\linewidth\resizebox{\linewidth}{!}{\usebox0}\else\usebox0\fi")
    if table.notes:
        notes = " ".join(
            _latex(note if note.endswith((".", "?", "!")) else f"{note}.") for note in table.notes
        )
        lines += [r"  \par\smallskip", rf"  \parbox{{\linewidth}}{{\footnotesize {notes}}}"]
    return "\n".join([*lines, rf"\end{{{float_name}}}"]) + "\n"


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


def best_cells(table: Table) -> frozenset[tuple[int, int]]:
    """Places, row and column, of the best figures as they are shown; none where all are alike.

    Of the rows that compete; ties are all best. A column that does not say what is better has none.
    """
    best: set[tuple[int, int]] = set()
    rows, shown = table.rows[: table.compared], table.shown
    for number, column in enumerate(table.columns):
        if isinstance(column, str) or column.better is None:
            continue
        values = {
            at: value if column.better == "higher" else -value
            for at, row in enumerate(rows)
            if (value := _value(row[number])) is not None
        }
        if len({shown[at][number].text for at in values}) > 1:
            first = shown[max(values, key=values.__getitem__)][number].text
            best |= {(at, number) for at in values if shown[at][number].text == first}
    return frozenset(best)


def _value(cell: Cell) -> float | None:
    value = cell.value if isinstance(cell, Estimate | Share) else cell
    return None if isinstance(value, str) else value
