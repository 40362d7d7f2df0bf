"""Recall of edits by one thing that is known of them: groups, tests between them, and how they read.

Groups are bins of size, levels of what made edits, and phrases of what became what. Source: Semi-Truths,
appendix C.2 (bins) and section 4 (directional edits).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Estimate, Share
from uncanny.eval.common.headline import Claim, strongest
from uncanny.eval.common.json_fields import as_json, json_of
from uncanny.eval.common.tables.table import Cell, Column, Table
from uncanny.eval.edits.columns import SCENE
from uncanny.eval.edits.parameters import StressParameters
from uncanny.eval.edits.presets import PRESETS, columns_for, level_of, parts_of
from uncanny.eval.edits.stress.data import GENERATED, LEVELS, METRICS, SIMILARITIES, Edits
from uncanny.eval.metrics.association import Association
from uncanny.eval.metrics.edits import BINS, Cutoffs, deviation_cutoffs, percentile_cutoffs
from uncanny.eval.metrics.intervals import Floats
from uncanny.wording import option

FactorKind = Literal["bins", "levels", "phrases"]


@dataclass(frozen=True, slots=True)
class Group:
    """The edits of one bin, level or phrase: how many of them are taken for generated.

    `auc` is that of these edits against all real images: it does not depend on a threshold, and a group that
    is low in it cannot be found by moving the threshold. None without scores or real images. `iou` is the
    mean of those with a map, None where none has one. `p_value` is that of its recall against that of all
    other edits of the factor, corrected by Holm for their number; None for a group of nothing, or of
    everything. `auc_within` is against the real images of the same group, as SAGI's table 5 has it for
    domains: those whose own row, or whose edits all, are of the group. `pixel_auc` is over the pixels of the
    group's heat maps.
    """

    name: str
    recall: Share
    auc: float | None = None
    iou: Estimate | None = None
    p_value: float | None = None
    auc_within: float | None = None
    pixel_auc: Estimate | None = None


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
    *(
        Column(heading, unit="%", better="higher")
        for heading in ("recall", "AUC", "AUC within", "IoU", "pixel AUC")
    ),
    *(Column("V", digits=2), Column("p", p_value=True)),
)
_OPTIONAL: Final = {4: "auc", 5: "auc_within", 6: "iou", 7: "pixel_auc"}
_V: Final = 8


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
    areas = (group.auc, group.auc_within, group.iou, group.pixel_auc)
    return (name, found.out_of, found.counts, found, *areas, "", group.p_value)


def group_table(rows: Sequence[tuple[Cell, ...]], title: str | None, factors: Sequence[Factor]) -> Table:
    """Without the columns that nothing was measured for: areas and IoU, and V of phrases.

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
        yield (factor.name, *[""] * (_V - 1), "" if v is None else v, p)
        for group in factor.groups:
            yield group_cells(f"  {factor.label(group)}", group)
        if factor.unknown.out_of:
            yield group_cells("  unknown", Group("", factor.unknown))


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
        "auc_within": group.auc_within,
        "pixel_auc": None if group.pixel_auc is None else group.pixel_auc.value,
    }


def _group_json(group: Group) -> dict[str, Any]:
    found = json_of(group, "n=recall.out_of detected=recall.counts recall auc auc_within")
    return {
        **found,
        "iou": as_json(group.iou),
        "pixel_auc": as_json(group.pixel_auc),
        "p_value": group.p_value,
    }


def _test_json(test: Association | None, adjusted: float | None) -> dict[str, Any] | None:
    if test is None:
        return None
    figures = json_of(test, "test chi2 df p_value")
    return {**figures, "adjusted_p": adjusted, "cramers_v": test.cramers_v}


