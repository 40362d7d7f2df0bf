"""Prompts that say the same: clusters by CLIP's text embeddings, and one prompt of each to keep.

Source: AnomReason, section 4.3, which names neither the clustering nor its threshold. Here it is
average-linkage clustering by cosine, and the prompt of a cluster that is most like the others is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.errors import UsageError
from uncanny.eval.common.described import TextSource, load_texts, nothing_to_ask
from uncanny.eval.common.tables.table import Table
from uncanny.eval.curate.parameters import ClusterParameters
from uncanny.eval.curate.result import CuratedResult, check_suffix
from uncanny.parameters import takes
from uncanny.runs.display import counting_to
from uncanny.wording import counted

# Their distances to one another take 1.6 GB.
MOST_PROMPTS: Final = 20_000
_SHOWN: Final = 10


class ClusteredPrompt(NamedTuple):
    """A prompt with the number of its cluster, from 1, the largest first. `kept` is one a cluster, and
    `similarity` the cosine with that one."""

    id: str
    caption: str
    cluster: int
    kept: bool
    similarity: float


@dataclass(frozen=True, slots=True, repr=False)
class PromptClusters(CuratedResult):
    """All prompts in their order; `without` are ids of lines that have no caption."""

    columns: ClassVar = ClusteredPrompt._fields

    prompts: tuple[ClusteredPrompt, ...]
    without: tuple[str, ...]
    threshold: float
    described: Mapping[str, Any] = field(default_factory=dict)

    def records(self, folder: Path | None = None) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002
        return [each._asdict() for each in self.prompts]

    def kept(self) -> list[str]:
        """The ids of the prompts to keep."""
        return [each.id for each in self.prompts if each.kept]

    def to_json(self) -> dict[str, Any]:
        return {
            "prompts": len(self.prompts),
            "clusters": len(self.kept()),
            "without_caption": list(self.without),
            "threshold": self.threshold,
            "model": dict(self.described),
        }

    def tables(self) -> tuple[Table, ...]:
        """The largest clusters by the prompt that is kept."""
        sizes = np.bincount([each.cluster for each in self.prompts])
        kept = sorted((each for each in self.prompts if each.kept), key=lambda each: each.cluster)
        rows = tuple((each.caption, int(sizes[each.cluster])) for each in kept[:_SHOWN])
        notes = [f"{counted(len(self.prompts), 'prompt')} in {counted(len(kept), 'cluster')}."]
        if len(kept) > _SHOWN:
            notes.append(f"The {_SHOWN} largest are shown.")
        if self.without:
            notes.append(f"{len(self.without):,} lines without a caption are in none.")
        return (Table(("kept", "prompts"), rows, notes=tuple(notes)),)


@takes(ClusterParameters)
def cluster(prompts: TextSource, parameters: ClusterParameters) -> PromptClusters:
    """Group prompts that say the same, and choose one of each group, as `uncanny curate cluster` does.

    `prompts` are as for `filter`: a JSON Lines file with an `id` and a `caption` a line, `scenes`, or
    records. Prompts are embedded by the CLIP model in the folder `clip`, which cuts long ones.

    Raises ItemsError and UsageError for what cannot be read, a missing model, and more than 20,000 prompts.

    >>> uncanny.curate.cluster("scenes", clip="models/clip")
    Traceback (most recent call last):
    ...
    uncanny.errors.UsageError: models/clip is not a folder with a CLIP model...

    Source: AnomReason, section 4.3.
    """
    if parameters.out is not None:
        check_suffix(Path(parameters.out))
    texts = load_texts(prompts)
    some = [(each.id, each.caption) for each in texts.images if each.caption is not None]
    if not some:
        raise nothing_to_ask(texts, "a prompt (`caption`)")
    if len(some) > MOST_PROMPTS:
        raise UsageError(
            f"{len(some):,} prompts are more than {MOST_PROMPTS:,}", remedy="Cluster them in parts."
        )
    from uncanny.eval.common.similarity.clip import Clip

    model = Clip(Path(parameters.clip), parameters.device)
    vectors = []
    with counting_to(len(some), "prompts", enabled=parameters.progress) as count:
        for identifier, caption in some:
            vectors.append(model.text(caption))
            count(identifier)
    numbers, centers = clusters_of(np.array(vectors), parameters.threshold)
    table = np.array(vectors)
    result = PromptClusters(
        tuple(
            ClusteredPrompt(
                identifier,
                caption,
                number,
                centers[number - 1] == place,
                min(1.0, float(table[place] @ table[centers[number - 1]])),
            )
            for place, ((identifier, caption), number) in enumerate(zip(some, numbers.tolist(), strict=True))
        ),
        tuple(each.id for each in texts.images if each.caption is None),
        parameters.threshold,
        dict(model.described),
    )
    if parameters.out is not None:
        result.write(parameters.out)
    return result


def clusters_of(vectors: NDArray[np.float64], threshold: float) -> tuple[NDArray[np.int64], list[int]]:
    """The number of each vector's cluster, from 1, the largest first, and the place of each cluster's center.

    `vectors` have length 1. Two clusters are joined while the mean cosine of their members is at least the
    threshold. The center has the highest mean cosine with its cluster; of equals the first one.
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # type: ignore[import-untyped]  # slow to import
    from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

    if len(vectors) == 1:
        return np.ones(1, dtype=np.int64), [0]
    # Rounding must not make a distance negative.
    tree = linkage(np.maximum(pdist(vectors, "cosine"), 0.0), "average")
    found = fcluster(tree, 1 - threshold + 1e-12, "distance")
    members = [np.flatnonzero(found == number) for number in np.unique(found)]
    members.sort(key=lambda own: (-len(own), own[0]))
    numbers = np.empty(len(vectors), dtype=np.int64)
    centers = []
    for number, own in enumerate(members, start=1):
        numbers[own] = number
        likeness = vectors[own] @ vectors[own].sum(axis=0)
        centers.append(int(own[np.argmax(np.round(likeness, 9))]))
    return numbers, centers
