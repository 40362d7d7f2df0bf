"""One image under examination: what agents need in order to ask about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, TypeVar

from pydantic import BaseModel

from uncanny.agents.annotate_config import AnnotateConfig
from uncanny.agents.failure import PROBLEMS, StepFailedError
from uncanny.answers import FORMS, ListForm, own_schema, read_list, shared_schema
from uncanny.answers.json_text import read_text
from uncanny.client.calls import CallScope
from uncanny.client.client import ModelClient
from uncanny.errors import AnswerError
from uncanny.models.base import AnswerSchema, Message, ModelRequest, Part, Sampling, SentImage
from uncanny.prompts import Prompt, PromptSet, prompt_set

T = TypeVar("T", bound=BaseModel)
R = TypeVar("R")

Agent = Literal[
    "ObjectPerceiver",
    "AttributeAnalyzer",
    "RelationReasoner",
    "AnomalyIntegrator",
    "AnomalyFormatter",
    "SceneScanner",
]
ROLES: dict[str, Agent] = {
    "perceiver": "ObjectPerceiver",
    "attributes": "AttributeAnalyzer",
    "relations": "RelationReasoner",
    "integrator": "AnomalyIntegrator",
    "formatter": "AnomalyFormatter",
    "scanner": "SceneScanner",
}


@dataclass(frozen=True, slots=True)
class Step:
    """Which question of which agent: for records, and so that a model's own route is found.

    `subject` is the object's name, None for the whole image; `sample` tells repeats apart.
    """

    agent: Agent
    step: int
    prompt: str
    subject: str | None = None
    sample: int = 0
    sees_image: bool = True


@dataclass(frozen=True, slots=True)
class ImageContext:
    """An image, the models to ask, and the log of what was asked.

    Every request about the image starts with the same bytes: system text, image, then what differs, so that
    providers can reuse what they have computed for it.
    """

    image: SentImage
    model_client: ModelClient
    scope: CallScope
    config: AnnotateConfig = field(default_factory=AnnotateConfig)
    prompts: PromptSet = field(default_factory=lambda: prompt_set("annotate"))

    async def text(self, step: Step, *context: str, **variables: str) -> str:
        """A free-text answer.

        Raises StepFailedError, or ModelUnusableError or BudgetError when no question can be asked any more.
        """
        return await self._ask(step, context, variables, None, read_text, "repair_text")

    async def items(
        self,
        step: Step,
        form: ListForm[T],
        *context: str,
        max_tokens: int | None = None,
        **variables: str,
    ) -> tuple[T, ...]:
        """A validated list. Raises what `text` raises."""
        return await self._ask(
            step,
            context,
            variables,
            schema_of(form.key),
            lambda text: read_list(text, form),
            "repair",
            max_tokens,
        )

    async def _ask(
        self,
        step: Step,
        context: Sequence[str],
        variables: dict[str, str],
        schema: AnswerSchema | None,
        read: Callable[[str], R],
        repair: str,
        max_tokens: int | None = None,
    ) -> R:
        prompt = self.prompts[step.prompt]
        request = ModelRequest(
            messages=self._messages(prompt, step, context, variables),
            sampling=Sampling(
                self.config.temperature, self.config.top_p, max_tokens or self.config.max_output_tokens
            ),
            schema=schema,
            sample=step.sample,
            agent=step.agent,
            step=step.step,
            subject=step.subject,
        )
        repair_prompt = self.prompts[repair]

        def reworded(error: AnswerError) -> str:
            return repair_prompt.fill(problem=error.message)

        try:
            return await self.model_client.generate(
                request, read, prompt=prompt.id, repair=reworded, scope=self.scope
            )
        except PROBLEMS as problem:
            raise StepFailedError(step.agent, step.step, step.subject, problem) from problem

    def _messages(
        self, prompt: Prompt, step: Step, context: Sequence[str], variables: dict[str, str]
    ) -> tuple[Message, ...]:
        system = Message("system", (self.prompts["system"].template.template,), shared=1)
        shared: tuple[Part, ...] = (self.image, *context) if step.sees_image else tuple(context)
        return system, Message("user", (*shared, prompt.fill(**variables)), shared=len(shared))


@cache
def schema_of(key: str) -> AnswerSchema:
    form = next(form for form in FORMS if form.key == key)
    return AnswerSchema(key, own_schema(form), shared_schema())


def as_json(items: BaseModel | Sequence[BaseModel]) -> str:
    """Records as prompts show them."""
    if isinstance(items, BaseModel):
        return items.model_dump_json()
    return "[" + ",".join(item.model_dump_json() for item in items) + "]"
