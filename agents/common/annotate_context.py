"""What the annotating agents generate through: rules that hold for all of them, boxes, and enlarged parts.

Boxes are asked for in the form that the model was trained on, also that of a fallback, and are pixels of the
original image everywhere else.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import orjson
from pydantic import BaseModel

from uncanny.agents.common.context import BoxContext, Variable, Wording, asked_box_format, schema_of
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.steps import PACKED, ListStep
from uncanny.answers.boxes import BoxFormatName, in_format
from uncanny.answers.forms import ListForm, own_schema, shared_schema
from uncanny.answers.lists import FirstItems, read_first
from uncanny.answers.packed import PACKED_FORMS, asked_in, given_by
from uncanny.images.crops import crops
from uncanny.images.encode import PixelPolicy
from uncanny.models.base import AnswerSchema, Part, SentImage, encode_image
from uncanny.prompts import PromptSet
from uncanny.schema import Box

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
        return tuple(
            encode_image(
                sha256=crop.sha256,
                media_type=crop.media_type,
                width=crop.width,
                height=crop.height,
                data=crop.data,
            )
            for crop in await asyncio.to_thread(cut)
        )


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
