"""Results as tables: one `Table` for the terminal and for a notebook.

Every score of every protocol is a `TableResult`, so that `print(scores)` and the last line of a notebook cell
show what a command prints.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from markupsafe import Markup

from uncanny.errors import UsageError
from uncanny.wording import harmless

if TYPE_CHECKING:
    from pandas import DataFrame

WIDTH = 80
MISSING = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are to be read; what was not measured is `MISSING`.

    `columns` are the headers. The first one names a row and is never cut or wrapped; the others are numbers
    or short words, to the right. `notes` are sentences that follow the table.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str | None = None
    notes: tuple[str, ...] = ()

    def text(self, width: int = WIDTH) -> str:
        """For a terminal, without colours; wider than `width` where names or numbers need it.

        What a model, a file or a column is called cannot steer the terminal or begin a line.
        """
        from rich.console import Console
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid(box=None, pad_edge=False, header_style="", padding=(0, 2, 0, 0))
        for number, column in enumerate(self.columns):
            grid.add_column(Text(harmless(column)), justify="right" if number else "left", no_wrap=True)
        rows = [tuple(map(harmless, row)) for row in self.rows]
        for row in rows:
            grid.add_row(*map(Text, row))
        cells = [self.columns, *rows]
        needed = sum(2 + max(_width(row[number]) for row in cells) for number in range(len(self.columns)))
        console = Console(file=io.StringIO(), width=max(width, needed), color_system=None, emoji=False)
        console.print(grid)
        assert isinstance(console.file, io.StringIO)
        lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
        title = [harmless(self.title)] if self.title else []
        notes = [line for note in self.notes for line in _wrapped(harmless(note), width)]
        return "\n".join([*title, *lines, *notes])

    def html(self) -> str:
        """For a notebook; whatever a model or a file is called stays text."""
        head = Markup("").join(Markup("<th>{}</th>").format(column) for column in self.columns)
        rows = Markup("").join(
            Markup("<tr>{}</tr>").format(
                Markup("").join(
                    Markup('<td style="text-align:{}">{}</td>').format("right" if number else "left", cell)
                    for number, cell in enumerate(row)
                )
            )
            for row in self.rows
        )
        caption = Markup("<caption>{}</caption>").format(self.title) if self.title else Markup("")
        notes = Markup("").join(Markup("<p>{}</p>").format(note) for note in self.notes)
        return str(
            Markup("<table>{}<thead><tr>{}</tr></thead><tbody>{}</tbody></table>{}").format(
                caption, head, rows, notes
            )
        )


class TableResult(ABC):
    """A result that shows itself as tables, in a terminal and in a notebook."""

    __slots__ = ()

    @abstractmethod
    def tables(self) -> tuple[Table, ...]:
        """The tables, the most important one first."""

    def __str__(self) -> str:
        return "\n\n".join(table.text() for table in self.tables())

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
        text = io.StringIO()
        table = csv.DictWriter(text, self.columns, restval="", lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows())
        return text.getvalue()

    def to_pandas(self) -> DataFrame:
        """`rows` as a data frame. Raises UsageError where pandas is not installed (the extra `frames`)."""
        return data_frame(self.columns, self.rows())


def data_frame(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> DataFrame:
    """Rows as a pandas data frame with exactly these columns; what a row has not is missing.

    Raises UsageError where pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise UsageError(
            "A data frame needs pandas, which is not installed", remedy="pip install 'uncanny[frames]'"
        ) from error
    return pandas.DataFrame(
        [{column: row.get(column) for column in columns} for row in rows], columns=columns
    )


def _wrapped(note: str, width: int) -> list[str]:
    return wrap(note, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)
