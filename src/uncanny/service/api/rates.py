"""How often somebody may ask: reads and changes by token, failed attempts to log in by address.

Counted in the memory of this process, so of several processes each counts for itself.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Literal

from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from uncanny.service.api.errors import ApiError

Group = Literal["reads", "writes", "logins"]


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a minute. `logins` counts the attempts that failed, of one address."""

    reads: int = 6_000
    writes: int = 1_200
    logins: int = 20


class RateLimiter:
    """Safe from threads."""

    def __init__(self, rates: Rates) -> None:
        self._limits = {name: RateLimitItemPerMinute(most) for name, most in asdict(rates).items()}
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())

    def hit(self, group: Group, key: str) -> None:
        """Count one. Raises ApiError 429, which says when to come again."""
        if self._limiter.hit(self._limits[group], group, key):
            return
        reset = self._limiter.get_window_stats(self._limits[group], group, key).reset_time
        wait = max(1, math.ceil(reset - time.time()))
        raise ApiError(429, headers={"Retry-After": str(min(wait, 60))})
