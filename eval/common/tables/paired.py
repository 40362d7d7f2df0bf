"""Two models on the same items as a table: how far apart they are, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, Final

from uncanny.eval.common.tables.table import Cell, Column, Table
from uncanny.eval.metrics.paired import ImageClass, PairedTest
from uncanny.wording import counted

# Models of which each two are compared in the table; of more each is with the next.
MOST_COMPARED: Final = 4


def paired_table(tests: Sequence[PairedTest], ranked: Sequence[str], what: str, items: str) -> Table | None:
    """A line a pair of the models `ranked`, best first, the better one ahead; None without a test.

    `what` they are compared by stands in the title, and `items` heads the column of how many there are.
    """
    rows = [_cells(test) for test in _compared(tests, ranked)]
    if not rows:
        return None
    columns = _columns(items, "only first", "only second")
    title = f"Two models on the same {items}, {what}"
    return Table(columns, tuple(rows), title, (_note("models", len(tests), len(rows)),))


def class_table(
    tests: Mapping[ImageClass, Sequence[PairedTest]],
    ranked: Sequence[str],
    who: str,
    classes: Mapping[ImageClass, str],
) -> Table | None:
    """Two detectors on the images that both judged: a line a pair of `ranked` and class; None without a test.

    `who` they are stands in the title, and `classes` are what the images of each class are called.
    """
    shown = {name: _compared(tests[name], ranked) for name in classes if name in tests}
    rows = [
        _cells(each[place], f"{each[place].first} − {each[place].second}, {classes[name]}")
        for place in range(max(map(len, shown.values()), default=0))
        for name, each in shown.items()
    ]
    if not rows:
        return None
    n = len(next(iter(tests.values())))
    columns = _columns("images", "only first", "only second")
    note = _note(who, n, len(next(iter(shown.values()))))
    return Table(columns, tuple(rows), f"Two {who} on the same images: verdicts that are right", (note,))


def tests_json(tests: Iterable[tuple[str, PairedTest]]) -> list[dict[str, Any]]:
    """An object a pair, with its `models`, and each test under its name, that of a question or a class."""
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for name, test in tests:
        names = test.first, test.second
        pairs.setdefault(names, {"models": list(names)})[name] = test.to_json()
    return list(pairs.values())


def _compared(tests: Sequence[PairedTest], ranked: Sequence[str]) -> list[PairedTest]:
    """Each two of a few, of many each with the next, the better one first."""
    wanted = list(combinations(ranked, 2) if len(ranked) <= MOST_COMPARED else pairwise(ranked))
    by_pair = {frozenset((each.first, each.second)): each for each in tests}
    return [
        test.seen_from(first)
        for first, second in wanted
        if (test := by_pair.get(frozenset((first, second)))) is not None
    ]


def _note(who: str, pairs: int, shown: int) -> str:
    of = f" Each is compared with the next; the JSON has all {pairs}." if shown < pairs else ""
    return (
        "Difference in shares right with 95 % intervals (Newcombe, paired); what only one of the two gets "
        f"right; exact McNemar test, corrected by Holm for {counted(pairs, 'pair')} of {who}; "
        f"Cohen's g.{of}"
    )


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
