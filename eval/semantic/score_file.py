"""One prediction file against the truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from uncanny.eval.metrics.detection import Source
from uncanny.eval.metrics.means import Mean
from uncanny.eval.metrics.semap import PROTOCOLS
from uncanny.eval.semantic.figures import accuracy_mean, means
from uncanny.eval.semantic.gather import Gathered
from uncanny.eval.semantic.pair_images import Pairing, Rule, pair_images
from uncanny.eval.semantic.protocol_score import accuracy_score, protocol_score
from uncanny.eval.semantic.result import Figure, LeftOut, PredictionScore
from uncanny.eval.semantic.score_image import ImagePair, ScoredPair, score_image, similarities
from uncanny.eval.semantic.scored_image import AnomalyFile, ScoredImage
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
    on_image: OnImage

    def score(self, name: str, file: AnomalyFile) -> FileScore:
        """Raises UsageError where the file's images cannot be told apart or none is in the truth."""
        pairing = pair_images(file, self.truth)
        images = [image for image in self.truth.images if image.status == "ok"]
        gathered = Gathered(images, self.thresholds)
        pairs = _to_score(file, self.truth, pairing)
        for pair, matrices in similarities(pairs, self.measure, self.balance):
            scored = score_image(pair, matrices, self.thresholds)
            gathered.add(scored)
            self.on_image(name, scored)
        for place, source in _verdicts_alone(file, self.truth, pairing):
            gathered.judge(place, source)
        detection = file.has_source and self.truth.has_source
        left_out = _left_out(file, self.truth, pairing, detection=detection)
        return FileScore(name, file, dict(pairing.by.items()), left_out, gathered, detection=detection)


class FileScore:
    """What was found in one file, before its means are resampled: all files are, in one go."""

    def __init__(
        self,
        name: str,
        file: AnomalyFile,
        paired_by: dict[Rule, int],
        left_out: LeftOut,
        gathered: Gathered,
        *,
        detection: bool,
    ) -> None:
        self._name, self._path, self._paired_by, self._left_out = name, str(file.path), paired_by, left_out
        self._read = (file.blank_texts, file.unread_severities, file.unread_answers)
        self._gathered, self._detection = gathered, detection
        self._unfinished = file.unfinished
        self.keyed = means(gathered.columns(), detection=detection)

    def means(self) -> list[Mean]:
        """All means that `summed_up` wants as figures, in its order."""
        return [*self.keyed.values(), accuracy_mean(self._gathered.columns())]

    def summed_up(self, figures: Sequence[Figure]) -> PredictionScore:
        gathered, columns = self._gathered, self._gathered.columns()
        *values, accuracy = figures
        by_key = dict(zip(self.keyed, values, strict=True))
        return PredictionScore(
            self._name,
            self._path,
            {protocol: protocol_score(protocol, self.keyed, by_key, gathered) for protocol in PROTOCOLS},
            accuracy_score(columns, accuracy) if self._detection else None,
            self._left_out,
            self._paired_by,
            *self._read,
            gathered.spread(),
            gathered.examples(),
            columns,
            self._unfinished,
        )


def _usable(
    file: AnomalyFile, truth: AnomalyFile, pairing: Pairing
) -> Iterator[tuple[int, ScoredImage, ScoredImage | None]]:
    """The images of the truth that can be scored: place, truth, and record in the predictions."""
    pairs = [
        (image, None if at is None else file.images[at])
        for image, at in zip(truth.images, pairing.predicted, strict=True)
        if image.status == "ok"
    ]
    for place, (image, predicted) in enumerate(pairs):
        yield place, image, predicted


def _to_score(file: AnomalyFile, truth: AnomalyFile, pairing: Pairing) -> Iterator[ImagePair]:
    """The images that take part in a protocol: no prediction that is unfinished."""
    for place, image, predicted in _usable(file, truth, pairing):
        if predicted is None or predicted.status == "ok":
            yield ImagePair(place, image, predicted)


def _verdicts_alone(
    file: AnomalyFile, truth: AnomalyFile, pairing: Pairing
) -> Iterator[tuple[int, Source | None]]:
    """Sources of partial records: the verdict is there, although the anomalies are not."""
    for place, _, predicted in _usable(file, truth, pairing):
        if predicted is not None and predicted.status == "partial" and predicted.source is not None:
            yield place, predicted.source


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
