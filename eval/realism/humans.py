"""What people said of the same images, by the label the model gave.

Accuracy is the share of answers that call an edited image edited. IoU compares what a person marked with
what was edited, both as boxes; an edited image called real counts as 0. Source: SAGI, supplementary,
section 1.7; the file format is this project's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self, cast

import numpy as np
from pydantic import AfterValidator, Field, model_validator

from uncanny.errors import UsageError
from uncanny.eval.common.estimates import Share
from uncanny.eval.common.problems import ItemsError, parse_records
from uncanny.eval.metrics.bootstrap import RESAMPLES, ratio_intervals
from uncanny.eval.metrics.mcq import Ints, Ratio
from uncanny.eval.metrics.shares import share_intervals
from uncanny.eval.realism.data import NonEmpty, Verdict
from uncanny.schema import Record

HumanLabel = Literal["all", "deceiving", "intermediate", "non_deceiving"]


@dataclass(frozen=True, slots=True)
class HumanScore:
    """How people did on the pairs' edited images, by the label the model gave.

    `accuracy` is the share of answers that call the image edited; `iou` the mean overlap, 0–1, of what they
    marked with what was edited, over the answers where both are known, an image called real counting as 0.
    `counts` of an `iou` is 0, its `out_of` the number of answers. Intervals resample images. `answers` are
    all that were read, `unused` those about images without a verdict, `undetermined` those about images
    without a label.
    """

    answers: int
    raters: int
    unused: int
    undetermined: int
    accuracy: Mapping[HumanLabel, Share]
    iou: Mapping[HumanLabel, Share]


HUMAN_LABELS: tuple[HumanLabel, ...] = ("all", "deceiving", "intermediate", "non_deceiving")


def _has_area(box: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    if not (box[0] < box[2] and box[1] < box[3]):
        raise ValueError("a box is x0, y0, x1, y1 with x0 < x1 and y0 < y1")
    return box


Box = Annotated[tuple[float, float, float, float], AfterValidator(_has_area)]


class HumanAnswer(Record):
    """One person's answer about the edited image of one pair.

    `said` is what the person took it for. `boxes` is what was marked, `truth` what was edited, in pixels of
    the edited image; None where that is not known, and then there is no IoU. `iou`, 0–1, may be given in
    their place.
    """

    id: NonEmpty
    said: Literal["edited", "real"]
    rater: str | None = None
    boxes: tuple[Box, ...] | None = None
    truth: Annotated[tuple[Box, ...], Field(min_length=1)] | None = None
    iou: Annotated[float, Field(ge=0, le=1)] | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.iou is not None and self.truth is not None:
            raise ValueError("give either iou or truth, not both")
        return self

    def overlap(self) -> float | None:
        """0–1; None where it is not known."""
        if self.said == "real":
            return None if self.truth is None and self.iou is None else 0.0
        if self.iou is not None or self.boxes is None or self.truth is None:
            return self.iou
        return box_iou(self.boxes, self.truth)


def load_humans(paths: Sequence[Path]) -> tuple[HumanAnswer, ...]:
    """All answers of the files. Raises ItemsError with every invalid line, UsageError."""
    answers: list[HumanAnswer] = []
    for path in paths:
        found, problems = parse_records(path, HumanAnswer)
        if problems:
            raise ItemsError(str(path), problems, remedy="Correct these lines; nothing was scored.")
        if not found:
            raise UsageError(f"{path} holds no answers", remedy="Give one answer a line.")
        answers += [answer for _, answer in found]
    return tuple(answers)


def box_iou(marked: Sequence[Box], truth: Sequence[Box]) -> float:
    """Area that both cover over area that either covers, 0–1, 0 without any; boxes may overlap."""
    edges = [np.unique([box[axis + end] for box in (*marked, *truth) for end in (0, 2)]) for axis in (0, 1)]

    def covered(boxes: Sequence[Box]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        cells = np.zeros([max(0, len(axis) - 1) for axis in edges], dtype=np.bool_)
        for x0, y0, x1, y1 in boxes:
            (left, right), (top, bottom) = (
                np.searchsorted(edges[0], (x0, x1)),
                np.searchsorted(edges[1], (y0, y1)),
            )
            cells[left:right, top:bottom] = True
        return cells

    area = np.outer(np.diff(edges[0]), np.diff(edges[1]))
    one, other = covered(marked), covered(truth)
    either = float(area[one | other].sum())
    return float(area[one & other].sum()) / either if either else 0.0


def score_humans(
    verdicts: Sequence[Verdict],
    answers: Sequence[HumanAnswer],
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> HumanScore:
    """Accuracy and IoU by label.

    Intervals of accuracy are Wilson's where no image has several answers; else, and of IoU, images are
    resampled, and an image's answers stay together.
    """
    labels = {verdict.id: verdict.label for verdict in verdicts}
    about: dict[str, list[HumanAnswer]] = {}
    for answer in answers:
        if labels.get(answer.id, "undetermined") != "undetermined":
            about.setdefault(answer.id, []).append(answer)

    def shares(value: Callable[[HumanAnswer], float | None], *, counted: bool) -> dict[HumanLabel, Share]:
        sums = [[found for answer in about[name] if (found := value(answer)) is not None] for name in about]
        ratios = []
        for label in HUMAN_LABELS:
            wanted = [label in ("all", labels[name]) for name in about]
            counts = [sum(found) if here else 0 for found, here in zip(sums, wanted, strict=True)]
            out_of = [len(found) if here else 0 for found, here in zip(sums, wanted, strict=True)]
            # A ratio of sums is the same thing for fractions as for counts.
            ratios.append(
                Ratio(cast(Ints, np.array(counts, dtype=np.float64)), np.array(out_of, dtype=np.int16))
            )
        if counted or not resamples:
            intervals = share_intervals(ratios, resamples=resamples, seed=seed)
        else:
            intervals = ratio_intervals(ratios, resamples=resamples, seed=seed)
        return {
            label: _share(found, interval, counted=counted)
            for label, found, interval in zip(HUMAN_LABELS, ratios, intervals, strict=True)
        }

    known = [answer for answer in answers if answer.id in labels]
    return HumanScore(
        answers=len(answers),
        raters=len({answer.rater for answer in answers}),
        unused=len(answers) - len(known),
        undetermined=sum(labels[answer.id] == "undetermined" for answer in known),
        accuracy=shares(lambda answer: float(answer.said == "edited"), counted=True),
        iou=shares(HumanAnswer.overlap, counted=False),
    )


def _share(found: Ratio, interval: tuple[float, float] | None, *, counted: bool) -> Share:
    out_of = int(found.out_of.sum(dtype=np.int64))
    total = float(np.asarray(found.counts, dtype=np.float64).sum())
    value = total / out_of if out_of else None
    return Share(value, round(total) if counted else 0, out_of, interval if out_of else None)
