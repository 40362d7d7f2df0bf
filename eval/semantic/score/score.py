"""One image under both protocols, in all three views.

One prediction file against the truth.

Prediction files against one truth: both protocols, all views, detection where sources are known."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import get_args

import numpy as np
import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.metrics import semap_paper, semap_release
from uncanny.eval.metrics.bootstrap import RESAMPLES, Mean
from uncanny.eval.metrics.semap import (
    BALANCE,
    PROTOCOLS,
    THRESHOLDS,
    Matrix,
    full_similarity,
)
from uncanny.eval.metrics.semap_paper import confidence_order, score_paper
from uncanny.eval.metrics.semap_release import score_release
from uncanny.eval.semantic.data.images import AnomalyFile, Pairing, Rule, ScoredImage, digest, pair_images
from uncanny.eval.semantic.score.aggregate import (
    Gathered,
    accuracy_mean,
    accuracy_score,
    differences,
    figures,
    means,
    protocol_score,
)
from uncanny.eval.semantic.score.result import (
    ImagePair,
    LeftOut,
    PredictionScore,
    ScoredPair,
    SemanticScore,
    TruthInfo,
    Views,
)
from uncanny.eval.semantic.similarity.base import Similarity, TextPairs
from uncanny.schema import Source, Status


def similarities(
    pairs: Iterable[ImagePair], measure: Similarity, balance: float
) -> Iterator[tuple[ImagePair, Views]]:
    """The matrices of each image, in order, while `measure` reads ahead. Empty sides are not handed to it."""
    waiting: deque[ImagePair] = deque()

    def wanted() -> Iterator[TextPairs]:
        for pair in pairs:
            waiting.append(pair)
            if pair.predicted is not None and all(pair.shape):
                predicted, true = pair.predicted.anomalies, pair.true.anomalies
                yield TextPairs([one.phenomenon for one in predicted], [one.phenomenon for one in true])
                yield TextPairs([one.reasoning for one in predicted], [one.reasoning for one in true])

    matrices = measure.matrices(wanted())
    for phenomenon in matrices:
        reasoning = next(matrices)
        while not all(waiting[0].shape):
            yield _empty(waiting.popleft())
        yield waiting.popleft(), _views(phenomenon, reasoning, balance)
    while waiting:
        yield _empty(waiting.popleft())


def score_image(pair: ImagePair, similarity: Views, thresholds: Sequence[float]) -> ScoredPair:
    """Both protocols on one image, whether or not the image takes part in them."""
    order = confidence_order([one.severity for one in pair.predicted.anomalies] if pair.predicted else [])
    full = similarity["full"]
    return ScoredPair(
        pair,
        similarity,
        {
            "release": {view: score_release(matrix, thresholds) for view, matrix in similarity.items()},
            "paper": {
                view: score_paper(matrix, thresholds, order, full) for view, matrix in similarity.items()
            },
        },
    )


def _views(phenomenon: Matrix, reasoning: Matrix, balance: float) -> Views:
    return {
        "phe": phenomenon,
        "rea": reasoning,
        "full": full_similarity(phenomenon, reasoning, balance),
    }


def _empty(pair: ImagePair) -> tuple[ImagePair, Views]:
    nothing = np.zeros(pair.shape)
    return pair, {"phe": nothing, "rea": nothing, "full": nothing}


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

    def summed_up(self, figures: Sequence[Estimate]) -> PredictionScore:
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


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """`balance` is λ, the share of the phenomenon in the view `full`. `resamples` 0 leaves intervals out."""

    thresholds: tuple[float, ...] = THRESHOLDS
    balance: float = BALANCE
    resamples: int = RESAMPLES
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises UsageError for what cannot be scored with."""
        wrong = [threshold for threshold in self.thresholds if not 0 < threshold <= 1]
        if wrong or not self.thresholds or len(set(self.thresholds)) < len(self.thresholds):
            raise UsageError(
                f"thresholds {', '.join(map(str, self.thresholds))}", remedy="Give some, above 0 and up to 1."
            )
        if not 0 <= self.balance <= 1:
            raise UsageError(f"lambda {self.balance}", remedy="Give a share from 0 to 1.")

    @property
    def published(self) -> bool:
        """Whether these are the thresholds and the λ of the published tables."""
        return self.thresholds == THRESHOLDS and self.balance == BALANCE


def score_semantic(
    predictions: Mapping[str, Callable[[], AnomalyFile]],
    truth: AnomalyFile,
    measure: Similarity,
    settings: ScoreSettings | None = None,
    *,
    on_image: OnImage = lambda _name, _scored: None,
) -> SemanticScore:
    """Score files by their names; each is opened when its turn comes, and one at a time is held.

    `on_image` is given every image right after it was scored. Raises UsageError where the truth has nothing
    to score, or a file does not fit it, as `pair_images` says.
    """
    settings = settings or ScoreSettings()
    images = [image for image in truth.images if image.status == "ok"]
    if not images:
        raise UsageError(f"{truth.path} has no image with status ok", remedy="Finish the run it comes from.")
    scorer = FileScorer(
        truth=truth,
        measure=measure,
        thresholds=settings.thresholds,
        balance=settings.balance,
        on_image=on_image,
    )
    found = {name: scorer.score(name, load()) for name, load in predictions.items()}
    values = iter(
        figures(
            [mean for score in found.values() for mean in score.means()],
            resamples=settings.resamples,
            seed=settings.seed,
        )
    )
    keyed = {name: score.keyed for name, score in found.items()}
    return SemanticScore(
        {name: score.summed_up(list(islice(values, len(score.means())))) for name, score in found.items()},
        tuple(differences(keyed, resamples=settings.resamples, seed=settings.seed)),
        measure.described,
        _no_comparison(measure, settings),
        settings.thresholds,
        settings.balance,
        TruthInfo(
            str(truth.path), len(images), sum(len(image.anomalies) for image in images), digest(truth.images)
        ),
        signature(measure, settings, truth),
        settings.resamples,
        settings.seed,
    )


def signature(measure: Similarity, settings: ScoreSettings, truth: AnomalyFile) -> str:
    """16 hexadecimal digits, the same for reports whose figures can be compared.

    They stand for measure, backbone, layer, versions, thresholds, λ, protocols, and the content of the truth.
    """
    held = {
        "measure": measure.described,
        "thresholds": settings.thresholds,
        "lambda": settings.balance,
        "protocols": [semap_release.VERSION, semap_paper.VERSION],
        "truth": digest(truth.images),
    }
    return hashlib.sha256(orjson.dumps(held, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _no_comparison(measure: Similarity, settings: ScoreSettings) -> str | None:
    if not measure.compares_with_published:
        return "another measure, backbone or layer than the published figures were made with"
    if not settings.published:
        return "other thresholds or another lambda than the published figures were made with"
    return None
