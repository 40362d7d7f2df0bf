"""What the annotating agents generate through: rules that hold for all of them, boxes, and enlarged parts.

Boxes are asked for in the form that the model of the agent was trained on, and are pixels of the original
image everywhere else.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import BaseModel

from uncanny.agents.boxes import BoxContext, asked_box_format
from uncanny.agents.config import AnnotateConfig
from uncanny.agents.context import schema_of
from uncanny.agents.steps import PACKED, ListStep
from uncanny.answers import own_schema, shared_schema
from uncanny.answers.boxes import BoxFormatName, in_format
from uncanny.answers.packed import PACKED_FORMS, asked_in
from uncanny.images.crops import crops
from uncanny.models.base import AnswerSchema, SentImage, encode_image
from uncanny.prompts import PromptSet
from uncanny.schema import Box

# Room around a part that is shown enlarged, as a share of its sides.
MARGIN: Final = 1.5


def system_text(prompts: PromptSet, config: AnnotateConfig) -> str:
    """The rules for all agents, with how strict they are and the language of the answers."""
    text = prompts["system"]
    if not text.template.get_identifiers():  # of an earlier version, or the user's own
        return text.fill()
    strictness = prompts[config.strictness].template.template
    return text.fill(strictness=strictness, language=config.language)


def answer_schema(step: ListStep[Any], model: str, config: AnnotateConfig) -> AnswerSchema:
    """What answers of a step are constrained to, where the model of this name gives them."""
    if config.schedule == "paper":
        return schema_of(step.form.key)
    return _schema(step.form.key, asked_box_format(model, config).name, alone=not step.sees_image)


@dataclass(frozen=True, slots=True)
class AnnotateContext(BoxContext[AnnotateConfig]):
    """`ImageContext` of an image that is annotated.

    `source` is where its pixels are at full resolution, None where they cannot be had; a file has the digest
    `source_sha256` unless it was changed meanwhile.
    """

    source: Path | bytes | None = field(default=None, repr=False)
    source_sha256: str | None = None

    @property
    def system(self) -> str:
        return system_text(self.prompts, self.config)

    def shown(self, agent: str, items: Sequence[tuple[Mapping[str, Any], Box | None]]) -> str:
        """Items as an agent's prompt shows them, one a line, with boxes in the form its model knows."""
        form = self.box_format(agent)
        lines = []
        for values, box in items:
            row: dict[str, Any] = {key: value for key, value in values.items() if value not in (None, (), "")}
            if box is not None:
                row[form.key] = in_format(box, form, sent=self._seen(agent), original=self.pixels)
            # Names are a model's own words: none of them may end the block that they stand in.
            lines.append(orjson.dumps(row).decode().replace("</", "<\\/"))
        return "\n".join(lines)

    def schema(self, step: ListStep[BaseModel]) -> AnswerSchema:
        return answer_schema(step, self._model(step.agent), self.config)

    async def enlarged(self, boxes: Sequence[Box]) -> tuple[SentImage, ...]:
        """Parts of the image at full resolution; none where its pixels cannot be had any more."""
        if self.source is None or not boxes:
            return ()
        return tuple(
            encode_image(
                sha256=crop.sha256,
                media_type="image/png",
                width=crop.width,
                height=crop.height,
                data=crop.data,
            )
            for crop in await asyncio.to_thread(crops, self.source, boxes, MARGIN, sha256=self.source_sha256)
        )


@cache
def _schema(key: str, box: BoxFormatName, *, alone: bool) -> AnswerSchema:
    """The schema of a packed form.

    Calls that see the image share one, so that they share their prefix; one that stands `alone` has its own.
    """
    forms = {form.key: asked_in(form, box) for form in PACKED_FORMS}
    seeing = {step.form.key for step in PACKED.steps if step.sees_image and isinstance(step, ListStep)}
    shared = (forms[key],) if alone else tuple(form for form in forms.values() if form.key in seeing)
    return AnswerSchema(key, own_schema(forms[key]), shared_schema(shared))
