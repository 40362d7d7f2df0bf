"""How sure several runs together are of a finding: the share of voters, or what verdicts teach of each run.

The model is that of Dawid and Skene, *Maximum Likelihood Estimation of Observer Error-Rates Using the EM
Algorithm* (1979), as crowd-kit has it: each run has a rate at which it has faults that are there, and one at
which it has faults that are not. What people judged is known; the rest follows by EM. What is ours:

- Each examined image also has ten places where nothing is wrong and no run has anything. Findings exist only
  where some run has one; without these places two runs would seem to invent the same fault all the time.
- EM starts from the judged images alone and takes two steps, so that a few verdicts are not outvoted by many
  findings without. In simulations with two and three runs both halved the error of the confidences.
- Each run begins with one made-up answer of each kind (add-one smoothing), so that no rate is 0 or 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from uncanny.extras import optional

DIGITS: Final = 4
_STEPS: Final = 2
# Things of an image that a run could have called wrong, and none did.
_PLACES: Final = 10


@dataclass(frozen=True, slots=True)
class Case:
    """A fault that some run claims in the image numbered `image`: who has it and who does not.

    `votes` are True or False by the names of the runs that examined the image. `truth` is what people say;
    None where nobody judged it, and where reviewers are unsure.
    """

    image: int
    votes: Mapping[str, bool]
    truth: bool | None = None


@dataclass(frozen=True, slots=True)
class Learned:
    """The probability, 0-1, that each case is really there, in their order, and by run its share of true
    faults that it has, 0-1. What people judged is 0 or 1."""

    confidences: tuple[float, ...]
    recalls: Mapping[str, float]


def can_learn(cases: Sequence[Case]) -> bool:
    """Whether people accepted a finding and rejected one: of one sort alone nothing can be told apart."""
    return {True, False} <= {case.truth for case in cases}


def learned(cases: Sequence[Case], examined: Mapping[int, Sequence[str]]) -> Learned:
    """Fit the model. `examined` has the runs that examined each image, by its number; `can_learn` holds.

    The order of runs and of images changes nothing but the last digits, which are rounded off.
    Raises UsageError where crowd-kit or pandas is not installed.
    """
    crowd = _package("crowdkit.aggregation")
    pandas = _package("pandas")
    rows, truths = _answers(cases, examined)
    data = pandas.DataFrame(rows, columns=["task", "worker", "label"])
    start = _start(cases, examined)
    index = pandas.MultiIndex.from_tuples(start, names=["worker", "label"])
    errors = pandas.DataFrame(list(start.values()), index=index, columns=[0, 1])
    model = crowd.DawidSkene(n_iter=_STEPS, initial_error_strategy="assign")
    with warnings.catch_warnings():
        # crowd-kit calls pandas in ways that later versions of it drop.
        warnings.simplefilter("ignore")
        model.fit(data, pandas.Series(truths), errors)
    probabilities = model.probas_[1]
    return Learned(
        tuple(round(float(probabilities[number]), DIGITS) for number in range(len(cases))),
        {name: round(float(model.errors_.loc[(name, 1), 1]), DIGITS) for name in _names(examined)},
    )


def _package(module: str) -> Any:
    return optional(
        module, "merge", "Learning from verdicts", instead="merge copies of the runs without reviews.jsonl"
    )


def _names(examined: Mapping[int, Sequence[str]]) -> list[str]:
    return sorted({name for names in examined.values() for name in names})


def _answers(
    cases: Sequence[Case], examined: Mapping[int, Sequence[str]]
) -> tuple[list[tuple[int, str, int]], dict[int, int]]:
    """Rows of task, run and answer, and the truth of tasks where it is known. Cases keep their numbers."""
    rows = [
        (task, name, int(vote))
        for task, case in enumerate(cases)
        for name, vote in sorted(case.votes.items())
    ]
    truths = {task: int(case.truth) for task, case in enumerate(cases) if case.truth is not None}
    task = len(cases)
    for names in examined.values():
        for _ in range(_PLACES):
            rows += [(task, name, 0) for name in names]
            truths[task] = 0
            task += 1
    for name in _names(examined):
        for truth in (0, 1):
            for answer in (0, 1):
                rows.append((task, name, answer))
                truths[task] = truth
                task += 1
    return rows, truths


def _start(cases: Sequence[Case], examined: Mapping[int, Sequence[str]]) -> dict[tuple[str, int], list[int]]:
    """By run and answer how often it was given of what is not there and of what is, where people judged."""
    counts = {(name, answer): [1, 1] for name in _names(examined) for answer in (0, 1)}
    judged = [case for case in cases if case.truth is not None]
    for case in judged:
        for name, vote in case.votes.items():
            counts[name, int(vote)][int(bool(case.truth))] += 1
    for image in {case.image for case in judged}:
        for name in examined[image]:
            counts[name, 0][0] += _PLACES
    return counts
