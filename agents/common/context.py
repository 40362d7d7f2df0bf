"""What agents generate through: the one place where a request is built, repaired, and its failure recorded.

`AgentContext` holds what all calls about one input share; a protocol's own context adds the input. Messages
start with what most calls have in common, system text and pictures, so that providers can reuse what they
have computed for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from pydantic import BaseModel

from uncanny.agents.steps import Step
from uncanny.answers.boxes import (
    BOX_FORMATS,
    BoxFormat,
    BoxFormatName,
    GivenBox,
    box_format,
    pixels,
)
from uncanny.answers.forms import FORMS, ListForm, own_schema, shared_schema
from uncanny.answers.json_text import read_text
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient, Question
from uncanny.errors import (
    AnswerError,
    ProviderDefectError,
    RefusedError,
    RequestRejectedError,
    StepFailedError,
    TransientError,
    TruncatedError,
    UncannyError,
)
from uncanny.models.base import (
    AnswerSchema,
    Message,
    ModelRequest,
    Painting,
    Part,
    Sampling,
    SentImage,
)
from uncanny.models.views import seen_size
from uncanny.prompts import Prompt, PromptSet, make_prompt
from uncanny.schema import Box, StepError

R = TypeVar("R")
# What is filled into a prompt: a text, or one that the name of the model makes.
Variable = str | Callable[[str], str]

FailureKind = Literal["unparseable", "refused", "truncated", "infrastructure", "rejected", "defect"]
_KINDS: Final[dict[type[UncannyError], FailureKind]] = {
    AnswerError: "unparseable",
    RefusedError: "refused",
    TruncatedError: "truncated",
    TransientError: "infrastructure",
    RequestRejectedError: "rejected",
    ProviderDefectError: "defect",
}
# What costs one step its answer. Any other error of a call ends the run.
STEP_ERRORS: Final = tuple(_KINDS)


def failure_kind(error: UncannyError) -> FailureKind:
    """The kind of one of `STEP_ERRORS`, or of a subclass."""
    return next(_KINDS[each] for each in type(error).__mro__ if each in _KINDS)


def step_failed(agent: str, step: int, subject: str | None, error: UncannyError) -> StepFailedError:
    """`error`, one of `STEP_ERRORS`, as what ended a step."""
    record = StepError(agent=agent, step=step, object=subject, kind=failure_kind(error), message=str(error))
    return StepFailedError(error, record)


class SamplingSettings(Protocol):
    """What every protocol's configuration says about sampling."""

    @property
    def temperature(self) -> float | None: ...
    @property
    def top_p(self) -> float | None: ...
    @property
    def max_output_tokens(self) -> int: ...


C = TypeVar("C", bound=SamplingSettings)


@dataclass(frozen=True, slots=True)
class Wording(Generic[R]):
    """What one model is asked: messages, how the answer is read, and the schema that constrains it."""

    messages: tuple[Message, ...]
    read: Callable[[str], R]
    schema: AnswerSchema | None = None


