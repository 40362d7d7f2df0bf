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
from typing import Annotated, Any, Final, NotRequired, Required, TypedDict, TypeVar

import orjson
from pydantic import BaseModel

from uncanny.agents.common.context import BoxContext, Variable, Wording, asked_box_format, schema_of
from uncanny.agents.common.regions import View
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import LOOK, WHOLE_SIDE, ListStep, Step
from uncanny.answers.boxes import BoxFormatName, GivenBox, in_format
from uncanny.answers.forms import AttributeFinding, Finding, ListForm, RelationFinding, own_schema
from uncanny.answers.lists import FirstItems, read_first
from uncanny.answers.packed import FAULTS, INVENTORY, Fault, asked_in, given_by
from uncanny.images.encode import PixelPolicy
from uncanny.images.parts import Cut, Survey, cut_parts
from uncanny.models.base import AnswerSchema, Part, SentImage, encode_image
from uncanny.models.views import part_side, seen_size, shown_size
from uncanny.prompts import PromptSet
from uncanny.schema import Anomaly, Box, Candidate, Kind, Region, SceneObject, StepError

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")


def system_text(prompts: PromptSet, config: AnnotateConfig) -> str:
    """The rules for all agents, with how strict they are and the language of the answers."""
    strictness = prompts[config.strictness].template.template
    return prompts["system"].fill(strictness=strictness, language=config.language)


def answer_schema(step: Step, model: str, config: AnnotateConfig) -> AnswerSchema | None:
    """What answers of a step are constrained to, where the model of this name gives them; None if free."""
    if not isinstance(step, ListStep):
        return _schema((FAULTS, INVENTORY), asked_box_format(model, config).name) if step is LOOK else None
    if config.schedule == "paper":
        return schema_of(step.form)
    return _schema((step.form,), asked_box_format(model, config).name)


