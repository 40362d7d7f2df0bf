"""Which findings of several runs are one, and what becomes of them: one finding, with its voters.

Two runs match as in a comparison. With more runs the most similar pairs are joined first, and never two
findings of one run, so that neither the order of runs nor that of findings matters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from uncanny.eval.common.similarity.base import Similarity
from uncanny.eval.compare.data import ImagePair
from uncanny.eval.compare.score.match import MatchSettings, match_pairs
from uncanny.eval.merge.data import Finding, SameImage
from uncanny.records.reviews import Decision, majority
from uncanny.schema import Anomaly

# A finding by the name of its run and its place among the findings of the image that count.
Node = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """Two findings that match, with how similar they are, 0-1: their texts or their boxes."""

    score: float
    a: Node
    b: Node


@dataclass(frozen=True, slots=True)
class MergedFinding:
    """One fault of an image: the finding of each run that has it, by name, and the runs without it.

    `missed_by` have examined the image and do not have it. A run that is in neither did not examine it.
    """

    members: Mapping[str, Finding]
    missed_by: tuple[str, ...]

    @property
    def voters(self) -> tuple[str, ...]:
        return tuple(self.members)

    @property
    def examined_by(self) -> int:
        """How many runs examined its image."""
        return len(self.members) + len(self.missed_by)

    @property
    def share(self) -> float:
        """The share of the runs that examined the image which have it, above 0 and up to 1."""
        return len(self.members) / self.examined_by

    @property
    def verdict(self) -> Decision | None:
        """What most reviewers of its members say; None where nobody judged any."""
        return majority(vote for finding in self.members.values() for vote in finding.votes)

    @property
    def severity(self) -> int:
        return self._by_rank()[0].anomaly.severity

    def anomaly(self, confidence: float) -> Anomaly:
        """The finding as it is written, with `confidence`, 0-1.

        Name, texts and severity are those of the surest member; one that people rewrote and accepted comes
        first. Where that has no box or kind, the next one's is taken. Further keys: `voters`, `missed_by`,
        `members` (the place, from 0, in each run's record), and `verdict` where people judged it.
        """
        ranked = [finding.anomaly for finding in self._by_rank()]
        agents = [each.found_by for each in ranked if each.found_by is not None]
        fields = ranked[0].model_dump() | {
            "box": next((each.box for each in ranked if each.box is not None), None),
            "kind": next((each.kind for each in ranked if each.kind is not None), None),
            "found_by": tuple(dict.fromkeys(name for names in agents for name in names)) if agents else None,
            "confidence": confidence,
            "probability": None,
            "voters": list(self.voters),
            "missed_by": list(self.missed_by),
            "members": {name: finding.place for name, finding in self.members.items()},
        }
        if self.verdict is not None:
            fields["verdict"] = self.verdict
        return Anomaly.model_validate(fields)

    def _by_rank(self) -> list[Finding]:
        """The members, best text first; of equal ones the run whose name comes first."""
        return sorted(
            self.members.values(),
            key=lambda each: (
                not (each.edited and majority(each.votes) == "accept"),
                -1.0 if each.anomaly.confidence is None else -1.0 - each.anomaly.confidence,
            ),
        )


def merged_findings(
    images: Sequence[SameImage], names: Sequence[str], measure: Similarity, settings: MatchSettings
) -> list[list[MergedFinding]]:
    """The findings of each image. `names` are those of all runs, in order; `images` are keyed by them.

    An image that no run examined has none, and so has one in which no run that did found anything.
    """
    edges: list[list[Edge]] = [[] for _ in images]
    for a, b in combinations(names, 2):
        places, pairs = [], []
        for place, image in enumerate(images):
            if a in image and b in image and image[a].examined and image[b].examined:
                places.append(place)
                pairs.append(ImagePair(image[a].image, image[b].image))
        for place, matches in zip(places, match_pairs(pairs, measure, settings), strict=True):
            edges[place] += [
                Edge(
                    max(match.similarity or 0.0, _overlap(match.rule, match.iou)), (a, match.a), (b, match.b)
                )
                for match in matches
            ]
    return [_of_image(image, own) for image, own in zip(images, edges, strict=True)]


def _overlap(rule: str, iou: float | None) -> float:
    """How far boxes speak for a match: not at all where only the texts do."""
    return 0.0 if rule == "text" or iou is None else iou


def _of_image(image: SameImage, edges: Iterable[Edge]) -> list[MergedFinding]:
    examined = [name for name, seen in image.items() if seen.examined]
    nodes = [(name, place) for name in examined for place in range(len(image[name].findings))]
    return [
        MergedFinding(
            {name: image[name].findings[place] for name, place in sorted(cluster)},
            tuple(name for name in examined if name not in dict(cluster)),
        )
        for cluster in clusters(nodes, edges)
    ]


def clusters(nodes: Sequence[Node], edges: Iterable[Edge]) -> list[list[Node]]:
    """Findings that are one, each in one cluster, and no cluster with two findings of one run.

    The most similar pairs are joined first, of equal ones those that come first by name and place. A pair
    that would bring two findings of one run together is left apart. Without edges each node is by itself.
    """
    cluster_of = {node: [node] for node in nodes}
    for edge in sorted(edges, key=lambda edge: (-edge.score, edge.a, edge.b)):
        ours, theirs = cluster_of[edge.a], cluster_of[edge.b]
        if ours is theirs or {name for name, _ in ours} & {name for name, _ in theirs}:
            continue
        ours += theirs
        for node in theirs:
            cluster_of[node] = ours
    return list({id(each): each for each in cluster_of.values()}.values())
