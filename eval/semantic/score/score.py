"""Semantic scoring: predictions against one truth, under both protocols, in all views.

Source: *Semantic Visual Anomaly Detection and Reasoning* (AnomReason), section 3.3 and appendices B and F;
detection after section 4.2. The paper's appendix and the authors' released scorer disagree, and the published
tables come from the scorer, so both are computed: `release` is the scorer, `paper` is appendix B. How they
differ from each other stands in `metrics.semap`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import get_args

import orjson

from uncanny.errors import UsageError
from uncanny.eval.common.anomalies.image import ImagePair, score_image, similarities
from uncanny.eval.common.anomalies.load import Predictions, load, open_predictions
from uncanny.eval.common.anomalies.read import AnomalySet, digest
from uncanny.eval.common.estimates import Estimate
from uncanny.eval.common.groups import image_groups
from uncanny.eval.common.matching import Pairing, pair_images
from uncanny.eval.common.parameters import MeasureParameters
from uncanny.eval.common.similarity.base import Similarity, open_measure
from uncanny.eval.metrics import BALANCE, THRESHOLDS
from uncanny.eval.metrics.intervals import Codes, Mean
from uncanny.eval.metrics.semap import PROTOCOLS, VERSIONS
from uncanny.eval.semantic.parameters import SemanticParameters
from uncanny.eval.semantic.score.aggregate import (
    ImageTotals,
    Key,
    accuracy_mean,
    accuracy_score,
    differences,
    estimates,
    means_of,
    protocol_score,
)
from uncanny.eval.semantic.score.result import LeftOut, PredictionScore, SemanticScore, TruthInfo
from uncanny.parameters import takes
from uncanny.schema import Status


@takes(SemanticParameters)
def score(predictions: Predictions, parameters: SemanticParameters) -> SemanticScore:
    """Score predicted anomalies against the ground truth: SemAP, SemF1, and with sources cSemAP, cSemF1.

    Every score lies in 0–1, higher is better, and is a mean over thresholds, then over images: in `release`
    over those on both sides, in `paper` over all of the truth, where a missing prediction is an empty one. It
    is None if no image counts. No score counts records that failed; `left_out` lists them.

    Deviations: the paper has one protocol, this has the two that its appendix and its published tables show,
    never mixed. Texts are cut after 512 tokens, where `bert-score` overflows. cSemAP and cSemF1 are over
    generated images in `release`, as the scorer takes them, in `paper` over all whose source is known.

    `predictions` are a path to a file or run folder; several; a dict of names and paths or records; records
    (`Annotation`s or dicts of the same keys); or what `load` returned. Of several files each is read twice,
    and one at a time is in memory. `truth` is the same, but one. Some measures need the extra `semantic` and
    weights; a `Similarity` of your own can stand in their place.

    Raises UsageError, before anything is scored, for options out of range, for files that cannot be read or
    do not fit the truth, and where the measure's library or weights are not there; ItemsError, which is one,
    with everything that is wrong with a file.

    >>> import uncanny.semantic
    >>> truth = [{"image": "a.png", "anomalies": [{"phenomenon": "Six fingers.", "reasoning": "Five."}]}]
    >>> scores = uncanny.semantic.score(truth, truth=truth, similarity="chrf")
    >>> scores["predictions"].protocols["paper"].semap["full"].value
    1.0
    """
    openers = open_predictions(predictions)
    true = load(parameters.truth, role="truth")
    images = [image for image in true.images if image.status == "ok"]
    if not images:
        raise UsageError(f"{true.origin} has no image with status ok", remedy="Finish the run it comes from.")
    groups = image_groups(images, parameters.group_by)
    codes = None if groups is None else groups.codes
    openers = _checked(openers, true, parameters.min_confidence)
    measure = open_measure(parameters.similarity, parameters.part(MeasureParameters))
    if parameters.on_start is not None:
        parameters.on_start(len(true.images) * len(openers))
    scored = {
        name: _score_set(name, open_set(), true, measure, parameters) for name, open_set in openers.items()
    }
    values = iter(
        estimates(
            [mean for each in scored.values() for mean in (*each.means.values(), each.accuracy)],
            groups=codes,
            resamples=parameters.resamples,
            seed=parameters.seed,
        )
    )
    means = {name: each.means for name, each in scored.items()}
    return SemanticScore(
        {
            name: each.with_intervals(list(islice(values, len(each.means) + 1)), codes)
            for name, each in scored.items()
        },
        tuple(differences(means, groups=codes, resamples=parameters.resamples, seed=parameters.seed)),
        measure.described,
        _no_comparison(measure, parameters),
        tuple(parameters.thresholds),
        parameters.balance,
        TruthInfo(
            true.origin, len(images), sum(len(image.anomalies) for image in images), digest(true.images)
        ),
        _signature(measure, parameters, true),
        parameters.resamples,
        parameters.seed,
        parameters.published,
        groups,
        parameters.min_confidence,
    )


def _checked(
    openers: Mapping[str, Callable[[], AnomalySet]], truth: AnomalySet, min_confidence: float
) -> dict[str, Callable[[], AnomalySet]]:
    """All predictions read once, so that they are known to be sound before the long work begins.

    One set stays in memory; of several none does, and each is read again when its turn comes. Anomalies below
    `min_confidence` are left out.
    """

    def sure(open_set: Callable[[], AnomalySet]) -> AnomalySet:
        return open_set().only_sure(min_confidence)

    openers = {name: partial(sure, open_set) for name, open_set in openers.items()}
    read = None
    for open_set in openers.values():
        read = open_set()
        pair_images(read.images, truth.images, labels=(read.origin, truth.origin))
    return {name: partial(load, read) for name in openers} if read and len(openers) == 1 else dict(openers)


@dataclass(frozen=True, slots=True)
class _ScoredSet:
    """One set of predictions before its means are resampled: those of all sets are, in one go."""

    name: str
    predictions: AnomalySet  # without its images
    pairing: Pairing
    left_out: LeftOut
    totals: ImageTotals
    means: Mapping[Key, Mean]
    accuracy: Mean
    detection: bool

    def with_intervals(self, scores: Sequence[Estimate], groups: Codes | None) -> PredictionScore:
        """`scores` are those of `means`, in their order, and last the accuracy."""
        *values, accuracy = scores
        by_key = dict(zip(self.means, values, strict=True))
        totals, columns = self.totals, self.totals.columns
        return PredictionScore(
            self.name,
            self.predictions.origin,
            {protocol: protocol_score(protocol, self.means, by_key, totals) for protocol in PROTOCOLS},
            accuracy_score(columns, accuracy, groups) if self.detection else None,
            self.left_out,
            dict(self.pairing.by),
            self.predictions.blank_texts,
            self.predictions.unread_severities,
            self.predictions.unread_answers,
            totals.spread(),
            totals.examples(),
            columns,
            self.predictions.unfinished,
            self.predictions.texts,
            self.predictions.sure,
        )


def _score_set(
    name: str,
    predictions: AnomalySet,
    truth: AnomalySet,
    measure: Similarity,
    parameters: SemanticParameters,
) -> _ScoredSet:
    pairing = pair_images(predictions.images, truth.images, labels=(predictions.origin, truth.origin))
    usable = [each for each in zip(truth.images, pairing.predicted, strict=True) if each[0].status == "ok"]
    pairs = [
        ImagePair(place, image, None if at is None else predictions.images[at])
        for place, (image, at) in enumerate(usable)
    ]
    totals = ImageTotals([pair.true for pair in pairs], parameters.thresholds)
    # No prediction that is unfinished takes part in a protocol.
    finished = (pair for pair in pairs if pair.predicted is None or pair.predicted.status == "ok")
    for pair, views in similarities(finished, measure, parameters.balance):
        image = score_image(pair, views, parameters.thresholds)
        totals.add(image)
        if parameters.on_image is not None:
            parameters.on_image(name, image)
    for pair in pairs:
        # The verdict of a partial record is there, although the anomalies are not.
        if pair.predicted is not None and pair.predicted.status == "partial" and pair.predicted.source:
            totals.judge(pair.place, pair.predicted.source)
    detection = predictions.has_source and truth.has_source
    return _ScoredSet(
        name,
        replace(predictions, images=()),
        pairing,
        _left_out(predictions, truth, pairs, pairing, detection=detection),
        totals,
        means_of(totals.columns, detection=detection),
        accuracy_mean(totals.columns),
        detection,
    )


def _left_out(
    predictions: AnomalySet,
    truth: AnomalySet,
    pairs: Sequence[ImagePair],
    pairing: Pairing,
    *,
    detection: bool,
) -> LeftOut:
    surplus = [predictions.images[place] for place in pairing.surplus]
    return LeftOut(
        tuple(pair.true.image for pair in pairs if pair.predicted is None),
        tuple(image.image for image in surplus if image.status == "ok"),
        {
            status: tuple(image.image for image in predictions.images if image.status == status)
            for status in get_args(Status)
            if status != "ok"
        },
        tuple(image.image for image in truth.images if image.status != "ok"),
        tuple(pair.true.image for pair in pairs if pair.true.source is None) if detection else (),
    )


def _signature(measure: Similarity, parameters: SemanticParameters, truth: AnomalySet) -> str:
    """16 hexadecimal digits, the same for reports whose scores can be compared.

    They stand for measure, backbone, layer, versions, thresholds, λ, protocols, and the content of the truth.
    """
    content = {
        "measure": measure.described,
        "thresholds": parameters.thresholds,
        "lambda": parameters.balance,
        "protocols": [VERSIONS[protocol] for protocol in PROTOCOLS],
        "truth": digest(truth.images),
    }
    return hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def _no_comparison(measure: Similarity, parameters: SemanticParameters) -> str | None:
    """Why published scores do not compare, None where they do. The reasons stand in reports as they are."""
    if not measure.compares_with_published:
        return "another measure, backbone or layer than the published figures were made with"
    if (parameters.thresholds, parameters.balance) != (THRESHOLDS, BALANCE):
        return "other thresholds or another lambda than the published figures were made with"
    return None
