"""What detection is asked with: every parameter that changes its outcome."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class DetectConfig(BaseModel):
    """Parameters of the two-turn detection protocol.

    Temperature 0 where the model takes one; None leaves a model's own default. The output limit is in tokens
    and doubled, up to 16,000, when an answer is cut off.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    temperature: Annotated[float, Field(ge=0, le=2)] | None = 0.0
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] = 2_000
