"""Recall of edits by one thing that is known of them: groups, tests between them, and how they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Literal

from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.headline import Claim, strongest
from uncanny.eval.common.json_fields import as_json, json_of
from uncanny.eval.common.tables.table import Cell, Column, Table
from uncanny.eval.edits.stress.data import SIMILARITIES
from uncanny.eval.metrics.association import Association
from uncanny.eval.metrics.edits import Cutoffs

FactorKind = Literal["bins", "levels", "phrases"]


@dataclass(frozen=True, slots=True)
class Group:
    """The edits of one bin, level or phrase: how many of them are taken for generated.

    `auc` is that of these edits against all real images: it does not depend on a threshold, and a group that
    is low in it cannot be found by moving the threshold. None without scores or real images. `iou` is the
    mean of those with a map, None where none has one. `p_value` is that of its recall against that of all
    other edits of the factor, corrected by Holm for their number; None for a group of nothing, or of
    everything.
    """

    name: str
    recall: Share
    auc: float | None
    iou: Estimate | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class PairTest:
    """Two bins against each other; `adjusted_p` is corrected by Holm for the pairs of the metric."""

    first: str
    second: str
    test: Association
    adjusted_p: float | None


@dataclass(frozen=True, slots=True)
class Factor:
    """Edits by one thing that is known of them.

    `test` is whether recall differs at all between the groups, `adjusted_p` its p-value corrected by Holm
    for the number of factors; both are None for phrases, and for very many groups, which are compared with
    the rest one by one. `unknown` are edits for which it is not known: in no group and no test. Phrases are
    sorted, the blindest spot first, and `rare` counts edits whose phrase too few share.
    """

    name: str
    kind: FactorKind
    groups: tuple[Group, ...]
    cutoffs: Cutoffs | None
    test: Association | None
    adjusted_p: float | None
    pairs: tuple[PairTest, ...]
    unknown: Share
    rare: int

    def __getitem__(self, name: str) -> Group:
        """A group by its name. Raises KeyError."""
        for group in self.groups:
            if group.name == name:
                return group
        raise KeyError(name)

    def label(self, group: Group) -> str:
        """A bin with its ends, another group by its name."""
        if self.cutoffs is None:
            return group.name
        low, high = (f"{end:.4g}" for end in self.cutoffs)
        ends = {"small": f"< {low}", "medium": f"{low} to {high}", "large": f"> {high}"}
        return f"{group.name}, {ends[group.name]}"

    def to_json(self) -> dict[str, Any]:
        return {
            **json_of(self, "kind cutoffs"),
            "groups": {each.name: _group_json(each) for each in self.groups},
            "unknown": json_of(self.unknown, "n=out_of recall=value"),
            "rare": self.rare,
            "test": _test_json(self.test, self.adjusted_p),
            "pairs": [
                {"bins": [each.first, each.second], **(_test_json(each.test, each.adjusted_p) or {})}
                for each in self.pairs
            ],
        }


GROUP_COLUMNS: Final[tuple[str | Column, ...]] = (
    *("", "edits", "found"),
    *(Column(heading, unit="%", better="higher") for heading in ("recall", "AUC", "IoU")),
    *(Column("V", digits=2), Column("p", p_value=True)),
)
_OPTIONAL: Final = {4: "auc", 5: "iou"}
_V: Final = 6


def claims(factors: Iterable[Factor]) -> Iterator[Claim]:
    """What recall hangs on: each factor as a whole, and each group against the rest of its factor.

    The size of both is Cramér's V, of a group that of it against the other groups. A group is one topic with
    its factor, which says more.
    """
    for factor in factors:
        counts = [(each.recall.counts, each.recall.out_of) for each in factor.groups]
        hits, n = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
        groups = [
            _group_claim(factor, group, hits - group.recall.counts, n - group.recall.out_of)
            for group in factor.groups
            if group.p_value is not None and group.recall.out_of < n
        ]
        if factor.test is not None and factor.test.cramers_v is not None:
            name, v = factor.name.replace("_", " "), factor.test.cramers_v
            furthest = strongest(groups)[:1]
            most = f": {furthest[0].words}" if furthest else ""
            yield Claim(f"recall differs by {name}, V {v:.2f}{most}", v, factor.adjusted_p, None, factor.name)
        yield from groups


def _group_claim(factor: Factor, group: Group, hits: int, n: int) -> Claim:
    """`hits` of `n` are those of the other groups."""
    own, of_own = group.recall.counts, group.recall.out_of
    phi = (own * n - hits * of_own) / sqrt(max(of_own * n * (own + hits) * (of_own + n - own - hits), 1))
    name = factor.label(group)
    if factor.kind != "phrases":
        name = f"{factor.name.replace('_', ' ')} {name}"
    often = "missed more often" if phi < 0 else "found more often"
    words = f"{name} is {often}, {own:,} of {of_own:,} found against {hits:,} of {n:,}"
    return Claim(words, phi, group.p_value, None, factor.name)


def group_cells(name: str, group: Group) -> tuple[Cell, ...]:
    """A line of a table under `GROUP_COLUMNS`."""
    found = group.recall
    return (name, found.out_of, found.counts, found, group.auc, group.iou, "", group.p_value)


def group_table(rows: Sequence[tuple[Cell, ...]], title: str | None, factors: Sequence[Factor]) -> Table:
    """Without the columns that nothing was measured for: AUC and IoU, and V of phrases.

    Groups are parts of one set and no rivals: none is marked as best.
    """
    groups = [group for factor in factors for group in factor.groups]
    empty = {at for at, name in _OPTIONAL.items() if all(getattr(each, name) is None for each in groups)}
    if not any(row[_V] for row in rows):
        empty.add(_V)
    kept = [at for at in range(len(GROUP_COLUMNS)) if at not in empty]
    columns = tuple(GROUP_COLUMNS[at] for at in kept)
    lines = tuple(tuple(row[at] for at in kept) for row in rows)
    tested = "" if _V in empty else "of a factor whether its groups differ at all, "
    notes = (*hints(factors), f"p: {tested}of a group against the rest.")
    return Table(columns, lines, title, notes, compared=0)


def factor_rows(factors: Sequence[Factor]) -> Iterator[tuple[Cell, ...]]:
    """A line a factor, with the strength and the p-value of the whole, and below it a line a group."""
    for factor in factors:
        v = None if factor.test is None else factor.test.cramers_v
        p = "" if factor.adjusted_p is None else factor.adjusted_p
        yield (factor.name, *[""] * 5, "" if v is None else v, p)
        for group in factor.groups:
            yield group_cells(f"  {factor.label(group)}", group)
        if factor.unknown.out_of:
            yield group_cells("  unknown", Group("", factor.unknown, None, None, None))


def hints(factors: Sequence[Factor]) -> Iterator[str]:
    """What a reader of these factors has to know."""
    similar = [each.name for each in factors if each.name in SIMILARITIES and each.kind == "bins"]
    if similar:
        yield f"Of {' and '.join(similar)} small is the most changed."
    rare = sum(each.rare for each in factors)
    if rare:
        yield f"{rare:,} edits are of rarer phrases, in no line."


def group_row(group: Group) -> dict[str, Any]:
    low, high = group.recall.interval or (None, None)
    return {
        "group": group.name,
        "n": group.recall.out_of,
        "detected": group.recall.counts,
        "recall": group.recall.value,
        "low": low,
        "high": high,
        "auc": group.auc,
        "iou": None if group.iou is None else group.iou.value,
        "p_value": group.p_value,
    }


def _group_json(group: Group) -> dict[str, Any]:
    found = json_of(group, "n=recall.out_of detected=recall.counts recall auc")
    return {**found, "iou": as_json(group.iou), "p_value": group.p_value}


def _test_json(test: Association | None, adjusted: float | None) -> dict[str, Any] | None:
    if test is None:
        return None
    figures = json_of(test, "test chi2 df p_value")
    return {**figures, "adjusted_p": adjusted, "cramers_v": test.cramers_v}
