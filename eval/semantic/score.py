"""Prediction files against one truth: both protocols, all views, detection where sources are known."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice

import orjson

from uncanny.errors import UsageError
from uncanny.eval.metrics import semap_paper, semap_release
from uncanny.eval.metrics.bootstrap import RESAMPLES
from uncanny.eval.metrics.semap import BALANCE, THRESHOLDS
from uncanny.eval.semantic.figures import differences, figures
from uncanny.eval.semantic.result import SemanticScore, TruthInfo
from uncanny.eval.semantic.score_file import FileScorer, OnImage
from uncanny.eval.semantic.scored_image import AnomalyFile, digest
from uncanny.eval.semantic.similarity import Similarity


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
