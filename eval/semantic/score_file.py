"""One prediction file against the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from uncanny.eval.metrics.semap import PROTOCOLS
from uncanny.eval.semantic.figures import accuracy_mean, figures, means
from uncanny.eval.semantic.gather import Gathered
from uncanny.eval.semantic.pair_images import Pairing, pair_images
from uncanny.eval.semantic.protocol_score import accuracy_score, protocol_score
from uncanny.eval.semantic.result import LeftOut, PredictionScore
from uncanny.eval.semantic.score_image import ImagePair, ScoredPair, score_image, similarities
from uncanny.eval.semantic.scored_image import AnomalyFile
from uncanny.eval.semantic.similarity import Similarity
from uncanny.schema import Status

OnImage = Callable[[str, ScoredPair], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScorer:
    """Scores files one after the other. `on_image` is given the file's name and every image once scored."""

    truth: AnomalyFile
    measure: Similarity
    thresholds: Sequence[float]
    balance: float
    resamples: int
    seed: int
    on_image: OnImage

    def score(self, name: str, file: AnomalyFile) -> PredictionScore:
        """Raises UsageError where the file's images cannot be told apart or none is in the truth."""
        pairing = pair_images(file, self.truth)
        images = [image for image in self.truth.images if image.status == "ok"]
        gathered = Gathered(images, self.thresholds)
        pairs = _to_score(file, self.truth, pairing)
        for pair, matrices in similarities(pairs, self.measure, self.balance):
            scored = score_image(pair, matrices, self.thresholds)
            gathered.add(scored)
            self.on_image(name, scored)
        return self._summed_up(name, file, pairing, gathered)

    def _summed_up(
        self, name: str, file: AnomalyFile, pairing: Pairing, gathered: Gathered
    ) -> PredictionScore:
        columns = gathered.columns()
        detection = file.has_source and self.truth.has_source
        keyed = means(columns, detection=detection)
        *values, accuracy = figures(
            [*keyed.values(), accuracy_mean(columns)], resamples=self.resamples, seed=self.seed
        )
        by_key = dict(zip(keyed, values, strict=True))
        return PredictionScore(
            name,
            str(file.path),
            {protocol: protocol_score(protocol, keyed, by_key, gathered) for protocol in PROTOCOLS},
            accuracy_score(columns, accuracy) if detection else None,
            _left_out(file, self.truth, pairing, detection=detection),
            dict(pairing.by.items()),
            file.blank_texts,
            file.unread_severities,
            file.unread_answers,
            gathered.spread(),
            gathered.examples(),
            columns,
        )


def _to_score(file: AnomalyFile, truth: AnomalyFile, pairing: Pairing) -> Iterator[ImagePair]:
    """The images that take part in a protocol: no truth and no prediction that is unfinished."""
    place = 0
    for image, at in zip(truth.images, pairing.predicted, strict=True):
        if image.status != "ok":
            continue
        predicted = None if at is None else file.images[at]
        if predicted is None or predicted.status == "ok":
            yield ImagePair(place, image, predicted)
        place += 1


def _left_out(file: AnomalyFile, truth: AnomalyFile, pairing: Pairing, *, detection: bool) -> LeftOut:
    pairs = list(zip(truth.images, pairing.predicted, strict=True))
    usable = [(image, at) for image, at in pairs if image.status == "ok"]
    unfinished: dict[Status, list[str]] = {status: [] for status in get_args(Status) if status != "ok"}
    for image in file.images:
        if image.status != "ok":
            unfinished[image.status].append(image.image)
    surplus = [file.images[at] for at in pairing.surplus]
    return LeftOut(
        tuple(image.image for image, at in usable if at is None),
        tuple(image.image for image in surplus if image.status == "ok"),
        {status: tuple(names) for status, names in unfinished.items()},
        tuple(image.image for image, _ in pairs if image.status != "ok"),
        tuple(image.image for image, _ in usable if image.source is None) if detection else (),
    )
