"""What annotation and detection are asked with: every parameter that changes their outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from uncanny.agents.steps import DEFAULT_SCHEDULE, SCHEDULES, Per, Schedule, ScheduleName
from uncanny.answers.boxes import BoxFormatName
from uncanny.errors import UsageError
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory
from uncanny.wording import option, shown

Temperature = Annotated[float, Field(ge=0, le=2)] | None
TopP = Annotated[float, Field(gt=0, le=1)] | None
OutputTokens = Annotated[int, Field(ge=1)]
# A name, so that nothing else finds its way into the prompts.
Language = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=2, max_length=60, pattern=r"^[\w ()'-]+$")
]


Strictness = Literal["open", "strict"]


def _of_schedule(parameter: Literal["repeats", "scene_scans"]) -> Callable[[dict[str, Any]], int]:
    # Where the schedule is none, its own error is raised; this one has no say.
    return lambda data: getattr(SCHEDULES[data.get("schedule", DEFAULT_SCHEDULE)], parameter)


class Parameters(BaseModel):
    """Base of configurations: what is none of their parameters, or out of range, is a UsageError."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _explained(error, type(self)) from error


def _explained(error: ValidationError, kind: type[BaseModel]) -> UsageError:
    first = error.errors()[0]
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        near = get_close_matches(name, kind.model_fields, n=1)
        remedy = f"Did you mean {option(near[0])}?" if near else "Leave it out."
        return UsageError(f"There is no parameter {option(name)}", remedy=remedy)
    if first["type"] == "string_pattern_mismatch" and name == "language":
        return UsageError(
            f"{option(name)} must be the name of a language, not {shown(first['input'])}",
            remedy="Write it with letters, spaces, hyphens, apostrophes and round brackets only.",
        )
    return UsageError(f"{option(name)}: {first['msg']}, not {shown(first['input'])}")


class AnnotateConfig(Parameters):
    """Parameters of the annotation pipeline.

    `schedule` says how the agents are asked: `packed`, several objects a call, `paper`, one at a time as
    published, or `single`, one call for all. `repeats` drafts of the object list are merged, by default 1, of
    `paper` 3; `max_objects` of them are examined (the figure bounds cost; what it cuts is recorded).
    `scene_scans` open looks at the whole image are added, by default 1, of `paper` none (the authors'
    released code runs three, the paper none). `batch_objects` go into one call of `packed` at most.

    `strictness` is what counts: `open` also what is odd and unlikely, with a realism to match, `strict`
    impossibilities only. `language` is the one answers are written in. `box_format` is how models are asked
    for boxes; None goes by each model's name.

    Sampling parameters are sent to models that take them; None leaves a model's own default. Output limits
    are in tokens and doubled, up to 16,000, when an answer is cut off.

    Raises UsageError for what is out of range, and for a parameter that has no effect with the schedule.

    Source: AnomReason, section 2 and appendix D, for `paper` and its defaults; the sampling parameters are
    the authors' released settings.
    """

    schedule: ScheduleName = DEFAULT_SCHEDULE
    repeats: Annotated[int, Field(ge=1, le=100)] = Field(default_factory=_of_schedule("repeats"))
    max_objects: Annotated[int, Field(ge=1, le=1_000)] = 12
    scene_scans: Annotated[int, Field(ge=0, le=100)] = Field(default_factory=_of_schedule("scene_scans"))
    batch_objects: Annotated[int, Field(ge=1, le=100)] = 6
    strictness: Strictness = "open"
    language: Language = "English"
    box_format: BoxFormatName | None = None
    temperature: Temperature = 0.3
    top_p: TopP = 0.95
    max_output_tokens: OutputTokens = 2_000
    formatter_output_tokens: OutputTokens = 5_000

    def model_post_init(self, _context: object) -> None:
        given = [each for each in self.table.without_effect if each in self.model_fields_set]
        defaults = type(self)(schedule=self.schedule) if given else self
        # What is written down in full, as in `run.json`, has the defaults too, and can be read back.
        self.check_effect(each for each in given if getattr(self, each) != getattr(defaults, each))

    def check_effect(self, given: Iterable[str]) -> None:
        """Raises UsageError for the first of these parameters that the schedule has no use for."""
        for parameter in given:
            if parameter in self.table.without_effect:
                raise UsageError(
                    f"{option(parameter)} has no effect with the schedule `{self.schedule}`",
                    remedy="Leave it out, or take another schedule.",
                )

    @property
    def table(self) -> Schedule:
        """The steps of the schedule."""
        return SCHEDULES[self.schedule]

    def times(self, objects: int) -> dict[Per, int]:
        """How often each step is taken for one image with so many objects."""
        examined = min(objects, self.max_objects)
        return {
            "image": 1,
            "repeat": self.repeats,
            "object": examined,
            "batch": -(-examined // self.batch_objects),
            "scan": self.scene_scans,
        }

    def agents(self) -> set[str]:
        """Those who are asked about an image in which there is anything to ask about."""
        times = self.times(self.max_objects)
        return {step.agent for step in self.table.steps if times[step.per]}

    def calls(self, objects: int) -> int:
        """Calls for one image with so many objects and at least one finding for each, without retries."""
        return self.table.calls(self.times(objects))

    def least_calls(self) -> int:
        """Those for an image in which there is nothing to examine."""
        if self.schedule == "single":
            return 1
        return self.repeats + self.scene_scans


DetectProtocol = Literal["conversation", "independent"]


class DetectConfig(Parameters):
    """Parameters of the detection protocol.

    `conversation` asks for the verdict and then, with it in view, for the anomalies of an image held to be
    generated or the content of one held to be real. `independent` makes two calls about every image, which
    know nothing of each other: the verdict, and the anomalies.

    Temperature 0 where the model takes one; None leaves a model's own default. The output limit is in tokens
    and doubled, up to 16,000, when an answer is cut off.
    """

    protocol: DetectProtocol = "conversation"
    temperature: Temperature = 0.0
    top_p: TopP = None
    max_output_tokens: OutputTokens = 2_000


class ArtifactsConfig(Parameters):
    """Parameters of locating artifacts.

    `categories` are asked for one by one, or with `joint` all in one call. With
    `likelihood` one call more asks how likely the image is generated. `box_format` is how models are asked
    for boxes; None goes by each model's name.

    Temperature 0 where the model takes one; None leaves a model's own default. The output limit is in tokens
    and doubled, up to 16,000, when an answer is cut off.
    """

    categories: Annotated[tuple[ArtifactCategory, ...], Field(min_length=1)] = ARTIFACT_CATEGORIES
    joint: bool = False
    likelihood: bool = False
    box_format: BoxFormatName | None = None
    temperature: Temperature = 0.0
    top_p: TopP = None
    max_output_tokens: OutputTokens = 2_000

    @property
    def calls(self) -> int:
        """Calls for one image, without retries."""
        return (1 if self.joint else len(self.categories)) + self.likelihood
