"""Release over release: what became of a generator since its runs of before, on the same prompts.

Differences are now minus before, so that less than 0 is better. They are taken over the prompts that both
releases have, by `pair_by`, else by file name: where that is a wrong guess the pairing costs
sharpness, and the intervals still hold. With fewer than ten prompts in common all images are compared,
unpaired, unless both releases have just the same prompts. Not from the paper.

Intervals of shares are Newcombe's (`metrics/paired.py`); those of AF, MAI and CAP, and of shares where
prompts have several images, are percentile bootstraps: prompts are resampled with their images of both.
Fewer than ten prompts, or unpaired images, have none: two that both got better say nothing; nor have figures
that change alike everywhere, of which a test alone decides. Each figure is tested besides, because the
headline is the strongest of several: Holm corrects the four of `FIGURES`, the kinds, and the groups of names,
each for their number. AF, MAI and CAP have a t test; shares the exact sign test over the prompts whose share
changed (McNemar's where each has one image), unpaired χ² or Fisher's exact test over images.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.audit.data.aggregate import KIND_BITS, VISIBLE_BIT, Aggregate, AuditedImage
from uncanny.eval.audit.data.load import Generator
from uncanny.eval.audit.data.names import NameGroup, NameGroups
from uncanny.eval.audit.score.faults import NO_KIND, group_columns, mark_columns
from uncanny.eval.audit.score.resample import FEWEST_SHARED
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.headline import proven
from uncanny.eval.common.json_fields import JsonFields, json_of
from uncanny.eval.metrics.association import against_the_rest, holm
from uncanny.eval.metrics.intervals import (
    Codes,
    Interval,
    group_codes,
    percentile_intervals,
    resampled_sums,
    resampled_t_test,
    sums_by_group,
)
from uncanny.eval.metrics.paired import paired_interval, unpaired_interval
from uncanny.eval.metrics.significance import mcnemar_exact
from uncanny.eval.trust.figures import FIGURES, FigureName
from uncanny.schema import Annotation, Kind

Floats = NDArray[np.float64]

Verdict = Literal["better", "worse", "no clear change", "not measured"]
# Groups of names whose change is measured: the most frequent ones.
MOST_GROUPS: Final = 60
# Prompts that are named, and those of them with pictures: so many that got worse, and that got better.
MOST_LISTED: Final = 100
MOST_PICTURED: Final = 4
_NO_CHANGE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Change(JsonFields):
    """A figure `before` and `now`, and the `difference` now minus before; None where nothing is measured.

    `adjusted_p` is corrected by Holm for the number of changes of the same family: the four figures, the
    kinds, or the groups of names. None where neither release has anything to test.
    """

    json_keys: ClassVar = "before now difference adjusted_p verdict"

    before: float | None
    now: float | None
    difference: Estimate
    adjusted_p: float | None = None

    @property
    def verdict(self) -> Verdict:
        """Better or worse only where the interval leaves 0 out, and the corrected test finds it, if any."""
        if self.difference.value is None or (self.difference.interval is None and self.adjusted_p is None):
            return "not measured"
        # What changed alike on every prompt has no interval, and the test alone decides.
        if not proven(self.adjusted_p, self.difference.excludes_zero):
            return "no clear change"
        return "better" if self.difference.value < 0 else "worse"


@dataclass(frozen=True, slots=True)
class PromptChange(JsonFields):
    """A prompt with the worst of its images in each release; `change` is in u, more than 0 is worse.

    `images`, before and now, are kept of the prompts that changed most, else None.
    """

    json_keys: ClassVar = "prompt before=before_u now=now_u change"

    prompt: str
    before_u: float
    now_u: float
    images: tuple[AuditedImage, AuditedImage] | None = None

    @property
    def change(self) -> float:
        return self.now_u - self.before_u


@dataclass(frozen=True, slots=True)
class Release:
    """One generator now and before.

    `images` are those of before and now that count. `paired` is over how many prompts differences are taken,
    None where they are not paired. `drawn_from` says how many prompts, or groups of prompts or images that
    belong together, resamples are drawn from: the smaller number where releases are not paired. `kinds` and
    `groups` are shares of images with such an anomaly, not measured where one of the releases does not record
    kinds. Of the `shared` prompts `n_worse` got worse and `n_better` got better; `worse` and `better` are
    those that changed most, at most a hundred each. `judged` are the images of before and now that people
    judged, where they corrected the figures and kinds, else None. `untrusted` says why they did not, though
    they began to, `passed_over` which images of a sample they left out; both are empty otherwise.
    """

    name: str
    images: tuple[int, int]
    paired: int | None
    drawn_from: int
    figures: Mapping[FigureName, Change]
    kinds: Mapping[Kind | None, Change]
    groups: tuple[tuple[NameGroup, Change], ...]
    worse: tuple[PromptChange, ...]
    better: tuple[PromptChange, ...]
    shared: int
    n_worse: int
    n_better: int
    judged: tuple[int, int] | None = None
    untrusted: str = ""
    passed_over: str = ""

    @property
    def too_few(self) -> bool:
        """Whether there are too few prompts, unpaired images, or groups of them, for any interval."""
        return self.drawn_from < FEWEST_SHARED

    @property
    def compares_groups(self) -> bool:
        """Whether any group of names has a verdict."""
        return any(change.verdict != "not measured" for _, change in self.groups)

    def changed_groups(self, verdict: Verdict) -> list[tuple[NameGroup, Change]]:
        """Those with this verdict, the largest change first."""
        groups = [each for each in self.groups if each[1].verdict == verdict]
        return sorted(groups, key=lambda each: -abs(each[1].difference.value or 0))

    def to_json(self) -> dict[str, Any]:
        return {
            **json_of(self, "images judged paired figures"),
            "kinds": {kind or NO_KIND: change.to_json() for kind, change in self.kinds.items()},
            "groups": [
                {"kind": group.kind, "name": group.name, **change.to_json()} for group, change in self.groups
            ],
            "prompts": json_of(self, "shared n_worse n_better worse better"),
        }


def compare_releases(
    now: Generator, before: Generator, groups: NameGroups, *, resamples: int, seed: int
) -> Release:
    """What changed, with `Release.groups` in the order of `groups`, the most frequent first.

    `groups` are those of the audit, with the anomalies of `before` under `before_name` of its name. Without
    resamples nothing has an interval, and so no verdict.
    """
    number = min(MOST_GROUPS, len(groups.groups))
    releases = (before.aggregate, now.aggregate)
    keys = [each.row_keys for each in releases]
    shared = sorted(set(keys[0]) & set(keys[1]))
    paired = len(shared) >= FEWEST_SHARED or (bool(shared) and set(keys[0]) == set(keys[1]))
    columns = [
        _columns(aggregate, groups.of_anomaly[name], number)
        for aggregate, name in zip(releases, (before_name(now.name), now.name), strict=True)
    ]
    tables = [
        _by_prompt(each, own, shared) if paired else each for each, own in zip(columns, keys, strict=True)
    ]
    tables = _by_group(tables, releases, shared if paired else None)
    values = [_figures(table.sum(axis=0)[None])[0] for table in tables]
    differences = values[1] - values[0]
    intervals, figure_tests = _intervals(tables, paired=paired, resamples=resamples, seed=seed)
    kinds_from = len(FIGURES)
    groups_from = kinds_from + len(KIND_BITS)
    _leave_out_unrecorded(values, differences, releases, groups.groups[:number])
    p_values = _p_values(tables, paired=paired)
    visible, *others = [
        p if ends is not None and not np.isnan(gap) else None
        for p, ends, gap in zip(
            p_values,
            [intervals[0], *intervals[kinds_from:]],
            [differences[0], *differences[kinds_from:]],
            strict=True,
        )
    ]
    families = ([visible, *figure_tests], others[: len(KIND_BITS)], others[len(KIND_BITS) :])
    adjusted = [p for family in families for p in holm(family)]
    changes = [
        Change(_known(first), _known(second), Estimate(_known(gap), None if np.isnan(gap) else ends), p)
        for first, second, gap, ends, p in zip(*values, differences, intervals, adjusted, strict=True)
    ]
    placed = _placed(now.aggregate, before.aggregate)
    worse = [each for each in placed if each.change > _NO_CHANGE]
    better = [each for each in reversed(placed) if each.change < -_NO_CHANGE]
    return Release(
        now.name,
        (before.aggregate.images, now.aggregate.images),
        len(shared) if paired else None,
        min(map(len, tables)),
        dict(zip(FIGURES, changes, strict=False)),
        dict(zip(KIND_BITS, changes[kinds_from:groups_from], strict=True)),
        tuple(zip(groups.groups[:number], changes[groups_from:], strict=True)),
        _listed(worse[:MOST_LISTED], now, before),
        _listed(better[:MOST_LISTED], now, before),
        len(placed),
        len(worse),
        len(better),
    )


def before_name(name: str) -> str:
    """What the earlier release of a generator is called among all that are grouped and checked together."""
    return f"{name}, before"


def _columns(aggregate: Aggregate, groups: NDArray[np.int32], number: int) -> Floats:
    """A row an image: itself, its anomalies and their implausibility, then 0 or 1 for each thing it shows."""
    counts = np.asarray(aggregate.counts, dtype=np.float64)
    unreal = counts - np.asarray(aggregate.severity_sums, dtype=np.float64) / 100
    own = np.stack([np.ones(len(counts)), counts, unreal], axis=1)
    return np.concatenate([own, mark_columns(aggregate), group_columns(aggregate, groups, number)], axis=1)


def _by_prompt(columns: Floats, keys: Sequence[int], shared: Sequence[int]) -> Floats:
    table = np.zeros((len(shared), columns.shape[1]))
    place = {key: number for number, key in enumerate(shared)}
    kept = [number for number, key in enumerate(keys) if key in place]
    np.add.at(table, [place[keys[number]] for number in kept], columns[kept])
    return table


def _by_group(
    tables: Sequence[Floats], releases: Sequence[Aggregate], shared: Sequence[int] | None
) -> list[Floats]:
    """The same tables with a row for each group of rows that belong together.

    `shared` are the keys of their rows, or None where there is a row an image. Prompts of which images are in
    one group, in either release, are together.
    """
    if any(release.prompts is None for release in releases):
        return list(tables)
    if shared is None:
        return [
            sums_by_group(table, group_codes(release.prompt_keys))
            for table, release in zip(tables, releases, strict=True)
        ]
    place = {key: number for number, key in enumerate(shared)}
    links = {
        (place[key], group)
        for release in releases
        for key, group in zip(release.row_keys, release.prompt_keys, strict=True)
        if key in place
    }
    codes = linked_codes([row for row, _ in links], group_codes(group for _, group in links), len(shared))
    return [sums_by_group(table, codes) for table in tables]


def linked_codes(rows: Sequence[int], groups: Codes, size: int) -> Codes:
    """For each of `size` rows the number of what it is linked with through groups, from 0."""
    from scipy.sparse import coo_array  # type: ignore[import-untyped]  # slow to import
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    nodes = size + int(groups.max(initial=-1)) + 1
    graph = coo_array((np.ones(len(rows), np.int8), (rows, size + groups)), shape=(nodes, nodes))
    _, labels = connected_components(graph, directed=False)
    return group_codes(labels[:size].tolist())


def _figures(sums: Floats) -> Floats:
    """From sums to the figures in order: `FIGURES`, kinds, groups; NaN without an image."""
    images, anomalies, unreal = sums[:, 0], sums[:, 1], sums[:, 2]
    with np.errstate(invalid="ignore", divide="ignore"):
        af, mai = anomalies / images, unreal / images
        shares = sums[:, 3:] / images[:, None]
    visible, others = shares[:, VISIBLE_BIT], shares[:, VISIBLE_BIT + 1 :]
    figures: Floats = np.concatenate([np.stack([visible, af, mai, mai * af], axis=1), others], axis=1)
    return figures


def _intervals(
    tables: Sequence[Floats], *, paired: bool, resamples: int, seed: int
) -> tuple[list[Interval | None], list[float | None]]:
    """Of all columns, and p-values of `FIGURES` but the first."""
    columns = len(FIGURES) + tables[0].shape[1] - 4
    if not resamples or min(map(len, tables)) < FEWEST_SHARED:
        return [None] * columns, [None] * (len(FIGURES) - 1)
    if paired:
        sums = resampled_sums(
            np.concatenate(tables, axis=1), np.random.default_rng(seed), resamples=resamples
        )
        first, second = np.split(sums, 2, axis=1)
    else:
        first, second = (
            resampled_sums(table, np.random.default_rng([seed, number]), resamples=resamples)
            for number, table in enumerate(tables)
        )
    drawn = percentile_intervals(_figures(second) - _figures(first))
    shares = [drawn[0], *drawn[len(FIGURES) :]]
    shares = [
        _share_interval(tables[0][:, [0, 3 + place]], tables[1][:, [0, 3 + place]], ends, paired=paired)
        for place, ends in enumerate(shares)
    ]
    ends = [shares[0], *drawn[1 : len(FIGURES)], *shares[1:]]
    return ends, _figure_tests(_figures(first), _figures(second), tables)


def _figure_tests(before: Floats, now: Floats, tables: Sequence[Floats]) -> list[float | None]:
    """A p-value for each of `FIGURES` but the first, which is a share; from resamples.

    Of CAP, the product of two means, the roots are compared, which vary more evenly.
    """
    first, second = (_figures(table.sum(axis=0)[None])[0] for table in tables)
    p_values: list[float | None] = []
    for place, name in enumerate(FIGURES[1:], start=1):
        scale = np.sqrt if name == "cap" else np.asarray
        drawn = scale(now[:, place]) - scale(before[:, place])
        gap = float(scale(second[place]) - scale(first[place]))
        p_values.append(resampled_t_test(gap, drawn, min(map(len, tables))))
    return p_values


def _share_interval(before: Floats, now: Floats, drawn: Interval | None, *, paired: bool) -> Interval | None:
    """Newcombe's of one share, `drawn` where prompts have several images; both have images and those that
    show it, a row a prompt or image."""
    rows, other_rows = len(now), len(before)
    if (now[:, 0] == 1).all() and (before[:, 0] == 1).all():
        shown, shown_before = now[:, 1] == 1, before[:, 1] == 1
        if not paired:
            return unpaired_interval(int(shown.sum()), rows, int(shown_before.sum()), other_rows)
        both, only_now = int((shown & shown_before).sum()), int((shown & ~shown_before).sum())
        only_before = int((~shown & shown_before).sum())
        return paired_interval(both, only_now, only_before, rows - both - only_now - only_before)
    shares = [table[:, 1].sum() / table[:, 0].sum() for table in (now, before)]
    if all(share in (0, 1) for share in shares):
        # A bootstrap has no width here: as if each prompt had one image.
        return unpaired_interval(int(shares[0]) * rows, rows, int(shares[1]) * other_rows, other_rows)
    return drawn


def _leave_out_unrecorded(
    values: Sequence[Floats], differences: Floats, releases: Sequence[Aggregate], groups: Sequence[NameGroup]
) -> None:
    """NaN for shares of kinds that a release does not record, and for groups that only one could be in."""
    records = [each.records_kinds for each in releases]
    kinds = (*KIND_BITS, *(group.kind for group in groups))
    for place, kind in enumerate(kinds, start=len(FIGURES)):
        is_group = place >= len(FIGURES) + len(KIND_BITS)
        for own, known in zip(values, records, strict=True):
            if kind is not None and not known:
                own[place] = np.nan
        if is_group and records[0] != records[1]:
            differences[place] = np.nan
    differences[np.isnan(values[0]) | np.isnan(values[1])] = np.nan


def _p_values(tables: Sequence[Floats], *, paired: bool) -> list[float | None]:
    """How likely such a change of each share is by chance, of visible faults, kinds and groups in order; None
    where it is 0 in both."""
    before, now = tables
    counts, counts_before = now[:, 3 + VISIBLE_BIT :], before[:, 3 + VISIBLE_BIT :]
    if paired:
        gaps = counts / now[:, :1] - counts_before / before[:, :1]
        p_values = mcnemar_exact((gaps > 0).sum(axis=0), (gaps < 0).sum(axis=0)).tolist()
    else:
        sizes = np.array([now[:, 0].sum(), before[:, 0].sum()]).astype(np.int64)
        hits = np.stack([counts.sum(axis=0), counts_before.sum(axis=0)]).astype(np.int64)
        p_values = [float(against_the_rest(each, sizes)[0]) for each in hits.T]
    totals = (counts.sum(axis=0) + counts_before.sum(axis=0)).tolist()
    return [p if total else None for p, total in zip(p_values, totals, strict=True)]


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


class _Placed(NamedTuple):
    """The worst image of a prompt in each release: its place among those that count, and its u."""

    before: int
    now: int
    before_u: float
    now_u: float

    @property
    def change(self) -> float:
        return self.now_u - self.before_u


def _placed(now: Aggregate, before: Aggregate) -> list[_Placed]:
    """All shared prompts, the most worsened first; of equal ones that first which is so in the records."""
    theirs = _worst_by_key(before)
    placed = [
        _Placed(theirs[key][1], place, theirs[key][0], u)
        for key, (u, place) in _worst_by_key(now).items()
        if key in theirs
    ]
    return sorted(placed, key=lambda each: -each.change)


def _worst_by_key(aggregate: Aggregate) -> dict[int, tuple[float, int]]:
    u = (np.asarray(aggregate.counts) - np.asarray(aggregate.severity_sums) / 100).tolist()
    worst: dict[int, tuple[float, int]] = {}
    for place, (key, value) in enumerate(zip(aggregate.row_keys, u, strict=True)):
        if key not in worst or value > worst[key][0]:
            worst[key] = (value, place)
    return worst


def _listed(placed: Sequence[_Placed], now: Generator, before: Generator) -> tuple[PromptChange, ...]:
    """By name; the first few have their images."""
    pictured = placed[:MOST_PICTURED]
    earlier = _records(before, [each.before for each in pictured])
    later = _records(now, [each.now for each in placed])
    changes = []
    for number, each in enumerate(placed):
        record, old = later.get(each.now), earlier.get(each.before)
        if record is None:
            continue  # written over since
        images = (
            (before.aggregate.image(old), now.aggregate.image(record))
            if number < MOST_PICTURED and old is not None
            else None
        )
        changes.append(PromptChange(now.aggregate.pairing.row_of(record), each.before_u, each.now_u, images))
    return tuple(changes)


def _records(generator: Generator, places: Sequence[int]) -> dict[int, Annotation]:
    try:
        return generator.records(places)
    except UsageError:
        return {}
