"""What an annotation is asked with: every parameter that changes its outcome, with the paper's defaults."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class AnnotateConfig(BaseModel):
    """Parameters of the annotation pipeline.

    `repeats` perceiver drafts are merged into one object list, `max_objects` of them are examined (the
    figure bounds cost; what it cuts is recorded). `scene_scans` whole-image passes are added to what the
    formatter gets (the authors' released code runs three, the paper none). Sampling parameters are sent to
    models that take them; None leaves a model's own default. Output limits are in tokens and doubled, up to
    16,000, when an answer is cut off.

    Source: AnomReason, section 2 and appendix D; the sampling parameters are the authors' released settings.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    repeats: Annotated[int, Field(ge=1, le=100)] = 3
    max_objects: Annotated[int, Field(ge=1, le=1_000)] = 12
    scene_scans: Annotated[int, Field(ge=0, le=100)] = 0
    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.3
    top_p: Annotated[float, Field(gt=0, le=1)] | None = 0.95
    max_output_tokens: Annotated[int, Field(ge=1)] = 2_000
    formatter_output_tokens: Annotated[int, Field(ge=1)] = 5_000

    def calls(self, objects: int) -> int:
        """Calls for one image with so many objects and at least one finding for each, without retries."""
        return self.repeats + self.scene_scans + 6 * min(objects, self.max_objects) + 1

    def as_recorded(self) -> dict[str, Any]:
        return self.model_dump()
