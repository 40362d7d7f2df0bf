"""Which anomaly of one record is which of another: one to one, by what is said of it or by where it is.

Two anomalies may be a pair by `text`, where their phenomena and reasonings are similar enough, or by `box`,
where both are of the same kind and their boxes overlap enough. Of all ways to pair them the one with the most
pairs is taken, and of these the one with the highest scores, so that it does not matter which side is first
or in which order anomalies are listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from uncanny.eval.common.anomalies.read import ScoredAnomaly
from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.common.similarity.base import FieldPairs, Matrix, Similarity, TextPairs, mutual
from uncanny.eval.compare.data import ImagePair
from uncanny.eval.compare.parameters import MatchParameters
from uncanny.schema import Box

MatchRule = Literal["text", "box", "both"]
MATCH_RULES: tuple[MatchRule, ...] = ("text", "box", "both")

# From which similarity on texts are taken for the same anomaly, by measure; see docs/compare.md.
THRESHOLDS = {"chrf": 0.4, "bertscore": 0.8}
OTHER_THRESHOLD = 0.7


@dataclass(frozen=True, slots=True)
class MatchSettings:
    """From which `similarity` and `iou` on two anomalies may be one; `balance` is the phenomenon's share."""

    similarity: float
    iou: float = 0.5
    balance: float = 0.5


@dataclass(frozen=True, slots=True)
class Match(JsonFields):
    """An anomaly of each side, by their places from 0, and the rule by which they are one.

    `similarity` of their texts is None where it is below the threshold, and `iou` of their boxes where one
    has none or they may not be compared.
    """

    a: int
    b: int
    rule: MatchRule
    similarity: float | None
    iou: float | None


def match_settings(parameters: MatchParameters) -> MatchSettings:
    """As a caller asked for them; the threshold is that of the measure unless one is given."""
    threshold = parameters.match_threshold
    if threshold is None:
        own = not isinstance(parameters.match_by, str)
        threshold = OTHER_THRESHOLD if own else THRESHOLDS.get(str(parameters.match_by), OTHER_THRESHOLD)
    return MatchSettings(threshold, parameters.iou, parameters.balance)


def match_pairs(
    pairs: Sequence[ImagePair], measure: Similarity, settings: MatchSettings
) -> Iterator[tuple[Match, ...]]:
    """The matches of each pair; texts are compared only where both sides have anomalies."""
    both = [pair for pair in pairs if pair.a.anomalies and pair.b.anomalies]
    matrices = mutual(
        measure,
        (fields_of(pair.a.anomalies, pair.b.anomalies) for pair in both),
        settings.balance,
        settings.similarity,
    )
    for pair in pairs:
        if pair.a.anomalies and pair.b.anomalies:
            ours, theirs = pair.a.anomalies, pair.b.anomalies
            yield match_anomalies(ours, theirs, next(matrices), settings, with_boxes=pair.same_picture)
        else:
            yield ()


def fields_of(ours: Sequence[ScoredAnomaly], theirs: Sequence[ScoredAnomaly]) -> FieldPairs:
    """The texts of both sides, as a measure takes them."""
    return FieldPairs(
        TextPairs([each.phenomenon for each in ours], [each.phenomenon for each in theirs]),
        TextPairs([each.reasoning for each in ours], [each.reasoning for each in theirs]),
    )


def match_anomalies(
    ours: Sequence[ScoredAnomaly],
    theirs: Sequence[ScoredAnomaly],
    similarity: Matrix,
    settings: MatchSettings,
    *,
    with_boxes: bool,
) -> tuple[Match, ...]:
    """The pairs, in the order of `ours`. `similarity` has the shape (ours, theirs).

    `with_boxes` is False where the two are of different pictures.
    """
    if not ours or not theirs:
        return ()
    by_text = similarity >= settings.similarity
    overlaps = _overlaps(ours, theirs) if with_boxes else None
    if overlaps is None:
        may, score = by_text, similarity
        by_box = np.zeros(similarity.shape, np.bool_)
    else:
        same_kind = np.array([[a.kind is not None and a.kind == b.kind for b in theirs] for a in ours])
        by_box = same_kind & (overlaps >= settings.iou)
        may = by_text | by_box
        score = np.maximum(np.where(by_text, similarity, 0.0), np.where(by_box, overlaps, 0.0))
    matches = []
    for a, b in _assigned(may, score):
        rule: MatchRule = "both" if by_text[a, b] and by_box[a, b] else "text" if by_text[a, b] else "box"
        overlap = None if overlaps is None or np.isnan(overlaps[a, b]) else float(overlaps[a, b])
        matches.append(Match(a, b, rule, float(similarity[a, b]) if by_text[a, b] else None, overlap))
    return tuple(matches)


def _assigned(may: np.ndarray[Any, np.dtype[np.bool_]], score: Matrix) -> list[tuple[int, int]]:
    """The most pairs that `may` be, one to one, and of these the highest sum of scores, each in 0–1."""
    rows, columns = np.nonzero(may)
    if len(set(rows.tolist())) == len(rows) and len(set(columns.tolist())) == len(columns):
        return list(zip(rows.tolist(), columns.tolist(), strict=True))
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]  # slow to import

    # One more pair outweighs all the scores together.
    gain = np.where(may, 1 + score / (min(may.shape) + 1), 0.0)
    chosen = zip(*linear_sum_assignment(gain, maximize=True), strict=True)
    return [(int(row), int(column)) for row, column in chosen if may[row, column]]


def _overlaps(ours: Sequence[ScoredAnomaly], theirs: Sequence[ScoredAnomaly]) -> Matrix | None:
    """Intersection over union of all boxes, NaN where one is missing; None without boxes on a side."""
    if not any(each.box for each in ours) or not any(each.box for each in theirs):
        return None
    return np.array(
        [[iou(a.box, b.box) if a.box and b.box else np.nan for b in theirs] for a in ours], np.float64
    )


def iou(first: Box, second: Box) -> float:
    """Intersection over union of two boxes, 0–1."""
    width = min(first[2], second[2]) - max(first[0], second[0])
    height = min(first[3], second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return width * height / (sum(areas) - width * height)
