"""The steps of the annotation pipeline, each said once: who is asked what, how often, and how long it gets.

A schedule is a table of steps. Agents ask by them, `AnnotateConfig.calls` counts by them, and the forecast
takes their sizes. Another way through the same agents is a further table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel

from uncanny.answers import (
    ANOMALIES,
    ATTRIBUTES,
    FINDINGS,
    FORMS,
    OBJECTS,
    RELATIONS,
    AttributeFinding,
    Finding,
    ListForm,
    RelationFinding,
)
from uncanny.answers.packed import (
    FAULTS,
    FINAL_TEXTS,
    INVENTORY,
    JUDGEMENTS,
    PACKED_FORMS,
    Fault,
    FinalText,
    InventoryItem,
    Judgement,
)
from uncanny.prompts.folders import Protocol
from uncanny.schema import Anomaly, SceneObject

T = TypeVar("T", bound=BaseModel)

Agent = Literal[
    "ObjectPerceiver",
    "AttributeAnalyzer",
    "RelationReasoner",
    "AnomalyIntegrator",
    "AnomalyFormatter",
    "SceneScanner",
]
# The names users give: `--role integrator=openai/gpt-4o-mini`.
ROLES: Final[Mapping[str, Agent]] = {
    "perceiver": "ObjectPerceiver",
    "attributes": "AttributeAnalyzer",
    "relations": "RelationReasoner",
    "integrator": "AnomalyIntegrator",
    "formatter": "AnomalyFormatter",
    "scanner": "SceneScanner",
}

# What a step is taken for, each time anew.
Per = Literal["image", "repeat", "object", "batch", "scan"]
ScheduleName = Literal["packed", "paper", "single"]


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of call, answered in free text.

    `agent` and `number` stand in records. `prompt` is the name of its text in the prompt set; with several
    `wordings` the texts are called `prompt_1`, `prompt_2`, …, and repeats take turns. `data_tokens` are those
    of what is filled into the prompt, `output_tokens` those of an answer, both of a typical call.
    """

    agent: str
    number: int
    prompt: str
    per: Per = "image"
    sees_image: bool = True
    wordings: int = 1
    data_tokens: int = 0
    output_tokens: int = 0

    def prompt_name(self, sample: int = 0) -> str:
        """The text for repeat `sample`, counted from 0."""
        return self.prompt if self.wordings == 1 else f"{self.prompt}_{sample % self.wordings + 1}"


