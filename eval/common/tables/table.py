"""Results as tables: one `Table` for the terminal, a notebook, a page, CSV, Markdown and LaTeX.

Every score of every protocol is a `TableResult`, so that `print(scores)` and the last line of a notebook cell
show what a command prints. How a table is written for other programs is in `forms.py`.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import TextWrapper
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, TypeAlias

from markupsafe import Markup

from uncanny.eval.common.estimates import NO_INTERVAL, Estimate, Share, p_cell
from uncanny.extras import optional
from uncanny.wording import harmless, some_of

if TYPE_CHECKING:
    from pandas import DataFrame

    from uncanny.eval.common.groups import ImageGroups


WIDTH = 80
MISSING = "–"
MINUS = "−"
# Of a table with intervals in a terminal; with more, intervals are left out.
_MOST_PARTS = 2
NARROW = "Intervals are left out for want of width; files and pipes have them."

Better = Literal["higher", "lower"]


class Shown(NamedTuple):
    """A cell in words: what it is, and its interval where it has one."""

    text: str
    interval: str | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of figures. `unit` is what they are in; of `%` and `points` shares in 0–1, shown times 100.

    `digits` stand behind the point. `better` says which end is good, where one is; the best of what competes
    is marked. `signed` figures are differences and have a plus. A `p_value` has two significant
    digits, where `significant` is set other figures have `digits` of them. A `key` column is what the table
    is about: on pages it comes first, where a phone shows it.
    """

    heading: str
    unit: str = ""
    digits: int = 1
    better: Better | None = None
    signed: bool = False
    p_value: bool = False
    significant: bool = False
    key: bool = False

    def show(self, cell: Cell) -> Shown:
        """Words as they are, counts whole, other figures with `digits`; None is `MISSING`.

        What is only nearly 0, or as a share nearly 1, never reads as if it were: `<0.1`, `>99.9`.
        """
        if isinstance(cell, Figure):
            return cell.form.show(cell.value)
        if isinstance(cell, Estimate | Share):
            return Shown(self.show(cell.value).text, f"[{self.ends(cell, ', ')}]" if cell.interval else None)
        if cell is None or isinstance(cell, str):
            return Shown(MISSING if cell is None else cell)
        if self.p_value:
            return Shown(p_cell(cell) or MISSING)
        return Shown(self._nearly(cell) or self._number(cell) if isinstance(cell, float) else f"{cell:,}")

    def words(self, value: float | None) -> str:
        """A figure by itself."""
        return self.show(None if value is None else float(value)).text

    def ends(self, figure: Estimate | Share, between: str = "–") -> str:
        """The two ends of an interval; empty where there is none."""
        return between.join(map(self._number, figure.interval or ()))

    def _number(self, value: float) -> str:
        shown = 100 * value if self.unit in ("%", "points") else value
        form = "g" if self.significant else "f"
        number = f"{shown:{'+' if self.signed else ''},.{self.digits}{form}}"
        if not float(number.replace(",", "")):
            return number.lstrip("+-")
        return f"{MINUS}{number[1:]}" if number.startswith("-") else number

    def _nearly(self, value: float) -> str | None:
        """What stands for a value that rounds to an end it does not reach; of differences none does."""
        if self.signed or self.significant:
            return None
        step = 10**-self.digits
        if value > 0 and self._number(value) == self._number(0.0):
            return f"<{step:.{self.digits}f}"
        if self.unit == "%" and value < 1 and self._number(value) == self._number(1.0):
            return f">{100 - step:.{self.digits}f}"
        return None


@dataclass(frozen=True, slots=True)
class Figure:
    """A cell that is shown by a `form` of its own: where rows, not columns, are each of one kind.

    Of a row of them the best is marked among those whose form says what is better.
    """

    value: Estimate | Share | float | None
    form: Column