@dataclass(frozen=True, slots=True)
class AgentContext(Generic[C]):
    """The models to ask about one input, the log of calls about it, parameters and texts."""

    model_client: ModelClient
    scope: CallScope
    config: C
    prompts: PromptSet

    async def generate(
        self,
        step: Step,
        messages: tuple[Message, ...],
        read: Callable[[str], R],
        *,
        repair: Callable[[AnswerError], str] | None = None,
        subject: str | None = None,
        batch: Sequence[str] = (),
        sample: int = 0,
        schema: AnswerSchema | None = None,
        max_output_tokens: int | None = None,
        prompt_id: str | None = None,
        fallback: Callable[[str], Wording[R]] | None = None,
        painting: Painting | None = None,
    ) -> R:
        """The answer to `messages`, as `read` has it; `read` raises AnswerError where it does not validate.

        `repair` words the request that follows such an answer; None is for a `read` that takes every answer.
        `subject` is the object's name, None for the whole input or a `batch` of names; `sample` tells repeats
        apart, which are otherwise one call. `prompt_id` names the text in records where it is none of
        `prompts`. `fallback` words it for a fallback of that name; None asks it the same. `painting` asks for
        a picture.

        Raises StepFailedError; or what `uncanny.errors.ENDS_RUN` names when no call can be made any more.
        """
        config = self.config
        request = ModelRequest(
            messages=messages,
            sampling=Sampling(
                config.temperature, config.top_p, max_output_tokens or config.max_output_tokens
            ),
            schema=schema,
            sample=sample,
            agent=step.agent,
            step=step.number,
            subject=subject,
            batch=tuple(batch),
            painting=painting,
        )

        def question(model: str) -> Question[R]:
            assert fallback is not None
            worded = fallback(model)
            return Question(replace(request, messages=worded.messages, schema=worded.schema), worded.read)

        try:
            return await self.model_client.generate(
                request,
                read,
                prompt=prompt_id or prompt_of(step, self.prompts, sample).id,
                repair=repair or _raise,
                scope=self.scope,
                fallback=None if fallback is None else question,
            )
        except STEP_ERRORS as error:
            raise step_failed(step.agent, step.number, subject, error) from error

    def repair(self, prompt: str, **variables: str) -> Callable[[AnswerError], str]:
        """The request to answer again, worded by the text `prompt`."""
        text = self.prompts[prompt]
        return lambda error: text.fill(problem=error.message, **variables)

    def opening(self, parts: Sequence[Part], text: str, *, shared: int | None = None) -> tuple[Message, ...]:
        """System text, then one user turn: `parts`, then `text`.

        The first `shared` of the parts are the same in many calls; None means all of them.
        """
        return opening(self.system, parts, text, shared=shared)

    @property
    def system(self) -> str:
        """The system text of all calls."""
        return self.prompts["system"].fill()

    @property
    def variables(self) -> Mapping[str, Variable]:
        """What is filled into every prompt that has a variable of that name, beside what a call gives."""
        return {}

    @property
    def named(self) -> str:
        """Whose prompts they are, in messages."""
        return f"`{self.prompts.name}`"

    def filled(self, step: Step, model: str, sample: int, given: Mapping[str, Variable]) -> str:
        """The prompt of a step as the model of this name is asked.

        Raises ExtensionError that names the variables that neither the call nor `variables` fills in.
        """
        prompt, values = prompt_of(step, self.prompts, sample), {**self.variables, **given}
        prompt.check(values, of=self.named)
        named = ((name, values[name]) for name in prompt.variables)
        return prompt.fill(**{name: each if isinstance(each, str) else each(model) for name, each in named})


@dataclass(frozen=True, slots=True)
class ImageContext(AgentContext[C]):
    """`AgentContext` of a single image."""

    image: SentImage

    async def text(
        self,
        step: Step,
        *shared: str,
        subject: str | None = None,
        sample: int = 0,
        **variables: Variable,
    ) -> str:
        """A free-text answer to the prompt of `step` with its `variables` filled in.

        `shared` texts go between picture and prompt. An answer without words is asked for again where the set
        has a prompt `repair_text`. A variable that is a function is filled in for the model
        that is asked, so that a fallback is asked as it was trained. Raises what `generate` raises, and
        ExtensionError for a variable of the prompt that nobody fills in.
        """

        def worded(model: str) -> Wording[str]:
            return Wording(self.messages(step, model, shared, sample, variables), read_text)

        return await self.generate(
            step,
            worded(self.first_model(step)).messages,
            read_text,
            repair=self.repair("repair_text") if "repair_text" in self.prompts.prompts else None,
            subject=subject,
            sample=sample,
            fallback=worded,
        )

    def first_model(self, step: Step) -> str:
        """The name of the model that the agent of a step asks first."""
        return self.model_client.endpoints(step.agent)[0].name

    def messages(
        self,
        step: Step,
        model: str,
        shared: tuple[str, ...],
        sample: int,
        variables: Mapping[str, Variable],
        extra: Sequence[Part] = (),
    ) -> tuple[Message, ...]:
        """What a call of `step` begins with: system text, picture, `shared` and `extra` parts, prompt."""
        parts: tuple[Part, ...] = (self.image, *shared) if step.sees_image else shared
        text = self.filled(step, model, sample, variables)
        return self.opening((*parts, *extra), text, shared=0 if step.alone else len(parts))


