"""How the questions of a protocol are sampled: what its plan has in common with every other."""

from __future__ import annotations

from dataclasses import dataclass

from uncanny.errors import UsageError
from uncanny.providers.base import Sampling


@dataclass(frozen=True, slots=True)
class SamplingPlan:
    """Sent where the model takes it; None leaves a model's own default.

    `max_output_tokens` is doubled when an answer is cut off.
    """

    temperature: float | None
    top_p: float | None
    max_output_tokens: int

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        temperature, top_p, limit = self.temperature, self.top_p, self.max_output_tokens
        if temperature is not None and not 0 <= temperature <= 2:
            raise UsageError(f"temperature must be 0 to 2, not {temperature!r}")
        if top_p is not None and not 0 < top_p <= 1:
            raise UsageError(f"top-p must be above 0, at most 1, not {top_p!r}")
        if limit < 1:
            raise UsageError(f"max-output-tokens must be at least 1, not {limit!r}")

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.top_p, self.max_output_tokens)
