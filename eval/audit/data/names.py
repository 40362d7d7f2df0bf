"""Anomalies grouped by what they are about: the kind, then names that are similar.

Assessors call one fault by many names: "extra finger", "extra fingers", "hand with six fingers". Within a
kind each name, the most frequent first, joins the group whose first name it is most similar to, or begins
one. All generators share the groups, so that they stand side by side. The measure is lexical unless another
is chosen: it joins ways of writing, not synonyms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.audit.data.aggregate import Aggregate, NameKey
from uncanny.eval.common.similarity.base import Similarity, TextPairs
from uncanny.schema import Kind

# From which similarity on, 0-1, names are about the same, by measure: looked at on names of models.
SIMILAR: Final[Mapping[str, float]] = {"chrf": 0.6, "bertscore": 0.9}
OTHER_SIMILAR: Final = 0.8
# So many names of a kind are compared, the most frequent ones: all with all is a third of a second.
MOST_COMPARED: Final = 500
MOST_MEMBERS: Final = 8


@dataclass(frozen=True, slots=True)
class NameGroup:
    """Names of one `kind`, None where none is recorded, called by the most frequent one, `name`.

    `others` are up to eight further names of the `names` in the group, the most frequent first. `anomalies`
    are those of all generators together.
    """

    kind: Kind | None
    name: str
    others: tuple[str, ...]
    names: int
    anomalies: int


@dataclass(frozen=True, slots=True, eq=False)
class NameGroups:
    """All groups, the one with most anomalies first, and how they were made.

    `of_anomaly` has, by generator, the place of the group of each anomaly, in the order of its images; -1 for
    the `rare_anomalies` of the `rare_names` that are beyond what is compared.
    """

    groups: tuple[NameGroup, ...]
    of_anomaly: Mapping[str, NDArray[np.int32]]
    rare_names: int
    rare_anomalies: int
    measure: str
    similar: float


def group_names(
    aggregates: Mapping[str, Aggregate], measure: Similarity, similar: float | None = None
) -> NameGroups:
    """The groups of all names, most anomalies first, and by generator the group of each of its anomalies.

    `measure` says how similar two names are; from `similar` on, 0–1, they are in one group: `SIMILAR` of the
    measure unless it is given. Names of two kinds, or with and without one, never are.
    """
    called = str(measure.described.get("measure", "own"))
    least = SIMILAR.get(called, OTHER_SIMILAR) if similar is None else similar
    keys = {name: aggregate.name_keys for name, aggregate in aggregates.items()}
    often: Counter[NameKey] = Counter()
    spelled: dict[NameKey, Counter[str]] = {}
    for names in keys.values():
        for key, name in names.items():
            often[key] += name.anomalies
            spelled.setdefault(key, Counter())[name.name] += name.anomalies
    by_kind: dict[Kind | None, list[NameKey]] = {}
    for key, _ in sorted(often.items(), key=lambda item: (-item[1], item[0][1])):
        by_kind.setdefault(key[0], []).append(key)
    compared = [of_kind[:MOST_COMPARED] for of_kind in by_kind.values()]
    texts = [[folded for _, folded in of_kind] for of_kind in compared]
    members: list[list[NameKey]] = []
    matrices = measure.matrices(TextPairs(each, each) for each in texts)
    for of_kind, matrix in zip(compared, matrices, strict=True):
        members += [[of_kind[place] for place in group] for group in _groups((matrix + matrix.T) / 2, least)]
    members.sort(key=lambda group: -sum(often[key] for key in group))
    place_of = {key: place for place, group in enumerate(members) for key in group}
    groups = tuple(_group(group, often, spelled) for group in members)
    of_anomaly = {}
    for generator, own in keys.items():
        places = np.asarray([place_of.get(key, -1) for key in own], dtype=np.int32)
        of_anomaly[generator] = places[np.asarray(aggregates[generator].name_numbers, dtype=np.int64)]
    rare = [key for of_kind in by_kind.values() for key in of_kind[MOST_COMPARED:]]
    return NameGroups(groups, of_anomaly, len(rare), sum(often[key] for key in rare), called, least)


def _groups(similar: NDArray[np.float64], least: float) -> list[list[int]]:
    """Places by group; the first one of each leads it."""
    groups: list[list[int]] = []
    for place in range(len(similar)):
        leaders = [group[0] for group in groups]
        best = int(np.argmax(similar[place, leaders])) if leaders else -1
        if best >= 0 and similar[place, leaders[best]] >= least:
            groups[best].append(place)
        else:
            groups.append([place])
    return groups


def _group(
    keys: Sequence[NameKey], often: Mapping[NameKey, int], spelled: Mapping[NameKey, Counter[str]]
) -> NameGroup:
    names = [min(spelled[key].items(), key=lambda item: (-item[1], item[0]))[0] for key in keys]
    others = tuple(names[1 : 1 + MOST_MEMBERS])
    return NameGroup(keys[0][0], names[0], others, len(keys), sum(often[key] for key in keys))
