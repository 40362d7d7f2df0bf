"""How many of a generator's images show a fault: a visible one, one of each kind, one of each group of names.

Shares of images, so that one image with ten faults counts once: what somebody who looks at pictures will
meet. A fault is visible below severity 50, the half of the scale for what cannot be or hardly ever is; above
it are slight oddities. Not from the paper. Intervals are Wilson's where images are independent, as the only
one of their prompt is; where prompts have several images, prompts are resampled, and what no image shows, or
all do, has Wilson's of the number of prompts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.audit.data.aggregate import KIND_BITS, VISIBLE_BIT, Aggregate
from uncanny.eval.audit.data.names import NameGroup, NameGroups
from uncanny.eval.common.estimates import Share, wilson_share
from uncanny.eval.common.json_fields import JsonFields, json_of
from uncanny.eval.metrics.intervals import (
    percentile_intervals,
    resampled_sums,
)
from uncanny.schema import Kind

Bools = NDArray[np.bool_]

# Groups that are counted by generator; the rest is told by number.
MOST_GROUPS: Final = 200
NO_KIND: Final = "not recorded"


@dataclass(frozen=True, slots=True)
class KindShare:
    """Of one generator: the share of its images with an anomaly of this kind, and such `anomalies`.

    The share has no value where the generator's anomalies bear no kinds.
    """

    share: Share
    anomalies: int

    def to_json(self) -> dict[str, Any]:
        return {**share_json(self.share), "anomalies": self.anomalies}


@dataclass(frozen=True, slots=True)
class ImageFaults:
    """One generator. `kinds` has an entry for each kind, None for anomalies without one; see `Share`.

    The share of images with a `visible` fault is 0–1, lower is better; None without images.
    """

    visible: Share = field(default_factory=lambda: Share(None, 0, 0))
    kinds: Mapping[Kind | None, KindShare] = field(default_factory=dict)

    @property
    def without_kind(self) -> int:
        """Anomalies whose record names no kind."""
        return self.kinds[None].anomalies if None in self.kinds else 0


@dataclass(frozen=True, slots=True)
class GroupShares:
    """A group of names, and by generator the share of images with an anomaly of it."""

    group: NameGroup
    shares: Mapping[str, Share]

    def to_json(self) -> dict[str, Any]:
        shares = {name: share_json(share) for name, share in self.shares.items()}
        group = json_of(self.group, "kind name also=others names anomalies")
        return {**group, "generators": shares}


@dataclass(frozen=True, slots=True)
class Faults(JsonFields):
    """What is wrong in all generators, grouped by kind and similar names, most anomalies first.

    `more_groups` with `more_anomalies` are beyond those counted here, and `rare_anomalies` bear one of the
    `rare_names` that were compared with no other. `measure` and `similar` say how names were grouped.
    """

    json_keys: ClassVar = (
        "similarity=measure threshold=similar groups=rows more_groups more_anomalies rare_names "
        "rare_anomalies"
    )

    rows: tuple[GroupShares, ...] = ()
    more_groups: int = 0
    more_anomalies: int = 0
    rare_names: int = 0
    rare_anomalies: int = 0
    measure: str = "chrf"
    similar: float = 0.0


def share_json(share: Share) -> dict[str, Any]:
    return json_of(share, "share=value images=counts ci=interval")


def mark_columns(aggregate: Aggregate) -> Bools:
    """Shape (images, 1 + kinds + 1): a visible fault, an anomaly of each kind, one without a kind."""
    marks = np.asarray(aggregate.marks, dtype=np.int64)[:, None]
    columns: Bools = (marks >> np.arange(VISIBLE_BIT, 1 + len(KIND_BITS))) & 1 == 1
    return columns


def group_columns(aggregate: Aggregate, groups: NDArray[np.int32], number: int) -> Bools:
    """Shape (images, number): whether an image has an anomaly of each of the first groups."""
    columns = np.zeros((aggregate.images, number), np.bool_)
    image = np.repeat(np.arange(aggregate.images), np.asarray(aggregate.counts, dtype=np.int64))
    chosen = (groups >= 0) & (groups < number)
    columns[image[chosen], groups[chosen]] = True
    return columns


def find_faults(
    aggregates: Mapping[str, Aggregate], groups: NameGroups, *, resamples: int, seed: int
) -> tuple[dict[str, ImageFaults], Faults]:
    """What each generator's images show, by its name, and the groups of names over all of them.

    Without intervals where `resamples` is 0. A generator whose anomalies bear no kinds has no share of a
    kind, and none of a group of names that has one: it could not be in it.
    """
    number = min(MOST_GROUPS, len(groups.groups))
    faults: dict[str, ImageFaults] = {}
    by_group: list[dict[str, Share]] = [{} for _ in range(number)]
    for name, aggregate in aggregates.items():
        columns = np.concatenate(
            [mark_columns(aggregate), group_columns(aggregate, groups.of_anomaly[name], number)], axis=1
        )
        shares = image_shares(columns, aggregate.prompt_keys, resamples=resamples, seed=seed)
        kinds: Counter[Kind | None] = Counter()
        for (kind, _), names in aggregate.name_keys.items():
            kinds[kind] += names.anomalies

        def recorded(kind: Kind | None, share: Share, known: bool = aggregate.records_kinds) -> Share:
            return share if known or kind is None else Share(None, 0, 0)

        faults[name] = ImageFaults(
            shares[VISIBLE_BIT],
            {kind: KindShare(recorded(kind, shares[bit]), kinds[kind]) for kind, bit in KIND_BITS.items()},
        )
        for place, share in enumerate(shares[1 + len(KIND_BITS) :]):
            by_group[place][name] = recorded(groups.groups[place].kind, share)
    rows = tuple(map(GroupShares, groups.groups, by_group))
    more = groups.groups[number:]
    return faults, Faults(
        rows,
        len(more),
        sum(group.anomalies for group in more),
        groups.rare_names,
        groups.rare_anomalies,
        groups.measure,
        groups.similar,
    )


def image_shares(columns: Bools, prompts: Sequence[str], *, resamples: int, seed: int) -> tuple[Share, ...]:
    """The share of images for each of `columns`, shape (images, shares).

    `prompts` has the prompt of each image, or is empty where nothing is paired. There are no intervals where
    `resamples` is 0, and where all images are of one prompt; without images no share has a value.
    """
    images = len(columns)
    if not images:
        return tuple(Share(None, 0, 0) for _ in range(columns.shape[1]))
    counts = columns.sum(axis=0).tolist()
    clusters = {prompt: number for number, prompt in enumerate(dict.fromkeys(prompts))}
    independent = len(clusters) in (0, images)
    if not resamples or independent or len(clusters) < 2:
        wanted = resamples > 0 and independent
        return tuple(wilson_share(count, images, interval=wanted) for count in counts)
    table = np.zeros((len(clusters), columns.shape[1] + 1))
    np.add.at(table, [clusters[prompt] for prompt in prompts], np.c_[columns, np.ones(images)])
    sums = resampled_sums(table, np.random.default_rng(seed), resamples=resamples)
    prompts_drawn = [len(clusters)] * columns.shape[1]
    ends = percentile_intervals(sums[:, :-1] / sums[:, -1:], images=prompts_drawn)
    return tuple(Share(count / images, count, images, each) for count, each in zip(counts, ends, strict=True))
