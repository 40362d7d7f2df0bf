"""One model as a run uses it: the provider with everything that guards it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from uncanny.errors import ModelUnusableError
from uncanny.providers.base import Provider, Request, Tokens
from uncanny.providers.breaker import Breaker
from uncanny.providers.budget import Spend
from uncanny.providers.limiter import Limiter

PATIENCE_S = 120.0


@dataclass(slots=True)
class Lane:
    """A provider, its limiter and breaker, and what it costs.

    `price` gives US dollars for tokens, None where the model has no known price. `worst_case` estimates the
    most one request can use, for budgets. `endpoint` stands for the server in the answer cache's keys. `dead`
    is why the model is not asked any more.
    """

    provider: Provider
    limiter: Limiter
    breaker: Breaker
    price: Callable[[Tokens], float | None]
    worst_case: Callable[[Request], Tokens]
    endpoint: str | None
    dead: ModelUnusableError | None = field(default=None)

    @property
    def name(self) -> str:
        return self.provider.name

    def spend(self, tokens: Tokens) -> Spend:
        """What the budget books. Unknown prices count as nothing: a cost limit refuses them at the start."""
        return Spend((tokens.input or 0) + (tokens.output or 0), self.price(tokens) or 0.0)


def lane(
    provider: Provider,
    concurrency: int,
    *,
    price: Callable[[Tokens], float | None],
    worst_case: Callable[[Request], Tokens],
    patience_s: float = PATIENCE_S,
    endpoint: str | None = None,
) -> Lane:
    """Build one. `endpoint` replaces the provider's own where that changes from start to start."""
    limiter = Limiter(concurrency, fixed=provider.traits.fixed_concurrency)
    breaker = Breaker(provider.name, patience_s)
    return Lane(provider, limiter, breaker, price, worst_case, endpoint or provider.endpoint)
