"""What scoring finds, as values a report can use directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from uncanny.eval.mcq.items import AskedQuestion, Question


@dataclass(frozen=True, slots=True)
class Share:
    """A share in 0–1 with its 95 % interval; `value` is None where there is nothing to count out of.

    `counts` of `out_of` images. For several raters both are summed, and `value` is the raters' mean.
    """

    value: float | None
    counts: int
    out_of: int
    interval: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Bias:
    """How often one answer is given, and how often it is right, among the answers to one question."""

    given: float | None
    right: float | None


@dataclass(frozen=True, slots=True)
class ModelScore:
    """The scores of one model, or the mean of several raters, on one set.

    `patterns`, `invalid`, `refused`, `missing`, `unused` and `asked` (all answers there could be) are counts,
    summed over the raters. A refused answer is invalid too. `missing` counts, by reason, the answers that do
    not exist: they are in no share. `changed` are those of them that were given to another question than is
    asked now, as ids and questions.
    """

    model: str
    raters: int
    n_images: Mapping[str, int]
    splits: Mapping[str, Mapping[str, Share]]
    q1_detection: Mapping[str, Share]
    patterns: Mapping[str, int]
    hierarchy: Mapping[str, Share]
    by_type: Mapping[str, Share]
    disagreement: Mapping[str, Mapping[str, Share]]
    answer_bias: Mapping[Question, Mapping[str, Bias]]
    invalid: Mapping[Question, int]
    refused: Mapping[Question, int]
    missing: Mapping[str, int]
    unused: int
    asked: int
    changed: tuple[tuple[str, AskedQuestion], ...] = ()


@dataclass(frozen=True, slots=True)
class McNemar:
    """Two models on the `n` items both answer, for one question or `all_q1_4`; no `p_value` where n is 0."""

    first: str
    second: str
    question: str
    n: int
    first_only: int
    second_only: int
    p_value: float | None


@dataclass(frozen=True, slots=True)
class SetScore:
    """All models on one set. `lenient` holds the second, lenient reading where it was asked for."""

    models: Mapping[str, ModelScore]
    lenient: Mapping[str, ModelScore]
    oracle: Share | None
    mcnemar: tuple[McNemar, ...]
    resamples: int
    seed: int
