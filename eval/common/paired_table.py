"""Two models on the same items as a table: how far apart they are, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from typing import Final

from uncanny.eval.common.tables import Cell, Column, Table
from uncanny.eval.metrics.paired import PairedTest
from uncanny.wording import counted

# Models of which each two are compared in the table; of more each is with the next.
MOST_COMPARED: Final = 4


def paired_table(tests: Sequence[PairedTest], ranked: Sequence[str], what: str, items: str) -> Table | None:
    """A line a pair of the models `ranked`, best first, the better one ahead; None without a test.

    `what` they are compared by stands in the title, and `items` heads the column of how many there are.
    """
    wanted = list(combinations(ranked, 2) if len(ranked) <= MOST_COMPARED else pairwise(ranked))
    by_pair = {frozenset((each.first, each.second)): each for each in tests}
    rows = [
        _cells(test.seen_from(first))
        for first, second in wanted
        if (test := by_pair.get(frozenset((first, second)))) is not None
    ]
    if not rows:
        return None
    of = f" Each is compared with the next; the JSON has all {len(tests)}." if len(rows) < len(tests) else ""
    note = (
        "Difference in shares right with 95 % intervals (Newcombe, paired); what only one of the two gets "
        f"right; exact McNemar test, corrected by Holm for {counted(len(tests), 'pair')} of models; "
        f"Cohen's g.{of}"
    )
    columns = _columns(items, "only first", "only second")
    return Table(columns, tuple(rows), f"Two models on the same {items}, {what}", (note,))


def conditions_table(
    tests: Mapping[str, PairedTest], title: str, items: str, first: str, second: str, *notes: str
) -> Table | None:
    """The same model under two conditions, called `first` and `second`, a line a test; None without one.

    `tests` are by what each is about. The columns are those of `paired_table`.
    """
    rows = tuple(_cells(test, name) for name, test in tests.items())
    return Table(_columns(items, first, second), rows, title, notes) if rows else None


def _columns(items: str, first: str, second: str) -> tuple[str | Column, ...]:
    return (
        *("", items, Column("difference", unit="points", signed=True)),
        *(first, second, Column("p", p_value=True)),
        *(Column("p, Holm", p_value=True), Column("g", digits=2)),
    )


def _cells(test: PairedTest, name: str | None = None) -> tuple[Cell, ...]:
    return (
        name or f"{test.first} − {test.second}",
        test.n,
        test.difference,
        test.first_only,
        test.second_only,
        test.p_value,
        test.adjusted_p,
        test.cohens_g,
    )
