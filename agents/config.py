"""What annotation and detection are asked with: every parameter that changes their outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from uncanny.agents.steps import DEFAULT_SCHEDULE, SCHEDULES, Per, Schedule, ScheduleName
from uncanny.answers.boxes import BoxFormatName
from uncanny.errors import UsageError
from uncanny.models.parameters import SamplingParameters, Temperature, TopP
from uncanny.parameters import Parameters, Shown
from uncanny.schema import ARTIFACT_CATEGORIES, ArtifactCategory
from uncanny.wording import option


def _language_name(text: str) -> str:
    if re.fullmatch(r"[\w ()'-]+", text) is None:
        raise ValueError("must be the name of a language: letters, spaces, hyphens, apostrophes and brackets")
    return text


# A name, so that nothing else finds its way into the prompts.
Language = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=2, max_length=60),
    AfterValidator(_language_name),
]


Strictness = Literal["open", "strict"]
_OF_THE_RUN = f"{DEFAULT_SCHEDULE}, or that of the run"


def _of_schedule(parameter: Literal["repeats", "scene_scans"]) -> Callable[[dict[str, Any]], int]:
    # Where the schedule is none, its own error is raised; this one has no say.
    return lambda data: getattr(SCHEDULES[data.get("schedule", DEFAULT_SCHEDULE)], parameter)


def _by_schedule(parameter: Literal["repeats", "scene_scans"]) -> str:
    """The defaults in words: `1, paper 3`."""
    usual = getattr(SCHEDULES[DEFAULT_SCHEDULE], parameter)
    others = {name: getattr(each, parameter) for name, each in SCHEDULES.items()}
    return ", ".join([str(usual), *(f"{name} {value}" for name, value in others.items() if value != usual)])


class BoxParameters(Parameters):
    """How models are asked for boxes."""

    heading = "Agents"
    box_format: Annotated[BoxFormatName | None, Shown(default="as each model was trained, by its name")] = (
        None
    )
    """Coordinates that models are asked to give boxes in."""


class AnnotateConfig(SamplingParameters, BoxParameters):
    """What changes the annotation of an image.

    Raises UsageError for what is out of range, and for a parameter that has no effect with the schedule.

    Source: AnomReason, section 2 and appendix D, for `paper` and its defaults; the sampling parameters are
    the authors' released settings.
    """

    heading = "Agents"
    schedule: Annotated[
        ScheduleName, Shown(default=f"{DEFAULT_SCHEDULE}, or that of the run", first=True)
    ] = DEFAULT_SCHEDULE
    """How agents are asked: several objects a call (packed), one object at a time as published (paper), or
    one call for the whole image (single)."""
    repeats: Annotated[
        int, Field(ge=1, le=100), Shown(label="Drafts of the object list", default=_by_schedule("repeats"))
    ] = Field(default_factory=_of_schedule("repeats"))
    """Number of drafts of the object list that are merged."""
    max_objects: Annotated[int, Field(ge=1, le=1_000), Shown(label="Maximum objects per image")] = 12
    """Maximum number of objects examined per image; the record names those that were cut."""
    scene_scans: Annotated[
        int, Field(ge=0, le=100), Shown(label="Looks at the whole image", default=_by_schedule("scene_scans"))
    ] = Field(default_factory=_of_schedule("scene_scans"))
    """Number of looks at the image as a whole. The authors' released code has three, the paper none."""
    batch_objects: Annotated[int, Field(ge=1, le=100), Shown(label="Objects per call")] = 6
    """Maximum number of objects in one call of the schedule packed."""
    strictness: Strictness = "open"
    """Report what is odd or unlikely too (open), or only what is impossible (strict)."""
    language: Language = "English"
    """Language of the answers, by its name."""
    temperature: Temperature = 0.3
    top_p: TopP = 0.95
    formatter_output_tokens: Annotated[
        int, Field(ge=1, le=1_000_000), Shown(label="Maximum tokens of the last step")
    ] = 5_000
    """Maximum tokens of the last step's answer; doubled when it is cut off."""

    def model_post_init(self, _context: object) -> None:
        given = [each for each in self.table.without_effect if each in self.model_fields_set]
        defaults = AnnotateConfig(schedule=self.schedule) if given else self
        # What is written down in full, as in `run.json`, has the defaults too, and can be read back.
        self.check_effect(each for each in given if getattr(self, each) != getattr(defaults, each))

    def check_effect(self, given: Iterable[str]) -> None:
        """Raises UsageError for the first of these parameters that the schedule has no use for."""
        for parameter in given:
            if parameter in self.table.without_effect:
                raise UsageError(
                    f"{option(parameter)} has no effect with the schedule `{self.schedule}`",
                    remedy=f"Remove it, or pass another {option('schedule')}.",
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

    def asked_agents(self) -> set[str]:
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


class DetectConfig(SamplingParameters):
    """What changes the verdict on an image."""

    protocol: DetectProtocol = "conversation"
    """Ask for the verdict and then, with it in view, for anomalies or for the content (conversation), or for
    the verdict and the anomalies in two calls that know nothing of each other (independent)."""
    temperature: Temperature = 0.0


class ArtifactsConfig(SamplingParameters, BoxParameters):
    """What changes the artifacts located in an image."""

    categories: Annotated[
        Sequence[ArtifactCategory], Field(min_length=1), Shown(flag="--category", default="all seven")
    ] = ARTIFACT_CATEGORIES
    """Locate only these categories."""
    joint: bool = False
    """Ask for all categories in one call, instead of one call each."""
    likelihood: bool = False
    """Also ask how likely the image is generated: one call more."""
    temperature: Temperature = 0.0

    @property
    def calls(self) -> int:
        """Calls for one image, without retries."""
        return (1 if self.joint else len(self.categories)) + self.likelihood
