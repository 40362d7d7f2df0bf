"""What scoring of verdicts finds, as values a report can use directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from uncanny.eval.mcq.result import Share
from uncanny.eval.metrics.position_bias import PositionBias
from uncanny.eval.realism.records import Outcome, Verdict
from uncanny.graphs.ugda_cases import Case, Label
from uncanny.records.run_folder import Unfinished

TwoWay = Literal["deceiving", "non_deceiving", "undetermined"]
HumanLabel = Literal["all", "deceiving", "intermediate", "non_deceiving"]


@dataclass(frozen=True, slots=True)
class CallCount:
    """What was asked, and what the early exit saved.

    `questions` is how many of the three questions a pair were asked, `saved` how many second checks, two a
    pair, the `no` of the first check made needless. `made` counts calls with retries and repair questions;
    None where the records do not tell.
    """

    questions: int
    saved: int
    made: int | None


@dataclass(frozen=True, slots=True)
class GroupScore:
    """The figures of all pairs, or of one group's.

    Shares come with 95 % Wilson intervals. Those of the three labels, of the cases and of the
    two-way reading, where `intermediate` counts as non-deceiving, are out of the pairs with a label; that of
    `undetermined` is out of all. `outcomes` counts records by how they came about, those that do not tell
    by their label.
    """

    n: int
    labels: Mapping[Label, Share]
    cases: Mapping[Case, Share]
    two_way: Mapping[TwoWay, Share]
    outcomes: Mapping[Outcome, int]
    position_bias: PositionBias
    calls: CallCount


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


@dataclass(frozen=True, slots=True)
class VerdictSet:
    """Verdicts of one file in its order. `name` is unique among the sets scored together.

    `unfinished` says how many pairs of its run have no verdict yet, None where none is known to be missing.
    """

    name: str
    path: Path
    verdicts: tuple[Verdict, ...]
    unfinished: Unfinished | None = None


@dataclass(frozen=True, slots=True)
class SetScore:
    """One set. `groups` is empty where no pair has a group; pairs without one are then under no name of
    theirs but in `overall`. `human` is None where nobody was asked."""

    verdicts: VerdictSet
    overall: GroupScore
    groups: Mapping[str, GroupScore]
    human: HumanScore | None


@dataclass(frozen=True, slots=True)
class RealismScore:
    """All sets side by side, by name, in the order given."""

    sets: Mapping[str, SetScore]
    resamples: int
    seed: int
