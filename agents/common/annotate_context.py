"""What the annotating agents generate through, and the state that they read and add to.

An agent is a coroutine function from a state and the image to what it found out. So it can be a node of a
graph as it stands, and one of a user's own can be put in its place. The state holds names and findings only;
image, models and the log of calls are in the `AnnotateContext`.
"""

from __future__ import annotations

import asyncio
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Required, TypedDict, TypeVar

import orjson
from pydantic import BaseModel

from uncanny.agents.common.context import BoxContext, Variable, Wording, asked_box_format, schema_of
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import PACKED, ListStep
from uncanny.answers.boxes import BoxFormatName, in_format
from uncanny.answers.forms import (
    AttributeFinding,
    Finding,
    ListForm,
    RelationFinding,
    own_schema,
    shared_schema,
)
from uncanny.answers.lists import FirstItems, read_first
from uncanny.answers.packed import PACKED_FORMS, Fault, asked_in, given_by
from uncanny.images.encode import PixelPolicy
from uncanny.images.prepared import crops
from uncanny.models.base import AnswerSchema, Part, SentImage, encode_image
from uncanny.prompts import PromptSet
from uncanny.schema import Anomaly, Box, Candidate, SceneObject, StepError

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")
# Room around a part that is shown enlarged, as a share of its sides.
MARGIN: Final = 1.5


def system_text(prompts: PromptSet, config: AnnotateConfig) -> str:
    """The rules for all agents, with how strict they are and the language of the answers."""
    strictness = prompts[config.strictness].template.template
    return prompts["system"].fill(strictness=strictness, language=config.language)


def answer_schema(step: ListStep[Any], model: str, config: AnnotateConfig) -> AnswerSchema:
    """What answers of a step are constrained to, where the model of this name gives them."""
    if config.schedule == "paper":
        return schema_of(step.form)
    return _schema(step.form, asked_box_format(model, config).name, alone=not step.sees_image)


