"""What a run is started with, apart from what its task asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from uncanny.providers.lane import PATIENCE_S
from uncanny.providers.registry import ModelId


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
