"""Rewards of located artifacts: pure functions of an answer's text and of what is true, each from 0 to 1.

Source: X-AIGD, appendix C.3: a reward for the class, one for boxes by their IoU, and one for the format,
after Visual-RFT. The paper gives no formulas. Visual-RFT weighs each box with the confidence that the model
says; answers here have none: boxes are matched one-to-one for the largest sum of IoU, and what is missing or
too much counts as 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import orjson

from uncanny.answers.boxes import BoxFormat, given_box, overlap, pixels
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory, Box, Source

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class LocatedBox:
    """An artifact: its category, None where it is not known, and its box in pixels of the image."""

    category: ArtifactCategory | None
    box: Box


@dataclass(frozen=True, slots=True)
class Grounded:
    """What an image is, and the artifacts in it, true or as a model says it.

    `artifacts` are None where nobody has looked for them. Of a model's answer `source` is None where it names
    none, and `wrong` counts entries that are no artifact: of an unknown category, or with numbers that cannot
    be a box.
    """

    source: Source | None
    artifacts: tuple[LocatedBox, ...] | None = ()
    wrong: int = 0


def read_answer(text: str, form: BoxFormat, *, sent: Size, original: Size) -> Grounded | None:
    """What an answer says; None where it is not the JSON object that was asked for.

    `form` is how boxes were asked for, `sent` and `original` are width and height of the image as the model
    saw it and of its file. Nothing may stand around the object but white space: a model is rewarded for what
    it was asked for.
    """
    try:
        answer = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(answer, dict) or not isinstance(answer.get("artifacts"), list):
        return None
    source = answer.get("source")
    known: Source | None = source if source in ("generated", "real") else None
    artifacts = [_located(each, form, sent, original) for each in answer["artifacts"]]
    located = tuple(each for each in artifacts if each is not None)
    return Grounded(known, located, len(artifacts) - len(located))


def _located(entry: object, form: BoxFormat, sent: Size, original: Size) -> LocatedBox | None:
    if not isinstance(entry, dict) or entry.get("category") not in ARTIFACT_CATEGORIES:
        return None
    given = given_box(entry.get(form.key), form.key)
    box = None if given is None else pixels(given, form, sent=sent, original=original)
    return None if box is None else LocatedBox(entry["category"], box)


def format_reward(answer: Grounded | None) -> float:
    """1 for an answer in the form that was asked for, else 0; every entry has to be an artifact."""
    return float(answer is not None and answer.source is not None and not answer.wrong)


def source_reward(answer: Grounded | None, truth: Grounded) -> float:
    """1 where the answer says what the image is, else 0."""
    return float(answer is not None and answer.source is not None and answer.source == truth.source)


def box_reward(answer: Grounded | None, truth: Grounded) -> float | None:
    """How well the boxes of an answer are those of the truth, from 0 to 1.

    Boxes of the same category are matched one-to-one, so that the sum of their IoU is as large as it can be;
    the reward is this sum over the larger number of boxes, entries that are `wrong` included. A true artifact
    without a category matches any. 1 where neither has boxes, 0 where only one side has some, and without an
    answer. None where the true artifacts are not known.
    """
    if truth.artifacts is None:
        return None
    if answer is None:
        return 0.0
    said = len(answer.artifacts or ()) + answer.wrong
    most = max(said, len(truth.artifacts))
    if most == 0:
        return 1.0
    if not answer.artifacts or not truth.artifacts:
        return 0.0
    import numpy as np
    from scipy.optimize import linear_sum_assignment  # type: ignore[import-untyped]  # slow to import

    gain = np.array(
        [
            [overlap(one.box, other.box) if _same(one, other) else 0.0 for other in truth.artifacts]
            for one in answer.artifacts
        ]
    )
    return float(gain[linear_sum_assignment(gain, maximize=True)].sum() / most)


def _same(said: LocatedBox, true: LocatedBox) -> bool:
    return true.category is None or said.category == true.category


RewardName = Literal["format", "source", "boxes"]
REWARDS: Final[Mapping[RewardName, Callable[[Grounded | None, Grounded], float | None]]] = {
    "format": lambda answer, _: format_reward(answer),
    "source": source_reward,
    "boxes": box_reward,
}


def mean_rewards(
    answers: Sequence[Grounded | None], truths: Sequence[Grounded]
) -> Mapping[RewardName, float | None]:
    """The mean of each reward over the images that have it, 0–1, higher is better; None without any."""
    means = {}
    for name, reward in REWARDS.items():
        given = [reward(*each) for each in zip(answers, truths, strict=True)]
        known = [each for each in given if each is not None]
        means[name] = sum(known) / len(known) if known else None
    return means
