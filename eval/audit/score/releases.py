"""Release over release: what became of a generator since its runs of before, on the same prompts.

Differences are now minus before, so that less than 0 is better. They are taken over the prompts that both
releases have, and prompts are resampled with their images of both. Prompts are told by `pair_by`, else by
file name: where that is a wrong guess the pairing costs sharpness, and the intervals still hold. With fewer
than ten prompts in common all images are compared, unpaired. Not from the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.audit.data.aggregate import KIND_BITS, VISIBLE_BIT, Aggregate, AuditedImage
from uncanny.eval.audit.data.load import Generator
from uncanny.eval.audit.data.names import NameGroup, NameGroups
from uncanny.eval.audit.score.faults import NO_KIND, group_columns, mark_columns
from uncanny.eval.audit.score.resample import FEWEST_SHARED
from uncanny.eval.common.estimates import Estimate, interval_json
from uncanny.eval.metrics.intervals import LEVEL, percentile_intervals, resampled_sums
from uncanny.schema import Annotation, Kind

Floats = NDArray[np.float64]

Verdict = Literal["better", "worse", "no clear change", "not measured"]
ReleaseFigure = Literal["visible", "af", "mai", "cap"]
FIGURES: Final[tuple[ReleaseFigure, ...]] = ("visible", "af", "mai", "cap")
# Groups of names whose change is measured: the most frequent ones.
MOST_GROUPS: Final = 60
# Prompts that are named, and those of them with pictures: so many that got worse, and that got better.
MOST_LISTED: Final = 100
MOST_PICTURED: Final = 4
_NO_CHANGE: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Change:
    """A figure `before` and `now`, and the `difference` now minus before; None where nothing is measured."""

    before: float | None
    now: float | None
    difference: Estimate

    @property
    def verdict(self) -> Verdict:
        """Better or worse only where the interval of the difference leaves 0 out."""
        if self.difference.value is None or self.difference.interval is None:
            return "not measured"
        if not self.difference.excludes_zero:
            return "no clear change"
        return "better" if self.difference.value < 0 else "worse"

    def to_json(self) -> dict[str, Any]:
        return {
            "before": self.before,
            "now": self.now,
            "difference": self.difference.value,
            "ci": interval_json(self.difference),
            "verdict": self.verdict,
        }


@dataclass(frozen=True, slots=True)
class PromptChange:
    """A prompt with the worst of its images in each release; `change` is in u, more than 0 is worse.

    `images`, before and now, are kept of the prompts that changed most, else None.
    """

    prompt: str
    before_u: float
    now_u: float
    images: tuple[AuditedImage, AuditedImage] | None = None

    @property
    def change(self) -> float:
        return self.now_u - self.before_u

    def to_json(self) -> dict[str, Any]:
        return {"prompt": self.prompt, "before": self.before_u, "now": self.now_u, "change": self.change}


@dataclass(frozen=True, slots=True)
class Release:
    """One generator now and before.

    `images` are those of before and now that count. `paired` is over how many prompts differences are taken,
    None where they are not paired. `kinds` and `groups` are shares of images with such an anomaly. Of the
    `shared` prompts `n_worse` got worse and `n_better` got better; `worse` and `better` are those that
    changed most, at most a hundred each.
    """

    name: str
    images: tuple[int, int]
    paired: int | None
    figures: Mapping[ReleaseFigure, Change]
    kinds: Mapping[Kind | None, Change]
    groups: tuple[tuple[NameGroup, Change], ...]
    worse: tuple[PromptChange, ...]
    better: tuple[PromptChange, ...]
    shared: int
    n_worse: int
    n_better: int

    def changed_groups(self, verdict: Verdict) -> list[tuple[NameGroup, Change]]:
        """Those with this verdict, the largest change first."""
        groups = [each for each in self.groups if each[1].verdict == verdict]
        return sorted(groups, key=lambda each: -abs(each[1].difference.value or 0))

    def to_json(self) -> dict[str, Any]:
        return {
            "images": list(self.images),
            "paired": self.paired,
            "figures": {name: change.to_json() for name, change in self.figures.items()},
            "kinds": {kind or NO_KIND: change.to_json() for kind, change in self.kinds.items()},
            "groups": [
                {"kind": group.kind, "name": group.name, **change.to_json()} for group, change in self.groups
            ],
            "prompts": {
                "shared": self.shared,
                "n_worse": self.n_worse,
                "n_better": self.n_better,
                "worse": [each.to_json() for each in self.worse],
                "better": [each.to_json() for each in self.better],
            },
        }


def compare_releases(
    now: Generator, before: Generator, groups: NameGroups, *, resamples: int, seed: int
) -> Release:
    """`groups` are those of the audit, with the anomalies of `before` under `before_name` of its name."""
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
    values = [_figures(table.sum(axis=0)[None])[0] for table in tables]
    differences = values[1] - values[0]
    intervals = _intervals(tables, paired=paired, resamples=resamples, seed=seed)
    changes = [
        Change(_known(first), _known(second), Estimate(_known(gap), None if np.isnan(gap) else ends))
        for first, second, gap, ends in zip(*values, differences, intervals, strict=True)
    ]
    kinds_from = len(FIGURES)
    groups_from = kinds_from + len(KIND_BITS)
    placed = _placed(now.aggregate, before.aggregate)
    worse = [each for each in placed if each.change > _NO_CHANGE]
    better = [each for each in reversed(placed) if each.change < -_NO_CHANGE]
    return Release(
        now.name,
        (before.aggregate.images, now.aggregate.images),
        len(shared) if paired else None,
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
) -> list[tuple[float, float] | None]:
    columns = len(FIGURES) + tables[0].shape[1] - 4
    if not resamples or min(map(len, tables)) < 2:
        return [None] * columns
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
    return percentile_intervals(_figures(second) - _figures(first), level=LEVEL)


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


@dataclass(frozen=True, slots=True)
class _Placed:
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
    ours, theirs = _worst_by_key(now), _worst_by_key(before)
    placed = [
        _Placed(theirs[key][1], place, theirs[key][0], u) for key, (u, place) in ours.items() if key in theirs
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
        changes.append(PromptChange(now.aggregate.row_key(record), each.before_u, each.now_u, images))
    return tuple(changes)


def _records(generator: Generator, places: Sequence[int]) -> dict[int, Annotation]:
    lines = {generator.aggregate.places[place]: place for place in places}
    try:
        records = generator.opened.records_at(set(lines)) if generator.opened else {}
    except UsageError:
        return {}
    return {lines[line]: record for line, record in records.items()}