@dataclass(frozen=True, slots=True)
class AnnotateContext(BoxContext[AnnotateConfig]):
    """`ImageContext` of an image that is annotated.

    `source` is where its pixels are at full resolution, None where they cannot be had; a file has the digest
    `source_sha256` unless it was changed meanwhile, and of one above `max_pixels` nothing is enlarged.
    `parts` are what was enlarged of it by the numbers of its regions, 0 the whole image made small; of those
    `regions` has boxes. `left_out` counts as it goes what models listed beyond what is read.
    """

    source: Path | bytes | None = field(default=None, repr=False)
    source_sha256: str | None = None
    max_pixels: int = PixelPolicy().max_pixels
    left_out: Counter[str] = field(default_factory=Counter)
    parts: dict[int, SentImage] = field(default_factory=dict)
    regions: dict[int, Region] = field(default_factory=dict)

    @property
    def system(self) -> str:
        return system_text(self.prompts, self.config)

    @property
    def variables(self) -> Mapping[str, Variable]:
        fragments = {name: partial(self._fragment, name) for name in ("open_look", "inventory")}
        return {
            "box_key": self.box_key,
            "box_rule": self.box_rule,
            "part_rule": self.part_rule,
            "limit": str(self.config.max_objects),
            **(fragments if self.config.schedule == "packed" else {}),
        }

    def _fragment(self, name: str, model: str) -> str:
        """A text that is part of several prompts."""
        prompt = self.prompts[name]
        values = {each: self.variables[each] for each in prompt.variables}
        return prompt.fill(
            **{each: value if isinstance(value, str) else value(model) for each, value in values.items()}
        )

    def box_rule(self, model: str) -> str:
        width, height = self.seen(model)
        return self._rule(model, "the picture", f"which is {width} pixels wide and {height} pixels high")

    def part_rule(self, model: str) -> str:
        """How prompts say what the numbers of a box within an enlarged part are."""
        width, height = self.seen(model)
        whole = f"the whole picture is {width} pixels wide and {height} pixels high"
        return self._rule(model, "that part", f"whose width and height are listed with it; {whole}")

    def _rule(self, model: str, of: str, size: str) -> str:
        return self.prompts[f"box_{asked_box_format(model, self.config).name}"].fill(of=of, size=size)

    def seen(self, model: str) -> tuple[int, int]:
        return seen_size(model, self.image.width, self.image.height, view=self.config.view)

    def view(self, agent: str) -> View:
        """How the model that an agent asks first sees the image."""
        model = self.model_client.endpoints(agent)[0].name
        shown = shown_size(model, self.image.width, self.image.height, view=self.config.view)
        return View(self.pixels, shown, part_side(model, view=self.config.view))

    def asked_jointly(self, *agents: str) -> bool:
        """Whether these agents ask the same models."""
        return len({tuple(map(id, self.model_client.endpoints(agent))) for agent in agents}) == 1

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
        step: Step,
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

    async def enlarge(
        self, choose: Callable[[Survey], Sequence[Region]], view: View, agents: Sequence[str]
    ) -> list[Region]:
        """Cut out the regions that are chosen, for all `agents`, and keep them in `parts`.

        None where the pixels of the image cannot be had any more.
        """
        if self.source is None:
            return []
        endpoints = [endpoint for agent in agents for endpoint in self.model_client.endpoints(agent)]
        jpeg = all("image/jpeg" in each.provider.capabilities.media_types for each in endpoints)
        whole = (0, 0, *self.pixels)
        chosen: list[Region] = []

        def cuts(survey: Survey) -> list[Cut]:
            chosen.extend(choose(survey))
            if not chosen:
                return []
            small = [] if 0 in self.parts else [Cut(whole, min(WHOLE_SIDE, max(view.shown)))]
            return [*small, *(Cut(each.box, view.side_of(each.box, each.why)) for each in chosen)]

        parts = await asyncio.to_thread(
            cut_parts,
            self.source,
            cuts,
            sha256=self.source_sha256,
            jpeg=jpeg,
            max_pixels=self.max_pixels,
        )
        if not parts:
            return []
        numbers = [*([] if 0 in self.parts else [0]), *(each.number for each in chosen)]
        self.parts.update(
            (number, encode_image(**asdict(part))) for number, part in zip(numbers, parts, strict=True)
        )
        self.regions.update((each.number, each) for each in chosen)
        return chosen

    def part_row(self, number: int, model: str) -> dict[str, Any]:
        """What prompts say of a part: its number, what it shows, and its size where boxes are pixels.

        Of part 0, the whole image, it is the number alone.
        """
        row: dict[str, Any] = {"part": number}
        if not number:
            return row
        row["shows"] = self.regions[number].objects or ("whatever is there",)
        if asked_box_format(model, self.config).side is None:
            part = self.parts[number]
            row["width"], row["height"] = seen_size(model, part.width, part.height)
        return row

    def box_in(self, number: int, given: GivenBox | None) -> Box | None:
        """As `box`, for one within the part of that number; 0 is the whole image.

        None where there is no such part: nobody knows what the numbers count.
        """
        if given is None or number == 0:
            return self.box(given)
        region = self.regions.get(number)
        if region is None:
            self.boxes.given += 1
            self.boxes.unreadable += 1
            return None
        part, (x, y, right, bottom) = self.parts[number], region.box
        seen = seen_size(given.model, part.width, part.height)
        box = self.located(given, sent=seen, original=(right - x, bottom - y))
        return None if box is None else (box[0] + x, box[1] + y, box[2] + x, box[3] + y)


@cache
def _schema(forms: tuple[ListForm[Any], ...], box: BoxFormatName) -> AnswerSchema:
    """The schema of an answer with the lists of `forms`, with boxes asked for in a format.

    Calls of the packed schedule have no schema in common: few of them begin alike, and each would be billed
    for all forms.
    """
    schema = own_schema(*(asked_in(form, box) for form in forms))
    return AnswerSchema(forms[0].key if len(forms) == 1 else "look", schema, schema)


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


class _Found(TypedDict):
    found_by: str
    objects: tuple[str, ...]
    phenomenon: str
    reasoning: str
    box: Box | None


