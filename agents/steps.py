"""The steps of the annotation pipeline, each said once: who is asked what, how often, and how long it gets.

A schedule is a table of steps. Agents ask by them, `AnnotateConfig.calls` counts by them, and the forecast
takes their sizes. Another way through the same agents is a further table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel

from uncanny.answers.forms import (
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
    PART_FAULTS,
    Fault,
    FinalText,
    InventoryItem,
    Judgement,
)
from uncanny.schema import Anomaly, SceneObject

T = TypeVar("T", bound=BaseModel)

# What a step is taken for, each time anew: `look` is one question for a draft of the inventory and a scan,
# `batch` so many enlarged parts of the image, `relations` is there or not.
Per = Literal["image", "look", "repeat", "object", "batch", "relations", "scan"]
ScheduleName = Literal["packed", "paper", "single"]


@dataclass(frozen=True, slots=True)
class InView:
    """What a typical call is about: `subjects` of the image's `objects`, and `findings`.

    `drafts` of the list of objects were merged.
    """

    subjects: float
    objects: float
    findings: float
    drafts: int


@dataclass(frozen=True, slots=True)
class Size:
    """Tokens of what is filled into a prompt, or of an answer: so many `fixed`, and for each thing in view.

    `redraft` is what each further draft adds to an object whose descriptions are all kept: half of them name
    it as an earlier one did, and describe it anew.
    """

    fixed: int = 0
    subject: int = 0
    object: int = 0
    finding: int = 0
    redraft: int = 0

    def tokens(self, view: InView) -> float:
        again = self.redraft * (view.drafts - 1)
        return (
            self.fixed
            + (self.subject and self.subject + again) * view.subjects
            + (self.object and self.object + again) * view.objects
            + self.finding * view.findings
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of call, answered in free text.

    `agent` and `number` stand in records. `prompt` is the name of its text in the prompt set; with several
    `wordings` the texts are called `prompt_1`, `prompt_2`, …, and repeats take turns. `text` is the prompt
    itself, of a step that has it from nowhere else; `prompt` names it in records. `texts` are names of
    others that are filled in or go beside it. `data_tokens` are those of what else is filled into the prompt,
    `output_tokens` those of an answer; a number is the same for every call. `parts` are enlarged parts of the
    image that usually go along. `of_findings`: the step is left out where nothing was found; `spare`: also
    where all went well. `alone`: no other call begins like it, so that nothing of it is worth
    keeping.
    """

    agent: str
    number: int
    prompt: str
    per: Per = "image"
    sees_image: bool = True
    wordings: int = 1
    texts: tuple[str, ...] = ()
    data_tokens: Size | int = 0
    output_tokens: Size | int = 0
    parts: int = 0
    of_findings: bool = False
    spare: bool = False
    alone: bool = False
    text: str | None = None

    @property
    def data(self) -> Size:
        """What is filled into the prompt."""
        return self.data_tokens if isinstance(self.data_tokens, Size) else Size(self.data_tokens)

    @property
    def answer(self) -> Size:
        """What comes back."""
        return self.output_tokens if isinstance(self.output_tokens, Size) else Size(self.output_tokens)

    @property
    def finds(self) -> bool:
        """Whether its answers are where findings come from."""
        return not self.of_findings and self.answer.finding > 0

    def prompt_name(self, sample: int = 0) -> str:
        """The text for repeat `sample`, counted from 0."""
        return self.prompt if self.wordings == 1 else f"{self.prompt}_{sample % self.wordings + 1}"


@dataclass(frozen=True, slots=True)
class ListStep(Step, Generic[T]):
    """A kind of call whose answer is a list, constrained to the schema of `form` where the model can.

    `look` is the name of a node in the graph of `packed` that looks for faults, in the image or in
    each batch of its enlarged parts, as `per` says.
    """

    form: ListForm[T] = field(kw_only=True)
    look: str = field(default="", kw_only=True)


