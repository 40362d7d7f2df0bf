"""What annotation and detection are asked with: every parameter that changes their outcome."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from uncanny.agents.steps import DEFAULT_SCHEDULE, PARTS_A_CALL, SCHEDULES, Per, Schedule, ScheduleName
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
    """How agents are asked: one look at the whole image, then enlarged parts of it (packed), one object at a
    time as published (paper), or one call for the whole image (single)."""
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
    max_regions: Annotated[int, Field(ge=0, le=100), Shown(label="Maximum enlarged parts per image")] = 12
    """Maximum number of parts of an image that the schedule packed enlarges and examines; 0 is for none. The
    integrator may be shown as many again, at the places of findings."""
    view: Annotated[
        int | None, Field(ge=64, le=100_000), Shown(default="as known of each model, by its name")
    ] = None
    """Long side, in pixels, at which the model sees an image; it decides which parts the schedule packed
    enlarges."""
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

    def times(self, objects: int, *, regions: int | None = None, jointly: bool = True) -> dict[Per, int]:
        """How often each step is taken for one image with so many objects.

        `regions` are the parts of it that are enlarged, by default the usual number. `jointly`: one model is
        asked for objects and for faults of the whole image.
        """
        packed = self.schedule == "packed"
        looks = int(packed and jointly and self.scene_scans > 0)
        regions = self.parts(objects) if regions is None else regions
        return {
            "image": 1,
            "look": looks,
            "repeat": self.repeats - looks,
            "object": min(objects, self.max_objects),
            "batch": -(-regions // PARTS_A_CALL),
            "relations": int(regions > 0),
            "scan": self.scene_scans - looks,
        }

    def parts(self, objects: int) -> int:
        """Enlarged parts of an image with so many objects, as is usual: one for each that is examined."""
        return min(objects, self.max_objects, self.max_regions)

    def asked_agents(self) -> set[str]:
        """Those who are asked about an image in which there is anything to ask about."""
        times = self.times(self.max_objects, jointly=False)
        return {step.agent for step in self.table.steps if times[step.per]}

    def calls(self, objects: int, *, jointly: bool = True) -> int:
        """Calls for one image with so many objects and at least one finding for each, without retries."""
        return self.table.calls(self.times(objects, jointly=jointly))

    def most_calls(self, *, jointly: bool = True) -> int:
        """Those for an image in which there is as much to examine as there can be."""
        times = self.times(self.max_objects, regions=self.max_regions, jointly=jointly)
        return self.table.calls(times) + sum(times[step.per] for step in self.table.steps if step.spare)

    def least_calls(self, *, jointly: bool = True) -> int:
        """Those for an image in which there is nothing to examine."""
        if self.schedule == "single":
            return 1
        times = self.times(0, jointly=jointly)
        return times["look"] + times["repeat"] + times["scan"]


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