class BatchFinding(_Found, total=False):
    """What one agent of the packed schedule found wrong: `objects` by name, `box` in pixels of the image.

    An agent has to set all of `found_by`, `objects`, `phenomenon`, `reasoning` and `box`. `confidence`, 0 to
    1, is how likely it is there and a fault. `region` is the number of the enlarged part that it was seen in,
    `closer` what a closer look saw there that does not confirm it.
    """

    confidence: float | None
    kind: Kind | None
    region: int | None
    closer: str


class SecondLook(TypedDict):
    """What the enlarged part tells about the finding of that `number`."""

    number: int
    finding: BatchFinding


class Sighting(TypedDict, total=False):
    """What came of one look at the image, or at a batch of its enlarged parts.

    An agent has to set `findings`. `second` are those that answer doubts of others. `errors` are questions
    without an answer; a look may have several. `answered` says whether anything was said at all, if only that
    nothing is wrong; left out, it is True. `order` is set by the graph: it sorts findings as if nothing had
    run side by side.
    """

    findings: Required[list[BatchFinding]]
    second: list[SecondLook]
    errors: list[StepError]
    answered: bool
    order: int


class _Stands(TypedDict):
    numbers: tuple[int, ...]
    phenomenon: str
    reasoning: str
    box: Box | None


class JudgedFault(_Stands, total=False):
    """One fault as the integrator leaves it: the numbers of its findings, from 1, and what now holds.

    It has to set all of `numbers`, `phenomenon`, `reasoning` and `box`. What is missing of `name` and
    `severity`, 0 to 100, the formatter adds.
    """

    name: str
    severity: int
    kind: Kind | None
    objects: tuple[str, ...]
    confidence: float | None


class PackedState(TypedDict, total=False):
    """One image on its way through the packed schedule, or the single one.

    `objects`, `cut`: set by the perceiver, as in `AnnotateState`. `sightings`: one from each look at the
    image, and each batch of an agent. `regions`: the parts that are enlarged. `faults`, `candidates`: set by
    the integrator: the merged anomalies, and each finding with its fate. `anomalies`: set by the formatter,
    with `candidates` that say which anomaly each became. `errors`: what went wrong without ending the image,
    `failure` what ended it.
    """

    image: str
    objects: list[SceneObject]
    cut: list[SceneObject]
    sightings: Annotated[list[Sighting], operator.add]
    regions: list[Region]
    faults: list[JudgedFault]
    candidates: list[Candidate]
    anomalies: list[Anomaly]
    errors: Annotated[list[StepError], operator.add]
    failure: StepError | None


class BatchState(TypedDict):
    """One batch of regions on its way to one agent: their numbers, and the doubts that each has to answer.

    `doubts` are findings about the whole image with their numbers, `known` the texts of others, by region;
    `order` is the number of the batch, from 0. What the agent says of it is a `Sighting`.
    """

    image: str
    order: int
    regions: tuple[int, ...]
    doubts: Mapping[int, Sequence[tuple[int, BatchFinding]]]
    known: NotRequired[Mapping[int, Sequence[str]]]
    objects: list[SceneObject]


def as_findings(agent: str, faults: Iterable[Fault], image: Context) -> list[BatchFinding]:
    """What `agent` was answered, as the state has it: boxes in pixels of the image."""
    return [
        {
            "found_by": agent,
            "objects": each.objects,
            "phenomenon": each.observed,
            "reasoning": each.explanation,
            "box": image.box_in(each.part, each.box),
            "confidence": each.confidence,
            "kind": each.kind,
            "region": each.part or None,
        }
        for each in faults
    ]


# From here on sightings are of enlarged parts, before it of the whole image.
FIRST_OF_PARTS: Final = 1_000_000


def in_order(state: PackedState) -> list[Sighting]:
    """All looks at an image: at the whole of it, then at batches of its parts."""
    return sorted(state.get("sightings", []), key=lambda sighting: sighting["order"])


def numbered(state: PackedState, *, of_parts: bool = True) -> list[BatchFinding]:
    """All findings about an image, number 1 first: of the whole of it, then `of_parts`."""
    return [
        finding
        for sighting in in_order(state)
        if of_parts or sighting["order"] < FIRST_OF_PARTS
        for finding in sighting["findings"]
    ]
