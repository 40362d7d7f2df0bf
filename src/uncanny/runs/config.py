"""What a run is started with, apart from what its task asks.

How the questions of a protocol are sampled: what its plan has in common with every other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from uncanny.client.endpoint import PATIENCE_S
from uncanny.errors import UsageError
from uncanny.models.base import Sampling
from uncanny.models.registry import ModelId


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """Which models, reached how.

    `roles` gives single agents a model of their own. `base_urls` maps a provider to its server. `timeout_s`
    is for one call, `patience_s` for a model that answered before and only fails now. `prices` is a file that
    replaces entries of the built-in price table.
    """

    model: ModelId
    roles: Mapping[str, ModelId] = field(default_factory=dict)
    fallback: ModelId | None = None
    base_urls: Mapping[str, str] = field(default_factory=dict, repr=False)  # with passwords, at times
    timeout_s: float = 120.0
    patience_s: float = PATIENCE_S
    prices: Path | None = None

    def all_models(self) -> tuple[ModelId, ...]:
        found = [self.model, *self.roles.values(), *([self.fallback] if self.fallback else [])]
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How much at once, and when to stop.

    `concurrency` is the most calls in flight at each model. Limits of cost and tokens hold for the run as a
    whole, earlier sittings included; None is no limit. `answers` is the answer cache's folder, None the
    run's own; `cache` False keeps no answers at all.
    """

    concurrency: int = 32
    max_cost_usd: float | None = None
    max_tokens_total: int | None = None
    limit: int | None = None
    retry_failed: bool = True
    cache: bool = True
    answers: Path | None = None


@dataclass(frozen=True, slots=True)
class SamplingConfig:
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
