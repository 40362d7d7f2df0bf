"""Parameters of runs, apart from what their tasks ask: models, limits, callbacks.

Functions that ask models inherit these parameters. The machinery of a run takes `ModelOptions` and
`RunOptions`, which are made of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from uncanny.client.endpoint import PATIENCE_S, TIMEOUT_S
from uncanny.errors import UsageError
from uncanny.models.registry import WITHOUT_NAME, ModelId, is_provider
from uncanny.wording import option


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
    timeout_s: float = TIMEOUT_S
    patience_s: float = PATIENCE_S
    prices: Path | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        for name, value in (("timeout_s", self.timeout_s), ("patience_s", self.patience_s)):
            if not 0 < value < math.inf:
                raise UsageError(f"{option(name)} must be above 0, not {value!r}")
        for provider in self.base_urls:
            if provider in WITHOUT_NAME or not is_provider(provider):
                what = "has no server" if provider in WITHOUT_NAME else "is not a provider"
                raise UsageError(
                    f"{option('base_url')} is an address for {provider}, which {what}",
                    remedy="Leave it out, or say which provider's it is.",
                )

    def all_models(self) -> tuple[ModelId, ...]:
        models = [self.model, *self.roles.values(), *([self.fallback] if self.fallback else [])]
        return tuple(dict.fromkeys(models))


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How much at once, and when to stop.

    `concurrency` is the most calls in flight at each model. Limits of cost and tokens hold for the run as a
    whole, earlier sessions included; None is no limit. `answers` is the answer cache's folder, None the
    run's own; `cache` False keeps no answers at all.
    """

    concurrency: int = 32
    max_cost_usd: float | None = None
    max_tokens_total: int | None = None
    limit: int | None = None
    retry_failed: bool = True
    keep_missing: bool = False
    cache: bool = True
    answers: Path | None = None

    def __post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        for name, value in (
            ("concurrency", self.concurrency),
            ("max_tokens_total", self.max_tokens_total),
            ("limit", self.limit),
        ):
            if value is not None and value < 1:
                raise UsageError(f"{option(name)} must be at least 1, not {value!r}")
        if self.max_cost_usd is not None and not 0 < self.max_cost_usd < math.inf:
            raise UsageError(f"{option('max_cost_usd')} must be above 0, not {self.max_cost_usd!r}")