@dataclass(frozen=True, slots=True)
class AnnotateContext(BoxContext[AnnotateConfig]):
    """`ImageContext` of an image that is annotated.

    `source` is where its pixels are at full resolution, None where they cannot be had; a file has the digest
    `source_sha256` unless it was changed meanwhile, and of one above `max_pixels` nothing is enlarged.
    `left_out` counts as it goes what models listed beyond what is read.
    """

    source: Path | bytes | None = field(default=None, repr=False)
    source_sha256: str | None = None
    max_pixels: int = PixelPolicy().max_pixels
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def system(self) -> str:
        return system_text(self.prompts, self.config)

    @property
    def variables(self) -> Mapping[str, Variable]:
        return {"box_key": self.box_key, "box_rule": self.box_rule, "limit": str(self.config.max_objects)}

    @property
    def named(self) -> str:
        return f"the schedule `{self.config.schedule}`"

    def shown(self, items: Sequence[tuple[Mapping[str, Any], Box | None]], model: str) -> str:
        """Items as a model's prompt shows them, one a line, with boxes in the form it knows."""
        form = asked_box_format(model, self.config)
        lines = []
        for values, box in items:
            row: dict[str, Any] = {key: value for key, value in values.items() if value not in (None, (), "")}
            if box is not None:
                row[form.key] = in_format(box, form, sent=self.seen(model), original=self.pixels)
            # Names are a model's own words: none of them may end the block that they stand in.
            lines.append(orjson.dumps(row).decode().replace("</", "<\\/"))
        return "\n".join(lines)

    async def items(
        self,
        step: ListStep[T],
        *shared: str,
        subject: str | None = None,
        sample: int = 0,
        max_output_tokens: int | None = None,
        **variables: Variable,
    ) -> tuple[T, ...]:
        """A validated list, otherwise as `answer`; the first items of one that is too long."""
        form = step.form

        def read(text: str, model: str) -> FirstItems[T]:
            listed = read_first(text, form)
            return replace(listed, items=tuple(given_by(each, model) for each in listed.items))

        listed = await self.answer(
            step,
            read,
            *shared,
            extra=(),
            subject=subject,
            batch=(),
            sample=sample,
            max_output_tokens=max_output_tokens,
            **variables,
        )
        self.leave_out(form.key, listed.left_out)
        return listed.items

    async def answer(
        self,
        step: ListStep[T],
        read: Callable[[str, str], R],
        *shared: str,
        extra: Sequence[Part] = (),
        subject: str | None = None,
        batch: Sequence[str] = (),
        sample: int = 0,
        max_output_tokens: int | None = None,
        **variables: Variable,
    ) -> R:
        """An answer in the form of `step`, as `read` makes it of the text and the name of the model.

        `extra` parts follow the `shared` ones, and are this call's alone. Otherwise as `text`.
        """

        def worded(model: str) -> Wording[R]:
            return Wording(
                self.messages(step, model, shared, sample, variables, extra),
                lambda text: read(text, model),
                answer_schema(step, model, self.config),
            )

        first = worded(self.first_model(step))
        return await self.generate(
            step,
            first.messages,
            first.read,
            repair=self.repair("repair"),
            subject=subject,
            batch=batch,
            sample=sample,
            schema=first.schema,
            max_output_tokens=max_output_tokens,
            fallback=worded,
        )

    def leave_out(self, what: str, number: int) -> None:
        """Count what is in answers and goes no further, for the record."""
        if number:
            self.left_out[what] += number

    async def enlarged(self, boxes: Sequence[Box], agent: str) -> tuple[SentImage, ...]:
        """Parts of the image at full resolution; none where its pixels cannot be had any more."""
        if self.source is None or not boxes:
            return ()
        endpoints = self.model_client.endpoints(agent)
        jpeg = all("image/jpeg" in each.provider.capabilities.media_types for each in endpoints)
        cut = partial(
            crops,
            self.source,
            boxes,
            MARGIN,
            seen=self.seen(endpoints[0].name),
            sha256=self.source_sha256,
            jpeg=jpeg,
            max_pixels=self.max_pixels,
        )
        return tuple(encode_image(**asdict(crop)) for crop in await asyncio.to_thread(cut))


@cache
def _schema(form: ListForm[Any], box: BoxFormatName, *, alone: bool) -> AnswerSchema:
    """The schema of a form with boxes asked for in a format.

    Calls of the packed schedule that see the image share one, so that they share their prefix; one that
    stands `alone` has its own, and so has a form that is none of the schedule's.
    """
    asked = asked_in(form, box)
    seeing = [step.form for step in PACKED.steps if step.sees_image and isinstance(step, ListStep)]
    together = not alone and form in seeing
    shared = tuple(asked_in(each, box) for each in PACKED_FORMS if each in seeing) if together else (asked,)
    return AnswerSchema(form.key, own_schema(asked), shared_schema(shared))


Context = AnnotateContext


class Examined(TypedDict):
    """What came of one object or one scan: `order` sorts findings as if nothing had run side by side."""

    order: int
    findings: list[Finding]
    error: StepError | None


class AnnotateState(TypedDict, total=False):
    """One image on its way.

    `image` is its name. `objects`, `cut`: set by the perceiver, the objects to examine and those above the
    limit. `examined`: one entry from each object and each scan. `anomalies`: set by the formatter. `failure`:
    why one of these two failed, which ends the image.
    """

    image: str
    objects: list[SceneObject]
    cut: list[SceneObject]
    examined: Annotated[list[Examined], operator.add]
    anomalies: list[Anomaly]
    failure: StepError | None


class ObjectState(TypedDict, total=False):
    """What is known about one object: `subject`, at place `order` of all `objects`; `cut` as of the image.

    `attributes`, `relations`, `findings`: each set by one agent. `error`: why one failed, which ends the
    object.
    """

    image: str
    order: int
    subject: SceneObject
    objects: list[SceneObject]
    cut: list[SceneObject]
    attributes: list[AttributeFinding]
    relations: list[RelationFinding]
    findings: list[Finding]
    error: StepError | None


