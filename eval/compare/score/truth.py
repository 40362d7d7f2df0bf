"""Two runs against one truth: SemAP and SemF1, what was recognised, found, missed and seen where nothing is.

SemAP and SemF1 are those of `uncanny semantic` in the view `full`, over the images that all three have, so
that both runs are measured on the same ones. Which true anomaly was found is told by the rules of `match`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from uncanny.eval.common.anomalies.read import AnomalySet, ScoredAnomaly, ScoredImage, digest
from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.common.matching import pair_images
from uncanny.eval.common.similarity.base import FieldMatrices, Similarity, both_directions
from uncanny.eval.compare.data import ImagePair, RunImage
from uncanny.eval.compare.score.figures import ImageColumns, Paired, Resampled, corrected, share
from uncanny.eval.compare.score.match import MatchSettings, fields_of, match_anomalies
from uncanny.eval.metrics import THRESHOLDS
from uncanny.eval.metrics.semap import (
    PROTOCOLS,
    ProtocolName,
    confidence_order,
    full_similarity,
    score_paper,
    score_release,
)
from uncanny.schema import KINDS
from uncanny.wording import counted, some_of

# The kind of an anomaly whose record does not say it.
UNKNOWN = "unknown"
_GROUPS = (*KINDS, UNKNOWN)
# What is summed of each run over the images that have a truth.
_SUMS = (
    *("hits", "predicted", "right", "alarms", "source"),
    *(f"{score} {protocol}" for score in ("semap", "semf1") for protocol in PROTOCOLS),
    *(f"true {name}" for name in _GROUPS),
)


@dataclass(frozen=True, slots=True)
class TruthFigures(JsonFields):
    """`images` have a truth, `with_anomaly` of them a true anomaly.

    `detection`: images rightly said to have an anomaly or none. `recall` and `precision`: true anomalies
    found, and found ones that are true. `false_alarms`: of the images without a true anomaly, those with one
    found. `source`: images whose source, generated or real, was recognised; None unless both runs and the
    truth speak of it. All are shares in 0–1. `by_kind` has the recall by the kind of the true anomaly and how
    many there are.
    """

    json_keys: ClassVar = (
        "origin digest images with_anomaly without_anomaly semap semf1 detection recall precision "
        "false_alarms source recall_by_kind"
    )

    origin: str
    digest: str
    images: int
    with_anomaly: int
    semap: Mapping[ProtocolName, Paired]
    semf1: Mapping[ProtocolName, Paired]
    detection: Paired
    recall: Paired
    precision: Paired
    false_alarms: Paired
    source: Paired | None
    by_kind: Mapping[str, tuple[int, Paired]]

    @property
    def without_anomaly(self) -> int:
        return self.images - self.with_anomaly

    @property
    def recall_by_kind(self) -> dict[str, dict[str, Any]]:
        return {kind: {"true": number, **paired.to_json()} for kind, (number, paired) in self.by_kind.items()}


@dataclass(frozen=True, slots=True)
class FoundTruth:
    """The true anomalies of an image, and the places of those that each run found."""

    anomalies: tuple[ScoredAnomaly, ...]
    a: frozenset[int]
    b: frozenset[int]

    def to_json(self) -> dict[str, Any]:
        return {"true": len(self.anomalies), "found_a": sorted(self.a), "found_b": sorted(self.b)}


@dataclass(slots=True)
class TrueImages:
    """The truth of each image pair, None where there is none; `images` is filled by `score`.

    `unused` are images of the truth that belong to no pair, or whose record is not `ok`.
    """

    truth: AnomalySet
    true: list[ScoredImage | None]
    unused: tuple[str, ...]
    images: list[FoundTruth | None] = field(default_factory=list)
    has_source: bool = False

    def score(
        self, pairs: Sequence[ImagePair], columns: ImageColumns, measure: Similarity, settings: MatchSettings
    ) -> None:
        """Add to `columns` what figures are made of, and note what each run found."""
        size = len(pairs)
        known = np.array([true is not None for true in self.true], np.bool_)
        anomalous = np.array([true is not None and bool(true.anomalies) for true in self.true], np.bool_)
        columns.add("with truth", known)
        columns.add("clean", known & ~anomalous)
        columns.add("anomalous", anomalous)
        found: dict[str, list[frozenset[int]]] = {}
        for side in ("a", "b"):
            sums = {name: np.zeros(size) for name in _SUMS}
            found[side] = [frozenset()] * size
            images = [pair.a if side == "a" else pair.b for pair in pairs]
            for place, image, true, (forth, back) in self._compared(images, measure):
                full = full_similarity(*forth, settings.balance)
                mutual = (full + full_similarity(*back, settings.balance).T) / 2
                matches = match_anomalies(image.anomalies, true.anomalies, mutual, settings, with_boxes=True)
                found[side][place] = frozenset(match.b for match in matches)
                sums["hits"][place] = len(matches)
                sums["predicted"][place] = len(image.anomalies)
                sums["right"][place] = bool(image.anomalies) == bool(true.anomalies)
                sums["alarms"][place] = bool(image.anomalies) and not true.anomalies
                sums["source"][place] = true.source is not None and image.source == true.source
                order = confidence_order([each.severity for each in image.anomalies])
                scores = score_release(full, THRESHOLDS), score_paper(full, THRESHOLDS, order)
                for protocol, score in zip(PROTOCOLS, scores, strict=True):
                    sums[f"semap {protocol}"][place] = score.semap
                    sums[f"semf1 {protocol}"][place] = score.semf1
                for match in matches:
                    sums[f"true {true.anomalies[match.b].kind or UNKNOWN}"][place] += 1
            for name, values in sums.items():
                columns.add(f"{name} {side}", values)
        for name in _GROUPS:
            columns.add(f"true {name}", [_of_kind(true, name) for true in self.true])
        columns.add("true", [0 if true is None else len(true.anomalies) for true in self.true])
        columns.add("sourced", [true is not None and true.source is not None for true in self.true])
        self.has_source = self.truth.has_source and all(
            image.has_source for pair in pairs for image in (pair.a, pair.b)
        )
        self.images = [
            None if true is None else FoundTruth(true.anomalies, a, b)
            for true, a, b in zip(self.true, found["a"], found["b"], strict=True)
        ]

    def _compared(
        self, images: Sequence[RunImage], measure: Similarity
    ) -> Iterator[tuple[int, RunImage, ScoredImage, tuple[FieldMatrices, FieldMatrices]]]:
        """All images with a truth, with the similarities of both directions."""
        with_truth = [
            (place, image, true)
            for place, (image, true) in enumerate(zip(images, self.true, strict=True))
            if true is not None
        ]
        fields = (
            fields_of(image.anomalies, true.anomalies)
            for _, image, true in with_truth
            if image.anomalies and true.anomalies
        )
        matrices = both_directions(measure, fields)
        for place, image, true in with_truth:
            if image.anomalies and true.anomalies:
                yield place, image, true, next(matrices)
            else:
                empty = np.zeros((len(image.anomalies), len(true.anomalies)))
                yield place, image, true, ((empty, empty), (empty.T, empty.T))

    def figures(self, figures: Resampled) -> TruthFigures:
        totals = figures.totals
        shares = {
            "detection": figures.paired(share("right {}", "with truth")),
            "recall": figures.paired(share("hits {}", "true")),
            "precision": figures.paired(share("hits {}", "predicted {}")),
            "false_alarms": figures.paired(share("alarms {}", "clean")),
        }
        if self.has_source:
            shares["source"] = figures.paired(share("source {}", "sourced"))
        shares = corrected(shares)
        kinds = {name: int(totals[f"true {name}"]) for name in _GROUPS if totals[f"true {name}"]}
        recalls = corrected(
            {name: figures.paired(share(f"true {name} {{}}", f"true {name}")) for name in kinds}
        )
        semap, semf1 = (
            corrected(
                {name: figures.paired(share(f"{score} {name} {{}}", "with truth")) for name in PROTOCOLS}
            )
            for score in ("semap", "semf1")
        )
        return TruthFigures(
            self.truth.origin,
            digest(self.truth.images),
            int(totals["with truth"]),
            int(totals["anomalous"]),
            semap,
            semf1,
            detection=shares["detection"],
            recall=shares["recall"],
            precision=shares["precision"],
            false_alarms=shares["false_alarms"],
            source=shares.get("source"),
            by_kind={name: (kinds[name], each) for name, each in recalls.items()},
        )

    def notices(self) -> Iterator[str]:
        without = sum(true is None for true in self.true)
        if without:
            yield (
                f"{without:,} of {len(self.true):,} images have no truth; figures of truth are of the others."
            )
        if self.unused:
            what = counted(len(self.unused), "image")
            yield f"{what} of the ground truth are not in both runs, not counted: {some_of(self.unused)}."


def pair_truth(name: str, pairs: Sequence[ImagePair], truth: AnomalySet) -> TrueImages:
    """The truth of each pair, by the image of run A, called `name`. Raises UsageError where none fits."""
    true = [image for image in truth.images if image.status == "ok"]
    images = [pair.a for pair in pairs]
    found: list[ScoredImage | None] = [None] * len(images)
    if images and true:
        pairing = pair_images(images, true, labels=(name, truth.origin))
        for image, place in zip(true, pairing.predicted, strict=True):
            if place is not None:
                found[place] = image
    used = {id(image) for image in found}
    return TrueImages(truth, found, tuple(image.image for image in truth.images if id(image) not in used))


def _of_kind(true: ScoredImage | None, name: str) -> int:
    return 0 if true is None else sum((each.kind or UNKNOWN) == name for each in true.anomalies)
