"""What annotation and detection are asked with: every parameter that changes their outcome."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from uncanny.agents.steps import PAPER, Per, Schedule

Temperature = Annotated[float, Field(ge=0, le=2)] | None
TopP = Annotated[float, Field(gt=0, le=1)] | None
OutputTokens = Annotated[int, Field(ge=1)]


class AnnotateConfig(BaseModel):
    """Parameters of the annotation pipeline, with the paper's defaults.

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
    temperature: Temperature = 0.3
    top_p: TopP = 0.95
    max_output_tokens: OutputTokens = 2_000
    formatter_output_tokens: OutputTokens = 5_000

    @property
    def schedule(self) -> Schedule:
        return PAPER

    def times(self, objects: int) -> dict[Per, int]:
        """How often each step is taken for one image with so many objects."""
        return {
            "image": 1,
            "repeat": self.repeats,
            "object": min(objects, self.max_objects),
            "scan": self.scene_scans,
        }

    def calls(self, objects: int) -> int:
        """Calls for one image with so many objects and at least one finding for each, without retries."""
        return self.schedule.calls(self.times(objects))


DetectProtocol = Literal["conversation", "independent"]


class DetectConfig(BaseModel):
    """Parameters of the detection protocol.

    `conversation` asks for the verdict and then, with it in view, for the anomalies of an image held to be
    generated or the content of one held to be real. `independent` makes two calls about every image, which
    know nothing of each other: the verdict, and the anomalies.

    Temperature 0 where the model takes one; None leaves a model's own default. The output limit is in tokens
    and doubled, up to 16,000, when an answer is cut off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    protocol: DetectProtocol = "conversation"
    temperature: Temperature = 0.0
    top_p: TopP = None
    max_output_tokens: OutputTokens = 2_000