@dataclass(frozen=True, slots=True)
class Schedule:
    """The steps one image goes through.

    `prompts` is the set of its texts, `forms` what its constrained answers look like. `repeats` and
    `scene_scans` are how often a draft and a scan are made unless the user says otherwise. `without_effect`
    are the parameters of `AnnotateConfig` that it has no use for.
    """

    name: ScheduleName
    prompts: str
    steps: tuple[Step, ...]
    forms: tuple[ListForm[Any], ...]
    repeats: int
    scene_scans: int
    without_effect: tuple[str, ...] = ()

    @property
    def looks(self) -> dict[str, ListStep[Any]]:
        """The steps that look for faults, by the names of their nodes."""
        return {step.look: step for step in self.steps if isinstance(step, ListStep) and step.look}

    def calls(self, times: Mapping[Per, int]) -> int:
        """Calls for an image in which each thing occurs so many times, without retries."""
        return sum(times[step.per] for step in self.steps if not step.spare)


# Sizes follow from the forms: a name is some 5 tokens, a sentence 20 to 25, a box 12, keys and quotes of an
# item 10 to 20. Notes in free text are as long as GPT-4o's to prompts of this kind, rounded.
_LIST: Final = 8  # what stands around the items of an answer
PERCEIVE: Final[ListStep[SceneObject]] = ListStep(
    "ObjectPerceiver",
    1,
    "perceive",
    "repeat",
    wordings=3,
    output_tokens=Size(_LIST, subject=35),
    form=OBJECTS,
)
SCAN: Final[ListStep[Finding]] = ListStep(
    "SceneScanner", 1, "scan", "scan", output_tokens=Size(_LIST, finding=70), form=FINDINGS
)
ATTRIBUTE_LOOK: Final = Step(
    "AttributeAnalyzer",
    1,
    "attribute_look",
    "object",
    data_tokens=Size(subject=30, redraft=12),
    output_tokens=220,
)
ATTRIBUTE_VERIFY: Final[ListStep[AttributeFinding]] = ListStep(
    "AttributeAnalyzer",
    2,
    "attribute_verify",
    "object",
    data_tokens=Size(220, subject=30, redraft=12),
    output_tokens=Size(_LIST, finding=70),
    form=ATTRIBUTES,
)
RELATION_LOOK: Final = Step(
    "RelationReasoner",
    1,
    "relation_look",
    "object",
    texts=("relation_context",),
    data_tokens=Size(subject=30, object=30, finding=70, redraft=12),
    output_tokens=220,
)
RELATION_VERIFY: Final[ListStep[RelationFinding]] = ListStep(
    "RelationReasoner",
    2,
    "relation_verify",
    "object",
    texts=("relation_context",),
    data_tokens=Size(220, subject=30, object=30, finding=70, redraft=12),
    output_tokens=Size(_LIST, finding=70),
    form=RELATIONS,
)
INTEGRATE_MERGE: Final = Step(
    "AnomalyIntegrator",
    1,
    "integrate_merge",
    "object",
    sees_image=False,
    data_tokens=Size(subject=30, finding=70, redraft=12),
    output_tokens=Size(120, finding=80),
    of_findings=True,
)
INTEGRATE_LIST: Final[ListStep[Finding]] = ListStep(
    "AnomalyIntegrator",
    2,
    "integrate_list",
    "object",
    sees_image=False,
    data_tokens=Size(120, subject=30, finding=80, redraft=12),
    output_tokens=Size(_LIST, finding=80),
    form=FINDINGS,
    of_findings=True,
)
FORMAT: Final[ListStep[Anomaly]] = ListStep(
    "AnomalyFormatter",
    1,
    "format",
    "image",
    data_tokens=Size(object=5, finding=80),
    output_tokens=Size(_LIST, finding=100),
    form=ANOMALIES,
    of_findings=True,
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
    without_effect=("box_format", "max_regions", "view"),
)