Cell: TypeAlias = "str | int | float | Estimate | Share | Figure | None"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under `columns`; a cell is words, or a figure that its `Column` shows.

    The first column names a row and is never cut or wrapped; the others are numbers or short words, to the
    right. `notes` are sentences that follow the table. The first `compared` rows, all where it is None,
    compete for the best of a column that says what is better; where it has groups of places, the rows of
    each among themselves.
    """

    columns: tuple[str | Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str | None = None
    notes: tuple[str, ...] = ()
    compared: int | tuple[tuple[int, ...], ...] | None = None

    @property
    def competing(self) -> tuple[tuple[int, ...], ...]:
        """Places of rows that compete, group by group."""
        if isinstance(self.compared, tuple):
            return self.compared
        return (tuple(range(len(self.rows))[: self.compared]),)

    @property
    def keys(self) -> tuple[bool, ...]:
        """Which columns are key."""
        return tuple(isinstance(each, Column) and each.key for each in self.columns)

    def key_first(self) -> Table:
        """The same with the key columns behind the names of the rows, then the others."""
        order = sorted(range(len(self.columns)), key=lambda place: (place > 0, not self.keys[place]))
        return replace(
            self,
            columns=tuple(self.columns[place] for place in order),
            rows=tuple(tuple(row[place] for place in order) for row in self.rows),
        )

    @property
    def headings(self) -> tuple[str, ...]:
        return tuple(each if isinstance(each, str) else each.heading for each in self.columns)

    @property
    def shown(self) -> tuple[tuple[Shown, ...], ...]:
        """The rows in words."""
        columns = [Column(each) if isinstance(each, str) else each for each in self.columns]
        return tuple(
            tuple(column.show(cell) for column, cell in zip(columns, row, strict=True)) for row in self.rows
        )

    def text(self, width: int | None = None) -> str:
        """For a terminal, without colours; wider than `width` only where a name and one column are.

        Without a `width` nothing is left out. In a narrow terminal intervals go below their figures, and
        columns into parts with the names before each; intervals are left out where there would be more than
        two parts. What a model, a file or a column is called cannot steer the terminal or begin a line.
        """
        heads = [harmless(heading) for heading in self.headings]
        rows = [[Shown(harmless(text), interval) for text, interval in row] for row in self.shown]
        grid, left_out = _fitting(heads, rows, width)
        title = [harmless(self.title)] if self.title else []
        notes = [harmless(note) for note in (*self.notes, *([NARROW] if left_out else []))]
        form = TextWrapper(
            WIDTH if width is None else width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        below = [line for note in notes for line in form.wrap(note)]
        return "\n".join([*title, *grid.lines(width), *below])

    def html(self) -> str:
        """For a notebook; whatever a model or a file is called stays text."""

        def joined(form: str, items: Iterable[object]) -> Markup:
            return Markup("").join(Markup(form).format(item) for item in items)

        def cell(number: int, shown: Shown) -> Markup:
            ends = joined(" <small>{}</small>", filter(None, [shown.interval]))
            side = "right" if number else "left"
            return Markup('<td style="text-align:{}">{}{}</td>').format(side, shown.text, ends)

        rows = (joined("{}", (cell(*each) for each in enumerate(row))) for row in self.shown)
        return (
            f"<table>{joined('<caption>{}</caption>', filter(None, [self.title]))}"
            f"<thead><tr>{joined('<th>{}</th>', self.headings)}</tr></thead>"
            f"<tbody>{joined('<tr>{}</tr>', rows)}</tbody></table>{joined('<p>{}</p>', self.notes)}"
        )

    def to_csv(self) -> str:
        """Figures in full precision, shares in 0–1, with columns for the ends of intervals."""
        from uncanny.eval.common.tables.forms import csv_text

        return csv_text(self)

    def to_markdown(self, *, best: bool = True) -> str:
        """A table as GitHub and most others read it; `best` figures of columns are bold."""
        from uncanny.eval.common.tables.forms import markdown

        return markdown(self, best=best)

    def to_latex(self, *, best: bool = True) -> str:
        """A float for a document with booktabs and graphicx; the `best` figures of columns are bold."""
        from uncanny.eval.common.tables.forms import latex

        return latex(self, best=best)


def explain_intervals(
    tables: Sequence[Table], *, wanted: int | bool, groups: ImageGroups | None = None
) -> tuple[Table, ...]:
    """The tables; the last one says which images intervals took together, and, where figures have no interval
    although some were `wanted`, which and why."""
    names = [
        f"{row[0].strip()} ({column})" if column else row[0].strip()
        for table in tables
        for row in table.rows
        for column, cell in zip(table.headings, row, strict=True)
        if isinstance(row[0], str) and _lacks_interval(cell)
    ]
    notes = [] if groups is None else [groups.words()]
    if names and wanted:
        notes.append(f"Without an interval: {some_of(names)}. {NO_INTERVAL[0].upper()}{NO_INTERVAL[1:]}.")
    *others, last = tables
    return (*others, replace(last, notes=(*last.notes, *notes)))


def bare_cell(cell: Cell) -> str | float | Estimate | Share | None:
    """What is in a cell, without a form of its own."""
    return cell.value if isinstance(cell, Figure) else cell


def _lacks_interval(cell: Cell) -> bool:
    figure = bare_cell(cell)
    return isinstance(figure, Estimate | Share) and figure.value is not None and figure.interval is None


class _Grid:
    """Heads and rows, with intervals beside or below their figures or without, as lines."""

    def __init__(
        self, heads: Sequence[str], rows: Sequence[Sequence[Shown]], ends: Literal["beside", "below", "none"]
    ) -> None:
        self._heads = heads
        self._rows = [[_joined(cell, ends) for cell in row] for row in rows]
        cells = [heads, *self._rows]
        self._widths = [max(map(_width, column)) for column in zip(*cells, strict=True)]

    @property
    def width(self) -> int:
        return sum(self._widths) + 2 * (len(self._widths) - 1)

    def lines(self, width: int | None) -> list[str]:
        parts = self.parts(width)
        lines = [line for part in parts for line in ["", *self._part(part)]]
        return lines[1:]

    def parts(self, width: int | None) -> list[list[int]]:
        """The columns of each part; all in one where a name and one column do not fit."""
        name = self._widths[0]
        everything = list(range(1, len(self._widths)))
        if width is None or self.width <= width or not self.fits_in_parts(width):
            return [everything]
        parts: list[list[int]] = [[]]
        for number in everything:
            taken = name + sum(2 + self._widths[each] for each in (*parts[-1], number))
            if parts[-1] and taken > width:
                parts.append([])
            parts[-1].append(number)
        return parts

    def fits_in_parts(self, width: int) -> bool:
        """Whether no part would be wider, were there one a column."""
        name, *others = self._widths
        return all(name + 2 + each <= width for each in others)

    def _part(self, numbers: Sequence[int]) -> list[str]:
        from rich.console import Console
        from rich.table import Table as RichTable
        from rich.text import Text

        chosen = [0, *numbers]
        grid = RichTable(box=None, pad_edge=False, header_style="", padding=(0, 2, 0, 0))
        for number in chosen:
            head = Text(self._heads[number])
            grid.add_column(head, justify="right" if number else "left", no_wrap=True)
        for row in self._rows:
            grid.add_row(*(Text(row[number]) for number in chosen))
        needed = sum(2 + self._widths[number] for number in chosen)
        console = Console(file=io.StringIO(), width=needed, color_system=None, emoji=False)
        console.print(grid)
        assert isinstance(console.file, io.StringIO)
        return [line.rstrip() for line in console.file.getvalue().splitlines()]


def _fitting(heads: Sequence[str], rows: Sequence[Sequence[Shown]], width: int | None) -> tuple[_Grid, bool]:
    """The form for this width, and whether it is one without the intervals that there are."""
    without = _Grid(heads, rows, "none")
    if not any(cell.interval for row in rows for cell in row):
        return without, False
    beside, below = _Grid(heads, rows, "beside"), _Grid(heads, rows, "below")
    if width is None or beside.width <= width:
        return beside, False
    fits = len(below.parts(width)) <= _MOST_PARTS and below.fits_in_parts(width)
    return (below, False) if fits else (without, True)


def _joined(cell: Shown, ends: Literal["beside", "below", "none"]) -> str:
    if cell.interval is None or ends == "none":
        return cell.text
    return f"{cell.text}{' ' if ends == 'beside' else chr(10)}{cell.interval}"


class TableResult(ABC):
    """A result that shows itself as tables, in a terminal and in a notebook."""

    __slots__ = ()

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The tables, the most important one first."""

    def __str__(self) -> str:
        return tables_text(self.tables())

    def to_csv(self) -> str:
        """The first table as CSV, in full precision; what `--csv` writes."""
        return self.tables()[0].to_csv()

    def to_markdown(self, *, best: bool = True) -> str:
        """All tables in Markdown, one below the other; the `best` figures of columns are bold."""
        return tables_markdown(self.tables(), best=best)

    def to_latex(self, *, best: bool = True) -> str:
        """All tables in LaTeX, which needs booktabs and graphicx; the `best` figures of columns are bold."""
        return tables_latex(self.tables(), best=best)

    # As of a data frame: what a name at the end of a prompt shows. Dataclasses keep it with `repr=False`.
    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(table.html() for table in self.tables())


