"""What people said of the same images, by the label the model gave.

Accuracy is the share of answers that call an edited image edited. IoU compares what a person marked with
what was edited, both as boxes; an edited image called real counts as 0. Source: SAGI, supplementary,
section 1.7; the file format is this project's own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, cast

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from uncanny.errors import ItemsError, Problem, UsageError
from uncanny.eval.common.estimates import Share
from uncanny.eval.common.inputs.problems import NonEmpty, parse_records
from uncanny.eval.common.json_fields import json_of
from uncanny.eval.common.parameters import People, PersonFile
from uncanny.eval.common.published import published
from uncanny.eval.metrics import RESAMPLES
from uncanny.eval.metrics.intervals import Ints, Ratio, group_codes, share_intervals
from uncanny.eval.realism.verdicts import Verdict
from uncanny.parameters import check_records
from uncanny.schema import Number, Record
from uncanny.wording import shown, some_of

PeopleLabel = Literal["all", "deceiving", "intermediate", "non_deceiving"]
PEOPLE_LABELS: tuple[PeopleLabel, ...] = ("all", "deceiving", "intermediate", "non_deceiving")


def _has_area(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    if not (box[0] < box[2] and box[1] < box[3]):
        raise ValueError("a box is x0, y0, x1, y1 with x0 < x1 and y0 < y1")
    return box


_Edge = Annotated[Number, Field(allow_inf_nan=False)]
Box = Annotated[tuple[_Edge, _Edge, _Edge, _Edge], AfterValidator(_has_area)]


class PersonAnswer(Record):
    """One person's answer about the edited image of one pair.

    `said` is what the person took it for. `boxes` is what was marked, `truth` what was edited, in pixels of
    the edited image; None where that is not known. One answer about a pair is enough to give its `truth`.
    `iou`, 0–1, may be given in place of both.
    """

    id: NonEmpty
    said: Literal["edited", "real"]
    rater: str | None = None
    boxes: tuple[Box, ...] | None = None
    truth: Annotated[tuple[Box, ...], Field(min_length=1)] | None = None
    iou: Annotated[Number, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _iou_or_truth(self) -> Self:
        if self.iou is not None and self.truth is not None:
            raise ValueError("give either iou or truth, not both")
        return self


# A share in JSON.
SHARE_KEYS: Final = "value count=counts out_of ci=interval"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The pairs of answers that are in no figure, or not in the IoU: an entry an answer.

    `unused` have no verdict, `undetermined` no label; neither is in any figure. Of pairs `without_truth` no
    answer says what was edited, and answers `without_boxes` call an image edited and do not say where.
    """

    unused: tuple[str, ...]
    undetermined: tuple[str, ...]
    without_truth: tuple[str, ...]
    without_boxes: tuple[str, ...]

    def notes(self) -> Iterator[str]:
        """In words, without a full stop."""
        for answers, what in (
            (self.unused, "not counted because the pair has no verdict"),
            (self.undetermined, "not counted because the pair has no label"),
            (self.without_truth, "in no IoU because no answer gives the truth of the pair"),
            (self.without_boxes, "in no IoU because they say edited without boxes"),
        ):
            if answers:
                yield f"people's answers {what}: {len(answers):,} ({some_of(answers)})"

    def to_json(self) -> dict[str, Any]:
        lists = asdict(self)
        return {
            name: {"n": len(answers), "pairs": list(dict.fromkeys(answers))}
            for name, answers in lists.items()
        }


@dataclass(frozen=True, slots=True)
class PeopleScore:
    """How people did on the pairs' edited images, by the label the model gave.

    `accuracy` is the share of answers that call the image edited; `iou` the mean overlap, 0–1, of what they
    marked with what was edited, over the answers where both are known, an image called real counting as 0.
    `counts` of an `iou` is 0, its `out_of` the number of answers. Intervals resample images. `answers` are
    all that were read. `left_out` says which of them are in no figure, or not in the IoU.
    """

    answers: int
    raters: int
    accuracy: Mapping[PeopleLabel, Share]
    iou: Mapping[PeopleLabel, Share]
    left_out: LeftOut

    @property
    def unused(self) -> int:
        """How many answers are about pairs without a verdict."""
        return len(self.left_out.unused)

    @property
    def undetermined(self) -> int:
        """How many answers are about pairs without a label."""
        return len(self.left_out.undetermined)

    def to_json(self) -> dict[str, Any]:
        accuracy = {label: json_of(share, SHARE_KEYS) for label, share in self.accuracy.items()}
        # Of a mean there is no count, only how many values it is the mean of.
        iou = {label: json_of(share, "value out_of ci=interval") for label, share in self.iou.items()}
        return {
            **json_of(self, "answers raters unused undetermined"),
            **{"accuracy": accuracy, "iou": iou},
            **json_of(self, "left_out"),
        }


