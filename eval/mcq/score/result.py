"""What scoring finds, as values a report can use directly.

Scores as the JSON of `mcq score --json`.

Beside the keys of the format: `model`, `parser`, `scored` (what each share of `splits` is counted out of),
`refused` (of the invalid answers, those that the provider marks as refusals), `missing_by` (why answers are
missing), `asked` (how many there could be), `unused` (answers to nothing that is asked), `changed` (missing
answers that were given before their question was changed), `raters` where people were averaged, and
`lenient`, the whole object once more under the lenient reading. Several models also have `oracle_counts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uncanny.eval.common.estimates import Share
from uncanny.eval.mcq.data.items import AskedQuestion, Question
from uncanny.eval.mcq.score.answers import PARSER_VERSION, Parser
from uncanny.eval.metrics.intervals import LEVEL, METHOD


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


def set_json(found: SetScore) -> dict[str, Any]:
    """One model's object, or all models with `oracle` and `mcnemar`."""
    models = {name: _with_lenient(found, name) for name in found.models}
    if len(models) == 1:
        return next(iter(models.values()))
    return {
        "models": models,
        "oracle": found.oracle.value if found.oracle else None,
        "oracle_counts": _oracle(found.oracle),
        "mcnemar": _tests(found.mcnemar),
    }


def _with_lenient(found: SetScore, name: str) -> dict[str, Any]:
    held = model_json(found.models[name], "exact", found.resamples, found.seed)
    if name in found.lenient:
        held["lenient"] = model_json(found.lenient[name], "lenient", found.resamples, found.seed)
    return held


def model_json(score: ModelScore, parser: Parser, resamples: int, seed: int) -> dict[str, Any]:
    """One model's object; shares in 0–1, None where nothing was asked or answered."""
    held: dict[str, Any] = {
        "model": score.model,
        "parser": f"{parser}/{PARSER_VERSION}",
        "n_images": dict(score.n_images),
        "splits": {split: _values(shares) for split, shares in score.splits.items()},
        "q1_detection": _values(score.q1_detection),
        "patterns": dict(score.patterns),
        "hierarchy": _values(score.hierarchy),
        "by_type": {
            name: {"n": share.out_of, "all_q1_4": share.value} for name, share in score.by_type.items()
        },
        "disagreement": {pair: _values(shares) for pair, shares in score.disagreement.items()},
        "invalid": dict(score.invalid),
        "refused": dict(score.refused),
        "missing": sum(score.missing.values()),
        "missing_by": dict(score.missing),
        "asked": score.asked,
        "unused": score.unused,
        "changed": [{"id": item, "question": question} for item, question in score.changed],
        "scored": {
            split: {name: share.out_of for name, share in shares.items()}
            for split, shares in score.splits.items()
        },
        "answer_bias": {
            question: {option: {"given": bias.given, "right": bias.right} for option, bias in options.items()}
            for question, options in score.answer_bias.items()
        },
        "ci": _intervals(score, resamples, seed),
    }
    return held | ({"raters": score.raters} if score.raters > 1 else {})


def _intervals(score: ModelScore, resamples: int, seed: int) -> dict[str, Any]:
    return {
        "level": LEVEL,
        "method": METHOD,
        "resamples": resamples,
        "seed": seed,
        "splits": {split: _ends(shares) for split, shares in score.splits.items()},
        "q1_detection": _ends(score.q1_detection),
        "hierarchy": _ends(score.hierarchy),
        "by_type": _ends(score.by_type),
        "disagreement": {pair: _ends(shares) for pair, shares in score.disagreement.items()},
    }


def _values(shares: Mapping[str, Share]) -> dict[str, float | None]:
    return {name: share.value for name, share in shares.items()}


def _ends(shares: Mapping[str, Share]) -> dict[str, list[float] | None]:
    return {name: list(share.interval) if share.interval else None for name, share in shares.items()}


def _oracle(share: Share | None) -> dict[str, Any] | None:
    if share is None:
        return None
    return {
        "solved": share.counts,
        "n": share.out_of,
        "ci": list(share.interval) if share.interval else None,
    }


def _tests(tests: tuple[McNemar, ...]) -> list[dict[str, Any]]:
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for test in tests:
        held = pairs.setdefault((test.first, test.second), {"models": [test.first, test.second]})
        held[test.question] = {
            "n": test.n,
            "first_only": test.first_only,
            "second_only": test.second_only,
            "p_value": test.p_value,
        }
    return list(pairs.values())