@dataclass(frozen=True, slots=True)
class ListStep(Step, Generic[T]):
    """A kind of call whose answer is a list, constrained to the schema of `form` where the model can."""

    form: ListForm[T] = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps one image goes through.

    `prompts` is the set of its texts, `forms` what its constrained answers look like. `repeats` and
    `scene_scans` are how often a draft and a scan are made unless the user says otherwise.
    """

    name: ScheduleName
    prompts: Protocol
    steps: tuple[Step, ...]
    forms: tuple[ListForm[Any], ...]
    repeats: int
    scene_scans: int

    def calls(self, times: Mapping[Per, int]) -> int:
        """Calls for an image in which each thing occurs so many times, without retries."""
        return sum(times[step.per] for step in self.steps)

    def image_calls(self, times: Mapping[Per, int]) -> int:
        """Those of them that see the image."""
        return sum(times[step.per] for step in self.steps if step.sees_image)

    def prefixes(self, *, schema_in_prefix: bool) -> int:
        """How many prefixes with the image there are for a provider to compute.

        Every call with the image starts with the same bytes. Where a schema is rendered ahead of them, free
        and constrained answers start differently.
        """
        starts = {isinstance(step, ListStep) for step in self.steps if step.sees_image}
        return len(starts) if schema_in_prefix else min(1, len(starts))


# Sizes are those of GPT-4o answers to prompts of this kind, rounded; only their order of magnitude matters.
PERCEIVE: Final[ListStep[SceneObject]] = ListStep(
    "ObjectPerceiver", 1, "perceive", "repeat", wordings=3, output_tokens=500, form=OBJECTS
)
SCAN: Final[ListStep[Finding]] = ListStep("SceneScanner", 1, "scan", "scan", output_tokens=250, form=FINDINGS)
ATTRIBUTE_LOOK: Final = Step(
    "AttributeAnalyzer", 1, "attribute_look", "object", data_tokens=60, output_tokens=400
)
ATTRIBUTE_VERIFY: Final[ListStep[AttributeFinding]] = ListStep(
    "AttributeAnalyzer", 2, "attribute_verify", "object", data_tokens=460, output_tokens=150, form=ATTRIBUTES
)
RELATION_LOOK: Final = Step(
    "RelationReasoner", 1, "relation_look", "object", data_tokens=700, output_tokens=450
)
RELATION_VERIFY: Final[ListStep[RelationFinding]] = ListStep(
    "RelationReasoner", 2, "relation_verify", "object", data_tokens=1150, output_tokens=150, form=RELATIONS
)
INTEGRATE_MERGE: Final = Step(
    "AnomalyIntegrator",
    1,
    "integrate_merge",
    "object",
    sees_image=False,
    data_tokens=360,
    output_tokens=300,
)
INTEGRATE_LIST: Final[ListStep[Finding]] = ListStep(
    "AnomalyIntegrator",
    2,
    "integrate_list",
    "object",
    sees_image=False,
    data_tokens=360,
    output_tokens=200,
    form=FINDINGS,
)
FORMAT: Final[ListStep[Anomaly]] = ListStep(
    "AnomalyFormatter", 1, "format", "image", data_tokens=1600, output_tokens=1000, form=ANOMALIES
)

# One object a call, as published: AnomReason, section 2.
PAPER: Final = Schedule(
    "paper",
    "annotate",
    (
        PERCEIVE,
        SCAN,
        ATTRIBUTE_LOOK,
        ATTRIBUTE_VERIFY,
        RELATION_LOOK,
        RELATION_VERIFY,
        INTEGRATE_MERGE,
        INTEGRATE_LIST,
        FORMAT,
    ),
    FORMS,
    repeats=3,
    scene_scans=0,
)

TAKE_INVENTORY: Final[ListStep[InventoryItem]] = ListStep(
    "ObjectPerceiver", 1, "perceive", "repeat", wordings=2, output_tokens=450, form=INVENTORY
)
SCAN_OPENLY: Final[ListStep[Fault]] = ListStep(
    "SceneScanner", 1, "scan", "scan", output_tokens=250, form=FAULTS
)
ANALYZE_BATCH: Final[ListStep[Fault]] = ListStep(
    "AttributeAnalyzer", 1, "attributes", "batch", data_tokens=350, output_tokens=250, form=FAULTS
)
RELATE_BATCH: Final[ListStep[Fault]] = ListStep(
    "RelationReasoner", 1, "relations", "batch", data_tokens=450, output_tokens=250, form=FAULTS
)
JUDGE: Final[ListStep[Judgement]] = ListStep(
    "AnomalyIntegrator", 1, "integrate", "image", data_tokens=600, output_tokens=500, form=JUDGEMENTS
)
WRITE: Final[ListStep[FinalText]] = ListStep(
    "AnomalyFormatter",
    1,
    "format",
    "image",
    sees_image=False,
    data_tokens=400,
    output_tokens=400,
    form=FINAL_TEXTS,
)
# Several objects a call: of 170 calls of `PAPER` about eight pictures, 152 changed nothing.
PACKED: Final = Schedule(
    "packed",
    "packed",
    (TAKE_INVENTORY, SCAN_OPENLY, ANALYZE_BATCH, RELATE_BATCH, JUDGE, WRITE),
    PACKED_FORMS,
    repeats=1,
    scene_scans=1,
)

LIST_ALL: Final = Step("SceneScanner", 1, "list", "image", output_tokens=400)
# One call, answered by a list in plain text: the baseline of the published evaluation of models.
SINGLE: Final = Schedule("single", "single", (LIST_ALL,), (), repeats=1, scene_scans=0)

SCHEDULES: Final[Mapping[ScheduleName, Schedule]] = {
    schedule.name: schedule for schedule in (PACKED, PAPER, SINGLE)
}
DEFAULT_SCHEDULE: Final[ScheduleName] = "packed"