_PEOPLE = "People's answers are files or uncanny.realism.PersonAnswer records"


def people_answers(people: People | Sequence[PersonAnswer]) -> tuple[PersonAnswer, ...]:
    """All answers. Raises ItemsError with every invalid line and every pair that has two truths, UsageError
    for a file without answers."""
    named: list[tuple[str | None, PersonFile | PersonAnswer]]
    if isinstance(people, Mapping):
        check_records(list(people.values()), (str, os.PathLike), what=_PEOPLE)
        named = [*people.items()]
    elif isinstance(people, str | os.PathLike):
        named = [(None, people)]
    else:
        kinds = (str, os.PathLike, PersonAnswer)
        named = [(None, each) for each in check_records(people, kinds, what=_PEOPLE)]
    answers: list[tuple[str, PersonAnswer]] = []
    for rater, source in named:
        if isinstance(source, PersonAnswer):
            answers.append(("the answers", source))
            continue
        path = Path(source)
        lines, problems = parse_records(path, PersonAnswer)
        if problems:
            raise ItemsError(str(path), problems, remedy="Correct these lines; nothing was scored.")
        if not lines:
            raise UsageError(f"{path} contains no answers", remedy="Give one answer a line.")
        answers += [(f"{path}:{number}", _by(rater, answer)) for number, answer in lines]
    problems = _contradictions(answers)
    if problems:
        raise ItemsError("people's answers", problems, remedy="Correct either; nothing was scored.")
    return tuple(answer for _, answer in answers)


def _by(rater: str | None, answer: PersonAnswer) -> PersonAnswer:
    return answer if answer.rater is not None else answer.model_copy(update={"rater": rater})


def _contradictions(answers: Iterable[tuple[str, PersonAnswer]]) -> list[Problem]:
    """An edit has one truth, whichever answers about it give it."""
    first: dict[str, tuple[str, PersonAnswer]] = {}
    problems = []
    for where, answer in answers:
        if answer.truth is None:
            continue
        before, other = first.setdefault(answer.id, (where, answer))
        if other.truth is not None and set(other.truth) != set(answer.truth):
            both = [shown(list(map(list, each))) for each in (answer.truth, other.truth)]
            message = f"is {both[0]} at {where}, and {both[1]} at {before}"
            problems.append(Problem(answer.id, "truth", message))
    return problems


def published_people() -> dict[str, float]:
    """People in SAGI's table 8: `acc_deceiving`, `iou_deceiving` and so on, in percent."""
    rows: list[dict[str, Any]] = published("inpainting_scores")["human_vs_model"]
    (people,) = [row for row in rows if row["model"] == "Human"]
    return {name: value for name, value in people.items() if name != "model"}


