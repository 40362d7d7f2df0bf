"""Which identities are for training and which for testing, and whose images of them are annotated.

An identity is a prompt with its real image and the images that all generators made from it. Source: X-AIGD,
appendix A.3: half of the identities are for testing; in each half 200 of each generator are annotated, 100 of
which are the same for all generators and 100 belong to one generator alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.described import TextSource, load_texts
from uncanny.eval.common.tables.table import Table
from uncanny.eval.curate.parameters import SplitParameters
from uncanny.eval.curate.result import CuratedResult, check_suffix
from uncanny.parameters import takes
from uncanny.wording import counted, option

Part = Literal["train", "test"]


class SplitIdentity(NamedTuple):
    """An identity, the set that all of its images are in, and the generators whose image of it is annotated.

    `shared` is whether it is one of those that all generators of the set have annotated.
    """

    id: str
    split: Part
    annotated: tuple[str, ...]
    shared: bool


@dataclass(frozen=True, slots=True, repr=False)
class Split(CuratedResult):
    """All identities, `by_id` in the order in which they were given."""

    columns: ClassVar = SplitIdentity._fields

    by_id: Mapping[str, SplitIdentity]
    generators: Mapping[Part, tuple[str, ...]]
    seed: int

    @property
    def identities(self) -> tuple[SplitIdentity, ...]:
        return tuple(self.by_id.values())

    def __getitem__(self, identity: str) -> SplitIdentity:
        """By its id. Raises KeyError for an unknown one."""
        return self.by_id[identity]

    def records(self, folder: Path | None = None) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002
        return [{**each._asdict(), "annotated": list(each.annotated)} for each in self.identities]

    def to_json(self) -> dict[str, Any]:
        return {
            **{part: self._counts(part) for part in self.generators},
            "seed": self.seed,
        }

    def _counts(self, part: Part) -> dict[str, Any]:
        own = [each for each in self.identities if each.split == part]
        return {
            "identities": len(own),
            "shared": sum(each.shared for each in own),
            "annotated": {
                name: sum(name in each.annotated for each in own) for name in self.generators[part]
            },
        }

    def tables(self) -> tuple[Table, ...]:
        rows = []
        for part in self.generators:
            counts = self._counts(part)
            images = sum(counts["annotated"].values())
            rows.append((part, counts["identities"], counts["shared"], len(counts["annotated"]), images))
        heads = ("", "identities", "shared", "generators", "annotated images")
        return (Table(heads, tuple(rows), notes=(f"Seed {self.seed}.",)),)


@takes(SplitParameters)
def split(identities: TextSource, parameters: SplitParameters) -> Split:
    """Split identities into a training and a test set, and choose whose images are annotated.

    `identities` are as for `filter`; only their ids count, and not their order. No identity is in both
    sets. In each set, `shared` identities are annotated for all of its generators and `own` others for each.

    Raises ItemsError and UsageError for what cannot be read, for generators that are named twice, training
    generators that are not generators, and for sets with too few identities.

    >>> identities = [uncanny.edits.DescribedImage(id=str(number)) for number in range(12)]
    >>> split = uncanny.curate.split(identities, generators=["A", "B"], train=["A"], shared=2, own=1)
    >>> split.to_json()["test"]["annotated"], split.to_json()["train"]["annotated"]
    ({'A': 3, 'B': 3}, {'A': 3})

    Source: X-AIGD, appendix A.3.
    """
    if parameters.out is not None:
        check_suffix(Path(parameters.out))
    generators = tuple(parameters.generators)
    train = generators if parameters.train is None else tuple(parameters.train)
    for name, some in (("generators", generators), ("train", train)):
        if len(set(some)) < len(some):
            raise UsageError(f"{option(name)} names a generator twice", remedy="Name each once.")
    if unknown := [name for name in train if name not in generators]:
        raise UsageError(
            f"{unknown[0]} is not one of the generators {', '.join(generators)}",
            remedy=f"Name it with {option('generators')}, too, or leave it out.",
        )
    ids = [each.id for each in load_texts(identities).images]
    in_order = sorted(ids)
    order = [in_order[place] for place in np.random.default_rng(parameters.seed).permutation(len(ids))]
    n_test = round(parameters.test_share * len(ids))
    parts: dict[Part, tuple[list[str], tuple[str, ...]]] = {
        "train": (order[n_test:], train),
        "test": (order[:n_test], generators),
    }
    found: dict[str, SplitIdentity] = {}
    for part, (own, names) in parts.items():
        needed = parameters.shared + parameters.own * len(names)
        if needed > len(own):
            raise UsageError(
                f"The {part} set has {len(own):,} identities, and {needed:,} are needed for "
                f"{counted(len(names), 'generator')}",
                remedy=f"Pass a smaller {option('shared')} or {option('own')}, or more identities.",
            )
        for place, identity in enumerate(own):
            shared = place < parameters.shared
            number = -1 if shared else (place - parameters.shared) // max(parameters.own, 1)
            alone = names[number : number + 1] if parameters.own and 0 <= number < len(names) else ()
            found[identity] = SplitIdentity(identity, part, names if shared else alone, shared)
    result = Split({each: found[each] for each in ids}, {"train": train, "test": generators}, parameters.seed)
    if parameters.out is not None:
        result.write(parameters.out)
    return result
