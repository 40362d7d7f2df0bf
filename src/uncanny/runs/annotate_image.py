"""One image through the annotation graph, to a record that never lies about what went wrong."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from uncanny.agents import AnnotatePlan, Examination
from uncanny.client.calls import CallRecord, usage
from uncanny.errors import ImageError
from uncanny.graphs.annotate import AnnotateState, bulk_graph
from uncanny.images import PixelPolicy, PreparedImage, prepare
from uncanny.models.base import SentImage, encode_image
from uncanny.prompts import PromptSet, prompt_set
from uncanny.runs.engine import Engine
from uncanny.runs.inputs import ImageFile
from uncanny.schema import Annotation, Pixels, SentPixels, StepError

A = TypeVar("A", bound=Annotation)


@dataclass(frozen=True, slots=True)
class Annotated(Generic[A]):
    """An image's record and the calls it took."""

    record: A
    calls: list[CallRecord]


@dataclass(frozen=True, slots=True)
class ImageAnnotator:
    """Annotates one image after the other with the same models, plan, pixels and texts."""

    engine: Engine
    plan: AnnotatePlan
    policy: PixelPolicy
    model: str
    prompts: PromptSet = field(default_factory=lambda: prompt_set("annotate"))

    async def open(self, file: ImageFile) -> PreparedImage | Annotation:
        """The image ready to send, or the record that says why it cannot be read."""
        try:
            return await asyncio.to_thread(prepare, file.path, self.policy, self.engine.limits)
        except ImageError as error:
            return self._unreadable(file, error)

    async def annotate(self, file: ImageFile, image: PreparedImage) -> Annotated[Annotation]:
        """Ask the agents. Raises ModelUnusableError or BudgetError when no question can be asked any more."""
        with self.engine.caller.scope(file.image) as scope:
            examination = Examination(sent_image(image), self.engine.caller, scope, self.plan, self.prompts)
            state: AnnotateState = await bulk_graph().ainvoke({"image": file.image}, context=examination)
        return Annotated(self._record(file, image, state, scope.calls), scope.calls)

    def failed(self, file: ImageFile, image: PreparedImage, error: StepError) -> Annotation:
        """The record of an image about which nothing was found out."""
        return Annotation(
            image=file.image,
            sha256=image.source_sha256,
            width=image.width,
            height=image.height,
            status="failed",
            errors=(error,),
            file_stamp=image.stamp,
            model=self.model,
            prompts=self.prompts.id,
        )

    def _record(
        self, file: ImageFile, image: PreparedImage, state: AnnotateState, calls: list[CallRecord]
    ) -> Annotation:
        objects = state.get("objects", [])
        examined = sorted(state.get("examined", []), key=lambda one: one["order"])
        errors = [one["error"] for one in examined if one["error"] is not None]
        failure = state.get("failure")
        # When no object came through, an empty list would read as a flawless image.
        failed = failure is not None or (len(errors) >= len(examined) > 0)
        extra: dict[str, object] = {}
        if state.get("cut"):
            extra["cut_objects"] = [found.model_dump() for found in state["cut"]]
        if (models := Counter(call.model for call in calls)).keys() - {self.model}:
            extra["models"] = dict(sorted(models.items()))
        return Annotation(
            image=file.image,
            sha256=image.source_sha256,
            width=image.width,
            height=image.height,
            status="failed" if failed else "partial" if errors else "ok",
            anomalies=tuple(state.get("anomalies", ())),
            objects=tuple(objects),
            errors=(*errors, *([failure] if failure else [])),
            model=self.model,
            prompts=self.prompts.id,
            usage=usage(calls),
            pixels=pixels(image),
            file_stamp=image.stamp,
            **extra,
        )

    def _unreadable(self, file: ImageFile, error: ImageError) -> Annotation:
        return Annotation(
            image=file.image,
            sha256=None,
            width=None,
            height=None,
            status="unreadable",
            errors=(StepError(agent="image", step=0, kind=error.kind, message=str(error)),),
            model=self.model,
            prompts=self.prompts.id,
            usage=usage([]),
        )


def sent_image(image: PreparedImage) -> SentImage:
    """Encoded once, for all requests about it."""
    return encode_image(
        sha256=image.sent_sha256,
        media_type=image.media_type,
        width=image.sent_width,
        height=image.sent_height,
        data=image.sent,
    )


def pixels(image: PreparedImage) -> Pixels:
    sent = None
    if image.changes:
        sent = SentPixels(
            sha256=image.sent_sha256,
            media_type=image.media_type,
            width=image.sent_width,
            height=image.sent_height,
            bytes=len(image.sent),
        )
    return Pixels(
        format=image.source_format,
        bytes=image.source_bytes,
        changes=image.changes,
        sent=sent,
    )