def box_iou(marked: Sequence[Box], truth: Sequence[Box]) -> float:
    """Area that both cover over area that either covers, 0–1, 0 without any; boxes may overlap."""
    edges = [np.unique([box[axis + end] for box in (*marked, *truth) for end in (0, 2)]) for axis in (0, 1)]

    def covered(boxes: Sequence[Box]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        cells = np.zeros([max(0, len(axis) - 1) for axis in edges], dtype=np.bool_)
        for x0, y0, x1, y1 in boxes:
            left, right = np.searchsorted(edges[0], (x0, x1))
            top, bottom = np.searchsorted(edges[1], (y0, y1))
            cells[left:right, top:bottom] = True
        return cells

    area = np.outer(np.diff(edges[0]), np.diff(edges[1]))
    in_marked, in_truth = covered(marked), covered(truth)
    either = float(area[in_marked | in_truth].sum())
    return float(area[in_marked & in_truth].sum()) / either if either else 0.0


def score_people(
    verdicts: Sequence[Verdict],
    answers: Sequence[PersonAnswer],
    *,
    belongs: Mapping[str, str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PeopleScore:
    """Accuracy and IoU by label.

    Intervals are Wilson's where each image counts for all or nothing, as in the accuracy of one person; else
    images are resampled, and an image's answers stay together. `belongs` names by its id what a pair shares
    with others, which are then resampled together.
    """
    labels = {verdict.id: verdict.label for verdict in verdicts}
    by_image: dict[str, list[PersonAnswer]] = {}
    for answer in answers:
        if labels.get(answer.id, "undetermined") != "undetermined":
            by_image.setdefault(answer.id, []).append(answer)
    truths = _truths(answers)

    def ratios(value: Callable[[PersonAnswer], float | None]) -> list[Ratio]:
        """One a label: the sum of each image's values, out of how many it has."""
        values = {
            image: [number for answer in each if (number := value(answer)) is not None]
            for image, each in by_image.items()
        }
        return [
            _ratio([numbers if label in ("all", labels[image]) else [] for image, numbers in values.items()])
            for label in PEOPLE_LABELS
        ]

    accuracy, iou = (
        ratios(lambda answer: float(answer.said == "edited")),
        ratios(lambda answer: _overlap(answer, truths)),
    )
    groups = None if belongs is None else group_codes(belongs[image] for image in by_image)
    of_accuracy, of_iou = (
        share_intervals(each, groups=groups, resamples=resamples, seed=seed) for each in (accuracy, iou)
    )
    without_iou = [
        answer for each in by_image.values() for answer in each if _overlap(answer, truths) is None
    ]
    return PeopleScore(
        answers=len(answers),
        raters=len({answer.rater for answer in answers}),
        accuracy={
            label: _share(column, interval, counted=True)
            for label, column, interval in zip(PEOPLE_LABELS, accuracy, of_accuracy, strict=True)
        },
        iou={
            label: _share(column, interval, counted=False)
            for label, column, interval in zip(PEOPLE_LABELS, iou, of_iou, strict=True)
        },
        left_out=LeftOut(
            unused=tuple(answer.id for answer in answers if answer.id not in labels),
            undetermined=tuple(answer.id for answer in answers if labels.get(answer.id) == "undetermined"),
            without_truth=tuple(answer.id for answer in without_iou if truths.get(answer.id) is None),
            without_boxes=tuple(answer.id for answer in without_iou if truths.get(answer.id) is not None),
        ),
    )


def _truths(answers: Iterable[PersonAnswer]) -> dict[str, tuple[Box, ...] | None]:
    """What was edited in each pair, from any answer about it; None of a pair where only IoUs are given."""
    truths: dict[str, tuple[Box, ...] | None] = {}
    for answer in answers:
        if answer.truth is not None or answer.iou is not None:
            truths[answer.id] = truths.get(answer.id) or answer.truth
    return truths


def _overlap(answer: PersonAnswer, truths: Mapping[str, tuple[Box, ...] | None]) -> float | None:
    """0–1, 0 of an edit called real; None where the truth or what was marked is not known."""
    if answer.said == "real":
        return 0.0 if answer.id in truths else None
    if answer.iou is not None:
        return answer.iou
    truth = truths.get(answer.id)
    return None if truth is None or answer.boxes is None else box_iou(answer.boxes, truth)


def _ratio(values: Sequence[Sequence[float]]) -> Ratio:
    """A ratio of sums is the same thing for fractions as for counts."""
    sums = np.array([sum(numbers) for numbers in values], dtype=np.float64)
    return Ratio(cast(Ints, sums), np.array([len(numbers) for numbers in values], dtype=np.int16))


def _share(column: Ratio, interval: tuple[float, float] | None, *, counted: bool) -> Share:
    out_of = int(column.out_of.sum(dtype=np.int64))
    total = float(np.asarray(column.counts, dtype=np.float64).sum())
    value = total / out_of if out_of else None
    return Share(value, round(total) if counted else 0, out_of, interval if out_of else None)