class RowsResult(TableResult):
    """A result that is rows, too, one a figure: as text for other programs and as a data frame.

    `columns` are the keys of a row; what a row has not, or has as None, was not measured.
    """

    __slots__ = ()
    columns: ClassVar[tuple[str, ...]]

    @abstractmethod
    def rows(self) -> Iterator[Mapping[str, object]]:
        """The rows, by `columns`."""

    def to_csv(self) -> str:
        """`rows` with a head line, in full precision; a cell without a measured value is empty."""
        from uncanny.eval.common.tables.forms import csv_cell

        text = io.StringIO()
        table = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows({name: csv_cell(value) for name, value in row.items()} for row in self.rows())
        return text.getvalue()

    def to_pandas(self) -> DataFrame:
        """`rows` as a data frame. Raises UsageError where pandas is not installed (the extra `frames`)."""
        return data_frame(self.columns, self.rows())


def data_frame(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """Rows as a pandas data frame with exactly these columns; what a row has not is missing.

    Raises UsageError where pandas is not installed.
    """
    pandas = optional("pandas", "frames", "A data frame")
    frame: DataFrame = pandas.DataFrame(
        [{column: row.get(column) for column in columns} for row in rows], columns=columns
    )
    return frame


def _width(text: str) -> int:
    from rich.cells import cell_len

    return max(map(cell_len, text.split("\n")))


def tables_text(tables: Iterable[Table], width: int | None = None) -> str:
    """For a terminal of this `width`, or as wide as need be."""
    return "\n\n".join(table.text(width) for table in tables)


def tables_markdown(tables: Iterable[Table], *, best: bool = True) -> str:
    return "\n".join(table.to_markdown(best=best) for table in tables)


def tables_latex(tables: Iterable[Table], *, best: bool = True) -> str:
    return "\n".join(table.to_latex(best=best) for table in tables)
