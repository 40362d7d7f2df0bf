"""The parameters of the functions of `uncanny.mcq`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from uncanny.eval.common.parameters import (
    AgreeParameters,
    AllAgreeParameters,
    Force,
    IntervalParameters,
    People,
    Root,
    ScoreParameters,
)
from uncanny.models.parameters import SamplingParameters, Temperature
from uncanny.parameters import HERE, PYTHON, Parameters, Place, Shown, Text
from uncanny.runs.parameters import AskEachParameters, AskParameters

Question = Literal["q1", "q2", "q3", "q4"]
PlannedScore = Literal[Question, "all_q1_4"]
Parser = Literal["exact", "lenient"]
ExportForm = Literal["hf", "parquet", "csv"]
# Shares between 0 and 1, neither of them included.
_Between = Annotated[float, Field(gt=0, lt=1)]


class McqConfig(SamplingParameters):
    """How questions are asked. Reasoning is left to the provider."""

    temperature: Temperature = 0.0
    control: bool = False
    """Ask Q4 again without the image, with an option F for "no picture was provided"."""
    blind: bool = False
    """Ask all questions again without the image, so that the model guesses from the words."""


class ItemsParameters(Parameters):
    """How items are read."""

    root: Root = None


class McqShared(McqConfig, ItemsParameters):
    """The parameters of asking questions, of one model or of several."""


class McqParameters(McqShared, AskParameters):
    """The parameters of `run`."""


class McqEachParameters(McqShared, AskEachParameters):
    """The parameters of `run_each`."""


class LoadParameters(ItemsParameters):
    """The parameters of `load`."""

    folder: Annotated[Place | None, PYTHON] = None
    """Folder to copy the bundled set into, as `items`, and to read it from."""


class CheckParameters(ItemsParameters):
    """The parameters of `check`."""

    images: bool = True
    """Open every image, too."""


class OverlayParameters(ItemsParameters):
    """The parameters of `overlay`."""

    out: Annotated[Place, Shown(on=HERE.on, short="-o")]
    """Folder for the images and items.jsonl."""


class ImportParameters(Parameters):
    """The parameters of `import_table`."""

    out: Annotated[Place, Shown(on=HERE.on, short="-o")]
    """Folder for items.jsonl and the images."""
    images: Annotated[bool, PYTHON] = True
    """Open every image, to check it."""


class ExportParameters(ItemsParameters):
    """The parameters of `export_table`."""

    out: Annotated[Place, Shown(on=HERE.on, short="-o")]
    """A .parquet or .csv file, or the folder for the Hugging Face Hub."""
    to: Annotated[ExportForm | None, Shown(default="what the suffix of the file says")] = None
    """Form of the table; hf is a folder with a card, for the Hugging Face Hub."""
    overlays: bool = True
    """Draw the pictures of Q3 that are not stored."""
    prompts: Annotated[Place | None, Shown(metavar="DIR", default="uncanny's")] = None
    """Folder with your prompts, for items that have none."""
    license: Annotated[Text | None, Shown(metavar="ID")] = None
    """License in the card, such as cc-by-4.0."""
    title: Annotated[Text | None, Shown(metavar="TEXT", default="the folder's name")] = None
    """Title of the card."""
    force: Force = False


class BuildParameters(AgreeParameters):
    """The parameters of `build`."""

    out: Annotated[Place, Shown(on=HERE.on, short="-o")]
    """Item file to write."""
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of the drafts; the same seed gives the same drafts."""
    force: Force = False


class KeepParameters(AllAgreeParameters):
    """The parameters of `keep`."""

    out: Annotated[Place | None, Shown(on=HERE.on, short="-o", metavar="FILE", default="none")] = None
    """Item file to write the items to that reviewers agree on."""


class BaselineParameters(Parameters):
    """The parameters of `baseline_answers`."""

    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    """Seed of the random answers: the same seed, the same answers."""


class BoxScoreParameters(IntervalParameters):
    """The parameters of `score_boxes`."""


class RunScoreParameters(ScoreParameters):
    """The parameters of `McqRun.score`."""

    people: Annotated[People | None, Shown(metavar="[NAME=]FILE", named=True)] = None
    """Answers of one person, NAME; the mean of all people is shown as `human`."""
    baselines: bool = False
    """Add two baselines: random guessing on average, and a model that never finds anything."""
    parser: Parser = "exact"
    """How answers are read; exact is the protocol, lenient adds a second reading."""
    require_complete: bool = False
    """Fail if an answer is missing."""


class McqScoreParameters(RunScoreParameters, ItemsParameters):
    """The parameters of `score`."""


class PlanParameters(Parameters):
    """The parameters of `plan`. Shares are in 0–1."""

    difference: _Between = 0.03
    """Difference between the two models, as a share of the items."""
    accuracy: _Between = 0.6
    """Share of items that the worse model gets right."""
    discordant: Annotated[_Between | None, Shown(default="that of models that err independently")] = None
    """Share of items that only one of the two models gets right."""
    scores: Annotated[Place | Mapping[str, Any] | None, Shown(metavar="FILE")] = None
    """JSON of the scores of several models, to take the discordant share from."""
    question: PlannedScore = "all_q1_4"
    """Score from which the discordant share is computed."""
    power: _Between = 0.8
    """Probability of finding the difference."""
    # Exact tails far below it are beyond the numbers there are.
    alpha: Annotated[float, Field(gt=1e-14, lt=1)] = 0.05
    """Level of the test."""
    models: Annotated[int, Field(ge=2, le=1_000)] = 2
    """Number of models. All pairs are compared, and the level is divided by the number of pairs."""
    items: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    """Number of items you have; prints the differences they can show."""
