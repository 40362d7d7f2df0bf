"""One image through the detection graph, to its record."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from uncanny.agents.detect_plan import DetectPlan
from uncanny.agents.source_detector import Conversation
from uncanny.client.calls import CallRecord, usage
from uncanny.errors import ImageError
from uncanny.graphs.detect import DetectState, detect_graph
from uncanny.images import PixelPolicy, PreparedImage, prepare
from uncanny.prompts import PromptSet, prompt_set
from uncanny.runs.annotate_image import Annotated, pixels, sent_image
from uncanny.runs.engine import Engine
from uncanny.runs.inputs import ImageFile
from uncanny.schema import Detection, Status, StepError


@dataclass(frozen=True, slots=True)
class ImageDetector:
    """Judges one image after the other with the same models, plan, pixels and texts."""

    engine: Engine
    plan: DetectPlan
    policy: PixelPolicy
    model: str
    prompts: PromptSet = field(default_factory=lambda: prompt_set("detect"))

    async def open(self, file: ImageFile) -> PreparedImage | Detection:
        """The image ready to send, or the record that says why it cannot be read."""
        try:
            return await asyncio.to_thread(prepare, file.path, self.policy, self.engine.limits)
        except ImageError as error:
            why = StepError(agent="image", step=0, kind=error.kind, message=str(error))
            return self._detection(file, None, "unreadable", errors=(why,), usage=usage([]))

    async def annotate(self, file: ImageFile, image: PreparedImage) -> Annotated[Detection]:
        """Ask both turns. Raises ModelUnusableError or BudgetError when no question can be asked any more."""
        with self.engine.caller.scope(file.image) as scope:
            talk = Conversation(sent_image(image), self.engine.caller, scope, self.plan, self.prompts)
            state: DetectState = await detect_graph().ainvoke({"image": file.image}, context=talk)
        return Annotated(self._record(file, image, state, scope.calls), scope.calls)

    def failed(self, file: ImageFile, image: PreparedImage, error: StepError) -> Detection:
        """The record of an image about which nothing was found out."""
        return self._detection(file, image, "failed", errors=(error,))

    def _record(
        self, file: ImageFile, image: PreparedImage, state: DetectState, calls: list[CallRecord]
    ) -> Detection:
        verdict, listing, failure = state.get("verdict"), state.get("listing"), state.get("failure")
        status: Status = "ok" if failure is None else "failed" if verdict is None else "partial"
        extra: dict[str, Any] = {}
        if len(models := Counter(call.model for call in calls)) > 1:
            extra["models"] = dict(sorted(models.items()))
        return self._detection(
            file,
            image,
            status,
            anomalies=() if listing is None else listing.anomalies,
            errors=() if failure is None else (failure,),
            usage=usage(calls),
            source=None if verdict is None else verdict.source,
            verdict=None if verdict is None else verdict.raw,
            refused=verdict is not None and verdict.refused,
            listing=None if listing is None else listing.raw,
            description=state.get("description"),
            **extra,
        )

    def _detection(
        self, file: ImageFile, image: PreparedImage | None, status: Status, **more: Any
    ) -> Detection:
        return Detection(
            image=file.image,
            sha256=None if image is None else image.source_sha256,
            width=None if image is None else image.width,
            height=None if image is None else image.height,
            status=status,
            model=self.model,
            prompts=self.prompts.id,
            pixels=None if image is None else pixels(image),
            file_stamp=None if image is None else image.stamp,
            **more,
        )
