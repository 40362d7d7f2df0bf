"""Answers that look at no image: what a score is worth is seen against them.

Baselines are made up here, one that guesses and one that never finds anything. A model is asked two more: the
control, Q4 again with nothing to see and a sixth option F, no image was provided, which is right (SalArt-VQA,
section 4.2); and blind, all questions again to be guessed from their words, which is no part of the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import ClassVar, Literal

import numpy as np

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share, ShareValue, share_of
from uncanny.eval.common.json_fields import JsonFields
from uncanny.eval.mcq.data.items import CONTROL, Answer, AskedQuestion, Item, Question
from uncanny.eval.mcq.data.load import ItemSource, load
from uncanny.eval.mcq.data.texts import changed_since
from uncanny.eval.mcq.parameters import BaselineParameters
from uncanny.eval.mcq.score.matrix import AnswerKey, failed
from uncanny.eval.mcq.score.parser import Parser, Reading, read_choice
from uncanny.eval.metrics.intervals import Codes, group_codes
from uncanny.parameters import takes

BASELINE_PREFIX = "baseline/"
Baseline = Literal["random", "always-E/no"]
BASELINES: tuple[Baseline, ...] = ("random", "always-E/no")
RANDOM = BASELINE_PREFIX + "random"


# A model's guesses without the images are scored under this and its name.
BLIND_PREFIX = "blind/"


def is_baseline(model: str) -> bool:
    """Whether whoever answered looked at no image: made up here, or a model that guessed."""
    return model.startswith((BASELINE_PREFIX, BLIND_PREFIX))


@takes(BaselineParameters)
def baseline_answers(items: ItemSource, baseline: Baseline, parameters: BaselineParameters) -> list[Answer]:
    """Answers of the baseline `baseline/NAME` to every question of every item.

    `items` are those of `load`, or anything it takes. `random` is uniform over the options of the question
    and depends on seed, item and question alone, not on the order or number of items; `always-E/no` finds
    nothing anywhere. Raises UsageError for another baseline, and what `load` raises.

    >>> uncanny.mcq.baseline_answers(uncanny.mcq.load("scenes")[:1], "always-E/no")[0].raw
    'no'
    """
    if baseline not in BASELINES:
        raise UsageError(f"There is no baseline {baseline!r}", remedy=f"Choose {' or '.join(BASELINES)}.")
    return [
        Answer(
            id=item.id,
            question=question,
            raw=options_of(item, question)[-1]
            if baseline == "always-E/no"
            else Random(f"{parameters.seed} {item.id} {question}").choice(options_of(item, question)),
            model=BASELINE_PREFIX + baseline,
        )
        for item in load(items)
        for question in item.questions()
    ]


def options_of(item: Item, question: Question) -> tuple[str, ...]:
    """The answers that can be given; the last one finds nothing. Empty where the question is not asked."""
    if question == "q1":
        return ("yes", "no") if item.q1 else ()
    if question == "q3":
        return (*item.q3.boxes, "E") if item.q3 else ()
    choice = item.q2 if question == "q2" else item.q4
    return (*choice.options, "E") if choice else ()


ABSTAIN = "F"


@dataclass(frozen=True, slots=True)
class NoImageScore(JsonFields):
    """Q4 without the image, over `n` images; each attribute is a share in 0–1, None of no images.

    `n` counts the images whose Q4 is answered, `missing` the others, those among them whose question was
    changed since. `f_rate`, `a_to_e_rate` and the share of `invalid` answers add up to 1. `key_match` is how
    often the answer is Q4's right answer for the image not shown, and `key_match_e` the part of it that is E.
    `same_non_e` is how often the model gives the same letter, other than E, with the image: a share of the
    `n_both` images answered both ways. `shares` has the same with counts and interval.
    """

    json_keys: ClassVar = "n missing invalid **shares n_both ci=shares"

    n: int
    missing: int
    invalid: int
    n_both: int
    shares: Mapping[str, Share]

    f_rate = ShareValue()
    """How often F is given, which is right."""
    a_to_e_rate = ShareValue()
    """How often another letter is given."""
    key_match = ShareValue()
    """How often that is the right one for the image."""
    key_match_e = ShareValue()
    """How often it is E, and that is right."""
    same_non_e = ShareValue()
    """How often A to D is given, and the same with the image."""


def score_no_image(
    items: Iterable[Item],
    without_image: Iterable[Answer],
    with_image: Iterable[Answer] = (),
    groups: Mapping[str, int] | None = None,
    *,
    parser: Parser = "exact",
    intervals: bool = True,
) -> NoImageScore:
    """One model's answers to Q4 without the image (SalArt-VQA, section 4.2), with Wilson's intervals.

    Both may be a run's answers as they are: Q4 is Q4 with the image, or, in `without_image`, `q4_no_image`.
    `groups` has by the id of an item the number of its group. Raises `UsageError` where an answer comes
    twice.
    """
    by_id = {item.id: item for item in items if item.q4 is not None}
    blind = _read(by_id, without_image, ("q4", CONTROL), "ABCDEF", parser)
    seen = _read(by_id, with_image, ("q4",), "ABCDE", parser)
    choices = {item: reading.choice for item, reading in blind.items()}
    letters = {item: choice for item, choice in choices.items() if choice not in (None, ABSTAIN)}
    both = [item for item in blind if item in seen]
    hits = {
        "f_rate": [choice == ABSTAIN for choice in choices.values()],
        "a_to_e_rate": [item in letters for item in choices],
        "key_match": [letters.get(item) == by_id[item].right("q4") for item in choices],
        "key_match_e": [letters.get(item) == by_id[item].right("q4") == "E" for item in choices],
        "same_non_e": [letters.get(item) == seen[item].choice not in (None, "E") for item in both],
    }
    shares = {
        name: share_of(
            np.array(each, dtype=np.bool_), _codes(both if name == "same_non_e" else choices, groups)
        )
        for name, each in hits.items()
    }
    return NoImageScore(
        n=len(blind),
        missing=len(by_id) - len(blind),
        invalid=sum(choice is None for choice in choices.values()),
        n_both=len(both),
        shares=shares if intervals else {name: replace(each, interval=None) for name, each in shares.items()},
    )


def _codes(items: Iterable[str], groups: Mapping[str, int] | None) -> Codes | None:
    return None if groups is None else group_codes(groups[item] for item in items)


def _read(
    by_id: Mapping[str, Item],
    answers: Iterable[Answer],
    questions: tuple[AskedQuestion, ...],
    letters: str,
    parser: Parser,
) -> dict[str, Reading]:
    readings: dict[str, Reading] = {}
    for answer in answers:
        if answer.question not in questions or answer.id not in by_id or failed(answer):
            continue
        item = by_id[answer.id]
        if changed_since(answer, item):
            continue
        if answer.id in readings:
            raise UsageError(
                f"q4 of item {answer.id!r} is answered twice",
                remedy="Give the answers of one run of one model.",
            )
        raw = None if answer.outcome == "refused" else answer.raw
        reading = read_choice(raw, "q4", item.answer_form, parser=parser, letters=letters)
        if reading.choice is None and answer.question == CONTROL:
            # The control asks for a letter whatever the set's own texts ask for; either form obeys one text.
            reading = read_choice(raw, "q4", "letter", parser=parser, letters=letters)
        readings[answer.id] = reading
    return readings


def control_scores(
    key: AnswerKey, answers: Iterable[Answer], *, parser: Parser = "exact", intervals: bool = True
) -> dict[str, NoImageScore]:
    """`score_no_image` of every model that was asked the control; empty where none was."""
    groups = None if key.groups is None else dict(zip(key.rows, key.groups.tolist(), strict=True))
    blind: dict[str, list[Answer]] = {}
    seen: dict[str, list[Answer]] = {}
    for answer in answers:
        by_model = blind if answer.question == CONTROL else seen
        by_model.setdefault(answer.model, []).append(answer)
    return {
        model: score_no_image(
            key.items, without_image, seen.get(model, ()), groups, parser=parser, intervals=intervals
        )
        for model, without_image in blind.items()
    }
