"""Parameters of sampling, which all protocols share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from uncanny.parameters import Parameters, Shown

if TYPE_CHECKING:
    from uncanny.models.base import Sampling

Temperature = Annotated[
    float | None,
    Field(ge=0, le=2, description="Sampling temperature, where the model takes one."),
    Shown(default="the model's own"),
]
TopP = Annotated[
    float | None,
    Field(gt=0, le=1, description="Nucleus sampling, where the model takes it."),
    Shown(label="Nucleus sampling (top p)", default="the model's own"),
]
OutputTokens = Annotated[
    int,
    Field(ge=1, le=1_000_000, description="Maximum tokens of an answer; doubled when an answer is cut off."),
    Shown(label="Maximum tokens of an answer"),
]


class SamplingParameters(Parameters):
    """How answers are sampled; each protocol has its own defaults."""

    heading = "Sampling"
    temperature: Temperature = None
    top_p: TopP = None
    max_output_tokens: OutputTokens = 2_000

    @property
    def sampling(self) -> Sampling:
        from uncanny.models.base import Sampling

        return Sampling(self.temperature, self.top_p, self.max_output_tokens)