def opening(
    system: str, parts: Sequence[Part], text: str, *, shared: int | None = None
) -> tuple[Message, ...]:
    """As `AgentContext.opening`, with a system text of its own; an empty one is left out."""
    user = Message("user", (*parts, text), shared=len(parts) if shared is None else shared)
    return (Message("system", (system,), shared=1), user) if system else (user,)


@cache
def schema_of(form: ListForm[Any]) -> AnswerSchema:
    """The schema of a form, beside the one that the forms of the paper's schedule share."""
    return AnswerSchema(form.key, own_schema(form), shared_schema(FORMS if form in FORMS else (form,)))


def prompt_of(step: Step, prompts: PromptSet, sample: int = 0) -> Prompt:
    """The prompt of a step for repeat `sample`: its own text, or that of the set."""
    return prompts[step.prompt_name(sample)] if step.text is None else _own_prompt(step.prompt, step.text)


_own_prompt = cache(make_prompt)


def as_json(items: BaseModel | Sequence[BaseModel]) -> str:
    """Records as prompts show them: what is not known is left out."""
    if isinstance(items, BaseModel):
        return items.model_dump_json(exclude_none=True)
    return "[" + ",".join(as_json(item) for item in items) + "]"


def _raise(error: AnswerError) -> str:
    raise error


class BoxSettings(SamplingSettings, Protocol):
    """What a configuration says besides where answers have boxes: their form, None to go by the model."""

    @property
    def box_format(self) -> BoxFormatName | None: ...


B = TypeVar("B", bound=BoxSettings)


def asked_box_format(model: str, config: BoxSettings) -> BoxFormat:
    """How the model of this name is asked for boxes."""
    return box_format(model) if config.box_format is None else BOX_FORMATS[config.box_format]


@dataclass(slots=True)
class BoxCount:
    """Boxes that models gave, how many of them could not be one, and the formats they were asked for in."""

    given: int = 0
    unreadable: int = 0
    formats: set[BoxFormatName] = field(default_factory=set)

    def as_recorded(self) -> dict[str, Any]:
        return {"given": self.given, "unreadable": self.unreadable, "formats": sorted(self.formats)}


@dataclass(frozen=True, slots=True)
class BoxContext(ImageContext[B]):
    """`ImageContext` of an image in which things are located.

    `size` is its width and height before it was scaled for sending, None where it was not. `boxes` counts as
    it goes.
    """

    size: tuple[int, int] | None = None
    boxes: BoxCount = field(default_factory=BoxCount)

    @property
    def variables(self) -> Mapping[str, Variable]:
        return {"box_key": self.box_key, "box_rule": self.box_rule}

    def box_key(self, model: str) -> str:
        """The key under which the prompts of the model of this name ask for boxes."""
        return asked_box_format(model, self.config).key

    def box_rule(self, model: str) -> str:
        """How its prompts say what the numbers of a box are."""
        width, height = self.seen(model)
        form = asked_box_format(model, self.config)
        return self.prompts[f"box_{form.name}"].fill(width=str(width), height=str(height))

    def box(self, given: GivenBox | None) -> Box | None:
        """A box as a model gave it, in pixels of the original image; None where it cannot be one."""
        if given is None:
            return None
        return self.located(given, sent=self.seen(given.model), original=self.pixels)

    def located(self, given: GivenBox, *, sent: tuple[int, int], original: tuple[int, int]) -> Box | None:
        """As `box`, where the model saw `original` pixels of the image at the size `sent`."""
        form = asked_box_format(given.model, self.config)
        box = pixels(given, form, sent=sent, original=original)
        self.boxes.formats.add(form.name)
        self.boxes.given += 1
        self.boxes.unreadable += box is None
        return box

    @property
    def pixels(self) -> tuple[int, int]:
        """Width and height of the original image."""
        return self.size or (self.image.width, self.image.height)

    def seen(self, model: str) -> tuple[int, int]:
        """The size at which the model sees the image, which is what its pixels count."""
        return seen_size(model, self.image.width, self.image.height)