_DRAFT: Final = Size(_LIST, subject=40)
_FAULTS: Final = Size(_LIST, finding=95)
TAKE_INVENTORY: Final[ListStep[InventoryItem]] = ListStep(
    "ObjectPerceiver",
    1,
    "perceive",
    "repeat",
    wordings=2,
    texts=("inventory",),
    output_tokens=_DRAFT,
    form=INVENTORY,
)
# The draft and the scan in one answer, where one model is asked for both.
LOOK: Final = Step(
    "ObjectPerceiver",
    1,
    "look",
    "look",
    texts=("inventory", "open_look"),
    output_tokens=Size(2 * _LIST, subject=40, finding=95),
    alone=True,
)
# Enlarged parts in one question. The whole image stands ahead of them, small.
PARTS_A_CALL: Final = 4
WHOLE_SIDE: Final = 640
SCAN_IMAGE: Final[ListStep[Fault]] = ListStep(
    "SceneScanner",
    1,
    "scan",
    "scan",
    texts=("open_look",),
    output_tokens=_FAULTS,
    form=FAULTS,
    look="scan",
)
# Who looks for faults: a further agent is a line here, and its prompt in `prompts/packed`.
LOOKS: Final[tuple[ListStep[Fault], ...]] = (
    SCAN_IMAGE,
    ListStep(
        *("AttributeAnalyzer", 1, "attributes", "batch"),
        sees_image=False,
        texts=("listed", "doubts"),
        data_tokens=Size(120),
        output_tokens=Size(_LIST, finding=110),
        form=PART_FAULTS,
        look="attributes",
    ),
    ListStep(
        *("RelationReasoner", 1, "relations", "relations"),
        texts=("doubts",),
        data_tokens=Size(60),
        output_tokens=Size(_LIST, finding=110),
        parts=2,
        alone=True,
        form=PART_FAULTS,
        look="relations",
    ),
)
JUDGE: Final[ListStep[Judgement]] = ListStep(
    "AnomalyIntegrator",
    1,
    "integrate",
    "image",
    texts=("shown",),
    data_tokens=Size(finding=100),
    output_tokens=Size(_LIST, finding=170),
    # One for every place where something was found.
    parts=2,
    alone=True,
    form=JUDGEMENTS,
    of_findings=True,
)
# Only of what the integrator left without them, which is nothing as a rule.
WRITE: Final[ListStep[FinalText]] = ListStep(
    "AnomalyFormatter",
    1,
    "format",
    "image",
    sees_image=False,
    data_tokens=Size(finding=75),
    output_tokens=Size(_LIST, finding=50),
    form=FINAL_TEXTS,
    of_findings=True,
    spare=True,
)
# Every further call shows something new: of 170 calls of `PAPER` about eight pictures, 152 changed nothing.
PACKED: Final = Schedule(
    "packed",
    "packed",
    (LOOK, TAKE_INVENTORY, *LOOKS, JUDGE, WRITE),
    PACKED_FORMS,
    repeats=1,
    scene_scans=1,
)

LIST_ALL: Final = Step("SceneScanner", 1, "list", "image", output_tokens=Size(4, finding=95), alone=True)
# One call, answered by a list in plain text: the baseline of the published evaluation of models.
SINGLE: Final = Schedule(
    "single",
    "single",
    (LIST_ALL,),
    (),
    repeats=1,
    scene_scans=0,
    without_effect=(
        "repeats",
        "max_objects",
        "scene_scans",
        "max_regions",
        "view",
        "box_format",
        "formatter_output_tokens",
    ),
)

SCHEDULES: Final[Mapping[ScheduleName, Schedule]] = {
    schedule.name: schedule for schedule in (PACKED, PAPER, SINGLE)
}
DEFAULT_SCHEDULE: Final[ScheduleName] = "packed"
_OF_NODES: Final = {
    "perceiver": "ObjectPerceiver",
    "integrator": "AnomalyIntegrator",
    "formatter": "AnomalyFormatter",
    "scanner": "SceneScanner",
}
# The names users give: `--role integrator=openai/gpt-4o-mini`. An agent that looks has that of its node.
ROLES: Final[Mapping[str, str]] = _OF_NODES | {
    step.look: step.agent for step in LOOKS if step.agent not in _OF_NODES.values()
}
