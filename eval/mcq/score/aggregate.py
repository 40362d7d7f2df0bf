"""From response matrices to scores: of one model, of people together, and of models compared.

A person is a `model` named `human/NAME`; all of them are averaged and reported as `human`. Several models on
the same items have an oracle, and each two an exact McNemar test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np

from uncanny.eval.common.estimates import Share, shares_of
from uncanny.eval.common.json_fields import as_json
from uncanny.eval.mcq.data.items import QUESTIONS, Answer, Question
from uncanny.eval.mcq.data.load import ItemSource, load
from uncanny.eval.mcq.score.controls import BLIND_PREFIX, RANDOM, options_of
from uncanny.eval.mcq.score.matrix import (
    CODES,
    HUMAN,
    RATER_PREFIX,
    AnswerKey,
    Bools,
    ResponseMatrix,
    is_rater,
)
from uncanny.eval.mcq.score.result import Bias, McNemar, ModelScore, SplitScores
from uncanny.eval.metrics.association import holm
from uncanny.eval.metrics.intervals import Codes as Groups
from uncanny.eval.metrics.intervals import (
    Ratio,
    by_group,
    percentile_intervals,
    ratio,
    replicates,
)
from uncanny.eval.metrics.mcq import (
    ARTIFACT,
    PATTERNS,
    SPLITS,
    detection_ratios,
    disagreement_ratios,
    hierarchy_ratios,
    pattern_counts,
    split_ratios,
    type_ratios,
    within,
)
from uncanny.eval.metrics.paired import PairedTest, paired_tests

Tested = Literal[Question, "all_q1_4"]
TESTED: tuple[Tested, ...] = (*QUESTIONS, "all_q1_4")
# Where a share stands in the result, as ("splits", "artifact", "q1").
Place = tuple[str, ...]


def aggregate(name: str, matrices: Sequence[ResponseMatrix], *, resamples: int, seed: int) -> ModelScore:
    """Score one model, or the mean of several raters on one key; `resamples=0` leaves intervals out."""
    key = matrices[0].key
    tables = [ratios_of(matrix) for matrix in matrices]
    shares = _shares(tables, key.groups, resamples, seed)
    artifact = within(key.split, *ARTIFACT)
    patterns = [pattern_counts(artifact, matrix.right, matrix.answered) for matrix in matrices]
    return ModelScore(
        model=name,
        raters=len(matrices),
        n_images=_sizes(key),
        **_nested(shares),
        patterns={name: sum(counts[name] for counts in patterns) for name in patterns[0]},
        answer_bias={question: _bias(matrices, column) for column, question in enumerate(QUESTIONS)},
        invalid=_per_question(matrix.invalid for matrix in matrices),
        refused=_per_question(matrix.refused for matrix in matrices),
        missing=sum((matrix.reasons for matrix in matrices), Counter()),
        unused=sum(matrix.unused for matrix in matrices),
        asked=sum(int(matrix.key.asked.sum()) for matrix in matrices),
        changed=tuple(dict.fromkeys(answer for matrix in matrices for answer in matrix.changed)),
        stand_ins=sum((matrix.stand_ins for matrix in matrices), Counter()),
    )


def ratios_of(matrix: ResponseMatrix) -> dict[Place, Ratio]:
    """Every share of one matrix by its place in the result, as columns over the images."""
    key, right, answered = matrix.key, matrix.right, matrix.answered
    artifact, real = within(key.split, *ARTIFACT), within(key.split, "ref_real")
    q1 = matrix.codes[:, 0]
    ratios: dict[Place, Ratio] = {}
    for split, shares in split_ratios(key.split, right, answered).items():
        ratios |= {("splits", split, name): share for name, share in shares.items()}
    one_deep = {
        "q1_detection": detection_ratios(
            artifact, real, q1 == CODES["yes"], q1 == CODES["no"], answered[:, 0]
        ),
        "hierarchy": hierarchy_ratios(artifact, right, answered),
        "by_type": type_ratios(artifact, key.type, right, answered),
    }
    for head, shares in one_deep.items():
        ratios |= {(head, name): share for name, share in shares.items()}
    for pair, shares in disagreement_ratios(artifact, right, answered).items():
        ratios |= {("disagreement", pair, name): share for name, share in shares.items()}
    return ratios


def _shares(
    tables: Sequence[Mapping[Place, Ratio]], groups: Groups | None, resamples: int, seed: int
) -> dict[Place, Share]:
    places = list(tables[0])
    if len(tables) == 1:
        shares = shares_of(list(tables[0].values()), groups, resamples=resamples, seed=seed)
        return dict(zip(places, shares, strict=True))
    intervals: Sequence[tuple[float, float] | None] = [None] * len(places)
    if resamples:
        # Raters answer about the same images, so that one resample serves them all.
        together = [{place: by_group(table[place], groups) for place in places} for table in tables]
        drawn = replicates(
            [table[place] for table in together for place in places], resamples=resamples, seed=seed
        ).reshape(resamples, len(tables), len(places))
        with np.errstate(invalid="ignore"):
            counted = ~np.isnan(drawn)
            mean = np.nansum(drawn, axis=1) / counted.sum(axis=1)
        counted_in = [np.any([table[place].out_of > 0 for table in together], axis=0) for place in places]
        intervals = percentile_intervals(mean, images=[int(each.sum()) for each in counted_in])
    return {
        place: _share([table[place] for table in tables], interval)
        for place, interval in zip(places, intervals, strict=True)
    }


def _share(ratios: Sequence[Ratio], interval: tuple[float, float] | None) -> Share:
    values = [value for ratio in ratios if (value := ratio.value) is not None]
    return Share(
        sum(values) / len(values) if values else None,
        sum(int(ratio.counts.sum(dtype=np.int64)) for ratio in ratios),
        sum(int(ratio.out_of.sum(dtype=np.int64)) for ratio in ratios),
        interval,
    )


def _sizes(key: AnswerKey) -> dict[str, int]:
    order = ("art_dg", "art_pg", "artifact", "ref_real", "ref_pg")
    sizes = {split: int(within(key.split, *SPLITS[split]).sum()) for split in order}
    return sizes | {"all": len(key.items)}


def _bias(matrices: Sequence[ResponseMatrix], column: int) -> dict[str, Bias]:
    options = ("yes", "no") if column == 0 else ("A", "B", "C", "D", "E")
    answered = np.concatenate([matrix.answered[:, column] for matrix in matrices])
    chosen = np.concatenate([matrix.codes[:, column] for matrix in matrices])[answered]
    right = np.concatenate([matrix.key.codes[:, column] for matrix in matrices])[answered]
    if not len(chosen):
        return {option: Bias(None, None) for option in options}
    return {
        option: Bias(float(np.mean(chosen == CODES[option])), float(np.mean(right == CODES[option])))
        for option in options
    }


def _per_question(marks: Iterable[Bools]) -> dict[Question, int]:
    total = np.sum([mark.sum(axis=0) for mark in marks], axis=0)
    return {question: int(total[column]) for column, question in enumerate(QUESTIONS)}


def _nested(shares: Mapping[Place, Share]) -> dict[str, Any]:
    """The shares of a model as its result has them."""
    nested: dict[str, Any] = {
        name: {} for name in ("splits", "q1_detection", "hierarchy", "by_type", "disagreement")
    }
    for (head, *path, name), share in shares.items():
        (nested[head].setdefault(path[0], {}) if path else nested[head])[name] = share
    return nested | {"splits": {split: SplitScores(each) for split, each in nested["splits"].items()}}


def expected_score(name: str, key: AnswerKey) -> ModelScore:
    """What `random` scores on average, choosing among the options of each question with equal chances.

    Every share is its expected count over its expected total, which is exact but for precision and F1, whose
    totals are random too. Counts are rounded, those of patterns only where they are written out. There are
    no intervals: nothing was drawn.
    """
    sizes = [[len(options_of(item, question)) for question in QUESTIONS] for item in key.items]
    options = np.array(sizes, dtype=np.float64).reshape(-1, len(QUESTIONS))
    chances = np.where(key.asked, 1 / np.maximum(options, 1), 0.0)
    sums: dict[Place, tuple[float, float]] = {}
    patterns: dict[str, float] = {}
    full = within(key.split, *ARTIFACT) & key.asked.all(axis=1)
    for pattern in PATTERNS:
        right = np.array([digit == "1" for digit in pattern])
        weights = np.where(right, chances, 1 - chances).prod(axis=1)
        # Another answer than the right one: which one makes no difference to any share.
        wrong = np.where([True, False, False, False], 1 - key.codes, (key.codes + 1) % 5)
        codes = np.where(key.asked, np.where(right, key.codes, wrong), key.codes).astype(np.int8)
        matrix = ResponseMatrix(name, key, codes, np.zeros(codes.shape, dtype=np.bool_))
        for place, each in ratios_of(matrix).items():
            before = sums.get(place, (0.0, 0.0))
            sums[place] = (before[0] + weights @ each.counts, before[1] + weights @ each.out_of)
        patterns[pattern] = float(weights[full].sum())
    shares = {
        place: Share(
            # What sums of products lose in the last places stays out of it.
            round(float(counts / out_of), 12) if out_of else None,
            round(counts),
            round(out_of),
        )
        for place, (counts, out_of) in sums.items()
    }
    return ModelScore(
        model=name,
        raters=1,
        n_images=_sizes(key),
        **_nested(shares),
        patterns=patterns,
        answer_bias={question: _guessed(key, question) for question in QUESTIONS},
        invalid=dict.fromkeys(QUESTIONS, 0),
        refused=dict.fromkeys(QUESTIONS, 0),
        missing={},
        unused=0,
        asked=int(key.asked.sum()),
    )


def random_expectation(items: ItemSource) -> dict[str, Any]:
    """What `random` scores on average, in closed form: `splits` as in a score, and recall and specificity.

    With the usual four options and E: 1/2 on Q1, 1/5 on Q2–Q4, 0.4 % on all four, 0.8 % on the last three.

    >>> uncanny.mcq.random_expectation(uncanny.mcq.load("scenes"))["q1_detection"]
    {'recall': 0.5, 'specificity': 0.5}
    """
    scores = expected_score(RANDOM, AnswerKey.of(load(items)))
    return {
        "splits": {split: as_json(each.shares) for split, each in scores.splits.items()},
        "q1_detection": {name: scores.q1_detection[name].value for name in ("recall", "specificity")},
    }


def _guessed(key: AnswerKey, question: Question) -> dict[str, Bias]:
    options = [options_of(item, question) for item in key.items]
    right = [item.right(question) for item in key.items]
    questions = [(each, of) for each, of in zip(right, options, strict=True) if each is not None]
    names = ("yes", "no") if question == "q1" else ("A", "B", "C", "D", "E")
    if not questions:
        return {name: Bias(None, None) for name in names}
    return {
        name: Bias(
            sum(1 / len(of) for _, of in questions if name in of) / len(questions),
            sum(each == name for each, _ in questions) / len(questions),
        )
        for name in names
    }


def as_rater(answers: Iterable[Answer], name: str) -> list[Answer]:
    """The same answers as given by the person `name`, whatever `model` the file says."""
    return [answer.model_copy(update={"model": RATER_PREFIX + name}) for answer in answers]


def grouped(matrices: Mapping[str, ResponseMatrix]) -> dict[str, list[ResponseMatrix]]:
    """Matrices by the name they are reported under: all raters under `human`, any other model alone."""
    groups: dict[str, list[ResponseMatrix]] = {}
    for model, matrix in matrices.items():
        groups.setdefault(HUMAN if is_rater(model) else model, []).append(matrix)
    return groups


def oracle(matrices: Sequence[ResponseMatrix], *, resamples: int, seed: int) -> Share | None:
    """Share of artifact images that at least one model gets all four right (appendix F.1).

    Over the images that every model answers in full. None for fewer than two models.
    """
    if len(matrices) < 2:
        return None
    full = np.logical_and.reduce([matrix.answered.all(axis=1) for matrix in matrices])
    full &= within(matrices[0].key.split, *ARTIFACT)
    solved = np.logical_or.reduce([matrix.right.all(axis=1) for matrix in matrices])
    groups = matrices[0].key.groups
    return shares_of([ratio(full & solved, full)], groups, resamples=resamples, seed=seed)[0]


def mcnemar(matrices: Sequence[ResponseMatrix]) -> tuple[McNemar, ...]:
    """Every two models, for each question and for all four, on the items both answer.

    Corrected p-values are so for all pairs of models with one question: each question is a family of tests.
    """
    if len(matrices) < 2:
        return ()
    tests = [(question, _tests(matrices, question)) for question in TESTED]
    return tuple(_named(test, question) for question, of_question in tests for test in of_question)


def against_blind(responses: Mapping[str, ResponseMatrix]) -> tuple[McNemar, ...]:
    """Each model that also guessed without the images, against itself: for each question and for all four.

    Corrected p-values are so for all such models with one question.
    """
    pairs = [
        (matrix, responses[BLIND_PREFIX + name])
        for name, matrix in responses.items()
        if BLIND_PREFIX + name in responses
    ]
    tests: list[McNemar] = []
    for question in TESTED:
        of_question = [test for pair in pairs for test in _tests(pair, question)]
        adjusted = holm([test.p_value for test in of_question])
        tests += [
            _named(replace(test, adjusted_p=p), question)
            for test, p in zip(of_question, adjusted, strict=True)
        ]
    return tuple(tests)


def _tests(matrices: Sequence[ResponseMatrix], question: Tested) -> list[PairedTest]:
    columns = slice(None) if question == "all_q1_4" else [QUESTIONS.index(question)]
    right = np.array([matrix.right[:, columns].all(axis=1) for matrix in matrices])
    answered = np.array([matrix.answered[:, columns].all(axis=1) for matrix in matrices])
    return paired_tests([matrix.model for matrix in matrices], right, answered, matrices[0].key.groups)


def _named(test: PairedTest, question: Tested) -> McNemar:
    return McNemar(**{field.name: getattr(test, field.name) for field in fields(test)}, question=question)
