"""Answers scored against items: the scores of SalArt-VQA for one model or several, intervals and comparisons.

Source: SalArt-VQA, section 4.1 and appendices E.3 (reading of answers) and F (outcomes, types, disagreement).
Deviations: shares have Wilson intervals, where the paper bootstraps all of them; missing answers are in no
share and counted, while an invalid answer or a refusal is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from uncanny.errors import UsageError
from uncanny.eval.common.groups import image_groups
from uncanny.eval.common.parameters import People
from uncanny.eval.mcq.data.answers import read_answers
from uncanny.eval.mcq.data.items import ASKS, BLIND, QUESTIONS, Answer
from uncanny.eval.mcq.data.load import ItemSource, load
from uncanny.eval.mcq.parameters import McqScoreParameters
from uncanny.eval.mcq.score.aggregate import (
    against_blind,
    aggregate,
    as_rater,
    expected_score,
    grouped,
    mcnemar,
    oracle,
)
from uncanny.eval.mcq.score.controls import (
    BASELINES,
    BLIND_PREFIX,
    RANDOM,
    baseline_answers,
    control_scores,
    is_baseline,
)
from uncanny.eval.mcq.score.matrix import AnswerKey, ResponseMatrix, is_rater, response_matrices
from uncanny.eval.mcq.score.result import McqScores, ModelScore
from uncanny.eval.mcq.score.sides import sides_tests
from uncanny.parameters import check_records, takes
from uncanny.wording import option

# A run folder, a folder with runs of several models, a file of answers or of predictions.
AnswerFile = str | os.PathLike[str]
AnswerSource = (
    AnswerFile | Sequence[AnswerFile] | Sequence[Answer] | Mapping[str, AnswerFile | Sequence[Answer]]
)

_ANSWERS = "Answers are run folders, files, uncanny.mcq.Answer records, or a mapping from model to them"
_PEOPLE = "Answers of people are files"


@takes(McqScoreParameters)
def score(items: ItemSource, answers: AnswerSource, parameters: McqScoreParameters) -> McqScores:
    """Score the answers of one or several models.

    `items` are as in `load`. `answers` are run folders, record files or prediction files, one or several; a
    folder that holds runs of several models; answers; or any of these by model, whose name then stands for
    the one in the records. Each file of `people` holds the answers of one person, named after the file or, in
    a mapping, by its key: all are averaged into `human`. `baselines` adds `baseline/random`, what guessing
    gives on average, without intervals, and `baseline/always-E/no`. Where a run asked blind, its guesses
    without the images are scored as `blind/MODEL` and tested against the same model's answers with them.
    Neither people nor baselines are part of the oracle or of other tests.

    Raises UsageError where there are no answers, none fits the items, a question is answered twice by one
    model, a file cannot be read, or, with `require_complete`, any answer is missing; ItemsError (a
    UsageError) with all lines of a file that are invalid.

    >>> items = uncanny.mcq.load("scenes")[:8]
    >>> run = uncanny.mcq.run(items, model="demo", out=out)
    >>> scores = uncanny.mcq.score(items, out, baselines=True)
    >>> scores["demo"].splits["artifact"].all_q1_4
    0.6666666666666666
    >>> list(scores)
    ['demo', 'baseline/random', 'baseline/always-E/no']
    """
    item_set = load(items, root=parameters.root)
    groups = image_groups(item_set, parameters.group_by)
    resamples, seed, parser = parameters.resamples, parameters.seed, parameters.parser
    everything = _answers(answers)
    if parameters.baselines:
        everything += [answer for name in BASELINES for answer in baseline_answers(item_set, name, seed=seed)]
    for name, file in _people(parameters.people):
        everything += as_rater(read_answers([file]), name)

    key = AnswerKey.of(item_set, None if groups is None else groups.codes)
    with_image = [answer for answer in everything if answer.question in QUESTIONS]
    with_image += _blind(everything)
    responses = response_matrices(key, with_image)
    if not responses:
        raise UsageError("there are no answers to score", remedy="Run the questions first.")
    if parameters.require_complete:
        _require_all(responses.values())
    lenient = response_matrices(key, with_image, "lenient") if parser == "lenient" else {}
    # What guessing gives on average, in place of the one draw of it that is among the answers.
    guessing = {RANDOM: expected_score(RANDOM, key)} if parameters.baselines else {}
    models = [matrix for model, matrix in responses.items() if not is_rater(model) and not is_baseline(model)]
    return McqScores(
        models=_aggregated(responses, resamples, seed) | guessing,
        lenient=_aggregated(lenient, resamples, seed) | (guessing if lenient else {}),
        controls=control_scores(key, everything, parser=parser, intervals=resamples > 0),
        oracle=oracle(models, resamples=resamples, seed=seed),
        mcnemar=mcnemar(models),
        blind=against_blind(responses),
        sides=sides_tests(models),
        parser=parser,
        resamples=resamples,
        seed=seed,
        published=parameters.published,
        groups=groups,
        item_set=item_set,
        answers=tuple(everything),
        responses=responses,
    )


def _blind(answers: Iterable[Answer]) -> Iterator[Answer]:
    """Guesses without the image, as answers of a model of their own to the questions that they are about."""
    for answer in answers:
        if answer.question in BLIND.values():
            yield _renamed(answer, BLIND_PREFIX + answer.model).model_copy(
                update={"question": ASKS[answer.question]}
            )


def _answers(source: AnswerSource) -> list[Answer]:
    if isinstance(source, Mapping):
        return [
            _renamed(answer, model)
            for model, of_model in source.items()
            for answer in _of_one_model(model, of_model)
        ]
    if isinstance(source, str | os.PathLike):
        return read_answers([Path(source)])
    check_records(source, (str, os.PathLike, Answer), what=_ANSWERS)
    answers = [each for each in source if isinstance(each, Answer)]
    files = [Path(each) for each in source if not isinstance(each, Answer)]
    return [*answers, *read_answers(files)] if files else answers


def _renamed(answer: Answer, model: str) -> Answer:
    calls = (answer.model_extra or {}).get("models")
    if not isinstance(calls, dict):
        return answer.model_copy(update={"model": model})
    by_model = {model if name == answer.model else name: count for name, count in calls.items()}
    return answer.model_copy(update={"model": model, "models": by_model})


def _of_one_model(model: str, source: AnswerFile | Sequence[Answer]) -> list[Answer]:
    answers = _answers(source)
    names = sorted({answer.model for answer in answers})
    if len(names) > 1:
        raise UsageError(
            f"The answers for {model!r} come from {len(names)} models: {', '.join(names)}",
            remedy="Give the answers of one model for each name.",
        )
    return answers


def _people(source: People | None) -> list[tuple[str, Path]]:
    """Files with whose they are."""
    if isinstance(source, Mapping):
        check_records(list(source.values()), (str, os.PathLike), what=_PEOPLE)
        return [(str(name), Path(file)) for name, file in source.items()]
    files = [source] if isinstance(source, str | os.PathLike) else () if source is None else source
    paths = [Path(each) for each in check_records(files, (str, os.PathLike), what=_PEOPLE)]
    return [(path.stem, path) for path in paths]


def _aggregated(matrices: Mapping[str, ResponseMatrix], resamples: int, seed: int) -> dict[str, ModelScore]:
    return {
        name: aggregate(name, group, resamples=resamples, seed=seed)
        for name, group in grouped(matrices).items()
    }


def _require_all(matrices: Iterable[ResponseMatrix]) -> None:
    for matrix in matrices:
        missing = matrix.reasons.total()
        if missing:
            why = ", ".join(f"{reason}: {count}" for reason, count in matrix.reasons.most_common(5))
            raise UsageError(
                f"{missing} of {int(matrix.key.asked.sum())} answers of {matrix.model!r} are missing ({why})",
                remedy=f"Finish the run, or score without {option('require_complete', True)}.",
            )