class ScanState(TypedDict, total=False):
    """One look at the whole image: `order` is its number, from 0, which repeats are told apart by.

    `findings`: set by the scanner of the paper's schedule; that of the packed one returns a `Sighting`.
    """

    image: str
    order: int
    findings: list[Finding]


def findings_of(state: AnnotateState) -> list[Finding]:
    """All findings about an image, in the order of its objects, then of its scans."""
    branches = sorted(state.get("examined", []), key=lambda branch: branch["order"])
    return [finding for branch in branches for finding in branch["findings"]]


class BatchFinding(TypedDict):
    """What one agent of the packed schedule found wrong: `objects` by name, `box` in pixels of the image."""

    found_by: str
    objects: tuple[str, ...]
    phenomenon: str
    reasoning: str
    box: Box | None


class Sighting(TypedDict, total=False):
    """What came of one look at a batch, or at the whole image.

    An agent has to set `findings`. `errors` are questions without an answer; a look may have several.
    `answered` says whether anything was said at all, if only that nothing is wrong; left out, it is True.
    `order` is set by the graph: it sorts findings as if nothing had run side by side.
    """

    findings: Required[list[BatchFinding]]
    errors: list[StepError]
    answered: bool
    order: int


class JudgedFault(TypedDict):
    """One fault as the integrator leaves it: the numbers of its findings, from 1, and what now holds."""

    numbers: tuple[int, ...]
    phenomenon: str
    reasoning: str
    box: Box | None


class PackedState(TypedDict, total=False):
    """One image on its way through the packed schedule, or the single one.

    `objects`, `cut`, `located`: set by the perceiver, as in `AnnotateState`; `located` are names of objects
    whose boxes two drafts agree on. `sightings`: one from each batch of an agent and each scan. `faults`,
    `candidates`: set by the integrator: the merged anomalies, and each finding with its fate. `anomalies`:
    set by the formatter, with `candidates` that say which anomaly each became. `errors`: what went wrong
    without ending the image, `failure` what ended it.
    """

    image: str
    objects: list[SceneObject]
    cut: list[SceneObject]
    located: list[str]
    sightings: Annotated[list[Sighting], operator.add]
    faults: list[JudgedFault]
    candidates: list[Candidate]
    anomalies: list[Anomaly]
    errors: Annotated[list[StepError], operator.add]
    failure: StepError | None


class BatchState(TypedDict):
    """One batch on its way to one agent: `batch` are the places, from 1, of its objects in `objects`.

    `order` is the number of the batch, from 0. What the agent says of it is a `Sighting`.
    """

    image: str
    order: int
    batch: tuple[int, ...]
    objects: list[SceneObject]
    cut: list[SceneObject]


def as_findings(
    agent: str, faults: Iterable[Fault], image: Context, objects: Sequence[SceneObject] = ()
) -> list[BatchFinding]:
    """What `agent` was answered, as the state has it: boxes in pixels of the image.

    Faults of a batch have numbers, from 1, for `objects`, and get their names.
    """

    def names(fault: Fault) -> tuple[str, ...]:
        if not objects:
            return fault.objects
        return tuple(objects[number - 1].name for number in fault.numbers if 1 <= number <= len(objects))

    return [
        {
            "found_by": agent,
            "objects": names(each),
            "phenomenon": each.observed,
            "reasoning": each.explanation,
            "box": image.box(each.box),
        }
        for each in faults
    ]


def numbered(state: PackedState) -> list[BatchFinding]:
    """All findings about an image, number 1 first: of its batches in their order, then of its scans."""
    sightings = sorted(state.get("sightings", []), key=lambda sighting: sighting["order"])
    return [finding for sighting in sightings for finding in sighting["findings"]]