# Of a column of numbers that is named: more different values than this are bins, fewer are levels.
MOST_NUMBER_LEVELS: Final = 10


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Which group each row of the metadata is in: a place in `names`, −1 where nobody says.

    Of phrases, −2 is one that too few edits share.
    """

    name: str
    kind: FactorKind
    names: tuple[str, ...]
    codes: NDArray[np.int64]
    cutoffs: Cutoffs | None = None


def groupings(edits: Edits, parameters: StressParameters) -> list[Grouping]:
    """The groupings there is anything of. Raises UsageError for a named column that no table has."""
    by, cutoffs, least = parameters.by, parameters.cutoffs, parameters.least_edits
    generated = edits.truth[: edits.n_rows] == GENERATED
    # As where edits are measured: one that came out all black is typical of nothing.
    typical = generated & np.array([cell is not True for cell in edits.column("all_black")], dtype=np.bool_)
    groupings = []
    parts = [part for name in by for part in parts_of(name, edits.columns) if part not in PRESETS]
    missing = [name for name in (*parts, *cutoffs) if name not in edits.columns]
    if missing:
        known = sorted(name for name in edits.columns if name != "id")
        raise UsageError(
            f"{' and '.join(edits.places)}: no column {missing[0]!r}",
            remedy=f"The columns are {', '.join(known)}.",
        )
    for name in dict.fromkeys((*METRICS, *SCENE, *LEVELS, *by, *cutoffs)):
        if name in by and name not in edits.columns:
            groupings.append(_derived(name, edits, parameters.in_domain))
            continue
        if all(cell is None for cell in edits.column(name)):
            continue
        values = None if name in LEVELS else edits.numbers(name)
        if name in cutoffs and values is None:
            raise UsageError(f"{option('cutoffs')}: {name} is not a column of numbers")
        measured = [] if values is None else values[typical & ~np.isnan(values)].tolist()
        numeric = name in METRICS + SCENE or name in cutoffs
        if values is not None and (numeric or len(set(measured)) > MOST_NUMBER_LEVELS):
            groupings.append(_binned(name, values, measured, cutoffs.get(name)))
        else:
            groupings.append(_levels(name, edits.column(name), "levels"))
    phrases = _phrases(edits)
    counts = Counter(each for each, kept in zip(phrases, generated.tolist(), strict=True) if kept)
    common = {each for each, n in counts.items() if each and n >= least}
    if any(phrases):
        grouping = _levels("directional", [each if each in common else None for each in phrases], "phrases")
        rare = np.array([each is not None and each not in common for each in phrases], dtype=np.bool_)
        grouping.codes[rare] = -2
        groupings.append(grouping)
    return groupings


def _derived(name: str, edits: Edits, in_domain: Sequence[str]) -> Grouping:
    """By a preset, or by two things at once. Raises UsageError where no edit has what it needs."""
    columns = {column: edits.column(column) for column in columns_for([name])}
    known = [column for column in columns if column in edits.columns]
    rows = (dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True))
    levels = [level_of(name, row, known, in_domain) for row in rows]
    if not any(levels):
        remedies = [PRESETS[part].remedy for part in parts_of(name, known) if part in PRESETS]
        raise UsageError(
            f"{' and '.join(edits.places)}: nothing says which group of {name!r} an edit is in",
            remedy=" ".join(remedies) or None,
        )
    return _levels(name, levels, "levels")


def image_codes(grouping: Grouping, edits: Edits) -> NDArray[np.int64]:
    """The group of each image of the metadata, −1 without one; an original is in that of all its edits."""
    codes = np.where(edits.rows >= 0, grouping.codes[edits.rows], -1)
    of_edits: defaultdict[str, set[int]] = defaultdict(set)
    for original, code in zip(edits.column("original"), grouping.codes.tolist(), strict=True):
        if original is not None:
            of_edits[original].add(code)
    for place in np.flatnonzero((codes < 0) & (edits.truth != GENERATED)).tolist():
        own = of_edits.get(edits.images[place], set())
        if len(own) == 1:
            codes[place] = next(iter(own))
    return codes


def _binned(
    name: str, values: Floats, measured: Sequence[float], ends: tuple[float, float] | None
) -> Grouping:
    """Small, medium and large by the cut-offs, which are in the medium bin themselves."""
    if ends is not None:
        cutoffs: Cutoffs | None = Cutoffs(float(ends[0]), float(ends[1]))
    else:
        cutoffs = deviation_cutoffs(measured) if name in SCENE else percentile_cutoffs(measured)
    codes = np.full(len(values), -1, dtype=np.int64)
    if cutoffs is not None:
        known = ~np.isnan(values)
        codes[known] = 1 + (values[known] > cutoffs.high) - (values[known] < cutoffs.low).astype(np.int64)
    return Grouping(name, "bins", BINS, codes, cutoffs)


def _levels(name: str, cells: Sequence[Any], kind: FactorKind) -> Grouping:
    texts = [None if cell is None else cell if isinstance(cell, str) else str(cell) for cell in cells]
    names = tuple(sorted({text for text in texts if text is not None}))
    places: dict[str | None, int] = {each: place for place, each in enumerate(names)}
    places[None] = -1
    codes = np.fromiter((places[text] for text in texts), dtype=np.int64, count=len(texts))
    return Grouping(name, kind, names, codes)


def _phrases(edits: Edits) -> list[str | None]:
    """`original → edited`, of labels where a row has two that differ, else of captions; in small letters."""
    phrases: list[str | None] = []
    made: dict[tuple[str, str], str] = {}
    columns = (edits.column(name) for name in ("label", "edited_label", "caption", "edited_caption"))
    for label, edited_label, caption, edited_caption in zip(*columns, strict=True):
        pair = (label, edited_label)
        if not (label and edited_label) or (label == edited_label and caption and edited_caption):
            pair = (caption, edited_caption)
        if not (pair[0] and pair[1]):
            phrases.append(None)
            continue
        if pair not in made:
            before, after = (" ".join(text.casefold().split()) for text in pair)
            made[pair] = f"{before} → {after}"
        phrases.append(made[pair])
    return phrases
